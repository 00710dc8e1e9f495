//! Whether a round has to yield: the person works on the share, and our load makes it slow for them. Pure.
//!
//! The latency comes from the passive probe, which does not exist yet, and whether the person is active from the
//! platform, which is not asked yet: until both are there nobody calls this with facts.

/// What is known in the middle of a round.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Felt {
    /// The probe's median latency when nothing of ours runs, in microseconds.
    pub calm_us: Option<f64>,
    /// The probe's median latency now, in microseconds.
    pub now_us: Option<f64>,
    /// Whether the person uses the machine.
    pub is_user_active: Option<bool>,
}

/// Whether the round is to stop. What is not known is no reason to.
pub fn must_yield(felt: &Felt, factor: f64) -> bool {
    match (felt.calm_us, felt.now_us, felt.is_user_active) {
        (Some(calm), Some(now), Some(true)) => now > calm * factor,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_yields_only_to_an_active_person_who_feels_it() {
        let felt = |now, active| Felt { calm_us: Some(500.0), now_us: Some(now), is_user_active: active };
        assert!(must_yield(&felt(1501.0, Some(true)), 3.0));
        assert!(!must_yield(&felt(1500.0, Some(true)), 3.0));
        assert!(!must_yield(&felt(9000.0, Some(false)), 3.0));
        assert!(!must_yield(&felt(9000.0, None), 3.0));
    }
}
