//! Compares two targets on one metric, or over all metrics: verdict, ratio and interval.

use serde::Serialize;
use utoipa::ToSchema;

use super::change::LastingChange;
use super::pair_data::{MetricComparison, MetricIndex};
use super::pairing::{ComparedRounds, mean};
use super::round_trips::{AtRoundTrip, RoundTripUnused, Unadjusted};
use super::so_far::SoFar;
use super::verdict::{
    INSTANT_SECONDS, RatioEstimate, Significance, Verdict, VerdictRule, detectable_difference, verdict,
};
use crate::stats::{Bootstrap, DaySeries, Steadiness, ratio_of_sums};
use longhaul_model::{CacheState, TASKS, TargetName, WaitKind};

/// Number of bootstrap replicates for descriptive intervals. 1,000 replicates are enough for two digits.
const BOOTSTRAP_REPLICATES: usize = 1000;

/// Subject of a comparison: one metric, or several metrics together.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Subject {
    /// Key: `workload/metric` for one metric, else `overall`, `interactive` or `background`.
    pub key: String,
    /// Name of the workload; `None` for several metrics together.
    pub workload: Option<&'static str>,
    /// Activity of the user, for example "opening a large folder".
    pub activity: String,
    /// Cache state; `None` for several metrics together.
    pub cache: Option<CacheState>,
    /// Kind of wait: a user waits, or the task runs in the background.
    pub wait_kind: WaitKind,
}

impl Subject {
    /// Creates the subject for one metric.
    pub(super) fn for_metric(position: MetricIndex) -> Self {
        let metric = position.metric();
        Self {
            key: position.key(),
            workload: Some(TASKS[position.workload].name()),
            activity: metric.activity.to_owned(),
            cache: Some(metric.cache),
            wait_kind: metric.wait_kind,
        }
    }

    /// Creates the subject for several metrics together.
    pub(super) fn overall(key: &str, activity: &str, wait_kind: WaitKind) -> Self {
        Self { key: key.to_owned(), workload: None, activity: activity.to_owned(), cache: None, wait_kind }
    }
}

/// Result of comparing two targets on one metric, or over several metrics.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Comparison {
    /// Metric or metrics that are compared.
    pub subject: Subject,
    /// First target.
    pub a: TargetName,
    /// Second target.
    pub b: TargetName,
    /// Ratio over the rounds made so far, from the first day on.
    pub so_far: SoFar,
    /// Verdict by the verdict rule.
    pub verdict: Verdict,
    /// Time on `b` divided by the time on `a`; `None` while the interval is infinite.
    pub ratio: Option<RatioEstimate>,
    /// Geometric mean over all complete rounds as they are, if more than a tenth of them lie so far out that it is another one
    /// than that of the usual rounds; else missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_with_outliers: Option<f64>,
    /// Maximum chance that the interval ever excludes the true ratio, however often the report is read.
    pub alpha: f64,
    /// Ratio from which a difference matters, above 1. JSON has it once, in the settings of the week.
    #[serde(skip)]
    pub threshold: f64,
    /// Number of days that have complete rounds, but too few to be valid.
    pub incomplete_days: usize,
    /// Counts of the rounds.
    pub rounds: ComparedRounds,
    /// Median times of both targets in seconds, without failures, and while there is no later round, in the warm-up; `None`
    /// for several metrics together.
    pub median_seconds: Option<(f64, f64)>,
    /// Seconds waited on `b` divided by seconds waited on `a`; failures count as their cap. The interval is
    /// descriptive.
    pub wait_ratio: Option<RatioEstimate>,
    /// Expected number of additional days until a decision; `None` if decided, if no decision is expected, or if only the
    /// number of comparisons keeps it open.
    pub days_needed: Option<usize>,
    /// Smallest ratio that would be found to differ from 1 now, if the days varied as they do; `None` if none would.
    pub detectable_ratio: Option<f64>,
    /// Corrected lag-1 autocorrelation of neighbouring days. Above 0.3 the ratio itself drifts, and the interval misses
    /// more often than stated.
    pub autocorrelation: Option<f64>,
    /// True if the ratio was steady over the last five valid days; `None` with fewer. It does not affect the verdict, and no screen
    /// shows it.
    pub is_steady: Option<bool>,
    /// Detected change of the ratio; if present, all other fields describe the newest part that is long enough.
    pub change: Option<LastingChange>,
    /// Round trip time that the verdict, the ratio and what follows from them are about; `None` if the comparison is not
    /// adjusted for it.
    #[serde(flatten)]
    // A schema cannot say that all of its keys are there or none.
    #[schema(ignore)]
    pub at_round_trip: Option<AtRoundTrip>,
    /// Reason for which known round trip times are not used; `None` if they are used or none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_unused: Option<RoundTripUnused>,
    /// Ratio of each valid day, in chronological order; not adjusted.
    pub days: Vec<DayRatio>,
}

