//! Reliability: which of two targets fails more often, from episodes that one had and the other had not.

use super::gamma::ln_beta;

/// The logarithm of the e-value against "both fail equally often", from `a` episodes of one target only and `b` of the
/// other only. Exact and valid however often it is looked at; symmetric.
///
/// The Beta(½, ½) mixture over the binomial share, against ½: `lnB(a+½, b+½) - lnB(½, ½) + (a+b) ln 2`.
pub fn ln_e_discordant(a: u64, b: u64) -> f64 {
    let (a, b) = (a as f64, b as f64);
    ln_beta(a + 0.5, b + 0.5) - ln_beta(0.5, 0.5) + (a + b) * std::f64::consts::LN_2
}

/// How many episodes of failure there are: consecutive failing rounds are one.
///
/// A round in which the target was not attempted is left out of `failed_by_round`: it neither fails nor ends an episode.
pub fn episodes(failed_by_round: &[bool]) -> usize {
    failed_by_round.chunk_by(|before, after| before == after).filter(|rounds| rounds[0]).count()
}

/// Episodes of two targets, compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discordant {
    /// Episodes of the first target in which the second worked throughout.
    pub first_only: u64,
    /// Episodes of the second target in which the first worked throughout.
    pub second_only: u64,
}

impl Discordant {
    /// Counts them in rounds that attempted both: `(first failed, second failed)`, in order.
    pub fn of(failed_by_round: &[(bool, bool)]) -> Self {
        let swapped: Vec<_> = failed_by_round.iter().map(|(first, second)| (*second, *first)).collect();
        Self { first_only: alone(failed_by_round), second_only: alone(&swapped) }
    }

    /// The logarithm of the e-value against "both fail equally often".
    pub fn ln_e_value(&self) -> f64 {
        ln_e_discordant(self.first_only, self.second_only)
    }
}

/// Episodes of the first in which the second never failed.
fn alone(failed_by_round: &[(bool, bool)]) -> u64 {
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
    fn e_values_are_the_golden_ones() {
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
    fn as_many_episodes_are_needed_as_specified() {
        let needed = |b| (b..).find(|a| ln_e_discordant(*a, b) >= 20f64.ln()).unwrap();
        assert_eq!([0, 1, 2, 3, 4, 5].map(needed), [7, 11, 14, 16, 18, 21]);
    }

    #[test]
    fn consecutive_failures_are_one_episode() {
        assert_eq!(episodes(&[]), 0);
        assert_eq!(episodes(&[false, true, true, false, true, false, false, true]), 3);
        assert_eq!(episodes(&[true; 40]), 1);
    }

    #[test]
    fn an_episode_that_both_share_speaks_against_neither() {
        let (up, first, second, both) = ((false, false), (true, false), (false, true), (true, true));
        let rounds = [first, first, up, second, up, both, up, first, both, second, up, second, second, first];
        assert_eq!(Discordant::of(&rounds), Discordant { first_only: 2, second_only: 2 });
    }

    #[test]
    fn counts_beyond_reason_are_survived() {
        assert!(!ln_e_discordant(u64::MAX, u64::MAX).is_nan());
        assert!(ln_e_discordant(u64::MAX, 0) > 1e18);
    }

    proptest! {
        /// Under "equally often" the next episode is a fair coin: the e-value is a martingale.
        #[test]
        fn it_is_a_fair_bet(a in 0u64..2000, b in 0u64..2000) {
            let next = (ln_e_discordant(a + 1, b) - ln_e_discordant(a, b)).exp()
                + (ln_e_discordant(a, b + 1) - ln_e_discordant(a, b)).exp();
            prop_assert!((next / 2.0 - 1.0).abs() < 1e-9);
            prop_assert_eq!(ln_e_discordant(a, b), ln_e_discordant(b, a));
        }

        #[test]
        fn no_more_episodes_stand_alone_than_there_are(rounds in proptest::collection::vec(any::<(bool, bool)>(), 0..200)) {
            let first: Vec<bool> = rounds.iter().map(|(first, _)| *first).collect();
            prop_assert!(Discordant::of(&rounds).first_only <= episodes(&first) as u64);
        }
    }
}
