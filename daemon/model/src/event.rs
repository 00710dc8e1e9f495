//! Events that may change results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TargetName, Timestamp};

/// Event that may change results, such as a remount or an OS update. Charts mark it on their time axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Target that the event concerns; `None` for an event of the whole machine.
    pub target: Option<TargetName>,
    /// Kind of event, in one word (`epoch`, `wake`, `mtu`).
    pub kind: String,
    /// Details of the event; their fields depend on `kind`.
    pub detail: serde_json::Value,
    /// Wall-clock time of the event, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub at_us: Timestamp,
}
