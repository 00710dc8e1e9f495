//! Causes that stalls and slow calls can have, and what speaks for one.

use longhaul_model::Timestamp;
use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// Probability with which chance alone may name one cause of a target that has none, in a window of any length. There
/// are six causes that are found as patterns, so that a false name is rarer than 1 %.
pub(super) const FALSE_NAME_RATE: f64 = 0.001;

/// Cause of stalls or slow calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StallCause {
    /// Short pauses at a fixed interval of one to three seconds, as Wi-Fi makes them that also serves AirDrop.
    PeriodicPulses,
    /// Waits of 200 ms or a multiple: a lost packet was retransmitted after TCP's timeout.
    RetransmissionTimeout,
    /// Waits of 40 ms: a TCP acknowledgement was delayed.
    DelayedAck,
    /// Pauses every 5 or 30 seconds: the file system of the NAS flushes buffered writes.
    Commit,
    /// Waits of the first operation after a pause: a disk spins up, or the NAS wakes up.
    DiskSpinUp,
    /// Slow times that begin at the full hour: a backup, scrub or another scheduled task.
    OnTheHour,
    /// The connection to the server was lost and re-established.
    Reconnect,
    /// This machine had just woken up.
    Wake,
    /// This machine had just changed to another network link.
    LinkChange,
}

impl StallCause {
    /// All causes.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name that JSON contains.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Evidence for a cause. A value that a cause does not use is left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct StallEvidence {
    /// Number of slow calls or stalls that fit the cause.
    pub matching: u64,
    /// Number of slow calls or stalls that were looked at.
    pub examined: u64,
    /// Median duration of those that fit, in seconds.
    pub typical_seconds: f64,
    /// Interval between pauses, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<f64>,
    /// Coherence with this interval: 1 if all pauses keep it exactly, near 0 for random times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coherence: Option<f64>,
    /// Shortest idle time before a stall that fits, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<f64>,
    /// Number of packets or requests that were retransmitted in the same time, if this was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Time of the event that happened together with the stall, in microseconds since 1970 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub event_us: Option<Timestamp>,
    /// Probability that chance alone makes such a pattern; left out for a stall that happened together with an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

/// Pattern that names a cause.
pub(super) struct Pattern {
    pub cause: StallCause,
    pub evidence: StallEvidence,
    /// Starts of the slow calls, stalls or slow times that fit.
    pub times: Vec<Timestamp>,
}
