//! The key with which other machines may read the pages and the JSON, for widgets of other dashboards. Unlike the token of
//! the service it stays the same after a restart, and it allows no command.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use longhaul_measure::private_files;

/// Shortest key that is accepted, in characters.
const MIN_CHARS: usize = 32;

/// Returns the path of a database's read key.
fn path(database: &Path) -> PathBuf {
    database.with_extension("read-key")
}

/// Returns the read key of a database; the first call makes one, readable by its owner only.
///
/// # Errors
///
/// If the file cannot be read or made, others may read it, or its key is too short. The text names the file.
pub fn load_or_create(database: &Path) -> Result<String, String> {
    let path = path(database);
    let key = match private_files::read_secret(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => create(&path),
        text => text.and_then(|text| accepted(&text)),
    };
    key.map_err(|error| {
        format!("{}: {error}. Delete the file: a new key is made at the next start", path.display())
    })
}

fn create(path: &Path) -> io::Result<String> {
    let key = longhaul_web::new_token()?;
    let mut file = private_files::options().write(true).create_new(true).open(path)?;
    writeln!(file, "{key}")?;
    Ok(key)
}

/// Returns the key that a text has, if it is long enough.
fn accepted(text: &str) -> io::Result<String> {
    match text.trim() {
        key if key.len() < MIN_CHARS => {
            Err(io::Error::other(format!("the key has fewer than {MIN_CHARS} characters")))
        }
        key => Ok(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn key_stays_the_same_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        let key = load_or_create(&database).unwrap();
        assert_eq!(load_or_create(&database), Ok(key.clone()));
        assert_eq!(key.len(), 64);
        std::fs::set_permissions(path(&database), PermissionsExt::from_mode(0o644)).unwrap();
        assert!(
            load_or_create(&database).unwrap_err().contains("longhaul.read-key: other users can read it")
        );
    }

    #[test]
    fn short_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        load_or_create(&database).unwrap();
        std::fs::write(path(&database), "short\n").unwrap();
        assert!(load_or_create(&database).unwrap_err().contains("fewer than 32"));
    }
}
