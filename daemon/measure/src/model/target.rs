//! One place that is measured.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A folder on a mount, with a name. All figures belong to a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// What people call it, unique within a configuration.
    pub name: TargetName,
    /// The folder, as the person wrote it. The supervising process never touches it.
    pub path: PathBuf,
    /// Whether it is compared, or stands beside the comparison.
    pub role: Role,
}

/// Whether a target takes part in comparisons between protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A network share.
    Share,
    /// A local disk, measured to show what the machine does without a network.
    Baseline,
}

impl Role {
    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Baseline => "baseline",
        }
    }

    /// The role with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Share, Self::Baseline].into_iter().find(|role| role.name() == name)
    }
}

/// A target's name: 1 to 32 characters of `a-z A-Z 0-9 . _ -`, beginning with a letter or digit.
///
/// The set is that narrow because the name becomes part of file names, JSON keys and command lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
pub struct TargetName(String);

/// Why a text is not a target name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a target name: use 1 to 32 letters, digits, `.`, `_` or `-`, beginning with a letter or digit"
)]
pub struct TargetNameError(String);

impl TargetName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TargetName {
    type Err = TargetNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let begins_well = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
        if begins_well && text.len() <= 32 && text.chars().all(allowed) {
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
