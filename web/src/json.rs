//! The machine-readable forms, of the command line and of the interface alike, schema 1. Keys are added freely and never taken away.

use std::collections::BTreeMap;

use longhaul_measure::model::{
    CacheState, ColdBy, Conditions, Event, Failure, Figure, Operation, OperationStats, Outcome, Phase, Scale,
    ServedFrom, TargetName, Wire,
};
use longhaul_measure::summary::{Caching, Weekly};
use longhaul_store::{StoredEvent, StoredRun};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// An object of JSON. Of an array, serde would take the fields in their order.
pub struct Object<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let object = Value::Object(Map::deserialize(from)?);
        T::deserialize(object).map(Self).map_err(D::Error::custom)
    }
}

/// Reads a whole number as JSON Schema means it, any number without a fraction: 556.0 is one (JSON Schema Validation 2020-12,
/// section 6.1.1).
///
/// # Errors
///
/// If it is something else, or out of the range of its type.
pub fn whole<'de, D: Deserializer<'de>, T: TryFrom<u32>>(from: D) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    let whole = is_whole.then_some(number as u32).and_then(|whole| T::try_from(whole).ok());
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("{number} is no whole number in range")))
}

/// A week: `week --json` and `/api/v1/week`. The summary, and beside it what an export of it does not hold.
#[derive(Debug, Serialize, ToSchema)]
pub struct WeekShown<'a> {
    /// The summary.
    #[serde(flatten)]
    pub weekly: &'a Weekly,
    /// Whether each protocol is cached.
    pub caching: &'a [Caching],
}

/// A run: an object of `run --json`, `runs --json` and `show --json`.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunShown<'a> {
    /// `run`: what kind of object this is, where several are printed.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The form of this value: 1.
    schema: u32,
    /// Its number.
    run: i64,
    /// 32 hexadecimal digits, unique everywhere: what collectors join on.
    trace_id: &'a str,
    /// The epoch of its target that it belongs to.
    epoch: i64,
    /// Which randomised block it belongs to.
    round: i64,
    /// Its place in the round, from 0.
    slot: u32,
    /// The target.
    target: &'a TargetName,
    /// How the target was reached; null if that could not be told.
    protocol: Option<String>,
    /// The task.
    workload: &'a str,
    /// The corpus size.
    scale: Scale,
    /// How it ended.
    outcome: Outcome,
    /// From the first to the last phase; for a hung run the cap.
    seconds: f64,
    /// Wall clock at its begin, in microseconds since 1970 UTC: a label, not a measurement.
    started_us: i64,
    /// Offset of local time from UTC at its begin.
    utc_offset_seconds: i32,
    /// Why it is not `ok`.
    failure: Option<&'a Failure>,
    /// What the task found on its way, such as which sync was used or which metadata survived.
    facts: &'a BTreeMap<String, String>,
    /// What else was true.
    conditions: &'a Conditions,
    /// Its phases, in order.
    phases: Vec<PhaseShown<'a>>,
}

/// A phase of a run.
#[derive(Debug, Serialize, ToSchema)]
struct PhaseShown<'a> {
    /// `open-folder`, `walk`, `copy`, ...
    name: &'a str,
    /// Whether it met caches.
    cache: CacheState,
    /// How it was made cold; null unless `cache` is cold.
    cold_by: Option<ColdBy>,
    /// Wall clock at its begin, in microseconds since 1970 UTC; null: it was not kept.
    began_us: Option<i64>,
    /// How long it took.
    seconds: f64,
    /// Whether it ran to its end. A phase cut short has operations, but no figures.
    complete: bool,
    /// Bytes that read calls returned.
    bytes_read: u64,
    /// Bytes that write calls accepted.
    bytes_written: u64,
    /// What crossed the wire meanwhile; null where nothing counts it.
    wire: Option<&'a Wire>,
    /// Where it was served from, as far as the wire tells.
    served_from: ServedFrom,
    /// What it found.
    figures: &'a [Figure],
    /// Its calls by kind.
    ops: Vec<OperationShown>,
}

/// All calls of one kind in one phase. Quantiles by nearest rank, within 0.54 %; `count` says what they rest on.
#[derive(Debug, Serialize, ToSchema)]
struct OperationShown {
    /// The kind of call.
    op: Operation,
    /// How many returned.
    count: u64,
    /// How many of them failed.
    errors: u64,
    /// The median, in microseconds; null without a call, as those that follow.
    p50_us: Option<f64>,
    /// The 95th percentile.
    p95_us: Option<f64>,
    /// The 99th percentile.
    p99_us: Option<f64>,
    /// The shortest.
    min_us: Option<f64>,
    /// The longest.
    max_us: Option<f64>,
    /// All of them together.
    sum_us: f64,
}

impl<'a> From<&'a StoredRun> for RunShown<'a> {
    fn from(stored: &'a StoredRun) -> Self {
        let run = &stored.run;
        Self {
            kind: "run",
            schema: 1,
            run: stored.number,
            trace_id: &stored.trace_id,
            epoch: stored.epoch,
            round: run.round,
            slot: run.slot,
            target: &run.target,
            protocol: run.protocol.as_ref().map(ToString::to_string),
            workload: &run.workload,
            scale: run.scale,
            outcome: run.outcome,
            seconds: run.seconds,
            started_us: run.started_us,
            utc_offset_seconds: run.utc_offset_seconds,
            failure: run.failure.as_ref(),
            facts: &run.facts,
            conditions: &run.conditions,
            phases: run.phases.iter().map(PhaseShown::from).collect(),
        }
    }
}

impl<'a> From<&'a Phase> for PhaseShown<'a> {
    fn from(phase: &'a Phase) -> Self {
        Self {
            name: &phase.name,
            cache: phase.cache,
            cold_by: phase.cold_by,
            began_us: phase.began_us,
            seconds: phase.seconds,
            complete: phase.complete,
            bytes_read: phase.bytes_read,
            bytes_written: phase.bytes_written,
            wire: phase.wire.as_ref(),
            served_from: phase.served_from(),
            figures: &phase.figures,
            ops: phase.operations.iter().map(OperationShown::from).collect(),
        }
    }
}

impl From<&OperationStats> for OperationShown {
    fn from(stats: &OperationStats) -> Self {
        let microseconds = |q: f64| stats.latency.quantile_ns(q).map(|ns| ns / 1e3);
        Self {
            op: stats.operation,
            count: stats.latency.count(),
            errors: stats.errors,
            p50_us: microseconds(0.5),
            p95_us: microseconds(0.95),
            p99_us: microseconds(0.99),
            min_us: stats.latency.min_ns().map(|ns| ns as f64 / 1e3),
            max_us: stats.latency.max_ns().map(|ns| ns as f64 / 1e3),
            sum_us: stats.latency.sum_ns() as f64 / 1e3,
        }
    }
}

/// A run as JSON; see [`RunShown`].
pub fn run(stored: &StoredRun) -> Value {
    json!(RunShown::from(stored))
}

/// An event of the journal: an object of `events --json`.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventShown {
    /// Its number.
    number: i64,
    /// The event.
    event: Event,
}

impl From<StoredEvent> for EventShown {
    fn from(stored: StoredEvent) -> Self {
        Self { number: stored.number, event: stored.event }
    }
}
