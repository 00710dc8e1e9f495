//! How it stands with the export, for people.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How it stands with the export.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ExportStatus {
    /// What is sent, and where to.
    pub signals: Vec<SignalStatus>,
    /// Why nothing is sent at all; `None`: it is.
    pub problem: Option<String>,
}

/// How it stands with one signal. Its items are rounds; of samples they are five minutes each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct SignalStatus {
    /// `traces`, `metrics` or `samples`.
    pub name: String,
    /// Where it is sent to, without anything secret.
    pub endpoint: String,
    /// Items that are still to be sent.
    pub waiting: u64,
    /// Items that the collector has.
    pub sent: u64,
    /// Items that it did not take, or not all of.
    pub rejected: u64,
    /// Items that waited for longer than they may.
    pub expired: u64,
    /// When the collector last took some, in microseconds since 1970 UTC.
    pub last_sent_us: Option<i64>,
    /// The latest item that it did not take, and why.
    pub last_rejection: Option<String>,
    /// Why the latest attempt brought nothing; `None`: it did.
    pub failing: Option<String>,
    /// When the next attempt is due after one that failed, in microseconds since 1970 UTC.
    pub next_try_us: Option<i64>,
}
