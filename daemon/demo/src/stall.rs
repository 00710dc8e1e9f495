//! A made-up stall.

use std::time::Duration;

use longhaul_model::{Stall, TargetName, Timestamp};

/// Returns a stall of 42 seconds that the probe noticed on a target.
pub fn stall(target: TargetName, started: Timestamp) -> Stall {
    Stall {
        ended_us: Some(started + Duration::from_secs(42)),
        calls: 3,
        longest_ns: 42_000_000_000,
        errors: [("ETIMEDOUT".to_owned(), 3)].into(),
        sources: vec!["probe".to_owned()],
        ..Stall::new(target, started, "getattr")
    }
}
