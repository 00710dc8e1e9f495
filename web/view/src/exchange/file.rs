//! The content of an exchange file, made from a weekly summary.

use std::collections::BTreeMap;

use longhaul_analysis::summary::{
    Comparison, Estimate, Failures, MetricRow, PairSummary, Proportion, ReliabilityVerdict, Scores,
    TargetLine, Verdict, Week, WeeklySummary,
};
use longhaul_model::{CacheState, Role, Scale};
use serde::{Deserialize, Serialize};

use crate::Environment;
use crate::screens::words;

/// Version of the file format. It is increased if a reader of the previous version could misread a file.
pub const SCHEMA: u32 = 1;
/// Value of `kind`, which identifies an exchange file.
pub const KIND: &str = "longhaul-exchange";

/// Content of an exchange file: a weekly summary that another user's longhaul shows next to its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Kind of file, always [`KIND`].
    pub kind: String,
    /// Version of the file format.
    pub schema: u32,
    /// Machine and mounts that were measured, anonymized.
    pub environment: Environment,
    /// Week of the summary. Verdicts use all data up to its end.
    pub week: Week,
    /// Scale of the test data; `None` if there was no run.
    pub scale: Option<Scale>,
    /// Ratio from which a difference matters on that host, above 1.
    pub threshold: f64,
    /// Targets of the host.
    pub targets: Vec<ExchangedTarget>,
    /// Comparisons of each pair of shares.
    pub pairs: Vec<ExchangedPair>,
    /// Times of each task on each target, after the warm-up.
    pub times: Vec<ExchangedTimes>,
    /// Scores of each share.
    pub scores: Vec<ExchangedScores>,
}

/// A target in an exchange file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedTarget {
    /// Name of the target.
    pub name: String,
    /// Role of the target: share or baseline.
    pub role: Role,
    /// Protocol of the target; `None` if unknown.
    pub protocol: Option<String>,
    /// First day after the warm-up, as an ISO date; `None` without a run.
    pub counted_from: Option<String>,
    /// Number of rounds in which the target was attempted.
    pub rounds: usize,
    /// Number of rounds in which at least one task failed.
    pub failed_rounds: usize,
    /// Number of failure episodes; consecutive failing rounds are one episode.
    pub episodes: usize,
    /// Number of runs that hung.
    pub hung_runs: usize,
    /// Total duration of the hung runs, in seconds.
    pub hung_seconds: f64,
}

/// Comparison of two shares in an exchange file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedPair {
    /// Name of the first share.
    pub a: String,
    /// Name of the second share.
    pub b: String,
    /// Comparison over all tasks; `None` while no round has a value of every weighted metric.
    pub headline: Option<ExchangedComparison>,
    /// Comparisons of single metrics.
    pub tasks: Vec<ExchangedComparison>,
    /// Number of failure episodes of the first share alone, and of the second share alone.
    pub failed_alone: (u64, u64),
    /// Name of the share that is proven to fail more often; `None` if nothing is proven.
    pub less_reliable: Option<String>,
}

/// Verdict about two shares on one metric, or over all tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedComparison {
    /// Key: `workload/metric`, or `overall`.
    pub key: String,
    /// Activity of the user, for example "opening a large folder".
    pub activity: String,
    /// Cache state; `None` for all tasks together.
    pub cache: Option<CacheState>,
    /// Verdict on the difference.
    pub verdict: Verdict,
    /// Time on the second share divided by time on the first; `None` while the interval is infinite.
    pub ratio: Option<Estimate>,
    /// Maximum chance that the interval ever excludes the true ratio, however often the report is read.
    pub alpha: f64,
    /// Number of rounds with a value of both shares.
    pub rounds: usize,
}

/// Times of one metric on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedTimes {
    /// Key: `workload/metric`.
    pub key: String,
    /// Activity of the user, for example "opening a large folder".
    pub activity: String,
    /// Name of the target.
    pub target: String,
    /// Median in seconds; `None` without a time.
    pub median: Option<f64>,
    /// Lowest and highest daily median in seconds; `None` without a time.
    pub daily_range: Option<(f64, f64)>,
    /// 95th percentile in seconds; `None` with too few values.
    pub p95: Option<f64>,
    /// Number of measured times.
    pub count: usize,
    /// Number of days with a measured time.
    pub days: usize,
    /// Number of failures.
    pub failed: usize,
}

