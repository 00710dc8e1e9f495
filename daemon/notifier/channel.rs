//! The state of one channel: attempts, failures and counts.

use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::Timestamp;
use longhaul_model::draw::draw;
use longhaul_notify::{ChannelConfig, Delivery, Message, Sender};
use longhaul_service::notifications::retry_delay;
use longhaul_service::status::ChannelStatus;
use longhaul_store::{ChannelCounts, NotificationStatus, Reader};

/// Longest time for which a channel that is held back is not looked at. Short, because the clock may be set.
const MAX_HOLD: Duration = Duration::from_secs(60);

/// A channel with its state.
pub struct Channel {
    config: ChannelConfig,
    host: Option<String>,
    counts: ChannelCounts,
    failures: u32,
    last_failure: Option<String>,
    /// Earliest time of the next look, in nanoseconds of the monotonic clock. `None`: nothing waits.
    next_ns: Option<u64>,
    /// The same on the wall clock, for users. `None`: nothing is held back.
    held_until: Option<Timestamp>,
}

impl Channel {
    /// Creates the state of a channel. What an earlier service left in the queue is sent soon.
    pub fn new(config: &ChannelConfig) -> Self {
        Self {
            host: config.host(),
            config: config.clone(),
            counts: ChannelCounts::default(),
            failures: 0,
            last_failure: None,
            next_ns: Some(0),
            held_until: None,
        }
    }

    /// Returns the name of the channel.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns whether the queue has to be looked at.
    pub fn is_due(&self) -> bool {
        self.next_ns.is_some_and(|next_ns| platform::monotonic_ns() >= next_ns)
    }

    /// Schedules an attempt at once, unless one is scheduled already: a channel that failed still waits.
    pub fn expect_more(&mut self) {
        self.next_ns = self.next_ns.or(Some(0));
    }

    /// Schedules nothing, because the queue is empty.
    pub fn set_idle(&mut self) {
        (self.next_ns, self.held_until) = (None, None);
    }

    /// Schedules the next attempt at a time until which everything is held back.
    pub fn hold(&mut self, until: Timestamp) {
        self.wait(until.since(platform::wall_clock()).min(MAX_HOLD));
        self.held_until = Some(until);
    }

    /// Sends a message. Returns the new status of what it contains.
    pub fn send(&mut self, message: &Message) -> NotificationStatus {
        let delivery = match Sender::new(&self.config) {
            Ok(sender) => sender.send(message),
            Err(error) => Delivery::Failed { reason: error.to_string(), after: None },
        };
        let (name, kind) = (&self.config.name, self.config.kind());
        match delivery.reason() {
            None => tracing::info!(name, kind, "a notification was sent"),
            Some(reason) => tracing::warn!(name, kind, reason, "a notification was not accepted"),
        }
        self.last_failure = delivery.reason().map(ToOwned::to_owned);
        let status = match delivery {
            Delivery::Accepted => NotificationStatus::Sent,
            Delivery::Unanswered { .. } => NotificationStatus::Unanswered,
            Delivery::Rejected { .. } => NotificationStatus::Rejected,
            Delivery::Failed { reason, after } => {
                let status = self.fail(&reason);
                self.wait_at_least(after.unwrap_or_default());
                return status;
            }
        };
        (self.failures, self.next_ns, self.held_until) = (0, Some(0), None);
        status
    }

    /// Records a failure after which the message is repeated.
    pub fn fail(&mut self, reason: &str) -> NotificationStatus {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = Some(reason.to_owned());
        let random = draw(platform::monotonic_ns(), 0x6e74, self.failures.into());
        self.wait(retry_delay(self.failures, random as f64 / u64::MAX as f64));
        NotificationStatus::Pending
    }

    /// Reads how many notifications have which status.
    pub fn count(&mut self, reader: &Reader) -> longhaul_store::Result<()> {
        self.counts = reader.notification_counts(&self.config.name)?;
        Ok(())
    }

    /// Returns the status for users.
    pub fn status(&self) -> ChannelStatus {
        let ChannelCounts { pending, sent, unanswered, rejected, expired, last_sent } = self.counts;
        ChannelStatus {
            name: self.config.name.clone(),
            kind: self.config.kind().to_owned(),
            receiver: self.host.clone(),
            pending,
            sent,
            unanswered,
            rejected,
            expired,
            last_sent_us: last_sent,
            last_failure: self.last_failure.clone(),
            next_try_us: self.held_until,
        }
    }

    fn wait(&mut self, delay: Duration) {
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.next_ns = Some(platform::monotonic_ns().saturating_add(delay_ns));
        self.held_until = Some(platform::wall_clock() + delay);
    }

    /// Waits for the delay that the receiver asks for if it is longer than the one so far.
    fn wait_at_least(&mut self, delay: Duration) {
        let now = platform::wall_clock();
        if self.held_until.is_none_or(|until| until < now + delay) {
            self.wait(delay);
        }
    }
}
