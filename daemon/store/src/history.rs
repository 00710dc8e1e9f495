//! Reads the history: the few columns of targets, epochs, rounds and runs that verdicts are computed from. Wide
//! columns such as histograms and run conditions are never read.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::{
    AnalysisSettings, EpochRecord, History, MetricTimes, Outcome, Protocol, RecordedDay, Role, RoundRecord,
    RoundStatus, Run, RunRecord, Scale, TASKS, TargetRecord, Timestamp, WaitMetric, YOUR_DAY,
};
use rusqlite::{Connection, Row};
use serde_json::{Map, Value};

use crate::error::Fault;
use crate::rows::{TableRow, query_all};
use crate::store::{read_machine_id, read_threshold};

/// Returns the times of a run's metrics as a JSON object from metric name to seconds. `None`: the run failed or
/// has no metric.
pub(crate) fn metric_times_json(run: &Run) -> Option<String> {
    let metrics = TASKS
        .iter()
        .find(|task| task.name() == run.workload)
        .filter(|_| run.outcome == Outcome::Ok)?
        .metrics();
    let times = MetricTimes::from_run(run, metrics);
    let known = metrics
        .iter()
        .enumerate()
        .filter_map(|(index, metric)| Some((metric.name.to_owned(), Value::from(times.get(index)?))));
    let known: Map<String, Value> = known.collect();
    (!known.is_empty()).then(|| Value::Object(known).to_string())
}

/// Reads the history without its events. Of the analysis settings, only the machine id and the threshold are
/// stored in the database; the others have their default values. `earlier` is a history that was read from the same
/// database before, or an empty one: its runs are not read again.
pub(crate) fn read(cx: &Connection, earlier: History) -> Result<History, Fault> {
    let targets = query_all(cx, "SELECT number, name, role FROM target ORDER BY number", [], |row| {
        let row = TableRow::numbered(row, "target")?;
        let name = row.parsed("name", |name| name.parse().ok())?;
        Ok((row.number, TargetRecord { name, role: row.parsed("role", Role::from_name)? }))
    })?;
    let indexes: BTreeMap<i64, usize> =
        targets.iter().enumerate().map(|(index, (number, _))| (*number, index)).collect();
    let default = AnalysisSettings::default();
    // The newest recording decides which of the replays count.
    let mut runs = if earlier.recorded_day.is_none() { earlier.runs } else { vec![] };
    let last = runs.last().map_or(0, |run| run.number);
    runs.extend(query_all(cx, RUNS_QUERY, [last], |row| run(row, &indexes))?.into_iter().flatten());
    let replays = replays(cx, &runs)?;
    let last = replays.iter().rev().find(|replay| replay.recording.is_some());
    let is_other = |number: i64| {
        last.is_some_and(|last| replays.iter().any(|replay| replay.number == number && replay.differs(last)))
    };
    runs.retain(|run| TASKS[run.workload].name() != YOUR_DAY.name() || !is_other(run.number));
    let threshold = read_threshold(cx)?.unwrap_or(default.threshold);
    Ok(History {
        settings: AnalysisSettings { machine: read_machine_id(cx)?, threshold, ..default },
        targets: targets.into_iter().map(|(_, target)| target).collect(),
        epochs: query_all(cx, EPOCHS_QUERY, [], epoch)?,
        rounds: query_all(cx, ROUNDS_QUERY, [], round)?.into_iter().flatten().collect(),
        runs,
        events: vec![],
        freshness: crate::checks::freshness_by_day(cx, Timestamp::MIN)?,
        recorded_day: last.map(|replay| replay.recorded.clone()),
    })
}

/// Query for a string that changes whenever the history changes. For append-only tables the highest number is
/// enough; a round changes once, from open to closed, so the open rounds are counted; the small tables are
/// included in full.
const VERSION_QUERY: &str = "SELECT json_array(
    (SELECT max(number) FROM run), (SELECT max(number) FROM event), (SELECT max(number) FROM epoch),
    (SELECT max(number) FROM round), (SELECT max(number) FROM freshness), (SELECT count(*) FROM round WHERE status IS NULL),
    (SELECT json_group_array(json_array(number, name, role)) FROM target),
    (SELECT json_group_array(json_array(key, value)) FROM meta))";

/// Returns a string that stays the same until the history changes.
pub(crate) fn version(cx: &Connection) -> Result<String, Fault> {
    Ok(cx.prepare_cached(VERSION_QUERY)?.query_row([], |row| row.get(0))?)
}

const EPOCHS_QUERY: &str =
    "SELECT epoch.number, epoch.opened_us, epoch.protocol, target.name AS target FROM epoch
    JOIN target ON target.number = epoch.target ORDER BY epoch.number";

fn epoch(row: &Row<'_>) -> Result<EpochRecord, Fault> {
    let row = TableRow::numbered(row, "epoch")?;
    let protocol: Option<Protocol> = row.optional_json("protocol")?;
    Ok(EpochRecord {
        number: row.number,
        target: row.parsed("target", |name| name.parse().ok())?,
        opened_us: row.time("opened_us")?,
        protocol: protocol.map(|protocol| protocol.to_string()),
    })
}

