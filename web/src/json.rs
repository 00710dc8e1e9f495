//! The machine-readable forms, of the command line and of the interface alike, schema 1. Keys are added freely and never taken away.

use longhaul_measure::model::{OperationStats, Phase};
use longhaul_measure::summary::{Caching, Weekly};
use longhaul_store::StoredRun;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

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
#[derive(Debug, Serialize)]
pub struct WeekShown<'a> {
    /// The summary.
    #[serde(flatten)]
    pub weekly: &'a Weekly,
    /// Whether each protocol is cached.
    pub caching: &'a [Caching],
}

/// A run: an object of `run --json`, `runs --json` and `show --json`.
pub fn run(stored: &StoredRun) -> Value {
    let run = &stored.run;
    json!({
        "type": "run",
        "schema": 1,
        "run": stored.number,
        "trace_id": stored.trace_id,
        "epoch": stored.epoch,
        "round": run.round,
        "slot": run.slot,
        "target": run.target,
        "protocol": run.protocol.as_ref().map(ToString::to_string),
        "workload": run.workload,
        "scale": run.scale,
        "outcome": run.outcome,
        "seconds": run.seconds,
        "started_us": run.started_us,
        "utc_offset_seconds": run.utc_offset_seconds,
        "failure": run.failure,
        "facts": run.facts,
        "conditions": run.conditions,
        "phases": run.phases.iter().map(phase).collect::<Vec<_>>(),
    })
}

fn phase(phase: &Phase) -> Value {
    json!({
        "name": phase.name,
        "cache": phase.cache,
        "cold_by": phase.cold_by,
        "began_us": phase.began_us,
        "seconds": phase.seconds,
        "complete": phase.complete,
        "bytes_read": phase.bytes_read,
        "bytes_written": phase.bytes_written,
        "wire": phase.wire,
        "served_from": phase.served_from(),
        "figures": phase.figures,
        "ops": phase.operations.iter().map(operation).collect::<Vec<_>>(),
    })
}

/// Quantiles by nearest rank, within 0.54 %; `count` beside them says what they rest on.
fn operation(stats: &OperationStats) -> Value {
    let microseconds = |q: f64| stats.latency.quantile_ns(q).map(|ns| ns / 1e3);
    json!({
        "op": stats.operation,
        "count": stats.latency.count(),
        "errors": stats.errors,
        "p50_us": microseconds(0.5),
        "p95_us": microseconds(0.95),
        "p99_us": microseconds(0.99),
        "min_us": stats.latency.min_ns().map(|ns| ns as f64 / 1e3),
        "max_us": stats.latency.max_ns().map(|ns| ns as f64 / 1e3),
        "sum_us": stats.latency.sum_ns() as f64 / 1e3,
    })
}
