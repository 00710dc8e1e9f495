//! The verdict rule, which turns an interval into a verdict. All verdicts of longhaul are made here.
//!
//! Source of the rule and its constants: docs/methodology.md#verdict-rule. Its chance of a false verdict was determined
//! by simulation (docs/methodology.md#simulation).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::stats::{DaySeries, bisect};
use longhaul_model::WaitKind;

/// Maximum chance that the overall interval of any pair ever excludes the true ratio, however often the report is read
/// (docs/methodology.md#constants).
pub const ALPHA: f64 = 0.05;
/// Number of valid days from which a verdict is possible, except for an early verdict.
pub const MIN_VERDICT_DAYS: usize = 14;
/// Number of valid days from which an early verdict is possible: the whole interval must lie beyond
/// [`EARLY_VERDICT_RATIO`].
pub const EARLY_VERDICT_DAYS: usize = 5;
/// Ratio beyond which the whole interval must lie for an early verdict.
pub const EARLY_VERDICT_RATIO: f64 = 1.25;
/// Smallest difference in seconds that a user notices, regardless of the ratio (Nielsen's "instant").
pub const INSTANT_SECONDS: f64 = 0.1;

/// A ratio with its interval and the number of days that it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RatioEstimate {
    /// Estimated ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of days that the estimate rests on.
    pub days: usize,
}

impl RatioEstimate {
    /// Returns the ratio for a series of daily log ratios; `None` while the interval is infinite.
    pub(super) fn from_log_ratios(series: &DaySeries, alpha: f64) -> Option<Self> {
        let (low, high) = series.interval(alpha);
        let estimate =
            Self { value: series.mean().exp(), low: low.exp(), high: high.exp(), days: series.days() };
        (low.is_finite() && high.is_finite() && estimate.high.is_finite()).then_some(estimate)
    }

    /// Returns true if the interval excludes equal times.
    pub fn is_difference(self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// Returns the estimate of the inverse ratio, as if the two targets were swapped.
    pub fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low, days: self.days }
    }
}

/// Verdict about two targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No statement is possible yet.
    NotEnoughData,
    /// The difference is so large that it is certain before day 14.
    AlreadyClear,
    /// One target is faster, by a difference that matters.
    Faster,
    /// One target is faster, and even the end of the interval nearest to 1 lies beyond the threshold.
    ClearlyFaster,
    /// There is a difference, but it is too small to matter.
    TooSmall,
    /// The whole interval lies within the threshold: any difference is too small to matter.
    NoRealDifference,
}

impl Verdict {
    /// Returns true for every verdict except [`Self::NotEnoughData`].
    pub const fn is_decided(self) -> bool {
        match self {
            Self::NotEnoughData => false,
            Self::AlreadyClear
            | Self::Faster
            | Self::ClearlyFaster
            | Self::TooSmall
            | Self::NoRealDifference => true,
        }
    }

    /// Returns true if the verdict names one target as faster.
    pub const fn has_winner(self) -> bool {
        match self {
            Self::AlreadyClear | Self::Faster | Self::ClearlyFaster => true,
            Self::NotEnoughData | Self::TooSmall | Self::NoRealDifference => false,
        }
    }
}

/// Parameters of the verdict rule for one comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct VerdictRule {
    /// Maximum chance that the interval ever excludes the true ratio.
    pub(super) alpha: f64,
    /// Ratio from which a difference matters, above 1.
    pub(super) threshold: f64,
    /// Kind of wait: a user waits, or the task runs in the background.
    pub(super) wait_kind: WaitKind,
    /// Median seconds of both targets; `None` for a comparison over several metrics.
    pub(super) median_seconds: Option<(f64, f64)>,
    /// Significance of the difference among all comparisons of the report.
    pub(super) significance: Significance,
}

/// Significance of a difference among all comparisons of the report (e-BH, docs/methodology.md#many-comparisons).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Significance {
    /// The difference survives the correction for many comparisons.
    Significant,
    /// The difference may be one of the chance results that many comparisons produce.
    NotSignificant,
}

