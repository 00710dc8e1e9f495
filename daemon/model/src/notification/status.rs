//! The status of the notifications as plain data.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// Status of the notifications.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct NotifyStatus {
    /// Status of each channel, in the order of their names.
    pub channels: Vec<ChannelStatus>,
    /// Status of the heartbeat. `None`: none is configured.
    pub heartbeat: Option<HeartbeatStatus>,
}

impl NotifyStatus {
    /// Returns true if nothing is configured.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.heartbeat.is_none()
    }
}

/// Status of one channel of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ChannelStatus {
    /// Name of the channel.
    pub name: String,
    /// Kind of the channel, such as `ntfy` or `email`.
    pub kind: String,
    /// Host of the receiver, without path and secrets. `None`: it is not known.
    pub receiver: Option<String>,
    /// Number of notifications that wait to be sent.
    pub pending: u64,
    /// Number of notifications that the receiver accepted.
    pub sent: u64,
    /// Number of notifications that were sent without an answer. They may have arrived.
    pub unanswered: u64,
    /// Number of notifications that the receiver refused.
    pub rejected: u64,
    /// Number of notifications that were given up because they were too old.
    pub expired: u64,
    /// Time of the last accepted notification, in microseconds since 1970 UTC. `None`: none was accepted yet.
    #[schema(value_type = Option<i64>)]
    pub last_sent_us: Option<Timestamp>,
    /// Reason why the latest attempt failed. `None`: it succeeded, or there was none.
    pub last_failure: Option<String>,
    /// Time until which notifications are held back, in microseconds since 1970 UTC. `None`: they are not.
    #[schema(value_type = Option<i64>)]
    pub next_try_us: Option<Timestamp>,
}

/// Status of the heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatStatus {
    /// Host of the receiver. `None`: it is not known.
    pub receiver: Option<String>,
    /// Time of the last accepted heartbeat, in microseconds since 1970 UTC. `None`: none was accepted yet.
    #[schema(value_type = Option<i64>)]
    pub last_sent_us: Option<Timestamp>,
    /// Reason why the latest attempt failed. `None`: it succeeded, or there was none.
    pub last_failure: Option<String>,
}
