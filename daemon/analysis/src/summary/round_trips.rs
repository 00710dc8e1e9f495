//! Adjusts the comparison of two targets for the round trip time before each round (docs/methodology.md#at-a-round-trip-time).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::pairing::PairedDays;
use super::verdict::{
    EARLY_VERDICT_DAYS, MIN_VERDICT_DAYS, RatioEstimate, Significance, Verdict, VerdictRule, verdict,
};
use crate::stats::{CovariateDay, DayRegression, DaySeries};
use longhaul_model::median;

/// Share of the valid days that must have a round trip time.
pub const MIN_SHARE_OF_DAYS: f64 = 0.8;
/// Ratio that the round trip times of the middle half of the days must span. Below it, there are too few distinct
/// conditions to tell the effect of the round trip time.
pub const MIN_RATIO_OF_QUARTILES: f64 = 1.1;

/// Verdict at a stated round trip time, for a comparison that is adjusted for it. All other fields of the comparison are
/// at this round trip time, too.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AtRoundTrip {
    /// Round trip time that the verdict is about, in milliseconds: the median over the days, unless another was asked for.
    pub at_rtt_ms: f64,
    /// Round trip time at which both targets take equally long, in milliseconds; `None` if it was not among those that were
    /// measured, or if the round trip time was not proven to change the ratio.
    pub break_even_rtt_ms: Option<f64>,
    /// Lower end of its interval; `None` if it lies below all that were measured.
    pub break_even_low_rtt_ms: Option<f64>,
    /// Upper end of its interval; `None` if it lies above all that were measured.
    pub break_even_high_rtt_ms: Option<f64>,
    /// True if the verdict rule names one target at the shortest round trip time of a day, and the other at the longest.
    #[serde(skip)]
    pub has_winner_on_each_side: bool,
    /// Result on average over whatever the network did.
    pub unadjusted: Unadjusted,
}

/// Result of a comparison that is not adjusted for the round trip time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Unadjusted {
    /// Verdict on average over whatever the network did.
    pub verdict: Verdict,
    /// Ratio with its interval; `None` while the interval is infinite.
    pub ratio: Option<RatioEstimate>,
}

/// Reason for which known round trip times are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoundTripUnused {
    /// Fewer than five valid days, or fewer than four in five of them, have a round trip time.
    TooFewDays,
    /// The round trip time hardly varied: there are too few distinct conditions.
    HardlyVaried,
}

/// Round trip times of the days of a comparison.
#[derive(Debug, Clone)]
pub(super) enum RoundTrips {
    /// No day has one, or the days are of two kinds and have no interval at any.
    Unknown,
    /// They are known but not used.
    Unused(RoundTripUnused),
    /// The comparison is adjusted for them.
    Adjusted(Adjustment),
}

/// Log ratio as a line over the logarithm of the round trip time in seconds.
#[derive(Debug, Clone)]
pub(super) struct Adjustment {
    line: DayRegression,
    /// Logarithm of the round trip time that the verdict is about.
    at: f64,
    /// Logarithm of the round trip time by day.
    by_day: BTreeMap<i64, f64>,
}

impl RoundTrips {
    /// Decides if the days of a comparison are adjusted for the round trip time. The rule looks at round trip times only,
    /// never at a result, and is fixed before the first round. The verdict is about the stated round trip time, or else
    /// about the median over the days.
    pub(super) fn of_days(days: &PairedDays, stated: Option<Duration>) -> Self {
        let times: Vec<f64> = days.ln_round_trip_by_day.iter().map(|(_, time)| *time).collect();
        let Some(middle) = median(&times) else { return Self::Unknown };
        let at = stated.filter(|time| !time.is_zero()).map_or(middle, |time| time.as_secs_f64().ln());
        let share = times.len() as f64 / days.log_ratio_by_day.len() as f64;
        if times.len() < EARLY_VERDICT_DAYS || share < MIN_SHARE_OF_DAYS {
            return Self::Unused(RoundTripUnused::TooFewDays);
        }
        let by_day: BTreeMap<i64, f64> = days.ln_round_trip_by_day.iter().copied().collect();
        let known = days.log_ratio_by_day.iter().filter_map(|(day, log_ratio)| {
            Some(CovariateDay { day: *day, log_ratio: *log_ratio, covariate: *by_day.get(day)? })
        });
        match DayRegression::from_days(&known.collect::<Vec<_>>()) {
            Some(line) if spread_of_quartiles(times) >= MIN_RATIO_OF_QUARTILES.ln() => {
                Self::Adjusted(Adjustment { line, at, by_day })
            }
            Some(_) | None => Self::Unused(RoundTripUnused::HardlyVaried),
        }
    }

    /// Returns the adjusted series, at the median round trip time; `None` if the comparison is not adjusted.
    pub(super) fn series(&self) -> Option<DaySeries> {
        match self {
            Self::Adjusted(adjustment) => Some(adjustment.line.at(adjustment.at)),
            Self::Unknown | Self::Unused(_) => None,
        }
    }

