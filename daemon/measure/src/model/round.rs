//! What came of a round.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What came of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoundStatus {
    /// Every run of its plan was made.
    Ok,
    /// It says nothing, for example because the machine slept.
    Void,
    /// It was stopped before its end.
    CutShort,
    /// It was not begun, for a reason that was known before.
    Skipped,
}

impl RoundStatus {
    /// Every status.
    pub const ALL: [RoundStatus; 4] = [Self::Ok, Self::Void, Self::CutShort, Self::Skipped];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Void => "void",
            Self::CutShort => "cut-short",
            Self::Skipped => "skipped",
        }
    }

    /// The status with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}
