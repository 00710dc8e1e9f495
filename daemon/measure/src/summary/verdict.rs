//! The rule that turns an interval into a verdict: the only place where one is made.
//!
//! The rule and its constants are those of `knowledge/statistics.md`, sections 0 and 6; its chance of a false verdict
//! was found by simulation.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Presence;
use crate::stats::DaySeries;

/// All intervals together miss with at most this chance, however often somebody looks.
pub const ALPHA: f64 = 0.05;
/// Verdicts open at so many valid days.
pub const OPENING_DAYS: usize = 14;
/// From so many days on, an interval that lies wholly beyond [`EARLY_RATIO`] is a verdict already.
pub const EARLY_DAYS: usize = 5;
/// How large a difference has to be, with its whole interval, to be called before the opening day.
pub const EARLY_RATIO: f64 = 1.25;
/// A person does not notice less than this, in seconds, whatever the ratio (Nielsen's "instant").
pub const UNNOTICED_SECONDS: f64 = 0.1;

/// A ratio that cannot be had without its interval and the number of days that it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Days.
    pub days: usize,
}

impl Estimate {
    /// The ratio of a series of log ratios; `None` while anything fits.
    pub(super) fn of_ratio(series: &DaySeries, alpha: f64) -> Option<Self> {
        let (low, high) = series.interval(alpha);
        let estimate =
            Self { value: series.mean().exp(), low: low.exp(), high: high.exp(), days: series.days() };
        (low.is_finite() && high.is_finite() && estimate.high.is_finite()).then_some(estimate)
    }

    /// The same with both sides exchanged.
    pub fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low, days: self.days }
    }
}

/// What may be said about two targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing yet.
    NotEnoughData,
    /// A difference so large that it shows before the opening day.
    AlreadyClear,
    /// A difference that matters.
    Faster,
    /// A difference that matters even at the near end of its interval.
    ClearlyFaster,
    /// A difference, but too small to matter.
    TooSmall,
    /// Any difference is smaller than what matters.
    NoRealDifference,
}

impl Verdict {
    /// Whether the question is answered.
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

    /// Whether one of the two is called better.
    pub const fn names_a_winner(self) -> bool {
        match self {
            Self::AlreadyClear | Self::Faster | Self::ClearlyFaster => true,
            Self::NotEnoughData | Self::TooSmall | Self::NoRealDifference => false,
        }
    }
}

/// What a verdict is judged by, beside the series itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    /// The chance that the interval may miss.
    pub(super) alpha: f64,
    /// From which ratio on a difference matters, above 1.
    pub(super) threshold: f64,
    /// Who waits.
    pub(super) presence: Presence,
    /// Typical seconds of both, where the comparison is about a time.
    pub(super) typical: Option<(f64, f64)>,
    /// Whether the difference stands among all the comparisons that are made at once.
    pub(super) standing: Standing,
}

/// Whether a difference stands among all the comparisons that are made at once (e-BH).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It does.
    Stands,
    /// It may be one of the many that chance makes.
    MayBeChance,
}

/// The verdict on a series of log ratios.
pub(super) fn verdict(series: &DaySeries, rule: &Rule) -> Verdict {
    let (low, high) = series.interval(rule.alpha);
    let early = EARLY_RATIO.ln();
    let lies_beyond = |ratio: f64| low > ratio || high < -ratio;
    if series.days() < OPENING_DAYS {
        let is_clear = series.days() >= EARLY_DAYS && lies_beyond(early) && is_noticed(rule);
        return if is_clear { Verdict::AlreadyClear } else { Verdict::NotEnoughData };
    }
    let threshold = rule.threshold.ln();
    if -threshold < low && high < threshold {
        return Verdict::NoRealDifference;
    }
    if !lies_beyond(0.0) || rule.standing == Standing::MayBeChance {
        return Verdict::NotEnoughData;
    }
    match series.mean().abs() >= threshold && is_noticed(rule) {
        true if lies_beyond(threshold) => Verdict::ClearlyFaster,
        true => Verdict::Faster,
        false => Verdict::TooSmall,
    }
}

/// Whether a person could notice the difference at all. What runs in the background, or is no time, is not asked.
fn is_noticed(rule: &Rule) -> bool {
    match (rule.presence, rule.typical) {
        (Presence::Interactive, Some((a, b))) => (a - b).abs() >= UNNOTICED_SECONDS,
        (Presence::Interactive | Presence::Background, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        alpha: 0.05,
        threshold: 1.1,
        presence: Presence::Background,
        typical: None,
        standing: Standing::Stands,
    };

    /// Days that swing by `swing` around `mean`.
    fn days(count: usize, mean: f64, swing: f64) -> DaySeries {
        let value = |day: usize| mean + if day.is_multiple_of(2) { swing } else { -swing };
        let by_day: Vec<(i64, f64)> = (0..count).map(|day| (day as i64, value(day))).collect();
        DaySeries::of(&by_day).unwrap()
    }

    #[test]
    fn the_opening_day_is_the_fourteenth() {
        assert_eq!(verdict(&days(13, 0.15, 0.02), &RULE), Verdict::NotEnoughData);
        assert_eq!(verdict(&days(14, 0.15, 0.02), &RULE), Verdict::ClearlyFaster);
    }

    #[test]
    fn only_a_large_difference_is_clear_before() {
        assert_eq!(verdict(&days(6, 0.7, 0.05), &RULE), Verdict::AlreadyClear);
        assert_eq!(verdict(&days(4, 0.7, 0.01), &RULE), Verdict::NotEnoughData);
        assert_eq!(verdict(&days(6, -0.2, 0.01), &RULE), Verdict::NotEnoughData);
    }

    #[test]
    fn small_differences_are_called_small_and_none_is_called_none() {
        assert_eq!(verdict(&days(28, 0.08, 0.05), &RULE), Verdict::TooSmall);
        assert_eq!(verdict(&days(28, 0.02, 0.05), &RULE), Verdict::NoRealDifference);
        // Within the threshold with its whole interval: that takes precedence over "measurable".
        assert_eq!(verdict(&days(28, 0.05, 0.02), &RULE), Verdict::NoRealDifference);
        assert_eq!(verdict(&days(28, 0.05, 0.3), &RULE), Verdict::NotEnoughData);
        assert_eq!(verdict(&days(28, 0.12, 0.1), &RULE), Verdict::Faster);
    }

    #[test]
    fn a_difference_that_chance_may_have_made_is_not_called() {
        let rule = Rule { standing: Standing::MayBeChance, ..RULE };
        assert_eq!(verdict(&days(28, 0.3, 0.05), &rule), Verdict::NotEnoughData);
    }

    #[test]
    fn a_person_is_not_told_of_what_nobody_notices() {
        let seconds = |a, b| Rule { presence: Presence::Interactive, typical: Some((a, b)), ..RULE };
        assert_eq!(verdict(&days(28, 0.7, 0.05), &seconds(0.02, 0.04)), Verdict::TooSmall);
        assert_eq!(verdict(&days(28, 0.7, 0.05), &seconds(0.2, 0.4)), Verdict::ClearlyFaster);
        assert_eq!(verdict(&days(6, 0.7, 0.05), &seconds(0.02, 0.04)), Verdict::NotEnoughData);
    }
}