    /// Returns the log ratio of each day as it would have been at the median round trip time. Without an adjustment these
    /// are the log ratios; with one, days without a round trip time are left out.
    pub(super) fn levels(&self, days: &[(i64, f64)]) -> Vec<(i64, f64)> {
        let Self::Adjusted(Adjustment { line, at, by_day }) = self else { return days.to_vec() };
        let middle = line.at(*at).mean();
        let level = |(day, value): &(i64, f64)| {
            let time = by_day.get(day)?;
            Some((*day, value + middle - line.at(*time).mean()))
        };
        days.iter().filter_map(level).collect()
    }

    /// Returns the reason for which known round trip times are not used.
    pub(super) fn unused(&self) -> Option<RoundTripUnused> {
        match self {
            Self::Unused(reason) => Some(*reason),
            Self::Unknown | Self::Adjusted(_) => None,
        }
    }

    /// Returns the statement about the round trip time; `None` if the comparison is not adjusted for it. `least_ln_e` is the logarithm
    /// of the e-value from which on a difference is significant, whatever the other comparisons say.
    pub(super) fn statement(
        &self,
        rule: &VerdictRule,
        unadjusted: Unadjusted,
        least_ln_e: f64,
    ) -> Option<AtRoundTrip> {
        let Self::Adjusted(Adjustment { line, at, .. }) = self else { return None };
        let milliseconds = |logarithm: f64| logarithm.exp() * 1000.0;
        let crossing = line.break_even(rule.alpha);
        Some(AtRoundTrip {
            at_rtt_ms: milliseconds(*at),
            break_even_rtt_ms: crossing.map(|crossing| milliseconds(crossing.covariate)),
            break_even_low_rtt_ms: crossing.and_then(|crossing| crossing.low).map(milliseconds),
            break_even_high_rtt_ms: crossing.and_then(|crossing| crossing.high).map(milliseconds),
            has_winner_on_each_side: has_winner_on_each_side(line, rule, least_ln_e),
            unadjusted,
        })
    }
}

/// Returns true if the verdict rule names one target at the shortest round trip time of a day, and the other at the longest.
fn has_winner_on_each_side(line: &DayRegression, rule: &VerdictRule, least_ln_e: f64) -> bool {
    // The typical times and the significance are those between the sides, where the times may be equal.
    let rule = VerdictRule { median_seconds: None, significance: Significance::Significant, ..*rule };
    let has_winner = |end: &DaySeries| {
        let is_significant = end.days() >= MIN_VERDICT_DAYS && end.ln_e_value() >= least_ln_e;
        is_significant && verdict(end, &rule).has_winner()
    };
    let ends = line.outermost();
    ends.iter().all(has_winner) && ends[0].mean() * ends[1].mean() < 0.0
}