/// Returns the verdict for a series of daily log ratios (docs/methodology.md#verdict-rule).
pub(super) fn verdict(series: &DaySeries, rule: &VerdictRule) -> Verdict {
    let (low, high) = series.interval(rule.alpha);
    let early = EARLY_VERDICT_RATIO.ln();
    let lies_beyond = |ratio: f64| low > ratio || high < -ratio;
    if series.days() < MIN_VERDICT_DAYS {
        let is_clear = series.days() >= EARLY_VERDICT_DAYS && lies_beyond(early) && is_noticeable(rule);
        return if is_clear { Verdict::AlreadyClear } else { Verdict::NotEnoughData };
    }
    let threshold = rule.threshold.ln();
    // Checked before the difference from 0: an interval within the threshold that excludes 0 still does not matter.
    if -threshold < low && high < threshold {
        return Verdict::NoRealDifference;
    }
    // What was clear before day 14 stays so.
    let is_difference = series.mean().abs() > series.claim_distance(rule.alpha) || lies_beyond(early);
    if !is_difference || rule.significance == Significance::NotSignificant {
        return Verdict::NotEnoughData;
    }
    match series.mean().abs() >= threshold && is_noticeable(rule) {
        true if lies_beyond(threshold) => Verdict::ClearlyFaster,
        true => Verdict::Faster,
        false => Verdict::TooSmall,
    }
}

/// Returns the size of the smallest log ratio for which [`verdict`] would name a difference, whether or not it matters, if the days
/// varied as they do; `None` if it would for none. `least_ln_e` is the logarithm of the e-value that makes it significant.
pub(super) fn detectable_difference(series: &DaySeries, rule: &VerdictRule, least_ln_e: f64) -> Option<f64> {
    // With a threshold of 1 and without a time, no difference is too small.
    let rule = VerdictRule { threshold: 1.0, median_seconds: None, ..*rule };
    let is_named = |size: f64| {
        let series = series.with_mean(size);
        let significance = match series.ln_e_value() >= least_ln_e {
            true => Significance::Significant,
            false => Significance::NotSignificant,
        };
        verdict(&series, &VerdictRule { significance, ..rule }).has_winner()
    };
    let (_, named) = bisect(0.0, f64::MAX.ln(), |size| !is_named(size));
    is_named(named).then_some(named)
}

