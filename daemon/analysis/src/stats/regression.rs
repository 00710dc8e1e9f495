//! The log ratio of days as a line over a covariate that is known before each round: the round trip time.
//!
//! The anytime-valid regression of Lindon, Ham, Tingley and Bojinov (arXiv 2210.08589, sequential t-test of one coefficient):
//! the mixture of [`super::DaySeries`], for the value of the line at one point, with one day less because the slope is
//! fitted, too (docs/methodology.md#at-a-round-trip-time).

use super::bisection::bisect;
use super::confidence_sequence::{
    DaySeries, FittedValue, MAX_LOG_RATIO, MIN_DAYS_TO_WINSORIZE, WINSORIZE_AT_DEVIATIONS, autocorrelation,
    mean_square,
};
use super::winsorize::winsorize;

/// Log ratio of one valid day, with the covariate of its rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CovariateDay {
    /// Local day, in days since 1970-01-01.
    pub day: i64,
    /// Log ratio of the day.
    pub log_ratio: f64,
    /// Covariate of the day, for example the logarithm of the round trip time.
    pub covariate: f64,
}

/// A line fitted to the log ratios of days over their covariate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayRegression {
    days: usize,
    /// Mean log ratio and mean covariate: the middle of the line.
    mean: f64,
    mean_covariate: f64,
    slope: f64,
    /// Sum of the squared deviations of the covariate from its mean.
    covariate_spread: f64,
    /// Smallest and largest covariate of a day.
    covariate_range: (f64, f64),
    /// Mean square and lag-1 autocorrelation of the residuals.
    variance: f64,
    autocorrelation: f64,
}

/// Covariate at which the line crosses zero: there both targets take equally long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakEven {
    /// Covariate of the crossing; it lies among the covariates of the days.
    pub covariate: f64,
    /// Lower end of the interval; `None` if it lies below all covariates of the days.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` if it lies above all covariates of the days.
    pub high: Option<f64>,
}

impl DayRegression {
    /// Fits a line by least squares, in any order of the days.
    ///
    /// From ten days on, residuals beyond their median ± 5 · 1.4826 · MAD are clamped to that bound, and the line is fitted
    /// again. `None` with fewer than three days, with two values for one day, with a covariate that is the same on all
    /// days or not finite, or with a value that cannot be the log ratio of two durations.
    pub fn from_days(days: &[CovariateDay]) -> Option<Self> {
        let mut days = days.to_vec();
        days.sort_by_key(|day| day.day);
        let is_valid = |day: &CovariateDay| day.log_ratio.abs() <= MAX_LOG_RATIO && day.covariate.is_finite();
        let is_twice = days.windows(2).any(|pair| pair[0].day == pair[1].day);
        if days.len() < 3 || is_twice || !days.iter().all(is_valid) {
            return None;
        }
        let first = Line::through(&days)?;
        if days.len() < MIN_DAYS_TO_WINSORIZE {
            return Some(first.regression(&days));
        }
        let mut residuals: Vec<f64> = days.iter().map(|day| first.residual(day)).collect();
        winsorize(residuals.iter_mut(), WINSORIZE_AT_DEVIATIONS);
        for (day, residual) in days.iter_mut().zip(residuals) {
            day.log_ratio += residual - first.residual(day);
        }
        Some(Line::through(&days)?.regression(&days))
    }

    /// Returns the value of the line at a covariate as a series, from which intervals and verdicts are made.
    pub fn at(&self, covariate: f64) -> DaySeries {
        let (n, distance) = (self.days as f64, covariate - self.mean_covariate);
        let weight = 1.0 / (1.0 / n + distance * distance / self.covariate_spread);
        self.series(self.mean + self.slope * distance, weight)
    }

    /// Returns the values of the line at the smallest and at the largest covariate of a day.
    pub fn outermost(&self) -> [DaySeries; 2] {
        let (lowest, highest) = self.covariate_range;
        [lowest, highest].map(|covariate| self.at(covariate))
    }

    /// Returns the covariate at which both targets take equally long. `None` if it does not lie among the covariates of the
    /// days, or if the interval of the slope at level `1 - alpha` does not exclude zero.
    ///
    /// Its interval holds all covariates at which the interval of the line holds zero.
    pub fn break_even(&self, alpha: f64) -> Option<BreakEven> {
        let (lowest, highest) = self.covariate_range;
        let covariate = self.mean_covariate - self.mean / self.slope;
        let deviation = (self.covariate_spread / self.days as f64).sqrt();
        let slope = self.series(self.slope * deviation, self.days as f64);
        if !(lowest..=highest).contains(&covariate) || !excludes_zero(&slope, alpha) {
            return None;
        }
        let end = |outermost| self.end_of_break_even(covariate, outermost, alpha);
        Some(BreakEven { covariate, low: end(lowest), high: end(highest) })
    }

