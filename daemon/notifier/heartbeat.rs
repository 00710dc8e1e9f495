//! Requests an address as long as the service runs and can measure.

use longhaul_measure::platform;
use longhaul_model::Timestamp;
use longhaul_notify::{Heartbeat, origin, ping};
use longhaul_service::handle::ServiceHandle;
use longhaul_service::notifications::can_measure;
use longhaul_service::status::{HeartbeatStatus, Status};

/// Sends the heartbeat.
pub struct HeartbeatSender {
    settings: Heartbeat,
    receiver: Option<String>,
    /// Time of the last attempt, in nanoseconds of the monotonic clock. `None`: there was none.
    last_ns: Option<u64>,
    last_sent: Option<Timestamp>,
    last_failure: Option<String>,
}

impl HeartbeatSender {
    /// Creates the sender. The first heartbeat is due at once.
    pub fn new(settings: Heartbeat) -> Self {
        let receiver = settings.url.read().ok().and_then(|url| origin(url.reveal()));
        Self { settings, receiver, last_ns: None, last_sent: None, last_failure: None }
    }

    /// Sends a heartbeat if it is due, the service can measure, and no round is running.
    pub fn send_if_due(&mut self, status: &Status, handle: &ServiceHandle) {
        let now_ns = platform::monotonic_ns();
        let is_early = |last_ns: u64| u128::from(now_ns - last_ns) < self.settings.interval.as_nanos();
        if self.last_ns.is_some_and(is_early) || !handle.is_alive() || !can_measure(status) {
            return;
        }
        let Some(_permit) = handle.export_pause.try_acquire() else { return };
        self.last_ns = Some(now_ns);
        let failure = match ping(&self.settings.url) {
            Ok(delivery) => delivery.reason().map(ToOwned::to_owned),
            Err(error) => Some(error.to_string()),
        };
        match &failure {
            None => self.last_sent = Some(platform::wall_clock()),
            Some(reason) => tracing::warn!(reason, "the heartbeat was not accepted"),
        }
        self.last_failure = failure;
    }

    /// Returns the status for users.
    pub fn status(&self) -> HeartbeatStatus {
        HeartbeatStatus {
            receiver: self.receiver.clone(),
            last_sent_us: self.last_sent,
            last_failure: self.last_failure.clone(),
        }
    }
}
