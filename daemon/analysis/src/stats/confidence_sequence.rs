//! The anytime-valid interval of the mean log ratio: it stays valid however often the report is read. Days are the
//! replicates.
//!
//! The interval inverts the test martingale `E_n(μ) = √(c²/(n+c²)) · [(n+c²)V / ((n+c²)V - S²)]^(n/2)` with
//! `S = Σ(D-μ)`, `V = Σ(D-μ)²`: a Gaussian mixture over effect sizes, invariant under scale (Lai 1976; Wang and Ramdas,
//! arXiv 2310.03722; docs/methodology.md#interval). By Ville's inequality, the chance that any of the intervals ever
//! excludes the true mean is at most alpha, if days are independent; correlated neighbours widen it.

use super::winsorize::{MAX_OUTLIERS, mean_with_outliers, winsorize};

/// Precision of the mixture for days, `c²`. In a table over 5 to 84 days, ½ is close to the best value everywhere.
const MIXTURE_VARIANCE: f64 = 0.5;
/// Number of days from which values are winsorized. With fewer days the median absolute deviation is too uncertain.
pub(super) const MIN_DAYS_TO_WINSORIZE: usize = 10;
/// Winsorizing bound: distance from the median in scaled median absolute deviations (MAD).
pub(super) const WINSORIZE_AT_DEVIATIONS: f64 = 5.0;
/// Margin of a claim: `1 + 1.2 · (14/n)³`. Chosen by simulation on other seeds than those of the table
/// (docs/methodology.md#claims-and-drift).
const CLAIM_MARGIN: f64 = 1.2;
const CLAIM_MARGIN_DAYS: f64 = 14.0;
const CLAIM_MARGIN_POWER: i32 = 3;
/// Maximum autocorrelation that is corrected for.
const MAX_CORRELATION: f64 = 0.8;
/// Autocorrelation above which the ratio itself drifts. Reports must then say so next to the interval.
pub const AUTOCORRELATION_LIMIT: f64 = 0.3;
/// Largest possible log ratio of two positive doubles: `ln(f64::MAX / 5e-324)`.
pub(super) const MAX_LOG_RATIO: f64 = 1455.0;
/// Maximum number of days that [`DaySeries::days_needed`] predicts: two years.
const HORIZON_DAYS: usize = 730;

/// Summary of a series with one log ratio per valid day: number of days, mean, variance and autocorrelation. Also the
/// value of a line that was fitted to days, at one point of it ([`super::DayRegression`]): then the mean is that value, and
/// the variance is that of the days around the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DaySeries {
    days: usize,
    mean: f64,
    variance: f64,
    autocorrelation: f64,
    /// Number of coefficients that were fitted to the days: one for a mean, two for a line.
    coefficients: usize,
    /// Number of days whose mean would be known as well as `mean`: all, or fewer away from the middle of a line.
    weight: f64,
}

/// Value of a fitted line at one point, with what is needed for its interval.
pub(super) struct FittedValue {
    pub(super) value: f64,
    /// Number of days whose mean would be known as well.
    pub(super) weight: f64,
    /// Mean square of the residuals.
    pub(super) variance: f64,
    /// Lag-1 autocorrelation of the residuals.
    pub(super) autocorrelation: f64,
}

impl DaySeries {
    /// Summarizes pairs of `(day number, log ratio of that day)`, in any order; days may be missing.
    ///
    /// From ten days on, values beyond the median ± 5 · 1.4826 · MAD are clamped to that bound, unless the MAD is zero.
    /// `None` without a day, with two values for one day, with a value that cannot be the log ratio of two durations, or
    /// if the mean of the days as they are is another one (docs/methodology.md#rounds-of-two-kinds).
    pub fn from_days(by_day: &[(i64, f64)]) -> Option<Self> {
        let values: Vec<f64> = by_day.iter().map(|(_, value)| *value).collect();
        let is_mixed = || mean_with_outliers(&values, WINSORIZE_AT_DEVIATIONS).is_some();
        if values.len() >= MIN_DAYS_TO_WINSORIZE && is_mixed() { None } else { Self::of_values(by_day) }
    }