/// One day of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DayRatio {
    /// Local day, in days since 1970-01-01.
    #[serde(skip)]
    pub day: i64,
    /// Local day, as an ISO date.
    pub date: String,
    /// Median over the day's rounds of the time on `b` divided by the time on `a`.
    pub ratio: f64,
}

/// Parameters shared by all comparisons of a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestParams {
    /// Maximum chance that the interval of one pair ever excludes the true ratio.
    pub(super) alpha: f64,
    /// Ratio from which a difference matters, above 1.
    pub(super) threshold: f64,
}

/// Names of the two targets of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairNames<'a> {
    pub(super) a: &'a TargetName,
    pub(super) b: &'a TargetName,
}

/// Data of a comparison, and whether it is significant among all comparisons.
#[derive(Clone, Copy)]
pub(super) struct ComparisonInput<'a> {
    pub(super) cell: &'a MetricComparison,
    pub(super) significance: Significance,
    /// Significance without the adjustment for the round trip time.
    pub(super) unadjusted: Significance,
    /// Logarithm of the e-value from which on the difference is significant, whatever the other comparisons say.
    pub(super) least_ln_e: f64,
}

/// Applies the verdict rule to the data of one comparison.
pub(super) fn compare(
    subject: Subject,
    names: PairNames<'_>,
    input: ComparisonInput<'_>,
    params: TestParams,
) -> Comparison {
    let TestParams { alpha, threshold } = params;
    let ComparisonInput { cell, significance, unadjusted, least_ln_e } = input;
    let pairing = &cell.paired_days;
    let rule = VerdictRule {
        alpha,
        threshold,
        wait_kind: subject.wait_kind,
        // Several metrics have no common time in seconds, so the limit of 0.1 s does not apply to them.
        median_seconds: pairing.median_seconds.filter(|_| subject.workload.is_some()),
        significance,
    };
    let series = cell.series.as_ref();
    let judge = |series: Option<&DaySeries>, significance| {
        let rule = VerdictRule { significance, ..rule };
        series.map_or(Verdict::NotEnoughData, |series| verdict(series, &rule))
    };
    let verdict = judge(series, significance);
    let unadjusted = Unadjusted {
        verdict: judge(cell.unadjusted.as_ref(), unadjusted),
        ratio: cell.unadjusted.as_ref().and_then(|series| RatioEstimate::from_log_ratios(series, alpha)),
    };
    Comparison {
        a: names.a.clone(),
        b: names.b.clone(),
        so_far: SoFar::from_rounds(&cell.so_far, alpha),
        verdict,
        ratio: series.and_then(|series| RatioEstimate::from_log_ratios(series, alpha)),
        ratio_with_outliers: pairing.log_ratio_with_outliers.map(f64::exp),
        alpha,
        threshold,
        incomplete_days: pairing.incomplete_days,
        rounds: pairing.rounds,
        median_seconds: pairing.median_seconds.or(cell.so_far_seconds),
        wait_ratio: wait_ratio(&pairing.wait_by_day),
        days_needed: series.and_then(|series| days_needed(series, &rule)),
        detectable_ratio: series
            .and_then(|series| detectable_difference(series, &rule, least_ln_e))
            .map(f64::exp)
            .filter(|ratio| ratio.is_finite()),
        autocorrelation: series.map(|series| series.corrected_autocorrelation()),
        is_steady: steadiness(&pairing.log_ratio_by_day).map(|steadiness| steadiness.is_steady()),
        change: cell.change.clone(),
        at_round_trip: cell.round_trips.statement(&rule, unadjusted, least_ln_e),
        rtt_unused: cell.round_trips.unused(),
        days: pairing.log_ratio_by_day.iter().map(day_ratio).collect(),
        subject,
    }
}

