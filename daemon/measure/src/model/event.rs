//! What may change numbers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TargetName;

/// Something that may change numbers: a tick on every time axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// The target that it is about; `None` for the whole machine.
    pub target: Option<TargetName>,
    /// What happened, in one word (`epoch`, `wake`, `mtu`).
    pub kind: String,
    /// The particulars.
    pub detail: serde_json::Value,
    /// Wall clock, in microseconds since 1970 UTC.
    pub at_us: i64,
}