/// Returns true if a user could notice the difference. Background tasks and comparisons without a time always count
/// as noticeable.
fn is_noticeable(rule: &VerdictRule) -> bool {
    match (rule.wait_kind, rule.median_seconds) {
        (WaitKind::Interactive, Some((a, b))) => (a - b).abs() >= INSTANT_SECONDS,
        (WaitKind::Interactive | WaitKind::Background, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: VerdictRule = VerdictRule {
        alpha: 0.05,
        threshold: 1.1,
        wait_kind: WaitKind::Background,
        median_seconds: None,
        significance: Significance::Significant,
    };

    /// Returns a series of daily log ratios that alternate between `mean + swing` and `mean - swing`.
    fn days(count: usize, mean: f64, swing: f64) -> DaySeries {
        let value = |day: usize| mean + if day.is_multiple_of(2) { swing } else { -swing };
        let by_day: Vec<(i64, f64)> = (0..count).map(|day| (day as i64, value(day))).collect();
        DaySeries::from_days(&by_day).unwrap()
    }

    #[test]
    fn verdict_is_possible_from_day_fourteen() {
        assert_eq!(verdict(&days(13, 0.15, 0.02), &RULE), Verdict::NotEnoughData);
        assert_eq!(verdict(&days(14, 0.15, 0.02), &RULE), Verdict::ClearlyFaster);
    }

    #[test]
    fn early_verdict_needs_a_large_difference() {
        assert_eq!(verdict(&days(6, 0.7, 0.05), &RULE), Verdict::AlreadyClear);
        assert_eq!(verdict(&days(4, 0.7, 0.01), &RULE), Verdict::NotEnoughData);
        assert_eq!(verdict(&days(6, -0.2, 0.01), &RULE), Verdict::NotEnoughData);
    }

    #[test]
    fn small_and_absent_differences_have_own_verdicts() {
        assert_eq!(verdict(&days(28, 0.08, 0.05), &RULE), Verdict::TooSmall);
        assert_eq!(verdict(&days(28, 0.02, 0.05), &RULE), Verdict::NoRealDifference);
        // The whole interval lies within the threshold, which takes precedence over `TooSmall`.
        assert_eq!(verdict(&days(28, 0.05, 0.02), &RULE), Verdict::NoRealDifference);
        assert_eq!(verdict(&days(28, 0.05, 0.3), &RULE), Verdict::NotEnoughData);
        assert_eq!(verdict(&days(28, 0.12, 0.1), &RULE), Verdict::Faster);
    }

    /// Number of days and their deviation.
    const SERIES: [(usize, f64); 10] = [
        (5, 0.01),
        (6, 0.03),
        (9, 0.1),
        (13, 0.03),
        (14, 0.03),
        (14, 0.3),
        (20, 0.1),
        (28, 0.01),
        (56, 0.1),
        (84, 0.5),
    ];

    #[test]
    fn detectable_difference_is_where_the_verdict_changes() {
        // Any difference matters, so that the verdict is not that it does not.
        let rule = VerdictRule { threshold: 1.0, ..RULE };
        for (count, swing) in SERIES {
            let centre = days(count, 0.0, swing).mean();
            let at = |mean: f64| verdict(&days(count, mean - centre, swing), &rule).has_winner();
            let least =
                detectable_difference(&days(count, 0.0, swing), &RULE, f64::NEG_INFINITY).expect("a size");
            assert!(at(least * 1.0001) && at(-least * 1.0001), "{count} days, {swing}: {least}");
            assert!(!at(least * 0.9999) && !at(-least * 0.9999), "{count} days, {swing}: {least}");
        }
    }

    #[test]
    fn before_two_weeks_only_large_differences_can_be_detected() {
        let least = |count, swing| detectable_difference(&days(count, 0.0, swing), &RULE, f64::NEG_INFINITY);
        assert_eq!((least(4, 0.01), least(1, 0.0)), (None, None));
        let (before, after) = (least(13, 0.03).unwrap().exp(), least(14, 0.03).unwrap().exp());
        assert!((1.28..1.30).contains(&before) && (1.05..1.08).contains(&after), "{before} {after}");
    }

    #[test]
    fn single_metric_needs_its_e_value_to_be_detected() {
        let least_ln_e = 5000f64.ln();
        for (count, swing) in SERIES.into_iter().filter(|(count, _)| *count >= MIN_VERDICT_DAYS) {
            let series = days(count, 0.0, swing);
            let alone = detectable_difference(&series, &RULE, f64::NEG_INFINITY).unwrap();
            let among_many = detectable_difference(&series, &RULE, least_ln_e).unwrap();
            assert!(among_many >= alone, "{count} days, {swing}");
            assert!(series.with_mean(among_many * 1.0001).ln_e_value() >= least_ln_e);
            assert!(among_many == alone || series.with_mean(among_many * 0.9999).ln_e_value() < least_ln_e);
        }
    }

    #[test]
    fn insignificant_difference_is_not_enough_data() {
        let rule = VerdictRule { significance: Significance::NotSignificant, ..RULE };
        assert_eq!(verdict(&days(28, 0.3, 0.05), &rule), Verdict::NotEnoughData);
    }

    #[test]
    fn unnoticeable_interactive_difference_has_no_winner() {
        let seconds =
            |a, b| VerdictRule { wait_kind: WaitKind::Interactive, median_seconds: Some((a, b)), ..RULE };
        assert_eq!(verdict(&days(28, 0.7, 0.05), &seconds(0.02, 0.04)), Verdict::TooSmall);
        assert_eq!(verdict(&days(28, 0.7, 0.05), &seconds(0.2, 0.4)), Verdict::ClearlyFaster);
        assert_eq!(verdict(&days(6, 0.7, 0.05), &seconds(0.02, 0.04)), Verdict::NotEnoughData);
    }
}
