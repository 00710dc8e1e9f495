//! Decides whether a round yields: a user works on a share, and the round's load makes it slow. Pure.
//!
//! Latencies come from the latency probe; user activity comes from the counters of the share.

/// Idle and recent latency of a share, and whether a user works on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LatencySummary {
    /// Median latency of the probe while longhaul is idle, in microseconds. `None`: too few samples.
    pub idle_us: Option<f64>,
    /// Median latency of the probe in the last minute of a round, in microseconds. `None`: too few samples.
    pub recent_us: Option<f64>,
    /// True if a user used the share recently. `None`: unknown.
    pub is_user_active: Option<bool>,
}

/// Returns whether the round must stop. An unknown value is no reason to stop.
pub fn must_yield(latency: &LatencySummary, factor: f64) -> bool {
    match (latency.idle_us, latency.recent_us, latency.is_user_active) {
        (Some(idle), Some(recent), Some(true)) => recent > idle * factor,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_yields_only_to_an_active_user_of_a_slow_share() {
        let latency = |now, active| LatencySummary {
            idle_us: Some(500.0),
            recent_us: Some(now),
            is_user_active: active,
        };
        assert!(must_yield(&latency(1501.0, Some(true)), 3.0));
        assert!(!must_yield(&latency(1500.0, Some(true)), 3.0));
        assert!(!must_yield(&latency(9000.0, Some(false)), 3.0));
        assert!(!must_yield(&latency(9000.0, None), 3.0));
    }
}