    /// Like [`Self::from_days`], for values of any unit and without that last reason.
    pub fn of_values(by_day: &[(i64, f64)]) -> Option<Self> {
        let mut by_day = by_day.to_vec();
        by_day.sort_by_key(|(day, _)| *day);
        let is_valid = by_day.iter().all(|(_, value)| value.abs() <= MAX_LOG_RATIO);
        if by_day.is_empty() || !is_valid || by_day.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        if by_day.len() >= MIN_DAYS_TO_WINSORIZE {
            winsorize(by_day.iter_mut().map(|(_, value)| value), WINSORIZE_AT_DEVIATIONS);
        }
        let mean = by_day.iter().map(|(_, value)| value).sum::<f64>() / by_day.len() as f64;
        by_day.iter_mut().for_each(|(_, value)| *value -= mean);
        Some(Self {
            days: by_day.len(),
            mean,
            variance: mean_square(&by_day),
            autocorrelation: autocorrelation(&by_day),
            coefficients: 1,
            weight: by_day.len() as f64,
        })
    }

    /// Returns true if more values lie beyond the bounds of [`Self::of_values`] than outliers would: the mean of the series then
    /// stands for the days of one kind only.
    pub fn has_two_kinds(by_day: &[(i64, f64)]) -> bool {
        let mut values: Vec<f64> = by_day.iter().map(|(_, value)| *value).collect();
        let clamped = winsorize(values.iter_mut(), WINSORIZE_AT_DEVIATIONS);
        values.len() >= MIN_DAYS_TO_WINSORIZE && clamped as f64 > MAX_OUTLIERS * values.len() as f64
    }

    /// Creates the series for one point of a line that was fitted to a number of days.
    pub(super) fn of_line(days: usize, at: FittedValue) -> Self {
        let FittedValue { value, weight, variance, autocorrelation } = at;
        Self { days, mean: value, variance, autocorrelation, coefficients: 2, weight }
    }

    /// Returns the number of days in the series.
    pub fn days(&self) -> usize {
        self.days
    }

    /// Returns the mean of the winsorized log ratios.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the variance of the winsorized log ratios, with the number of days as divisor.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Returns the autocorrelation, corrected for its bias in short series and clamped to 0 to 0.8.
    pub fn corrected_autocorrelation(&self) -> f64 {
        corrected_autocorrelation(self.autocorrelation, self.days)
    }

    /// Returns the factor by which the autocorrelation inflates the variance of the mean: `(1+ρ')/(1-ρ')`.
    pub fn variance_inflation(&self) -> f64 {
        inflation(self.corrected_autocorrelation())
    }

    /// Returns half the width of the interval at level `1 - alpha`; infinite with too few days.
    pub fn half_width(&self, alpha: f64) -> f64 {
        let variance = self.variance * self.variance_inflation();
        self.sample_size(self.days as f64).half_width(variance, alpha, MIXTURE_VARIANCE)
    }

    /// Returns the size of the sample after a number of days.
    fn sample_size(&self, days: f64) -> SampleSize {
        let share = days / self.days as f64;
        SampleSize { days, free_days: days - (self.coefficients as f64 - 1.0), weight: self.weight * share }
    }

    /// Returns the interval of the mean log ratio at level `1 - alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let half = self.half_width(alpha);
        (self.mean - half, self.mean + half)
    }

    /// Returns the distance from zero that the mean must exceed before a difference is claimed: the half width and a
    /// margin, because few days tell little about how much neighbouring days share. The margin doubles the half width on
    /// day 14, adds 15 % on day 28 and 2 % on day 56 (docs/methodology.md#claims-and-drift).
    pub fn claim_distance(&self, alpha: f64) -> f64 {
        self.half_width(alpha) * claim_margin(self.days)
    }

    /// Returns the logarithm of the e-value against "no difference" (docs/methodology.md#interval).
    pub fn ln_e_value(&self) -> f64 {
        let (n, square) = (self.weight, self.mean * self.mean);
        let spread = self.variance * self.variance_inflation() * (self.days as f64 / n);
        let variance = (n + MIXTURE_VARIANCE) * spread;
        let gain = ((n + MIXTURE_VARIANCE) * square + variance) / (variance + MIXTURE_VARIANCE * square);
        let start = 0.5 * (MIXTURE_VARIANCE / (n + MIXTURE_VARIANCE)).ln();
        let free_days = self.sample_size(self.days as f64).free_days;
        if gain.is_finite() { start + free_days / 2.0 * gain.ln() } else { start }
    }

    /// Predicts the half width after `n_later` days with the same variance and autocorrelation
    /// (docs/methodology.md#interval).
    fn predicted_half_width(&self, n_later: usize, alpha: f64) -> f64 {
        let (coefficients, later) = (self.coefficients as f64, n_later as f64);
        let unbiased = self.variance * self.days as f64 / (self.days as f64 - coefficients).max(1.0);
        let biased = unbiased * (later - coefficients).max(0.0) / later.max(1.0);
        self.sample_size(later).half_width(biased * self.variance_inflation(), alpha, MIXTURE_VARIANCE)
    }

    /// Returns the smallest total number of days after which a difference is expected to be claimed, or the interval to lie
    /// within ± `threshold` (docs/methodology.md#interval). `None` if that takes more than two years.
    pub fn days_needed(&self, threshold: f64, alpha: f64) -> Option<usize> {
        let effect = self.mean.abs();
        (self.days..=self.days.max(HORIZON_DAYS)).find(|later| {
            let half = self.predicted_half_width(*later, alpha);
            half < threshold - effect || half * claim_margin(*later) < effect
        })
    }

    /// Returns the series as it would be with another mean.
    pub fn with_mean(self, mean: f64) -> Self {
        Self { mean, ..self }
    }
}

