//! Exact interval of a proportion.

use statrs::function::beta::beta_reg;

use super::bisection::bisect;

/// Returns the Clopper–Pearson interval of a proportion of which `count` of `n` were observed. It covers the true
/// proportion with a probability of at least `1 - alpha`.
pub fn proportion_interval(count: u64, n: u64, alpha: f64) -> (f64, f64) {
    let (k, n) = (count.min(n) as f64, n as f64);
    // With such proportions, this many or more were observed with probability `beta_reg`, and more than this many.
    let is_too_low = |proportion| beta_reg(k, n - k + 1.0, proportion) < alpha / 2.0;
    let is_too_high = |proportion| beta_reg(k + 1.0, n - k, proportion) > 1.0 - alpha / 2.0;
    let low = if k == 0.0 { 0.0 } else { bisect(0.0, 1.0, is_too_low).1 };
    let high = if k == n { 1.0 } else { bisect(1.0, 0.0, is_too_high).1 };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `binom.test(k, n)$conf.int`.
    #[test]
    fn intervals_match_published_values() {
        let known = [
            ((0, 25), (0.0, 0.137_185_2)),
            ((25, 25), (0.862_814_8, 1.0)),
            ((1, 20), (0.001_265_1, 0.248_732_8)),
            ((10, 100), (0.049_004_7, 0.176_222_6)),
        ];
        for ((k, n), (low, high)) in known {
            let found = proportion_interval(k, n, 0.05);
            assert!((found.0 - low).abs() < 1e-6 && (found.1 - high).abs() < 1e-6, "{k} of {n}: {found:?}");
        }
        assert_eq!(proportion_interval(0, 0, 0.05), (0.0, 1.0));
    }

    /// R: `binom.test(3, 1e6)$conf.int`; the upper end of none is `1 - 0.025^(1/n)`.
    #[test]
    fn interval_of_a_rare_event_is_exact() {
        let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-6;
        let (low, high) = proportion_interval(3, 1_000_000, 0.05);
        assert!(is_near(low, 6.186_725e-7) && is_near(high, 8.767_248e-6), "{low} to {high}");
        let (_, high) = proportion_interval(0, 1_000_000, 0.05);
        assert!(is_near(high, 3.688_873e-6), "{high}");
    }
}
