//! Secrets: tokens, passwords, and addresses that contain one. They come from an environment variable or a file that no
//! other user may read, and are never shown.

use std::fmt;
use std::path::{Path, PathBuf};

use longhaul_measure::private_files;

use crate::outcome::SettingsError;

/// Shortest secret that is searched for in a text.
const MIN_HIDDEN_BYTES: usize = 4;

/// A secret. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Creates a secret from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret, to send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns a text without the secret, in case a receiver repeats it in its answer.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.len() < MIN_HIDDEN_BYTES { text.to_owned() } else { text.replace(&self.0, "…") }
    }
}

/// Source of a secret, with the part of its key in the configuration that comes before `-env` and `-file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The text itself, for an address that contains no secret.
    Literal {
        /// Key of the configuration.
        key: &'static str,
        /// The text.
        text: Secret,
    },
    /// An environment variable of the service.
    Variable {
        /// Key of the configuration.
        key: &'static str,
        /// Name of the variable.
        name: String,
    },
    /// A file that no other user may read.
    File {
        /// Key of the configuration.
        key: &'static str,
        /// Path of the file.
        path: PathBuf,
    },
}

impl SecretSource {
    /// Returns the key of the configuration that names the source, such as `token-file`.
    pub fn key(&self) -> String {
        match self {
            Self::Literal { key, .. } => (*key).to_owned(),
            Self::Variable { key, .. } => format!("{key}-env"),
            Self::File { key, .. } => format!("{key}-file"),
        }
    }

    /// Reads the secret. Spaces and line breaks around it are removed.
    ///
    /// # Errors
    ///
    /// If there is none, it cannot be read, or other users can read it.
    pub fn read(&self) -> Result<Secret, SettingsError> {
        let text = match self {
            Self::Literal { text, .. } => text.reveal().to_owned(),
            Self::Variable { name, .. } => {
                let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
                value.ok_or_else(|| SettingsError::MissingVariable { key: self.key(), name: name.clone() })?
            }
            Self::File { path, .. } => self.read_file(path)?,
        };
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err(SettingsError::InvalidSecret(self.key()));
        }
        Ok(Secret::new(text))
    }

    fn read_file(&self, path: &Path) -> Result<String, SettingsError> {
        let unreadable =
            |source| SettingsError::UnreadableFile { key: self.key(), path: path.to_owned(), source };
        let text = private_files::read_secret(path).map_err(unreadable)?;
        if text.trim().is_empty() {
            return Err(SettingsError::EmptyFile { key: self.key(), path: path.to_owned() });
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, SecretSource) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, SecretSource::File { key: "token", path })
    }

    #[test]
    fn private_file_is_read_without_its_line_break() {
        let (_folder, source) = file("tk_secret\n", 0o600);
        assert_eq!(source.read().unwrap().reveal(), "tk_secret");
        assert!(!format!("{:?}", source.read().unwrap()).contains("tk_"));
    }

    #[test]
    fn file_that_others_can_read_is_refused() {
        for mode in [0o640, 0o604, 0o660] {
            let (_folder, source) = file("x", mode);
            let error = source.read().unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains("`token-file`"), "{error}");
        }
    }

    #[test]
    fn missing_or_unusable_secret_names_its_key() {
        let variable = SecretSource::Variable { key: "token", name: "LONGHAUL_NO_SUCH_VARIABLE".to_owned() };
        let missing = SecretSource::File { key: "password", path: "/nonexistent/password".into() };
        for (source, key) in [(variable, "`token-env`"), (missing, "`password-file`")] {
            let error = source.read().unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        let (_folder, two_lines) = file("a\nb", 0o600);
        assert!(matches!(two_lines.read(), Err(SettingsError::InvalidSecret(_))));
        let (_folder, empty) = file(" \n", 0o600);
        assert!(matches!(empty.read(), Err(SettingsError::EmptyFile { .. })));
    }

    #[test]
    fn repeated_secret_is_hidden_in_an_answer() {
        assert_eq!(Secret::new("tk_secret").redact("no user tk_secret here"), "no user … here");
    }
}