/// Returns half the width of the interval at level `1 - alpha` for the mean of `n` independent days. `s2` is their
/// variance around the mean, with divisor `n` (docs/methodology.md#interval).
pub fn anytime_valid_half_width(n: usize, s2: f64, alpha: f64) -> f64 {
    mixture_half_width(n, s2, alpha, MIXTURE_VARIANCE)
}

/// Like [`anytime_valid_half_width`], for a mixture of the given precision `c²`. The guarantee holds for every
/// precision; a higher one makes the interval narrower for many values and small effects.
pub(super) fn mixture_half_width(n: usize, s2: f64, alpha: f64, precision: f64) -> f64 {
    let n = n as f64;
    SampleSize { days: n, free_days: n, weight: n }.half_width(s2, alpha, precision)
}

/// Number of days behind a mean, or behind one point of a fitted line.
struct SampleSize {
    days: f64,
    /// Number of days without one for each coefficient that was fitted besides the mean.
    free_days: f64,
    /// Number of days whose mean would be known as well.
    weight: f64,
}

impl SampleSize {
    /// Returns half the width of the interval for a variance with divisor `days`. With `z` the weight and `p` the further
    /// coefficients, this is [`anytime_valid_half_width`] with `z` for `n`, the exponent `2/(n-p)`, and `s²·n/z` for `s²`
    /// (docs/methodology.md#at-a-round-trip-time).
    fn half_width(&self, s2: f64, alpha: f64, precision: f64) -> f64 {
        let total = self.weight + precision;
        let k = ((0.5 * (total / precision).ln() - alpha.ln()) * 2.0 / self.free_days).exp();
        let denominator = total - k * precision;
        if denominator > 0.0 && s2.is_finite() && self.free_days > 0.0 {
            let variance = s2.max(0.0) * (self.days / self.weight);
            ((k - 1.0).max(0.0) * total * variance / denominator).sqrt()
        } else {
            f64::INFINITY
        }
    }
}

/// Returns the variance inflation `f = (1+ρ')/(1-ρ')` for the deviations of two parts of a series from their own means,
/// sorted by day.
///
/// Each mean that is estimated from the days lowers their autocorrelation. With two means, the bias is that of half as
/// many days.
pub(super) fn inflation_around_two_means(deviations: &[(i64, f64)]) -> f64 {
    inflation(corrected_autocorrelation(autocorrelation(deviations), deviations.len() / 2))
}

/// Returns the number of half widths that a mean over days must exceed before a difference is claimed.
pub fn claim_margin(days: usize) -> f64 {
    1.0 + CLAIM_MARGIN * (CLAIM_MARGIN_DAYS / days as f64).powi(CLAIM_MARGIN_POWER)
}

fn inflation(correlation: f64) -> f64 {
    (1.0 + correlation) / (1.0 - correlation)
}

fn corrected_autocorrelation(correlation: f64, days: usize) -> f64 {
    (correlation + (1.0 + 3.0 * correlation) / days as f64).clamp(0.0, MAX_CORRELATION)
}

pub(super) fn mean_square(deviations: &[(i64, f64)]) -> f64 {
    deviations.iter().map(|(_, value)| value * value).sum::<f64>() / deviations.len() as f64
}

