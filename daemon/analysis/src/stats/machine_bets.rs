//! Evidence over machines that holds although machines differ: one bounded bet for each (docs/sharing.md#evidence-over-machines).

/// Ratio at which the log ratio of a machine is limited, so that one machine is one bounded bet.
pub const BET_LIMIT: f64 = 1.25;
/// Sizes of the bets, as shares of all that can be lost.
const BETS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Returns the logarithm of the e-value for "averaged over machines, the log ratio, limited to ±ln [`BET_LIMIT`], is above
/// zero". For the other direction, the signs of the ratios are turned; which of the two is asked may depend on the data.
///
/// `E = ½ mean over λ of Π (1 + λy)`, with `y` the limited log ratio of a machine divided by the limit. If the mean of `y` is
/// not above zero, each product is a test supermartingale in the order in which machines are added, and so is their mean
/// (Waudby-Smith and Ramdas, arXiv 2010.09686). The products do not depend on the order, so neither does the value. Half,
/// because the sum of the values of both directions is an e-value then. By Ville's inequality one of them ever reaches `1/α`
/// with a chance of at most `α`, however often machines are added and it is read.
pub fn ln_e_above(ln_ratios: impl IntoIterator<Item = f64>) -> f64 {
    let limit = BET_LIMIT.ln();
    let bounded: Vec<f64> = ln_ratios
        .into_iter()
        .filter(|value| !value.is_nan())
        .map(|value| (value / limit).clamp(-1.0, 1.0))
        .collect();
    let wealth = |bet: &f64| bounded.iter().map(|value| (bet * value).ln_1p()).sum::<f64>();
    let wealths = BETS.map(|bet| wealth(&bet));
    let largest = wealths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + wealths.iter().map(|wealth| (wealth - largest).exp()).sum::<f64>().ln()
        - (2.0 * wealths.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_machine_is_no_evidence() {
        let none = 0.5f64.ln();
        assert!((ln_e_above([]) - none).abs() < 1e-12);
        assert!((ln_e_above([f64::NAN]) - none).abs() < 1e-12);
        assert!((ln_e_above([0.0; 50]) - none).abs() < 1e-12);
    }

    #[test]
    fn eight_machines_are_needed() {
        assert!(ln_e_above([10.0]) < 0.1, "its bet is limited");
        assert!(ln_e_above([10.0; 7]) < 20f64.ln());
        assert!(ln_e_above([10.0; 8]) > 20f64.ln(), "eight machines beyond the limit are enough");
        assert!(ln_e_above([-10.0; 8]) < 0.0);
    }

    /// The expected value over both signs of the last machine is the value without it: a test martingale.
    #[test]
    fn fair_machine_changes_nothing_on_average() {
        let with = |last: f64| ln_e_above([0.05, -0.2, 0.3, last]).exp();
        assert!(((with(0.07) + with(-0.07)) / 2.0 - ln_e_above([0.05, -0.2, 0.3]).exp()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn order_does_not_matter(mut values in proptest::collection::vec(-1.0..1.0f64, 0..40)) {
            let forward = ln_e_above(values.iter().copied());
            values.reverse();
            prop_assert!((ln_e_above(values) - forward).abs() < 1e-9);
        }
    }
}
