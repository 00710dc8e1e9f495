//! A stall, for tests of screens and pages.

use std::time::Duration;

use longhaul_model::{Stall, Timestamp};

/// Returns a stall of 42 seconds that the probe noticed on the target `nfs`.
pub fn stall(started: Timestamp) -> Stall {
    Stall {
        target: "nfs".parse().unwrap(),
        opened_us: started,
        started_us: started,
        ended_us: Some(started + Duration::from_secs(42)),
        is_truncated: false,
        operation: "getattr".to_owned(),
        calls: 3,
        longest_ns: 42_000_000_000,
        errors: [("ETIMEDOUT".to_owned(), 3)].into(),
        sources: vec!["probe".to_owned()],
        during: None,
    }
}
