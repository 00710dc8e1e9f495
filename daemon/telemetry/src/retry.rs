//! Decides when a failed request is retried and whether a batch is delivered. No I/O: the clock and the random
//! number are arguments.

use std::time::Duration;

use longhaul_model::time::backoff;
use longhaul_store::DeliveryStatus;

use crate::transport::response::ExportResult;

/// Delay after the first failure.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Maximum delay without a request of the collector for a longer one.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// Retry state of one signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetryState {
    failures: u32,
    /// Earliest time of the next attempt, in nanoseconds of the monotonic clock.
    not_before_ns: u64,
    /// True if items are sent one by one, to find the item that the collector rejects.
    is_one_by_one: bool,
    last_failure: Option<String>,
}

/// Result for the items of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The items get this final delivery status.
    Final(DeliveryStatus),
    /// The items stay pending and are retried.
    Retry,
}

impl RetryState {
    /// Returns true if the next attempt is due at `now_ns` (nanoseconds of the monotonic clock).
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.not_before_ns
    }

    /// Returns the time until the next attempt is due; zero if it is due now.
    pub fn time_until_due(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.not_before_ns.saturating_sub(now_ns))
    }

    /// Returns the maximum number of items in one batch.
    pub fn max_items(&self, usual: usize) -> usize {
        if self.is_one_by_one { 1 } else { usual }
    }

    /// Returns the reason why the latest attempt failed. `None`: it succeeded, or there was none.
    pub fn failure_reason(&self) -> Option<&str> {
        self.last_failure.as_deref()
    }

    /// Updates the state after a message that contains no item, which shows only whether the collector is
    /// reachable. Returns what would happen to an item.
    pub fn on_health_check(&mut self, result: &ExportResult, now_ns: u64, jitter: f64) -> Disposition {
        let was_one_by_one = self.is_one_by_one;
        let disposition = self.on_response(result, 1, now_ns, jitter);
        self.is_one_by_one = was_one_by_one;
        disposition
    }

    /// Updates the state after a batch of `items` items was sent, and returns what happens to them. `jitter` is
    /// a random number from 0 to 1.
    pub fn on_response(
        &mut self,
        result: &ExportResult,
        items: usize,
        now_ns: u64,
        jitter: f64,
    ) -> Disposition {
        match result {
            ExportResult::RetryLater { reason, after } => {
                self.failures = self.failures.saturating_add(1);
                self.last_failure = Some(reason.clone());
                // The requested delay is the minimum. The jitter prevents many machines from retrying at the
                // same time.
                let wait = after.unwrap_or_default() + backoff(FIRST_WAIT..=MAX_WAIT, self.failures, jitter);
                self.not_before_ns =
                    now_ns.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
                Disposition::Retry
            }
            ExportResult::Rejected { .. } if items > 1 => {
                // One bad item makes the collector reject the whole batch, so the items are sent one by one to find
                // it.
                *self = Self { is_one_by_one: true, ..Self::default() };
                Disposition::Retry
            }
            ExportResult::Rejected { reason } => {
                *self = Self { is_one_by_one: self.is_one_by_one, ..Self::default() };
                Disposition::Final(DeliveryStatus::Rejected(reason.clone()))
            }
            ExportResult::PartiallyAccepted { rejected, reason } => {
                *self = Self::default();
                Disposition::Final(DeliveryStatus::Rejected(format!(
                    "{rejected} values were rejected: {reason}"
                )))
            }
            ExportResult::Accepted => {
                *self = Self::default();
                Disposition::Final(DeliveryStatus::Sent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(after: Option<u64>) -> ExportResult {
        ExportResult::RetryLater { reason: "503".into(), after: after.map(Duration::from_secs) }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn requested_delay_is_the_minimum() {
        let mut state = RetryState::default();
        assert_eq!(state.on_response(&later(Some(120)), 5, SECOND, 0.5), Disposition::Retry);
        assert!(!state.is_due(121 * SECOND) && state.is_due(123 * SECOND));
        assert_eq!(state.failure_reason(), Some("503"));
        assert_eq!(
            state.on_response(&ExportResult::Accepted, 5, 123 * SECOND, 0.5),
            Disposition::Final(DeliveryStatus::Sent)
        );
        assert_eq!(state, RetryState::default());
    }

    #[test]
    fn rejected_batch_is_split_to_find_the_bad_item() {
        let mut state = RetryState::default();
        let refused = ExportResult::Rejected { reason: "400: bad".into() };
        assert_eq!(state.on_response(&refused, 7, 0, 0.0), Disposition::Retry);
        assert_eq!((state.max_items(32), state.is_due(0)), (1, true));
        state.on_health_check(&ExportResult::Accepted, 0, 0.0);
        assert_eq!(state.max_items(32), 1, "a health check says nothing about the items");
        assert_eq!(
            state.on_response(&refused, 1, 0, 0.0),
            Disposition::Final(DeliveryStatus::Rejected("400: bad".into()))
        );
        assert_eq!(state.max_items(32), 1, "there can be more bad items");
        state.on_response(&ExportResult::Accepted, 1, 0, 0.0);
        assert_eq!(state.max_items(32), 32);
    }
}
