//! What one longhaul tells another: a stable, anonymised form of a week, that is read back with suspicion.

pub mod beside;
mod read;

use std::collections::BTreeMap;

use longhaul_measure::model::{CacheState, Role, Scale};
use longhaul_measure::summary::{
    Comparison, EndpointRow, Estimate, Failures, PairSummary, ReliabilityVerdict, Scores, Share, TargetLine,
    Verdict, Week, Weekly,
};
use serde::{Deserialize, Serialize};

pub use read::{ExchangeError, LARGEST, read};

use crate::{Environment, words};

/// Version of the form. It rises when a reader of the last one could misread it.
pub const SCHEMA: u32 = 1;
/// What the file says that it is.
pub const KIND: &str = "longhaul-exchange";

/// A week, to be shown beside somebody else's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Always [`KIND`].
    pub kind: String,
    /// Version of the form.
    pub schema: u32,
    /// Where the figures come from.
    pub environment: Environment,
    /// The week; verdicts rest on everything up to its end.
    pub week: Week,
    /// The corpus size; `None` if there was no run.
    pub scale: Option<Scale>,
    /// From which ratio on a difference mattered there, above 1.
    pub threshold: f64,
    /// The targets.
    pub targets: Vec<ExchangedTarget>,
    /// Each pair of shares.
    pub pairs: Vec<ExchangedPair>,
    /// What each task took, since the target settled.
    pub times: Vec<ExchangedTimes>,
    /// Each share in three numbers.
    pub scores: Vec<ExchangedScores>,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedTarget {
    /// Its name.
    pub name: String,
    /// Whether it takes part in verdicts.
    pub role: Role,
    /// How it is reached.
    pub protocol: Option<String>,
    /// The first day that counts.
    pub settled: Option<String>,
    /// In how many rounds it was attempted.
    pub rounds: usize,
    /// In how many it failed.
    pub failed_rounds: usize,
    /// Failing rounds in a row are one episode.
    pub episodes: usize,
    /// Runs that hung.
    pub hung_runs: usize,
    /// For how long, in seconds.
    pub hung_seconds: f64,
}

/// Two shares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedPair {
    /// The first.
    pub a: String,
    /// The second.
    pub b: String,
    /// Over all tasks; `None` while no round had them all.
    pub headline: Option<Claim>,
    /// Task by task.
    pub tasks: Vec<Claim>,
    /// Episodes in which one failed alone: the first, the second.
    pub alone: (u64, u64),
    /// Which fails more, by proof; `None`: not proven.
    pub fails_more: Option<String>,
}

/// What may be said of two shares on one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// `workload/endpoint`, or `overall`.
    pub key: String,
    /// What it is to a person.
    pub activity: String,
    /// Whether it met caches; `None` over all.
    pub cache: Option<CacheState>,
    /// The verdict.
    pub verdict: Verdict,
    /// Time on the second divided by time on the first; `None` while anything fits.
    pub ratio: Option<Estimate>,
    /// The chance that the interval misses, however often somebody looks.
    pub alpha: f64,
    /// Rounds with a value of both.
    pub rounds: usize,
}

/// What a task took on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedTimes {
    /// `workload/endpoint`.
    pub key: String,
    /// What it is to a person.
    pub activity: String,
    /// The target.
    pub target: String,
    /// Median in seconds.
    pub median: Option<f64>,
    /// The lowest and highest median of a day, in seconds.
    pub days_range: Option<(f64, f64)>,
    /// The 95th percentile in seconds, where enough values carry it.
    pub p95: Option<f64>,
    /// How many times.
    pub times: usize,
    /// On how many days.
    pub days: usize,
    /// How many failures.
    pub failed: usize,
}

/// A share in three numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangedScores {
    /// The target.
    pub target: String,
    /// 100 is the reference.
    pub speed: Option<Estimate>,
    /// Value, low, high and of how many.
    pub smoothness: Option<(f64, f64, f64, usize)>,
    /// Value, low, high and of how many.
    pub reliability: Option<(f64, f64, f64, usize)>,
}

/// A week as it may leave the machine. Sentences stay behind: whoever reads it makes their own of the figures.
pub fn exchange(weekly: &Weekly, environment: &Environment) -> Exchange {
    let failures: BTreeMap<&str, &Failures> =
        weekly.failures.iter().map(|failures| (failures.target.as_str(), failures)).collect();
    Exchange {
        kind: KIND.to_owned(),
        schema: SCHEMA,
        environment: environment.anonymised(),
        week: weekly.week,
        scale: weekly.scale,
        threshold: weekly.premises.threshold,
        targets: weekly
            .targets
            .iter()
            .map(|line| target(line, failures.get(line.name.as_str()).copied()))
            .collect(),
        pairs: weekly.pairs.iter().map(pair).collect(),
        times: weekly.table.iter().flat_map(times).collect(),
        scores: weekly.scores.iter().map(scores).collect(),
    }
}

impl Exchange {
    /// The file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).map_or_else(|_| String::new(), |text| text + "\n")
    }
}

fn target(line: &TargetLine, failures: Option<&Failures>) -> ExchangedTarget {
    ExchangedTarget {
        name: line.name.to_string(),
        role: line.role,
        protocol: line.protocol.clone(),
        settled: line.settled.clone(),
        rounds: failures.map_or(0, |failures| failures.rounds),
        failed_rounds: failures.map_or(0, |failures| failures.failed_rounds),
        episodes: failures.map_or(0, |failures| failures.episodes),
        hung_runs: failures.map_or(0, |failures| failures.hung_runs),
        // A sum of nothing is a negative zero, which JSON keeps.
        hung_seconds: failures.map_or(0.0, |failures| failures.hung_seconds) + 0.0,
    }
}

fn pair(pair: &PairSummary) -> ExchangedPair {
    let fails_more = match pair.reliability.verdict {
        ReliabilityVerdict::WorseA => Some(pair.a.to_string()),
        ReliabilityVerdict::WorseB => Some(pair.b.to_string()),
        ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => None,
    };
    ExchangedPair {
        a: pair.a.to_string(),
        b: pair.b.to_string(),
        headline: pair.headline.as_ref().map(claim),
        tasks: pair.tasks.iter().map(claim).collect(),
        alone: (pair.reliability.only_a, pair.reliability.only_b),
        fails_more,
    }
}

fn claim(comparison: &Comparison) -> Claim {
    Claim {
        key: comparison.subject.key.clone(),
        activity: comparison.subject.activity.clone(),
        cache: comparison.subject.cache,
        verdict: comparison.verdict,
        ratio: comparison.ratio,
        alpha: comparison.alpha,
        rounds: comparison.rounds.complete,
    }
}

fn times(row: &EndpointRow) -> impl Iterator<Item = ExchangedTimes> + '_ {
    row.targets.iter().map(|on| ExchangedTimes {
        key: row.subject.key.clone(),
        activity: words::subject(&row.subject),
        target: on.target.to_string(),
        median: on.epoch.median,
        days_range: on.epoch.days_range,
        p95: on.epoch.p95,
        times: on.epoch.times,
        days: on.epoch.days,
        failed: on.epoch.failed,
    })
}

fn scores(scores: &Scores) -> ExchangedScores {
    let share = |share: Option<Share>| share.map(|share| (share.value, share.low, share.high, share.of));
    ExchangedScores {
        target: scores.target.to_string(),
        speed: scores.speed,
        smoothness: share(scores.smoothness),
        reliability: share(scores.reliability),
    }
}