/// Returns the lag-1 autocorrelation of deviations from a mean, over pairs of neighbouring calendar days only.
///
/// Pairs across a gap are ignored, because they are no neighbours. The mean product of the remaining pairs is
/// multiplied by `n-1`, the number of pairs of a series without gaps; without gaps this is the usual estimator. Returns
/// 0 if there is no pair or no spread (docs/methodology.md#interval).
pub(super) fn autocorrelation(deviations: &[(i64, f64)]) -> f64 {
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
        DaySeries::of_values(&(100..).zip(values.iter().copied()).collect::<Vec<_>>()).unwrap()
    }

    fn assert_golden(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 0.5001e-10, "{found} is not {expected}");
    }

    #[test]
    fn half_widths_match_golden_values() {
        assert_golden(anytime_valid_half_width(14, 0.0064, 0.05), 0.0807920397);
        assert_golden(anytime_valid_half_width(28, 0.0064, 0.05), 0.0531926049);
        assert_golden(anytime_valid_half_width(56, 0.0064, 0.05), 0.0369422179);
        assert_golden(anytime_valid_half_width(28, 0.0064, 0.05 / 3.0), 0.0600326177);
        assert_golden(anytime_valid_half_width(7, 0.01, 0.05), 0.1790495141);
    }

    /// Checks the table in docs/methodology.md#interval, which is in standard deviations with divisor `n - 1`.
    #[test]
    fn half_widths_match_the_documented_table() {
        let days = [5, 7, 10, 14, 21, 28, 42, 56, 84];
        let table = [
            (0.05, [2.61, 1.66, 1.22, 0.973, 0.765, 0.653, 0.529, 0.458, 0.375]),
            (0.05 / 3.0, [4.89, 2.17, 1.48, 1.14, 0.873, 0.737, 0.590, 0.508, 0.413]),
            (0.05 / 6.0, [49.0, 2.58, 1.66, 1.24, 0.940, 0.789, 0.627, 0.538, 0.436]),
        ];
        for (alpha, row) in table {
            for (n, expected) in days.into_iter().zip(row) {
                let found = anytime_valid_half_width(n, (n as f64 - 1.0) / n as f64, alpha);
                assert!((found / expected - 1.0).abs() < 0.0045, "{n} days at {alpha}: {found}");
            }
        }
    }

    #[test]
    fn quiet_series_matches_golden_values() {
        let series = daily(&QUIET);
        assert_golden(series.mean(), 0.0692857143);
        assert_golden(series.variance(), 0.0015066327);
        assert_golden(series.autocorrelation, -0.4314498573);
        assert_golden(series.corrected_autocorrelation(), 0.0);
        assert_golden(series.half_width(0.05), 0.0391996576);
        assert_golden(series.ln_e_value(), 7.6092867590);
    }

    #[test]
    fn outlier_is_winsorized_to_golden_values() {
        let series = daily(&WITH_AN_OUTLIER);
        assert_golden(series.mean(), 0.0793953125);
        assert_golden(anytime_valid_half_width(16, series.variance(), 0.05), 0.0504804251);
        assert_golden(series.half_width(0.05), 0.0944378085);
        assert!(series.corrected_autocorrelation() > AUTOCORRELATION_LIMIT);
    }

    #[test]
    fn nine_days_are_not_winsorized() {
        let values = [0.01, 0.02, 0.01, 0.03, 0.02, 0.01, 0.02, 0.03, 0.95];
        assert!((daily(&values).mean() - values.iter().sum::<f64>() / 9.0).abs() < 1e-15);
    }

    #[test]
    fn days_across_a_gap_are_not_neighbours() {
        let every_second: Vec<_> = (0..20).map(|i| (2 * i, f64::from((i / 5) as i32) * 0.1)).collect();
        assert_eq!(DaySeries::from_days(&every_second).unwrap().autocorrelation, 0.0);
        let week_apart: Vec<_> = (0..20).map(|i| (i + i / 5 * 7, f64::from((i / 5) as i32) * 0.1)).collect();
        let gaps = DaySeries::from_days(&week_apart).unwrap().autocorrelation;
        let without = daily(&week_apart.iter().map(|(_, value)| *value).collect::<Vec<_>>()).autocorrelation;
        assert!(gaps > without && gaps <= 1.0, "{gaps} against {without}");
    }

    #[test]
    fn order_is_ignored_and_duplicate_days_are_rejected() {
        let forward: Vec<_> = (0..14).zip(QUIET).collect();
        let backward: Vec<_> = forward.iter().rev().copied().collect();
        assert_eq!(DaySeries::from_days(&forward), DaySeries::from_days(&backward));
        assert_eq!(DaySeries::from_days(&[(1, 0.1), (2, 0.2), (1, 0.1)]), None);
    }

    #[test]
    fn invalid_log_ratios_give_no_series() {
        assert_eq!(DaySeries::from_days(&[]), None);
        for value in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300] {
            assert_eq!(DaySeries::from_days(&[(1, 0.1), (2, value)]), None);
        }
    }

    #[test]
    fn interval_is_finite_from_four_days() {
        for days in 1..14 {
            assert_eq!(daily(&QUIET[..days]).half_width(0.05).is_finite(), days >= 4, "{days} days");
        }
    }

    #[test]
    fn equal_days_have_a_finite_e_value() {
        let none = daily(&[0.0; 14]);
        assert_eq!(none.interval(0.05), (0.0, 0.0));
        assert!(none.ln_e_value() < 0.0);
        let some = daily(&[0.25; 14]);
        assert_eq!(some.interval(0.05), (0.25, 0.25));
        assert!(some.ln_e_value() > 20.0 && some.ln_e_value().is_finite());
        assert_eq!(daily(&[0.25]).half_width(0.05), f64::INFINITY);
    }

    #[test]
    fn predicted_half_width_starts_at_current_and_narrows() {
        let series = daily(&QUIET);
        assert!((series.predicted_half_width(14, 0.05) - series.half_width(0.05)).abs() < 1e-12);
        assert!(series.predicted_half_width(28, 0.05) < series.half_width(0.05));
        // The interval excludes zero already; the claim waits for its margin.
        assert!(series.mean() > series.half_width(0.05) && series.mean() < series.claim_distance(0.05));
        assert_eq!(series.days_needed(0.0953, 0.05), Some(16));
    }

    #[test]
    fn days_needed_is_the_first_day_of_a_decision() {
        let undecided: Vec<f64> = QUIET.iter().map(|value| (value - 0.0692857143) * 3.0 + 0.05).collect();
        let series = daily(&undecided);
        let needed = series.days_needed(0.0953, 0.05).unwrap();
        let is_decided = |days: usize| {
            let half = series.predicted_half_width(days, 0.05);
            half < 0.0953 - 0.05 || half * claim_margin(days) < 0.05
        };
        assert!(needed > 14 && is_decided(needed) && !is_decided(needed - 1));
        let hopeless: Vec<f64> = QUIET.iter().map(|value| (value - 0.0692857143) * 100.0 + 0.0477).collect();
        assert_eq!(daily(&hopeless).days_needed(0.0953, 0.05), None);
    }

    proptest! {
        #[test]
        fn any_series_gives_no_nan(by_day in proptest::collection::vec((any::<i64>(), any::<f64>()), 0..40), alpha: f64) {
            if let Some(series) = DaySeries::from_days(&by_day) {
                let (low, high) = series.interval(alpha);
                prop_assert!(low <= high && !series.ln_e_value().is_nan());
            }
        }

        #[test]
        fn extreme_log_ratios_give_no_nan(
            values in proptest::collection::vec(prop_oneof![Just(0.0), -1400.0..1400.0f64, -1e-300..1e-300f64], 1..40),
            alpha in prop_oneof![Just(0.0), Just(1.0), 1e-9..1.0f64],
        ) {
            let series = daily(&values);
            let (low, high) = series.interval(alpha);
            prop_assert!(low <= series.mean() && series.mean() <= high);
            prop_assert!(!series.ln_e_value().is_nan() && !series.claim_distance(alpha).is_nan());
            prop_assert!(!series.predicted_half_width(0, alpha).is_nan());
            prop_assert!(series.days_needed(0.1, alpha).is_none_or(|needed| needed >= values.len()));
        }

        #[test]
        fn e_value_agrees_with_the_interval(
            values in proptest::collection::vec(-1.0..1.0f64, 5..60), shift in -1.0..1.0f64,
        ) {
            let series = daily(&values.iter().map(|value| value * 0.1 + shift).collect::<Vec<_>>());
            let excludes_zero = series.mean().abs() > series.half_width(0.05);
            let distance = series.ln_e_value() - 20f64.ln();
            prop_assert!(distance.abs() < 1e-6 || excludes_zero == (distance > 0.0));
        }
    }
}
