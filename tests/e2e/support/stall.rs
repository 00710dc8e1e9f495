//! A stall, for tests of screens and pages.

use longhaul_model::Stall;

/// Returns a stall of 42 seconds that the probe noticed on the target `nfs`.
pub fn stall(started_us: i64) -> Stall {
    Stall {
        target: "nfs".parse().unwrap(),
        opened_us: started_us,
        started_us,
        ended_us: Some(started_us + 42_000_000),
        is_truncated: false,
        operation: "getattr".to_owned(),
        calls: 3,
        longest_ns: 42_000_000_000,
        errors: [("ETIMEDOUT".to_owned(), 3)].into(),
        sources: vec!["probe".to_owned()],
        during: None,
    }
}
