//! The interval that stays valid however often it is looked at: days are the replicates, log ratios the values.
//!
//! It inverts the test martingale `E_n(μ) = √(c²/(n+c²)) · [(n+c²)V / ((n+c²)V - S²)]^(n/2)` with `S = Σ(D-μ)`,
//! `V = Σ(D-μ)²`: a Gaussian mixture over effect sizes, invariant under scale (Lai 1976; Wang and Ramdas,
//! arXiv 2310.03722). By Ville's inequality the true mean leaves any of the intervals ever shown with a chance of at
//! most alpha, if days are independent; what neighbouring days share is answered by a wider interval.

use super::median;

/// `c²`, the precision of the mixture: tabulated over 5 to 84 days, ½ is near the best everywhere.
const MIXTURE: f64 = 0.5;
/// From how many days on values are winsorised: before, the median absolute deviation says too little.
const WINSORISED_FROM: usize = 10;
/// How many median absolute deviations a day may lie from the median before it is drawn in.
const WINSORISED_AT: f64 = 5.0;
/// Makes a median absolute deviation comparable to a standard deviation: `1 / Φ⁻¹(¾)`.
const NORMAL_MAD: f64 = 1.4826;
/// The strongest autocorrelation that is corrected for.
const LARGEST_CORRELATION: f64 = 0.8;
/// Above this autocorrelation the ratio itself wanders, and whoever shows the interval says so.
const WANDERING: f64 = 0.3;
/// No log ratio of two positive doubles is larger: `ln(f64::MAX / 5e-324)`.
const LARGEST_LOG_RATIO: f64 = 1455.0;
/// How far [`DaySeries::days_needed`] looks ahead, in days: two years.
pub const HORIZON: usize = 730;

/// One log ratio per valid day, with what the interval needs to know of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DaySeries {
    days: usize,
    mean: f64,
    variance: f64,
    autocorrelation: f64,
}

impl DaySeries {
    /// The series of `(day number, log ratio of that day)`, in any order; days may be missing.
    ///
    /// From ten days on, values beyond the median ± 5 · 1.4826 · MAD are drawn in to that bound; if the MAD is zero,
    /// none is. `None` without a day, with two values for one day, and with a value that is no log ratio of two
    /// durations.
    pub fn of(by_day: &[(i64, f64)]) -> Option<Self> {
        let mut by_day = by_day.to_vec();
        by_day.sort_by_key(|(day, _)| *day);
        let is_log_ratio = |value: f64| value.abs() <= LARGEST_LOG_RATIO;
        let is_sound = by_day.iter().all(|(_, value)| is_log_ratio(*value))
            && by_day.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if by_day.is_empty() || !is_sound {
            return None;
        }
        winsorise(&mut by_day);
        let mean = by_day.iter().map(|(_, value)| value).sum::<f64>() / by_day.len() as f64;
        by_day.iter_mut().for_each(|(_, value)| *value -= mean);
        Some(Self {
            days: by_day.len(),
            mean,
            variance: mean_square(&by_day),
            autocorrelation: autocorrelation(&by_day),
        })
    }

    /// How many days.
    pub fn days(&self) -> usize {
        self.days
    }

    /// The mean of the winsorised log ratios.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Their variance around the mean, divided by the number of days.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// What neighbouring days share: the lag-1 autocorrelation, zero if there are no neighbouring days.
    pub fn autocorrelation(&self) -> f64 {
        self.autocorrelation
    }

    /// The autocorrelation that is reckoned with: corrected for its bias in short series and kept within 0 and 0.8.
    pub fn corrected_autocorrelation(&self) -> f64 {
        corrected(self.autocorrelation, self.days)
    }

    /// Whether the ratio itself wanders from day to day, so that intervals hold less well than they say.
    pub fn wanders(&self) -> bool {
        self.corrected_autocorrelation() > WANDERING
    }

    /// By how much the autocorrelation inflates the variance of the mean: `(1+ρ')/(1-ρ')`.
    pub fn inflation(&self) -> f64 {
        inflation(self.corrected_autocorrelation())
    }

    /// Half the width of the interval at level `1 - alpha`; infinite while there are too few days.
    pub fn half_width(&self, alpha: f64) -> f64 {
        avt_half(self.days, self.variance * self.inflation(), alpha)
    }

