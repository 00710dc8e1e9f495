//! Reads a profile from the text of its TOML file.

use super::schema::Profile;

/// The reason why a profile is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct ProfileError {
    /// Line number in the profile, from 1; `None` if the error does not belong to one line.
    pub line: Option<usize>,
    /// Description of the problem, with a correct form.
    pub message: String,
}

impl Profile {
    /// Parses and checks a profile.
    ///
    /// # Errors
    ///
    /// If the text is not TOML, has an unknown key, or has a value that is out of range or contradicts another
    /// value.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| ProfileError {
            line: error
                .span()
                .map(|span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()),
            message: error.message().replacen("unknown field", "unknown key", 1).replacen(
                "unknown variant",
                "unknown value",
                1,
            ),
        })?;
        profile.check().map_err(|message| ProfileError { line: None, message })?;
        Ok(profile)
    }
}