/// Returns the number of further days until a comparison is decided if there were no others; `None` if it is, or never will be.
fn days_needed(series: &DaySeries, rule: &VerdictRule) -> Option<usize> {
    let alone = VerdictRule { significance: Significance::Significant, ..*rule };
    if verdict(series, &alone).is_decided() {
        return None;
    }
    let days = series.days_needed(rule.threshold.ln(), rule.alpha)?.max(super::verdict::MIN_VERDICT_DAYS);
    // The days so far have not decided it.
    Some(days.saturating_sub(series.days()).max(1))
}

fn day_ratio((day, ratio): &(i64, f64)) -> DayRatio {
    DayRatio { day: *day, date: super::date_of_day(*day).to_string(), ratio: ratio.exp() }
}

impl Comparison {
    /// Returns the faster and the slower target by the estimated ratio; `None` without an estimate.
    pub fn faster_and_slower(&self) -> Option<(&TargetName, &TargetName)> {
        let ratio = self.ratio?;
        Some(if ratio.value < 1.0 { (&self.b, &self.a) } else { (&self.a, &self.b) })
    }

    /// Returns true if it takes too little time on both targets for a difference to be noticed.
    pub fn is_instant(&self) -> bool {
        self.median_seconds.is_some_and(|(a, b)| a.max(b) < INSTANT_SECONDS)
    }

    /// Returns true if it may be said that one target is faster below the break-even and the other above it: both must be verdicts,
    /// and about times that are noticed (docs/methodology.md#at-a-round-trip-time).
    pub fn may_state_break_even(&self) -> bool {
        let at = self.at_round_trip.as_ref();
        at.is_some_and(|at| at.has_winner_on_each_side) && !self.is_instant()
    }

    /// Returns the mean over all rounds of the time on the faster target divided by that on the slower one, if the estimate is
    /// about most rounds only; `None` if it is about all.
    pub fn mean_of_all_rounds(&self) -> Option<f64> {
        let (faster, _) = self.faster_and_slower()?;
        self.ratio_with_outliers.map(|ratio| if *faster == self.a { 1.0 / ratio } else { ratio })
    }

    /// Returns the mean over all valid days of the time on the faster target divided by that on the slower one, if the estimate is
    /// that of the usual days and its interval misses this mean; `None` if it does not. Of days at a round trip time, no such mean is
    /// known.
    pub fn mean_of_all_days(&self) -> Option<f64> {
        let ratio = self.ratio.filter(|_| self.at_round_trip.is_none())?;
        let (faster, _) = self.faster_and_slower()?;
        let by_day: Vec<(i64, f64)> = self.days.iter().map(|day| (day.day, day.ratio.ln())).collect();
        let all = mean(by_day.iter().map(|(_, log_ratio)| *log_ratio))?.exp();
        let is_another = DaySeries::has_two_kinds(&by_day) && !(ratio.low..=ratio.high).contains(&all);
        is_another.then(|| if *faster == self.a { 1.0 / all } else { all })
    }

    /// Returns true if the target that the verdict names took more time on average over all rounds.
    pub fn is_contradicted_by_mean(&self) -> bool {
        self.verdict.has_winner() && self.mean_of_all_rounds().is_some_and(|ratio| ratio >= 1.0)
    }

    /// Returns the target that the verdict names as faster; `None` if the verdict names none.
    pub fn winner(&self) -> Option<&TargetName> {
        self.faster_and_slower().filter(|_| self.verdict.has_winner()).map(|(faster, _)| faster)
    }
}

/// Returns the steadiness of the ratio over the last valid days.
fn steadiness(days: &[(i64, f64)]) -> Option<Steadiness> {
    Steadiness::of_days(&days.iter().map(|(_, ratio)| ratio.exp()).collect::<Vec<_>>())
}

/// Returns the ratio of the total times waited. Its bootstrap interval is descriptive and never used for a verdict
/// (docs/methodology.md#time-waited).
fn wait_ratio(by_day: &[(i64, (f64, f64))]) -> Option<RatioEstimate> {
    let days: Vec<(f64, f64)> = by_day.iter().map(|(_, sums)| *sums).collect();
    let bootstrap = Bootstrap { seed: days.len() as u64, replicates: BOOTSTRAP_REPLICATES, level: 0.95 };
    let (low, high) = bootstrap.interval(&days, ratio_of_sums)?;
    let value = ratio_of_sums(&days.iter().collect::<Vec<_>>())?;
    Some(RatioEstimate { value, low, high, days: days.len() })
}
