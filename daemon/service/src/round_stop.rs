//! The request to stop a round early, with its reason.

use std::sync::Arc;

use longhaul_store::RoundStatus;
use parking_lot::Mutex;

use crate::worker::Interruption;

/// The reason to stop a round early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundStop {
    /// Completed runs count; the remaining runs are dropped.
    CutShort(String),
    /// No run of the round counts.
    Void(String),
}

impl RoundStop {
    /// Returns the status and the reason with which the round is stored.
    pub fn into_status(self) -> (RoundStatus, Option<String>) {
        match self {
            Self::CutShort(reason) => (RoundStatus::CutShort, Some(reason)),
            Self::Void(reason) => (RoundStatus::Void, Some(reason)),
        }
    }
}

/// A request to stop a round, shared by the round and those who may stop it. Without a request, it does nothing.
#[derive(Debug, Clone)]
pub struct RoundStopRequest {
    reason: Arc<Mutex<RoundStop>>,
    interruption: Interruption,
}

impl RoundStopRequest {
    /// Creates a request that is made with `interruption`, for `reason` unless another is given.
    pub fn on(interruption: Interruption, reason: RoundStop) -> Self {
        Self { reason: Arc::new(Mutex::new(reason)), interruption }
    }

    /// Stops the round. The first reason counts, except that a void round stays void.
    pub fn request(&self, stop: RoundStop) {
        let mut reason = self.reason.lock();
        let is_stricter = matches!((&*reason, &stop), (RoundStop::CutShort(_), RoundStop::Void(_)));
        if is_stricter || !self.interruption.is_requested() {
            *reason = stop;
        }
        drop(reason);
        self.interruption.request();
    }

    /// Returns the reason to stop. `None`: the round continues.
    pub fn reason(&self) -> Option<RoundStop> {
        let reason = || self.reason.lock().clone();
        self.interruption.is_requested().then(reason)
    }

    /// Returns the interruption that the request makes.
    pub fn interruption(&self) -> &Interruption {
        &self.interruption
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_reason_counts_unless_a_later_one_voids_the_round() {
        let (cut, void) = (
            |text: &str| RoundStop::CutShort(text.to_owned()),
            |text: &str| RoundStop::Void(text.to_owned()),
        );
        let stop = RoundStopRequest::on(Interruption::default(), cut("by the user"));
        assert_eq!(stop.reason(), None);
        stop.request(cut("paused"));
        stop.request(cut("yield"));
        assert_eq!(stop.reason(), Some(cut("paused")));
        stop.request(void("mount"));
        stop.request(void("stopped"));
        stop.request(cut("yield"));
        assert_eq!(stop.reason(), Some(void("mount")));
        assert!(stop.interruption().is_requested());
    }

    #[test]
    fn interruption_alone_stops_for_the_given_reason() {
        let interruption = Interruption::default();
        let reason = RoundStop::CutShort("by the user".to_owned());
        let stop = RoundStopRequest::on(interruption.clone(), reason.clone());
        interruption.request();
        assert_eq!(stop.reason(), Some(reason));
    }
}
