//! Corrections for many simultaneous comparisons (docs/methodology.md#many-comparisons).

/// Returns the alpha of each pairwise comparison among `targets` targets, so that all intervals hold together at level
/// `1 - alpha` (Bonferroni: `alpha` divided by the number of pairs).
pub fn pairwise_alpha(alpha: f64, targets: usize) -> f64 {
    alpha / pair_count(targets).max(1.0)
}

/// Returns the number of pairs among `targets` targets.
fn pair_count(targets: usize) -> f64 {
    targets as f64 * (targets as f64 - 1.0) / 2.0
}

/// Returns which hypotheses are rejected by e-BH: the expected share of false rejections is at most `alpha`, under any
/// dependence of the e-values (Wang and Ramdas, arXiv 2009.02824; docs/methodology.md#many-comparisons).
///
/// With `M` e-values sorted in descending order, the largest `j` with `E(j) ≥ M/(j·alpha)` rejects the first `j`. All
/// e-values must be from the same day: the guarantee does not hold for running maxima (arXiv 2501.19360). NaN is never
/// rejected, but counts as a hypothesis.
pub fn e_bh(ln_e_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut sorted: Vec<f64> = ln_e_values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let tested = ln_e_values.len() as f64;
    let suffices = |(rank, value): &(usize, f64)| *value >= (tested / ((*rank + 1) as f64 * alpha)).ln();
    let least = sorted.into_iter().enumerate().rfind(suffices).map(|(_, value)| value);
    ln_e_values.iter().map(|value| least.is_some_and(|least| *value >= least)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn alpha_is_divided_by_the_number_of_pairs() {
        let shares = [(0, 1.0), (1, 1.0), (2, 1.0), (3, 3.0), (4, 6.0)];
        for (targets, pairs) in shares {
            assert_eq!(pairwise_alpha(0.05, targets), 0.05 / pairs);
        }
    }

    #[test]
    fn several_moderate_e_values_are_rejected_together() {
        let ln = |values: [f64; 4]| values.map(f64::ln);
        assert_eq!(e_bh(&ln([79.0, 1.0, 1.0, 1.0]), 0.05), [false; 4]);
        assert_eq!(e_bh(&ln([80.0, 1.0, 1.0, 1.0]), 0.05), [true, false, false, false]);
        assert_eq!(e_bh(&ln([1.0, 41.0, 41.0, 1.0]), 0.05), [false, true, true, false]);
        assert_eq!(e_bh(&ln([21.0, 50.0, 21.0, 21.0]), 0.05), [true; 4]);
    }

    #[test]
    fn nan_and_empty_input_are_not_rejected() {
        assert_eq!(e_bh(&[], 0.05), Vec::<bool>::new());
        assert_eq!(e_bh(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY], 0.05), [false, true, false]);
        assert_eq!(e_bh(&[f64::NAN], 0.05), [false]);
        assert_eq!(e_bh(&[10.0], 0.0), [false]);
        assert_eq!(e_bh(&[10.0], f64::NAN), [false]);
    }

    proptest! {
        #[test]
        fn raising_an_e_value_never_undoes_a_rejection(
            mut values in proptest::collection::vec(-5.0..12.0f64, 1..20), index: proptest::sample::Index,
        ) {
            let before = e_bh(&values, 0.05);
            let limit = (values.len() as f64 / 0.05).ln();
            prop_assert!(values.iter().zip(&before).all(|(value, rejected)| *rejected || *value < limit));
            let raised = index.index(values.len());
            values[raised] += 1.0;
            prop_assert!(before.iter().zip(e_bh(&values, 0.05)).all(|(before, after)| after || !before));
        }
    }
}