    /// The interval of the log ratio.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = self.half_width(alpha);
        (self.mean - half, self.mean + half)
    }

    /// The logarithm of the e-value against "no difference".
    ///
    /// `½ ln(c²/(n+c²)) + (n/2) ln[((n+c²)(s²f+m²)) / ((n+c²)s²f + c²m²)]`.
    pub fn ln_e_value(&self) -> f64 {
        let (n, square) = (self.days as f64, self.mean * self.mean);
        let variance = (n + MIXTURE) * self.variance * self.inflation();
        let gain = ((n + MIXTURE) * square + variance) / (variance + MIXTURE * square);
        let start = 0.5 * (MIXTURE / (n + MIXTURE)).ln();
        if gain.is_finite() { start + n / 2.0 * gain.ln() } else { start }
    }

    /// The half width to be expected once there are `n_later` days of the same spread and autocorrelation.
    pub fn predicted_half_width(&self, n_later: usize, alpha: f64) -> f64 {
        let unbiased = self.variance * self.days as f64 / (self.days as f64 - 1.0).max(1.0);
        let biased = unbiased * (n_later as f64 - 1.0).max(0.0) / (n_later as f64).max(1.0);
        avt_half(n_later, biased * self.inflation(), alpha)
    }

    /// The smallest number of days, these included, after which the interval is expected to exclude zero or to lie
    /// within ± `threshold`. `None` if that is not within [`HORIZON`] days.
    pub fn days_needed(&self, threshold: f64, alpha: f64) -> Option<usize> {
        let effect = self.mean.abs();
        let target = effect.max(threshold - effect);
        (self.days..=self.days.max(HORIZON)).find(|later| self.predicted_half_width(*later, alpha) < target)
    }

    /// The smallest ratio that the interval tells from 1 now: the half width as a ratio.
    pub fn minimum_visible(&self, alpha: f64) -> f64 {
        self.half_width(alpha).exp()
    }
}

/// Half the width of the interval at level `1 - alpha` for the mean of `n` independent days with variance `s2`, divided
/// by `n`, around their mean.
///
/// `K = (√((n+c²)/c²)/α)^(2/n)`; `h = √((K-1)(n+c²)s² / ((n+c²) - K c²))`, infinite where the denominator is not
/// positive.
pub fn avt_half(n: usize, s2: f64, alpha: f64) -> f64 {
    let total = n as f64 + MIXTURE;
    let k = ((0.5 * (total / MIXTURE).ln() - alpha.ln()) * 2.0 / n as f64).exp();
    let denominator = total - k * MIXTURE;
    if denominator > 0.0 && s2.is_finite() {
        ((k - 1.0).max(0.0) * total * s2.max(0.0) / denominator).sqrt()
    } else {
        f64::INFINITY
    }
}

/// Draws in what lies further from the median than `5 · 1.4826 · MAD`.
///
/// A median absolute deviation of zero means that more than half of the days agree to the last bit; then it measures
/// no spread, and nothing is drawn in.
fn winsorise(by_day: &mut [(i64, f64)]) {
    let values: Vec<f64> = by_day.iter().map(|(_, value)| *value).collect();
    let Some(middle) = median(&values).filter(|_| values.len() >= WINSORISED_FROM) else { return };
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let reach = WINSORISED_AT * NORMAL_MAD * median(&distances).unwrap_or(0.0);
    if reach > 0.0 {
        by_day.iter_mut().for_each(|(_, value)| *value = value.clamp(middle - reach, middle + reach));
    }
}

/// `f = (1+ρ')/(1-ρ')` for deviations of a series' two parts from their own means, by day in ascending order.
///
/// Each mean that is taken from the days lowers their autocorrelation; with two, the bias is that of half as many days.
pub(super) fn inflation_around_two_means(deviations: &[(i64, f64)]) -> f64 {
    inflation(corrected(autocorrelation(deviations), deviations.len() / 2))
}

fn inflation(correlation: f64) -> f64 {
    (1.0 + correlation) / (1.0 - correlation)
}

fn corrected(correlation: f64, days: usize) -> f64 {
    (correlation + (1.0 + 3.0 * correlation) / days as f64).clamp(0.0, LARGEST_CORRELATION)
}

fn mean_square(deviations: &[(i64, f64)]) -> f64 {
    deviations.iter().map(|(_, value)| value * value).sum::<f64>() / deviations.len() as f64
}

