//! The status of the exports into a collection of many machines as plain data.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// Status of the daily exports into the collection of `[fleet]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct FleetExportStatus {
    /// Folder or bucket of the collection.
    pub to: String,
    /// Time of the last complete export, in microseconds since 1970 UTC. `None`: none since the service started.
    #[schema(value_type = Option<i64>)]
    pub last_export_us: Option<Timestamp>,
    /// Reason why the latest export failed. `None`: it did not, or there was none.
    pub last_failure: Option<String>,
    /// Time of the next export, in microseconds since 1970 UTC. `None`: none is planned.
    #[schema(value_type = Option<i64>)]
    pub next_try_us: Option<Timestamp>,
}
