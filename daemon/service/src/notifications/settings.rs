//! The settings of the notifications.

use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_notify::{ChannelConfig, Heartbeat};

use super::digest::DigestTime;
use crate::schedule::quiet_hours::QuietHours;

/// The section `[notify]` of the configuration file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NotifyConfig {
    /// Channels, in the order of their names.
    pub channels: Vec<ChannelConfig>,
    /// Address that is requested as long as the service measures. `None`: none.
    pub heartbeat: Option<Heartbeat>,
    /// Rules for what is reported, and how soon.
    pub rules: Rules,
}

/// Rules for what is reported, and how soon.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Time that a target or the service has to be down before it is reported.
    pub down_after: Duration,
    /// Free share of a target's disk, from 0 to 1, below which it is reported.
    pub disk_below: f64,
    /// Hours in which nothing is sent. `None`: there are none.
    pub quiet_hours: Option<QuietHours>,
    /// Largest number of messages to one channel in an hour.
    pub messages_per_hour: usize,
    /// Time of the weekly digest. `None`: no digest is sent.
    pub digest: Option<DigestTime>,
    /// Time after which a notification that could not be sent is given up.
    pub retention: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            down_after: Duration::from_secs(600),
            disk_below: 0.05,
            quiet_hours: None,
            messages_per_hour: 6,
            digest: None,
            retention: 3 * DAY,
        }
    }
}