const ROUNDS_QUERY: &str = "SELECT number, started_us, utc_offset_seconds, scale, status, reason, planned
    FROM round ORDER BY number";

/// Converts a row of [`ROUNDS_QUERY`] to a round. `None`: no task was planned for it, only presets, or to read test data back.
fn round(row: &Row<'_>) -> Result<Option<RoundRecord>, Fault> {
    let row = TableRow::numbered(row, "round")?;
    if row.text("planned")?.is_some_and(has_no_task) {
        return Ok(None);
    }
    Ok(Some(RoundRecord {
        number: row.number,
        started_us: row.time("started_us")?,
        utc_offset_seconds: row.get("utc_offset_seconds")?,
        scale: row.parsed("scale", Scale::from_name)?,
        status: row.optional_parsed("status", RoundStatus::from_name)?,
        reason: row.get("reason")?,
    }))
}

/// Returns whether a plan, as JSON, has runs, but none of a task. The text is searched, because to parse the plan of every round would take
/// longer than to read the runs; the name of a target is never taken for a task, because a key stands before each.
fn has_no_task(plan: &str) -> bool {
    let mut workloads = plan.split("\"workload\":\"").skip(1).peekable();
    let is_task = |rest: &str| {
        rest.split_once('"').is_some_and(|(name, _)| TASKS.iter().any(|task| task.name() == name))
    };
    workloads.peek().is_some() && !workloads.any(is_task)
}

/// Query for all runs after one. All its columns are in the covering index `run_history`, so a year of runs is one index
/// scan.
pub(crate) const RUNS_QUERY: &str =
    "SELECT number, round, epoch, target, workload, scale, outcome, started_us, seconds, metrics, rtt_us
    FROM run INDEXED BY run_history WHERE number > ?1 ORDER BY number";

/// Query for the recording that each run replayed. The rows are wide, so it is made only where there are such runs.
const REPLAYS_QUERY: &str = "SELECT number, json_extract(facts, '$.recording') AS recording,
    json_extract(facts, '$.recorded-on') AS recorded_on, json_extract(facts, '$.recorded-total') AS total
    FROM run WHERE workload = ?1 ORDER BY number";

/// A run that replayed a recording.
struct Replay {
    number: i64,
    recording: Option<String>,
    recorded: RecordedDay,
}

impl Replay {
    /// Returns whether it replayed another recording than another run. Runs of different recordings measured different work, so
    /// they are never pooled. A run that failed before it read its recording is a failure of any.
    fn differs(&self, other: &Self) -> bool {
        self.recording.is_some() && self.recording != other.recording
    }
}

/// Returns the runs that replayed recordings.
fn replays(cx: &Connection, runs: &[RunRecord]) -> Result<Vec<Replay>, Fault> {
    if !runs.iter().any(|run| TASKS[run.workload].name() == YOUR_DAY.name()) {
        return Ok(vec![]);
    }
    query_all(cx, REPLAYS_QUERY, [YOUR_DAY.name()], |row| {
        let total: Option<String> = row.get(3)?;
        let seconds = total.and_then(|seconds| seconds.parse().ok());
        let total = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let recorded = RecordedDay { recorded_on: row.get(2)?, total };
        Ok(Replay { number: row.get(0)?, recording: row.get(1)?, recorded })
    })
}

/// Converts a row of [`RUNS_QUERY`] to a run. `None`: this version has no such workload. Columns are accessed
/// by index because rusqlite searches for a column name in every row.
fn run(row: &Row<'_>, targets: &BTreeMap<i64, usize>) -> Result<Option<RunRecord>, Fault> {
    let row = TableRow::new(row, "run", row.get(0)?);
    let position = |name: &str| Some(TASKS.iter().position(|workload| workload.name() == name));
    let Some(workload) = row.parsed_at(4, "workload", position)? else { return Ok(None) };
    let target: i64 = row.get(3)?;
    Ok(Some(RunRecord {
        number: row.number,
        round: row.get(1)?,
        epoch: row.get(2)?,
        target: *targets.get(&target).ok_or_else(|| row.unknown("target", target))?,
        workload,
        scale: row.parsed_at(5, "scale", Scale::from_name)?,
        outcome: row.parsed_at(6, "outcome", Outcome::from_name)?,
        started: row.time(7)?,
        seconds: row.get(8)?,
        times: times(row, TASKS[workload].metrics())?,
        rtt: row.get::<Option<i64>>(10)?.and_then(|us| u64::try_from(us).ok()).map(Duration::from_micros),
    }))
}

fn times(row: TableRow<'_>, metrics: &[WaitMetric]) -> Result<MetricTimes, Fault> {
    let Some(text) = row.text(9)? else { return Ok(MetricTimes::NONE) };
    let known: BTreeMap<&str, f64> = serde_json::from_str(text).map_err(|_| row.unknown("metrics", text))?;
    let with = |times: MetricTimes, (position, metric): (usize, &WaitMetric)| match known.get(metric.name) {
        Some(seconds) => times.with(position, *seconds),
        None => times,
    };
    Ok(metrics.iter().enumerate().fold(MetricTimes::NONE, with))
}