    /// Returns the covariate between the crossing and the outermost day from which on the interval of the line excludes
    /// zero; `None` if it does not even there.
    fn end_of_break_even(&self, crossing: f64, outermost: f64, alpha: f64) -> Option<f64> {
        let excludes = |covariate: f64| excludes_zero(&self.at(covariate), alpha);
        let (_, outside) = bisect(crossing, outermost, |covariate| !excludes(covariate));
        excludes(outermost).then_some(outside)
    }

    fn series(&self, value: f64, weight: f64) -> DaySeries {
        let Self { variance, autocorrelation, .. } = *self;
        DaySeries::of_line(self.days, FittedValue { value, weight, variance, autocorrelation })
    }
}

fn excludes_zero(series: &DaySeries, alpha: f64) -> bool {
    series.mean().abs() > series.half_width(alpha)
}

/// A line by its middle and slope.
struct Line {
    mean: f64,
    mean_covariate: f64,
    slope: f64,
    covariate_spread: f64,
}

impl Line {
    /// Fits a line by least squares; `None` if the covariate is the same on all days.
    fn through(days: &[CovariateDay]) -> Option<Self> {
        let mean = |of: fn(&CovariateDay) -> f64| days.iter().map(of).sum::<f64>() / days.len() as f64;
        let (mean, mean_covariate) = (mean(|day| day.log_ratio), mean(|day| day.covariate));
        let deviation = |day: &CovariateDay| day.covariate - mean_covariate;
        let covariate_spread: f64 = days.iter().map(|day| deviation(day).powi(2)).sum();
        let product: f64 = days.iter().map(|day| deviation(day) * (day.log_ratio - mean)).sum();
        let slope = product / covariate_spread;
        (covariate_spread > 0.0 && slope.is_finite()).then_some(Self {
            mean,
            mean_covariate,
            slope,
            covariate_spread,
        })
    }

    fn residual(&self, day: &CovariateDay) -> f64 {
        day.log_ratio - self.mean - self.slope * (day.covariate - self.mean_covariate)
    }

