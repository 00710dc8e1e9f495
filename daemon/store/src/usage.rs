//! Stores and reads usage: requests of programs other than longhaul, by target and hour.

use std::ops::Range;

use longhaul_model::time::DAY;
use longhaul_model::{
    CounterSource, PHOTO_BATCH, RequestCounts, RequestKind, Resolution, TargetName, Timestamp, UsageStep,
};
use rusqlite::{Connection, Row, params_from_iter, types::Value};

use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::samples::oldest_kept;

/// Step of time in which usage is stored.
const STEP: Resolution = Resolution::Hour;
/// Number of the newest phases from which the requests of an opening are taken.
const MAX_OPENINGS: i64 = 500;

/// Requests that longhaul's own tasks cause, in which usage is expressed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskRequests {
    /// Number of requests for names that the opening of the large folder caused, of each run, newest first.
    pub listings: Vec<(TargetName, u64)>,
    /// Number of photos in the batch of the newest run; `None` without a run.
    pub photos: Option<u64>,
}

impl Reader {
    /// Returns the usage of all targets by UTC day, oldest first.
    pub fn usage_by_day(&self, window: Range<Timestamp>) -> Result<Vec<UsageStep>> {
        // Added up in SQL: a day has 24 rows of each target, and every summary reads eight weeks.
        let sums: Vec<String> = counts().map(|name| format!("sum({name}) AS {name}")).collect();
        let query = format!(
            "SELECT target.name AS target_name, usage.source, usage.at_us / {day} * {day} AS day_us,
                sum(counted_seconds) AS counted_seconds, sum(left_out_seconds) AS left_out_seconds, {}
            FROM target CROSS JOIN usage ON usage.target = target.number
            WHERE usage.at_us >= ?1 AND usage.at_us < ?2
            GROUP BY target.number, usage.source, day_us ORDER BY day_us, target.number, usage.source",
            sums.join(", "),
            day = DAY.as_micros(),
        );
        let window = [window.start.as_us(), window.end.as_us()];
        self.in_snapshot("read the usage", |cx| query_all(cx, &query, window, usage_of_day))
    }

    /// Returns the requests that the newest runs of longhaul's own tasks caused.
    pub fn task_requests(&self) -> Result<TaskRequests> {
        self.in_snapshot("read the requests of tasks", |cx| {
            Ok(TaskRequests { listings: listings(cx)?, photos: photos(cx)? })
        })
    }
}

fn listings(cx: &Connection) -> Result<Vec<(TargetName, u64)>, Fault> {
    let query = "SELECT target.name AS target, phase.wire_listings FROM phase INDEXED BY phase_listing
        JOIN run ON run.number = phase.run JOIN target ON target.number = run.target
        WHERE phase.name = 'open-folder' AND phase.cache = 'cold' AND phase.complete AND phase.wire_listings > 0
        ORDER BY phase.run DESC LIMIT ?1";
    query_all(cx, query, [MAX_OPENINGS], |row| {
        let row = TableRow::new(row, "phase", 0);
        Ok((row.parsed("target", |name| name.parse().ok())?, row.unsigned("wire_listings")?))
    })
}

fn photos(cx: &Connection) -> Result<Option<u64>, Fault> {
    let query = "SELECT operation.count FROM
            (SELECT number FROM run WHERE workload = ?1 AND outcome = 'ok' ORDER BY number DESC LIMIT 1) AS run
        JOIN phase ON phase.run = run.number AND phase.name = 'open' AND phase.cache = 'cold'
        JOIN operation ON operation.phase = phase.number AND operation.operation = 'open'";
    let counts =
        query_all(cx, query, [PHOTO_BATCH.name()], |row| TableRow::new(row, "operation", 0).unsigned(0))?;
    Ok(counts.first().copied())
}

/// Returns the names of the columns with counts.
fn counts() -> impl Iterator<Item = &'static str> {
    RequestKind::ALL.into_iter().map(RequestKind::name).chain(["files_read", "read_bytes", "written_bytes"])
}

/// Adds usage to the stored row of its hour. `target` is the number of its target.
pub(crate) fn merge(cx: &Connection, target: i64, usage: &UsageStep) -> Result<(), Fault> {
    let sums: Vec<String> = counts()
        .map(|name| {
            format!("{name} = coalesce(usage.{name} + excluded.{name}, usage.{name}, excluded.{name})")
        })
        .collect();
    let names: Vec<&str> = counts().collect();
    let upsert = format!(
        "INSERT INTO usage (target, at_us, source, counted_seconds, left_out_seconds, {}) VALUES (?1, ?2, ?3, ?4, ?5{})
        ON CONFLICT (target, at_us, source) DO UPDATE SET {},
            counted_seconds = usage.counted_seconds + excluded.counted_seconds,
            left_out_seconds = usage.left_out_seconds + excluded.left_out_seconds",
        names.join(", "),
        (6..6 + names.len()).map(|number| format!(", ?{number}")).collect::<String>(),
        sums.join(", "),
    );
    let key = [
        Value::from(target),
        STEP.start(usage.at).as_us().into(),
        usage.source.name().into_owned().into(),
        usage.counted_seconds.into(),
        usage.left_out_seconds.into(),
    ];
    let by_kind = RequestKind::ALL.map(|kind| usage.requests.get(kind));
    let counts = by_kind.into_iter().chain([usage.files_read, usage.read_bytes, usage.written_bytes]);
    let counts = counts.map(|count| Value::from(count.map(u64::cast_signed)));
    cx.prepare_cached(&upsert)?.execute(params_from_iter(key.into_iter().chain(counts)))?;
    Ok(())
}

/// Deletes usage that is older than the retention period of its step.
pub(crate) fn delete_expired(cx: &Connection, now: Timestamp) -> Result<(), Fault> {
    let Some(oldest) = oldest_kept(cx, now, STEP.days_kept())? else { return Ok(()) };
    let delete = "DELETE FROM usage WHERE at_us < ?1 AND target IN (SELECT number FROM target)";
    cx.prepare_cached(delete)?.execute([oldest.as_us()])?;
    Ok(())
}

fn usage_of_day(row: &Row<'_>) -> Result<UsageStep, Fault> {
    let row = TableRow::new(row, "usage", row.get("day_us")?);
    let mut requests = RequestCounts::default();
    for kind in RequestKind::ALL {
        requests = requests.with(kind, row.optional_unsigned(kind.name())?);
    }
    Ok(UsageStep {
        target: row.parsed("target_name", |name| name.parse().ok())?,
        source: row.parsed("source", CounterSource::from_name)?,
        at: row.time("day_us")?,
        counted_seconds: row.get("counted_seconds")?,
        left_out_seconds: row.get("left_out_seconds")?,
        requests,
        files_read: row.optional_unsigned("files_read")?,
        read_bytes: row.optional_unsigned("read_bytes")?,
        written_bytes: row.optional_unsigned("written_bytes")?,
    })
}