/// Scores of one share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedScores {
    /// Name of the share.
    pub target: String,
    /// Speed score, relative to the reference share, which has 100; `None` if unknown.
    pub speed: Option<Estimate>,
    /// Smoothness: value, lower and upper end of the interval, number of times; `None` without a time.
    pub smoothness: Option<(f64, f64, f64, usize)>,
    /// Reliability: value, lower and upper end of the interval, number of rounds; `None` without a round.
    pub reliability: Option<(f64, f64, f64, usize)>,
}

/// Converts a weekly summary to the exchange form, without private data. Sentences are not included: the reader's
/// longhaul generates them from the figures.
pub fn exchange(weekly: &WeeklySummary, environment: &Environment) -> Exchange {
    let failures: BTreeMap<&str, &Failures> =
        weekly.failures.iter().map(|failures| (failures.target.as_str(), failures)).collect();
    Exchange {
        kind: KIND.to_owned(),
        schema: SCHEMA,
        environment: environment.anonymised(),
        week: weekly.week,
        scale: weekly.scale,
        threshold: weekly.settings.threshold,
        targets: weekly
            .targets
            .iter()
            .map(|line| exchanged_target(line, failures.get(line.name.as_str()).copied()))
            .collect(),
        pairs: weekly.pairs.iter().map(exchanged_pair).collect(),
        times: weekly.table.iter().flat_map(exchanged_times).collect(),
        scores: weekly.scores.iter().map(exchanged_scores).collect(),
    }
}

impl Exchange {
    /// Returns the content of the file as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).map_or_else(|_| String::new(), |text| text + "\n")
    }
}

fn exchanged_target(line: &TargetLine, failures: Option<&Failures>) -> ExchangedTarget {
    ExchangedTarget {
        name: line.name.to_string(),
        role: line.role,
        protocol: line.protocol.clone(),
        counted_from: line.counted_from.clone(),
        rounds: failures.map_or(0, |failures| failures.rounds),
        failed_rounds: failures.map_or(0, |failures| failures.failed_rounds),
        episodes: failures.map_or(0, |failures| failures.episodes),
        hung_runs: failures.map_or(0, |failures| failures.hung_runs),
        // An empty sum is -0.0, which JSON would preserve; adding 0.0 gives +0.0.
        hung_seconds: failures.map_or(0.0, |failures| failures.hung_seconds) + 0.0,
    }
}

fn exchanged_pair(pair: &PairSummary) -> ExchangedPair {
    let fails_more = match pair.reliability.verdict {
        ReliabilityVerdict::WorseA => Some(pair.a.to_string()),
        ReliabilityVerdict::WorseB => Some(pair.b.to_string()),
        ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => None,
    };
    ExchangedPair {
        a: pair.a.to_string(),
        b: pair.b.to_string(),
        headline: pair.headline.as_ref().map(exchanged_comparison),
        tasks: pair.tasks.iter().map(exchanged_comparison).collect(),
        failed_alone: (pair.reliability.only_a, pair.reliability.only_b),
        less_reliable: fails_more,
    }
}

fn exchanged_comparison(comparison: &Comparison) -> ExchangedComparison {
    ExchangedComparison {
        key: comparison.subject.key.clone(),
        activity: comparison.subject.activity.clone(),
        cache: comparison.subject.cache,
        verdict: comparison.verdict,
        ratio: comparison.ratio,
        alpha: comparison.alpha,
        rounds: comparison.rounds.complete,
    }
}

fn exchanged_times(row: &MetricRow) -> impl Iterator<Item = ExchangedTimes> + '_ {
    row.targets.iter().map(|on| ExchangedTimes {
        key: row.subject.key.clone(),
        activity: words::subject(&row.subject),
        target: on.target.to_string(),
        median: on.epoch.median,
        daily_range: on.epoch.daily_range,
        p95: on.epoch.p95,
        count: on.epoch.count,
        days: on.epoch.days,
        failed: on.epoch.failed,
    })
}

fn exchanged_scores(scores: &Scores) -> ExchangedScores {
    let share =
        |share: Option<Proportion>| share.map(|share| (share.value, share.low, share.high, share.total));
    ExchangedScores {
        target: scores.target.to_string(),
        speed: scores.speed,
        smoothness: share(scores.smoothness),
        reliability: share(scores.reliability),
    }
}