/// Returns the distance between the medians of the lower and the upper half of values.
fn spread_of_quartiles(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len().div_ceil(2);
    let lower = median(&values[..half]);
    let upper = median(&values[values.len() - half..]);
    lower.zip(upper).map_or(0.0, |(lower, upper)| upper - lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::WaitKind;

    const RULE: VerdictRule = VerdictRule {
        alpha: 0.05,
        threshold: 1.1,
        wait_kind: WaitKind::Background,
        median_seconds: None,
        significance: Significance::Significant,
    };
    /// Logarithm of the e-value that one of 22 comparisons needs.
    const LEAST_LN_E: f64 = 6.1;

    /// Returns 20 days whose log ratio falls by 0.4 for each unit of the logarithm of the round trip time, and is zero at
    /// 5 ms. `seconds` gives the round trip time of a day; `None` for a day without one.
    fn days(seconds: impl Fn(i64) -> Option<f64>) -> PairedDays {
        let mut days = PairedDays::default();
        for day in 0..20 {
            let noise = if day % 2 == 0 { 0.01 } else { -0.01 };
            let known = seconds(day);
            let ratio = -0.4 * (known.unwrap_or(0.005) / 0.005).ln() + noise;
            days.log_ratio_by_day.push((day, ratio));
            days.ln_round_trip_by_day.extend(known.map(|seconds| (day, seconds.ln())));
        }
        days
    }

    /// Returns round trip times from 2 to 11.5 ms.
    fn wandering(day: i64) -> Option<f64> {
        Some(0.002 + 0.0005 * ((7 * day) % 20) as f64)
    }

    fn unadjusted(days: &PairedDays) -> Unadjusted {
        let series = DaySeries::from_days(&days.log_ratio_by_day).unwrap();
        Unadjusted { verdict: Verdict::NotEnoughData, ratio: RatioEstimate::from_log_ratios(&series, 0.05) }
    }

    #[test]
    fn verdict_is_at_the_median_and_names_the_break_even() {
        let days = days(wandering);
        let adjusted = RoundTrips::of_days(&days, None);
        let at = adjusted.statement(&RULE, unadjusted(&days), LEAST_LN_E).unwrap();
        assert!((at.at_rtt_ms - 6.75).abs() < 0.01, "{at:?}");
        let ratio = adjusted.series().unwrap().mean();
        assert!((ratio + 0.4 * (6.75f64 / 5.0).ln()).abs() < 0.01, "{ratio}");
        let (low, high) = (at.break_even_low_rtt_ms.unwrap(), at.break_even_high_rtt_ms.unwrap());
        assert!(low < 5.0 && 5.0 < high && high - low < 0.5, "{at:?}");
        assert!((at.break_even_rtt_ms.unwrap() - 5.0).abs() < 0.1, "{at:?}");
    }

    /// Returns the statement about the first of the days, whose log ratio falls by 0.4 times `slope`.
    fn statement(count: usize, slope: f64) -> AtRoundTrip {
        let mut days = days(wandering);
        days.log_ratio_by_day.truncate(count);
        days.ln_round_trip_by_day.truncate(count);
        days.log_ratio_by_day.iter_mut().for_each(|(_, ratio)| *ratio *= slope);
        let at = RoundTrips::of_days(&days, None).statement(&RULE, unadjusted(&days), LEAST_LN_E).unwrap();
        assert!(at.break_even_low_rtt_ms.is_some() && at.break_even_high_rtt_ms.is_some(), "{at:?}");
        at
    }

    #[test]
    fn each_side_of_the_break_even_needs_a_verdict_of_its_own() {
        assert!(statement(20, 1.0).has_winner_on_each_side);
        assert!(!statement(9, 1.0).has_winner_on_each_side, "too few days");
        assert!(!statement(20, 0.2).has_winner_on_each_side, "too small to matter");
    }

    /// The break-even of 5 ms is close to the median of 4.9 ms, where there is no difference to find.
    #[test]
    fn sides_of_the_break_even_are_tested_at_the_ends() {
        let mut days = PairedDays::default();
        for day in 0..28 {
            let seconds = 0.002 * 6f64.powf(((11 * day) % 28) as f64 / 27.0);
            let noise = if day % 2 == 0 { 0.05 } else { -0.05 };
            days.log_ratio_by_day.push((day, -0.4 * (seconds / 0.005).ln() + noise));
            days.ln_round_trip_by_day.push((day, seconds.ln()));
        }
        let adjusted = RoundTrips::of_days(&days, None);
        assert!(adjusted.series().unwrap().ln_e_value() < 0.0, "not significant among any number");
        let rule = VerdictRule { significance: Significance::NotSignificant, ..RULE };
        let has_winners = |least_ln_e| {
            let at = adjusted.statement(&rule, unadjusted(&days), least_ln_e);
            at.unwrap().has_winner_on_each_side
        };
        assert!(has_winners(LEAST_LN_E));
        assert!(!has_winners(40.0), "the ends are not significant either");
    }

    #[test]
    fn stated_round_trip_time_replaces_the_median() {
        let days = days(wandering);
        let adjusted = RoundTrips::of_days(&days, Some(Duration::from_millis(5)));
        assert!(adjusted.series().unwrap().mean().abs() < 0.01);
        let at = adjusted.statement(&RULE, unadjusted(&days), LEAST_LN_E).unwrap();
        assert!((at.at_rtt_ms - 5.0).abs() < 1e-9);
    }

    #[test]
    fn adjusted_interval_is_narrower_where_round_trips_matter() {
        let days = days(wandering);
        let series = RoundTrips::of_days(&days, None).series().unwrap();
        let plain = DaySeries::from_days(&days.log_ratio_by_day).unwrap();
        assert!(series.half_width(0.05) < plain.half_width(0.05) / 5.0);
    }

    #[test]
    fn constant_round_trip_times_are_not_used() {
        let constant = RoundTrips::of_days(&days(|_| Some(0.003)), None);
        assert_eq!(constant.unused(), Some(RoundTripUnused::HardlyVaried));
        let one_other_day = RoundTrips::of_days(&days(|day| Some(if day == 3 { 0.03 } else { 0.003 })), None);
        assert_eq!(one_other_day.unused(), Some(RoundTripUnused::HardlyVaried));
        assert!(one_other_day.series().is_none());
    }

    #[test]
    fn days_without_round_trip_times_prevent_the_adjustment() {
        let some = RoundTrips::of_days(&days(|day| wandering(day).filter(|_| day < 15)), None);
        assert_eq!(some.unused(), Some(RoundTripUnused::TooFewDays));
        let most = RoundTrips::of_days(&days(|day| wandering(day).filter(|_| day < 16)), None);
        assert!(most.unused().is_none() && most.series().is_some());
        let none = RoundTrips::of_days(&days(|_| None), None);
        assert!(none.unused().is_none() && none.series().is_none());
    }

    #[test]
    fn levels_take_out_what_the_round_trip_time_explains() {
        let days = days(wandering);
        let levels = RoundTrips::of_days(&days, None).levels(&days.log_ratio_by_day);
        let spread = |of: &[(i64, f64)]| {
            of.iter().map(|(_, value)| *value).fold(f64::MIN, f64::max)
                - of.iter().map(|(_, value)| *value).fold(f64::MAX, f64::min)
        };
        assert!(spread(&levels) < 0.05 && spread(&days.log_ratio_by_day) > 0.5);
    }
}
