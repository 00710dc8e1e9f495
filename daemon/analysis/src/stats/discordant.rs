//! Tests which of two targets fails more often, from the failure episodes of one target alone
//! (docs/methodology.md#reliability).

use statrs::function::beta::ln_beta;

/// Returns the logarithm of the e-value against "both targets fail equally often". `a` and `b` are the numbers of
/// episodes of one target alone. The test is exact, symmetric, and valid at any time.
///
/// The e-value is a Beta(½, ½) mixture over the binomial share, against ½: `lnB(a+½, b+½) - lnB(½, ½) + (a+b) ln 2`
/// (docs/methodology.md#reliability).
fn ln_e_discordant(a: u64, b: u64) -> f64 {
    let (a, b) = (a as f64, b as f64);
    ln_beta(a + 0.5, b + 0.5) - ln_beta(0.5, 0.5) + (a + b) * std::f64::consts::LN_2
}

/// Returns the number of failure episodes; consecutive failing rounds are one episode.
///
/// `failed_by_round` must omit rounds in which the target was not attempted: they neither fail nor end an episode.
pub fn count_episodes(failed_by_round: &[bool]) -> usize {
    failed_by_round.chunk_by(|before, after| before == after).filter(|rounds| rounds[0]).count()
}

/// Numbers of failure episodes of two targets in which only one of them failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiscordantEpisodes {
    /// Number of episodes of the first target during which the second worked throughout.
    pub first_only: u64,
    /// Number of episodes of the second target during which the first worked throughout.
    pub second_only: u64,
}

impl DiscordantEpisodes {
    /// Counts the episodes in rounds that attempted both targets, given as `(first failed, second failed)` in
    /// chronological order.
    pub fn from_rounds(failed_by_round: &[(bool, bool)]) -> Self {
        let swapped: Vec<_> = failed_by_round.iter().map(|(first, second)| (*second, *first)).collect();
        Self { first_only: count_discordant(failed_by_round), second_only: count_discordant(&swapped) }
    }

    /// Returns the logarithm of the e-value against "both fail equally often".
    pub fn ln_e_value(&self) -> f64 {
        ln_e_discordant(self.first_only, self.second_only)
    }
}

/// Returns the number of episodes of the first target during which the second never failed.
fn count_discordant(failed_by_round: &[(bool, bool)]) -> u64 {
    failed_by_round
        .chunk_by(|before, after| before.0 == after.0)
        .filter(|rounds| rounds[0].0 && rounds.iter().all(|(_, second)| !second))
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn e_values_match_golden_values() {
        let golden = [
            ((0, 0), 0.0),
            ((1, 0), 0.0),
            ((6, 0), 2.6698289883),
            ((7, 0), 3.2888681967),
            ((11, 1), 3.3570400241),
            ((3, 3), -1.1631508098),
        ];
        for ((a, b), expected) in golden {
            let found = ln_e_discordant(a, b);
            assert!((found - expected).abs() < 0.5001e-10, "{a}:{b} {found}");
        }
    }

    #[test]
    fn episodes_needed_for_a_proof_match_documentation() {
        let needed = |b| (b..).find(|a| ln_e_discordant(*a, b) >= 20f64.ln()).unwrap();
        assert_eq!([0, 1, 2, 3, 4, 5].map(needed), [7, 11, 14, 16, 18, 21]);
    }

    #[test]
    fn consecutive_failures_are_one_episode() {
        assert_eq!(count_episodes(&[]), 0);
        assert_eq!(count_episodes(&[false, true, true, false, true, false, false, true]), 3);
        assert_eq!(count_episodes(&[true; 40]), 1);
    }

    #[test]
    fn episode_with_a_failure_of_both_counts_for_neither() {
        let (up, first, second, both) = ((false, false), (true, false), (false, true), (true, true));
        let rounds = [first, first, up, second, up, both, up, first, both, second, up, second, second, first];
        assert_eq!(
            DiscordantEpisodes::from_rounds(&rounds),
            DiscordantEpisodes { first_only: 2, second_only: 2 }
        );
    }

    #[test]
    fn huge_counts_do_not_give_nan() {
        assert!(!ln_e_discordant(u64::MAX, u64::MAX).is_nan());
        assert!(ln_e_discordant(u64::MAX, 0) > 1e18);
    }

    proptest! {
        /// If both targets fail equally often, the next episode belongs to either with chance ½, so the expected next
        /// e-value equals the current one: the e-value is a martingale.
        #[test]
        fn e_value_is_a_martingale(a in 0u64..2000, b in 0u64..2000) {
            let next = (ln_e_discordant(a + 1, b) - ln_e_discordant(a, b)).exp()
                + (ln_e_discordant(a, b + 1) - ln_e_discordant(a, b)).exp();
            prop_assert!((next / 2.0 - 1.0).abs() < 1e-9);
            prop_assert_eq!(ln_e_discordant(a, b), ln_e_discordant(b, a));
        }

        #[test]
        fn discordant_episodes_do_not_exceed_all_episodes(rounds in proptest::collection::vec(any::<(bool, bool)>(), 0..200)) {
            let first: Vec<bool> = rounds.iter().map(|(first, _)| *first).collect();
            prop_assert!(DiscordantEpisodes::from_rounds(&rounds).first_only <= count_episodes(&first) as u64);
        }
    }
}