/// The lag-1 autocorrelation of deviations from a mean, over pairs of neighbouring calendar days only.
///
/// A pair across a gap says nothing about neighbours and is left out; the mean product of the `p` pairs that remain is
/// taken `n-1` times, as many as a series without gaps has, where this is the usual estimator. Zero if there is no
/// pair or no spread.
fn autocorrelation(deviations: &[(i64, f64)]) -> f64 {
    let neighbours = deviations.windows(2).filter(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
    let (pairs, products) =
        neighbours.fold((0.0, 0.0), |(pairs, sum), pair| (pairs + 1.0, sum + pair[0].1 * pair[1].1));
    let n = deviations.len() as f64;
    let correlation = products / pairs * (n - 1.0) / (n * mean_square(deviations));
    if correlation.is_finite() { correlation.clamp(-1.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUIET: [f64; 14] =
        [0.05, 0.12, 0.08, -0.01, 0.10, 0.07, 0.03, 0.09, 0.11, 0.06, 0.04, 0.13, 0.02, 0.08];
    const WITH_AN_OUTLIER: [f64; 16] =
        [0.02, 0.03, 0.05, 0.08, 0.09, 0.10, 0.08, 0.07, 0.09, 0.12, 0.95, 0.10, 0.06, 0.04, 0.03, 0.05];

    fn daily(values: &[f64]) -> DaySeries {
        DaySeries::of(&(100..).zip(values.iter().copied()).collect::<Vec<_>>()).unwrap()
    }

    fn assert_golden(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 0.5001e-10, "{found} is not {expected}");
    }

    #[test]
    fn half_widths_are_the_golden_ones() {
        assert_golden(avt_half(14, 0.0064, 0.05), 0.0807920397);
        assert_golden(avt_half(28, 0.0064, 0.05), 0.0531926049);
        assert_golden(avt_half(56, 0.0064, 0.05), 0.0369422179);
        assert_golden(avt_half(28, 0.0064, 0.05 / 3.0), 0.0600326177);
        assert_golden(avt_half(7, 0.01, 0.05), 0.1790495141);
    }

    /// The table divides by the standard deviation with `n - 1`.
    #[test]
    fn half_widths_in_standard_deviations_are_those_of_the_table() {
        let days = [5, 7, 10, 14, 21, 28, 42, 56, 84];
        let table = [
            (0.05, [2.61, 1.66, 1.22, 0.973, 0.765, 0.653, 0.529, 0.458, 0.375]),
            (0.05 / 3.0, [4.89, 2.17, 1.48, 1.14, 0.873, 0.737, 0.590, 0.508, 0.413]),
            (0.05 / 6.0, [49.0, 2.58, 1.66, 1.24, 0.940, 0.789, 0.627, 0.538, 0.436]),
        ];
        for (alpha, row) in table {
            for (n, expected) in days.into_iter().zip(row) {
                let found = avt_half(n, (n as f64 - 1.0) / n as f64, alpha);
                assert!((found / expected - 1.0).abs() < 0.0045, "{n} days at {alpha}: {found}");
            }
        }
    }

    #[test]
    fn a_quiet_series_has_the_golden_figures() {
        let series = daily(&QUIET);
        assert_golden(series.mean(), 0.0692857143);
        assert_golden(series.variance(), 0.0015066327);
        assert_golden(series.autocorrelation(), -0.4314498573);
        assert_golden(series.corrected_autocorrelation(), 0.0);
        assert_golden(series.half_width(0.05), 0.0391996576);
        assert_golden(series.ln_e_value(), 7.6092867590);
    }

    #[test]
    fn an_outlier_is_drawn_in_and_the_golden_figures_follow() {
        let series = daily(&WITH_AN_OUTLIER);
        assert_golden(series.mean(), 0.0793953125);
        assert_golden(avt_half(16, series.variance(), 0.05), 0.0504804251);
        assert_golden(series.half_width(0.05), 0.0944378085);
        assert!(series.wanders());
    }

    #[test]
    fn nine_days_are_not_winsorised() {
        let values = [0.01, 0.02, 0.01, 0.03, 0.02, 0.01, 0.02, 0.03, 0.95];
        assert!((daily(&values).mean() - values.iter().sum::<f64>() / 9.0).abs() < 1e-15);
    }

    #[test]
    fn days_across_a_gap_are_no_neighbours() {
        let every_second: Vec<_> = (0..20).map(|i| (2 * i, f64::from((i / 5) as i32) * 0.1)).collect();
        assert_eq!(DaySeries::of(&every_second).unwrap().autocorrelation(), 0.0);
        let week_apart: Vec<_> = (0..20).map(|i| (i + i / 5 * 7, f64::from((i / 5) as i32) * 0.1)).collect();
        let gaps = DaySeries::of(&week_apart).unwrap().autocorrelation();
        let without =
            daily(&week_apart.iter().map(|(_, value)| *value).collect::<Vec<_>>()).autocorrelation();
        assert!(gaps > without && gaps <= 1.0, "{gaps} against {without}");
    }

    #[test]
    fn order_does_not_matter_and_a_day_counts_once() {
        let forward: Vec<_> = (0..14).zip(QUIET).collect();
        let backward: Vec<_> = forward.iter().rev().copied().collect();
        assert_eq!(DaySeries::of(&forward), DaySeries::of(&backward));
        assert_eq!(DaySeries::of(&[(1, 0.1), (2, 0.2), (1, 0.1)]), None);
    }

    #[test]
    fn what_is_no_log_ratio_makes_no_series() {
        assert_eq!(DaySeries::of(&[]), None);
        for value in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300] {
            assert_eq!(DaySeries::of(&[(1, 0.1), (2, value)]), None);
        }
    }

    #[test]
    fn the_interval_is_infinite_on_three_days_and_finite_from_the_fourth() {
        for days in 1..14 {
            assert_eq!(daily(&QUIET[..days]).half_width(0.05).is_finite(), days >= 4, "{days} days");
        }
    }

    #[test]
    fn equal_days_have_a_finite_e_value_and_no_nan() {
        let none = daily(&[0.0; 14]);
        assert_eq!(none.interval(0.05), (0.0, 0.0));
        assert!(none.ln_e_value() < 0.0);
        let some = daily(&[0.25; 14]);
        assert_eq!(some.interval(0.05), (0.25, 0.25));
        assert!(some.ln_e_value() > 20.0 && some.ln_e_value().is_finite());
        assert_eq!(daily(&[0.25]).half_width(0.05), f64::INFINITY);
    }

    #[test]
    fn the_prediction_begins_at_the_present_and_narrows() {
        let series = daily(&QUIET);
        assert!((series.predicted_half_width(14, 0.05) - series.half_width(0.05)).abs() < 1e-12);
        assert!(series.predicted_half_width(28, 0.05) < series.half_width(0.05));
        assert_eq!(series.days_needed(0.0953, 0.05), Some(14));
    }

    #[test]
    fn days_needed_says_when_the_interval_is_expected_to_decide() {
        let undecided: Vec<f64> = QUIET.iter().map(|value| (value - 0.0692857143) * 3.0 + 0.05).collect();
        let series = daily(&undecided);
        let needed = series.days_needed(0.0953, 0.05).unwrap();
        assert!(series.predicted_half_width(needed, 0.05) < 0.05);
        assert!(needed > 14 && series.predicted_half_width(needed - 1, 0.05) >= 0.05);
        let hopeless: Vec<f64> = QUIET.iter().map(|value| (value - 0.0692857143) * 100.0 + 0.0477).collect();
        assert_eq!(daily(&hopeless).days_needed(0.0953, 0.05), None);
    }

    proptest! {
        #[test]
        fn any_series_is_survived(by_day in proptest::collection::vec((any::<i64>(), any::<f64>()), 0..40), alpha: f64) {
            if let Some(series) = DaySeries::of(&by_day) {
                let (low, high) = series.interval(alpha);
                prop_assert!(low <= high && !series.ln_e_value().is_nan());
            }
        }

        #[test]
        fn no_series_of_log_ratios_yields_nan(
            values in proptest::collection::vec(prop_oneof![Just(0.0), -1400.0..1400.0f64, -1e-300..1e-300f64], 1..40),
            alpha in prop_oneof![Just(0.0), Just(1.0), 1e-9..1.0f64],
        ) {
            let series = daily(&values);
            let (low, high) = series.interval(alpha);
            prop_assert!(low <= series.mean() && series.mean() <= high);
            prop_assert!(!series.ln_e_value().is_nan() && !series.minimum_visible(alpha).is_nan());
            prop_assert!(!series.predicted_half_width(0, alpha).is_nan());
            prop_assert!(series.days_needed(0.1, alpha).is_none_or(|needed| needed >= values.len()));
        }

        #[test]
        fn the_e_value_agrees_with_the_interval(
            values in proptest::collection::vec(-1.0..1.0f64, 5..60), shift in -1.0..1.0f64,
        ) {
            let series = daily(&values.iter().map(|value| value * 0.1 + shift).collect::<Vec<_>>());
            let excluded = series.mean().abs() > series.half_width(0.05);
            let distance = series.ln_e_value() - 20f64.ln();
            prop_assert!(distance.abs() < 1e-6 || excluded == (distance > 0.0));
        }
    }
}
