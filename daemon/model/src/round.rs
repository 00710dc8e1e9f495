//! Status of a round.

use crate::names::stored_names;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// Status of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum RoundStatus {
    /// All planned runs were carried out.
    Ok,
    /// The results are not used, for example because the machine slept.
    Void,
    /// The round was stopped before its end.
    CutShort,
    /// The round was not started, for a reason that was known in advance.
    Skipped,
}

stored_names! { RoundStatus }
