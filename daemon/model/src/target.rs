//! Target: a named folder that is measured.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::names::stored_names;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// Folder on a mount, with a name. All figures belong to a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Name, unique within a configuration.
    pub name: TargetName,
    /// Folder, as the user wrote it. The supervisor process never accesses it, and of the path it reads only symbolic links on local
    /// disks, above any share.
    pub path: PathBuf,
    /// Role in comparisons: a share that is compared, or a baseline next to the comparison.
    pub role: Role,
}

/// Role of a target in comparisons between protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Network share, which is compared with others.
    Share,
    /// Local disk, measured to show the performance of the machine without a network.
    Baseline,
}

/// Name of a target: 1 to 32 characters of `a-z A-Z 0-9 . _ -`, starting with a letter or digit.
///
/// The set of characters is this small because the name becomes part of file names, JSON keys and command
/// lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
pub struct TargetName(String);

/// Error for a text that is not a valid target name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a target name: use 1 to 32 letters, digits, `.`, `_` or `-`, beginning with a letter or digit"
)]
pub struct TargetNameError(String);

impl TargetName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TargetName {
    type Err = TargetNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let has_valid_start = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
        if has_valid_start && text.len() <= 32 && text.chars().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(TargetNameError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for TargetName {
    type Error = TargetNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TargetName> for String {
    fn from(name: TargetName) -> Self {
        name.0
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

stored_names! { Role }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_folder_is_refused() {
        for bad in ["", ".", "..", "a/b", "-x", "a b", "ü", "x\0", &"a".repeat(33)] {
            assert!(bad.parse::<TargetName>().is_err(), "{bad:?} was accepted");
        }
        for good in ["smb", "nas-1.local", "A_2"] {
            assert_eq!(good.parse::<TargetName>().map(String::from).as_deref(), Ok(good));
        }
    }
}
