//! Runs and events as JSON.

use std::collections::BTreeMap;

use longhaul_model::stored::StoredRun;
use longhaul_model::{
    CacheState, ColdMethod, Conditions, Failure, Figure, Operation, OperationStats, Outcome, Phase, Scale,
    ServedFrom, TargetName, Timestamp, WireTraffic,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// A run: an object of `run --json` and `runs --json`.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunJson<'a> {
    /// Type of this object, always `run`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Version of the schema of this object: 1.
    schema: u32,
    /// Number of the run.
    run: i64,
    /// Trace id of the run: 32 hexadecimal digits, globally unique, the same as in exported traces.
    trace_id: &'a str,
    /// Number of the epoch of the target in which the run was made.
    epoch: i64,
    /// Number of the round that the run belongs to.
    round: i64,
    /// Position of the run in its round, starting at 0.
    slot: u32,
    /// Name of the target.
    target: &'a TargetName,
    /// Protocol of the target; null if it could not be determined.
    protocol: Option<String>,
    /// Name of the workload.
    workload: &'a str,
    /// Scale of the test data.
    scale: Scale,
    /// Outcome of the run.
    outcome: Outcome,
    /// Duration in seconds, from the start of the first phase to the end of the last; the cap for a hung run.
    seconds: f64,
    /// Wall clock at the start of the run, in microseconds since 1970 UTC. It is a label; durations use a
    /// monotonic clock.
    #[schema(value_type = i64)]
    started_us: Timestamp,
    /// Offset of local time from UTC at the start of the run, in seconds.
    utc_offset_seconds: i32,
    /// The reason why the outcome is not `ok`; null if it is.
    failure: Option<&'a Failure>,
    /// Facts about the run by name, such as the kind of sync that was used or the metadata that survived a copy.
    facts: &'a BTreeMap<String, String>,
    /// Conditions under which the run was made, such as the load of the machine.
    conditions: &'a Conditions,
    /// Phases of the run, in order.
    phases: Vec<PhaseJson<'a>>,
}

/// One phase of a run, with its figures and operations.
#[derive(Debug, Serialize, ToSchema)]
struct PhaseJson<'a> {
    /// Name of the phase, such as `open-folder`, `walk` or `copy`.
    name: &'a str,
    /// Cache state of the data that the phase used.
    cache: CacheState,
    /// Method by which the caches were emptied; null unless `cache` is cold.
    cold_by: Option<ColdMethod>,
    /// Wall clock at the start of the phase, in microseconds since 1970 UTC; null if it was not recorded.
    #[schema(value_type = Option<i64>)]
    began_us: Option<Timestamp>,
    /// Duration of the phase in seconds.
    seconds: f64,
    /// True if the phase ran to its end. An interrupted phase has operations, but no figures.
    complete: bool,
    /// Bytes that read calls returned.
    bytes_read: u64,
    /// Bytes that write calls accepted.
    bytes_written: u64,
    /// Network traffic during the phase; null if no counter is available for the target.
    wire: Option<&'a WireTraffic>,
    /// The origin of the data that was read (client cache or server), as far as the network traffic shows.
    served_from: ServedFrom,
    /// Figures that the phase reports, such as a time or a rate.
    figures: &'a [Figure],
    /// Statistics of the calls, one entry for each operation.
    ops: Vec<OperationJson>,
}

/// All calls of one operation in one phase. Quantiles are nearest-rank, accurate to 0.54 %; `count` is their
/// sample size.
#[derive(Debug, Serialize, ToSchema)]
struct OperationJson {
    /// The operation, such as open or read.
    op: Operation,
    /// Number of calls that returned.
    count: u64,
    /// Number of calls that failed.
    errors: u64,
    /// Median latency in microseconds; null if no call returned, like the other latencies.
    p50_us: Option<f64>,
    /// 95th percentile of the latency in microseconds.
    p95_us: Option<f64>,
    /// 99th percentile of the latency in microseconds.
    p99_us: Option<f64>,
    /// Shortest call in microseconds.
    min_us: Option<f64>,
    /// Longest call in microseconds.
    max_us: Option<f64>,
    /// Sum of the durations of all calls, in microseconds.
    sum_us: f64,
}

impl<'a> From<&'a StoredRun> for RunJson<'a> {
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
            phases: run.phases.iter().map(PhaseJson::from).collect(),
        }
    }
}

impl<'a> From<&'a Phase> for PhaseJson<'a> {
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
            ops: phase.operations.iter().map(OperationJson::from).collect(),
        }
    }
}

impl From<&OperationStats> for OperationJson {
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

/// Returns a run as JSON; see [`RunJson`].
pub fn run(stored: &StoredRun) -> Value {
    json!(RunJson::from(stored))
}