    fn regression(&self, days: &[CovariateDay]) -> DayRegression {
        let residuals: Vec<(i64, f64)> = days.iter().map(|day| (day.day, self.residual(day))).collect();
        let covariates = || days.iter().map(|day| day.covariate);
        DayRegression {
            days: days.len(),
            mean: self.mean,
            mean_covariate: self.mean_covariate,
            slope: self.slope,
            covariate_spread: self.covariate_spread,
            covariate_range: (
                covariates().fold(f64::INFINITY, f64::min),
                covariates().fold(-f64::INFINITY, f64::max),
            ),
            variance: mean_square(&residuals),
            autocorrelation: autocorrelation(&residuals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::normal_days;
    use crate::stats::anytime_valid_half_width;
    use proptest::prelude::*;

    fn days(log_ratios: &[f64], covariates: &[f64]) -> Vec<CovariateDay> {
        let values = log_ratios.iter().zip(covariates);
        (100..)
            .zip(values)
            .map(|(day, (log_ratio, covariate))| CovariateDay {
                day,
                log_ratio: *log_ratio,
                covariate: *covariate,
            })
            .collect()
    }

    /// Returns days on the line `0.1 + 0.4 x` with independent normal noise, and covariates with a memory of some days.
    fn noisy(count: i64, noise: f64, seed: u64) -> Vec<CovariateDay> {
        let errors = normal_days(count, seed);
        let mut covariate = 0.0;
        let steps = normal_days(count, seed + 1_000_000);
        errors
            .into_iter()
            .zip(steps)
            .map(|((day, error), (_, step))| {
                covariate = 0.6 * covariate + 0.3 * step;
                CovariateDay { day, log_ratio: 0.1 + 0.4 * covariate + noise * error, covariate }
            })
            .collect()
    }

    /// Least squares by hand: slope 0.5, residuals ±0.05 and ∓0.05.
    #[test]
    fn line_matches_least_squares_by_hand() {
        let line = DayRegression::from_days(&days(&[0.05, 0.45, 0.95, 1.55], &[0.0, 1.0, 2.0, 3.0])).unwrap();
        let expected = [0.0, 0.5, 1.0, 1.5];
        for (covariate, value) in [0.0, 1.0, 2.0, 3.0].into_iter().zip(expected) {
            assert!((line.at(covariate).mean() - value).abs() < 1e-12);
        }
        assert!((line.at(1.5).variance() - 0.0025).abs() < 1e-12);
    }

    /// In the middle of the covariates the interval is that of a mean with one day less in the exponent; away from it, it
    /// grows as the standard error of the line does.
    #[test]
    fn interval_follows_the_standard_error_of_the_line() {
        let known = noisy(30, 0.05, 3);
        let line = DayRegression::from_days(&known).unwrap();
        let middle = line.at(line.mean_covariate);
        let (n, c2) = (30.0f64, 0.5f64);
        let k = (((n + c2) / c2).sqrt() / 0.05).powf(2.0 / (n - 1.0));
        let variance = middle.variance() * middle.variance_inflation();
        let expected = ((k - 1.0) * (n + c2) * variance / (n + c2 - k * c2)).sqrt();
        assert!((middle.half_width(0.05) - expected).abs() < 1e-12);
        assert!(middle.half_width(0.05) > anytime_valid_half_width(30, variance, 0.05));
        let far = line.at(line.mean_covariate + 1.0).half_width(0.05);
        let growth = (1.0 + n / line.covariate_spread).sqrt();
        // Not exactly, because the mixture is wider for few days.
        assert!((far / middle.half_width(0.05) / growth - 1.0).abs() < 0.2, "{far} {growth}");
    }

    #[test]
    fn interval_on_independent_days_keeps_its_error_rate() {
        let missed = |seed: &u64| {
            let known = noisy(100, 0.05, *seed);
            (5..=100).any(|count| {
                let line = DayRegression::from_days(&known[..count]).unwrap();
                let (low, high) = line.at(0.0).interval(0.05);
                !(low..=high).contains(&0.1)
            })
        };
        let count = (0..1000).filter(missed).count();
        assert!((5..=50).contains(&count), "{count} of 1000 missed");
    }

    #[test]
    fn break_even_interval_holds_the_crossing() {
        let (mut found, mut missed) = (0, 0);
        for seed in 0..500 {
            let Some(crossing) = DayRegression::from_days(&noisy(40, 0.05, seed)).unwrap().break_even(0.05)
            else {
                continue;
            };
            found += 1;
            let is_inside =
                crossing.low.is_none_or(|low| low <= -0.25) && crossing.high.is_none_or(|high| -0.25 <= high);
            missed += u32::from(!is_inside);
            assert!(crossing.low.is_none_or(|low| low <= crossing.covariate));
            assert!(crossing.high.is_none_or(|high| crossing.covariate <= high));
        }
        assert!(found > 400 && missed <= 25, "{missed} of {found} missed");
    }

    #[test]
    fn flat_line_has_no_break_even() {
        let flat = noisy(40, 0.05, 5)
            .into_iter()
            .map(|day| CovariateDay { log_ratio: day.log_ratio - 0.1 - 0.4 * day.covariate, ..day });
        let line = DayRegression::from_days(&flat.collect::<Vec<_>>()).unwrap();
        assert_eq!(line.break_even(0.05), None);
    }

    #[test]
    fn outlier_hardly_moves_the_line() {
        let mut known = noisy(30, 0.02, 8);
        let before = DayRegression::from_days(&known).unwrap().at(0.0).mean();
        known[12].log_ratio += 20.0;
        let after = DayRegression::from_days(&known).unwrap().at(0.0).mean();
        assert!((before - after).abs() < 0.7, "{before} {after}");
    }

    #[test]
    fn constant_and_invalid_covariates_give_no_line() {
        assert_eq!(DayRegression::from_days(&days(&[0.1, 0.2, 0.3, 0.1], &[2.0; 4])), None);
        assert_eq!(DayRegression::from_days(&days(&[0.1, 0.2], &[1.0, 2.0])), None);
        assert_eq!(DayRegression::from_days(&days(&[0.1, 0.2, 0.3], &[1.0, f64::NAN, 2.0])), None);
        assert_eq!(DayRegression::from_days(&days(&[0.1, 0.2, 0.3], &[1.0, f64::NEG_INFINITY, 2.0])), None);
    }

    proptest! {
        #[test]
        fn any_days_give_no_nan(
            values in proptest::collection::vec((-1400.0..1400.0f64, -50.0..50.0f64), 3..40), at in -60.0..60.0f64,
        ) {
            let known: Vec<CovariateDay> = (0..)
                .zip(values)
                .map(|(day, (log_ratio, covariate))| CovariateDay { day, log_ratio, covariate })
                .collect();
            if let Some(line) = DayRegression::from_days(&known) {
                let (low, high) = line.at(at).interval(0.05);
                prop_assert!(low <= high && !line.at(at).ln_e_value().is_nan());
                if let Some(crossing) = line.break_even(0.05) {
                    prop_assert!(crossing.covariate.is_finite());
                }
            }
        }

        #[test]
        fn e_value_agrees_with_the_interval(seed in 0u64..1000, at in -1.0..1.0f64) {
            let series = DayRegression::from_days(&noisy(20, 0.3, seed)).unwrap().at(at);
            let distance = series.ln_e_value() - 20f64.ln();
            prop_assert!(distance.abs() < 1e-6 || (series.mean().abs() > series.half_width(0.05)) == (distance > 0.0));
        }
    }
}
