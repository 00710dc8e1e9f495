//! Inserts values as rows. The caller opens and commits the transaction.

use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{
    Figure, Operation, OperationStats, Outcome, Phase, RoundStatus, Run, Target, Timestamp, WireTraffic,
    encode_calls,
};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use crate::checks::verified;
use crate::error::Fault;
use crate::path_value::path_value;
use crate::wire::EnumName;
use crate::{epochs, history, request_times};
use longhaul_model::stored::{NewRound, RoundEnd};

/// Values that the store assigns to a run when it is inserted.
pub(crate) struct InsertedRun {
    pub(crate) number: i64,
    pub(crate) trace_id: String,
    pub(crate) epoch: i64,
}

/// Inserts a run with its phases, figures, operations and calls.
pub(crate) fn insert_run(cx: &Connection, target: &Target, run: &Run) -> Result<InsertedRun, Fault> {
    reject_unstorable(target, run)?;
    require_round(cx, run.round)?;
    let target_number = target_number(cx, target, run)?;
    let epoch = epochs::epoch_for_run(cx, target_number, target, run)?;
    let inserted = insert_run_row(cx, run, target_number, epoch)?;
    for (position, phase) in run.phases.iter().enumerate() {
        insert_phase(cx, phase, inserted.number, position as i64)?;
    }
    verified::add_to_totals(cx, inserted.number)?;
    Ok(inserted)
}

/// Inserts a round and returns its number.
pub(crate) fn insert_round(cx: &Connection, round: &NewRound) -> Result<i64, Fault> {
    let planned = serde_json::to_string(&round.planned).map_err(Fault::json)?;
    let before = round.before.as_ref().map(serde_json::to_string).transpose().map_err(Fault::json)?;
    let insert =
        "INSERT INTO round (started_us, utc_offset_seconds, seed, scale, planned, scheduled_us, before)
        VALUES (:started_us, :utc_offset_seconds, :seed, :scale, :planned, :scheduled_us, :before)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":started_us": round.started.as_us(), ":utc_offset_seconds": round.utc_offset_seconds,
        ":seed": round.seed.cast_signed(), ":scale": round.scale.name(), ":planned": planned,
        ":scheduled_us": round.scheduled.map(Timestamp::as_us), ":before": before,
    })?;
    Ok(cx.last_insert_rowid())
}

/// Number of days after which individually stored calls are deleted. They help to investigate a recent round,
/// but take too much space to be stored for longer.
pub const CALL_RETENTION_DAYS: u32 = 7;

/// Stores the end of an open round and deletes expired calls of earlier rounds.
pub(crate) fn close_round(cx: &Connection, round: i64, end: &RoundEnd) -> Result<(), Fault> {
    let update = "UPDATE round SET status = :status, reason = :reason, ended_us = :ended_us
        WHERE number = :round AND status IS NULL";
    let closed = cx.prepare_cached(update)?.execute(named_params! {
        ":status": end.status.name(), ":reason": end.reason, ":ended_us": end.ended.as_us(), ":round": round,
    })?;
    if closed != 1 {
        return Err(Fault::NoSuchRound(round));
    }
    let delete_calls = "UPDATE phase SET calls = NULL WHERE calls IS NOT NULL AND began_us < ?1";
    cx.prepare_cached(delete_calls)?.execute([(end.ended - CALL_RETENTION_DAYS * DAY).as_us()])?;
    Ok(())
}

/// Stores the time that the checks after the runs of a round took.
pub(crate) fn check_time(cx: &Connection, round: i64, time: Duration) -> Result<(), Fault> {
    let time_us = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let updated =
        cx.prepare_cached("UPDATE round SET checks_us = ?2 WHERE number = ?1")?.execute([round, time_us])?;
    if updated == 1 { Ok(()) } else { Err(Fault::NoSuchRound(round)) }
}

/// Inserts a skipped round with its reason.
pub(crate) fn skipped_round(cx: &Connection, new: &NewRound, reason: &str) -> Result<(), Fault> {
    let number = insert_round(cx, new)?;
    let reason = Some(reason.to_owned());
    let end = RoundEnd { status: RoundStatus::Skipped, reason, ended: new.started };
    close_round(cx, number, &end)
}

/// Returns an error for a run that would be read back changed: SQLite stores NaN as NULL, and JSON has no
/// infinity.
fn reject_unstorable(target: &Target, run: &Run) -> Result<(), Fault> {
    if run.target != target.name {
        return Err(Fault::Unstorable(format!(
            "a run on `{}` was passed as a run on `{}`",
            run.target, target.name
        )));
    }
    let conditions = &run.conditions;
    let known = [conditions.load_average, conditions.timing_overhead_ns, conditions.slept_seconds];
    let phases = run.phases.iter().flat_map(|phase| {
        std::iter::once(phase.seconds).chain(phase.figures.iter().map(|figure| figure.value))
    });
    let mut numbers = phases.chain(known.into_iter().flatten()).chain([run.seconds]);
    match numbers.find(|number| !number.is_finite()) {
        Some(number) => {
            Err(Fault::Unstorable(format!("a run of `{}` contains the number {number}", run.workload)))
        }
        None => Ok(()),
    }
}

fn require_round(cx: &Connection, round: i64) -> Result<(), Fault> {
    let mut statement = cx.prepare_cached("SELECT 1 FROM round WHERE number = ?1")?;
    if statement.exists([round])? { Ok(()) } else { Err(Fault::NoSuchRound(round)) }
}

/// Returns the number of a run's target. A run that could not use its target, as with a mistyped path, changes nothing of one that is
/// known.
fn target_number(cx: &Connection, target: &Target, run: &Run) -> Result<i64, Fault> {
    if run.outcome == Outcome::Unavailable {
        let mut known = cx.prepare_cached("SELECT number FROM target WHERE name = ?1")?;
        if let Some(number) = known.query_row([target.name.as_str()], |row| row.get(0)).optional()? {
            return Ok(number);
        }
    }
    upsert_target(cx, target, run.started_us)
}

/// Inserts the target or updates its path and role, and returns its number.
pub(crate) fn upsert_target(cx: &Connection, target: &Target, now: Timestamp) -> Result<i64, Fault> {
    let upsert = "INSERT INTO target (name, path, role, added_us) VALUES (:name, :path, :role, :now_us)
        ON CONFLICT (name) DO UPDATE SET path = excluded.path, role = excluded.role
        RETURNING number";
    let values = named_params! {
        ":name": target.name.as_str(), ":path": path_value(&target.path),
        ":role": target.role.name(), ":now_us": now.as_us(),
    };
    Ok(cx.prepare_cached(upsert)?.query_row(values, |row| row.get(0))?)
}

const INSERT_RUN: &str = "INSERT INTO run (trace_id, round, slot, target, epoch, protocol, workload, scale, outcome,
        started_us, utc_offset_seconds, seconds, failure_message, failure_operation, failure_path, failure_error,
        facts, conditions, metrics, rtt_us)
    VALUES (lower(hex(randomblob(16))), :round, :slot, :target, :epoch, :protocol, :workload, :scale, :outcome,
        :started_us, :utc_offset_seconds, :seconds, :failure_message, :failure_operation, :failure_path,
        :failure_error, :facts, :conditions, :metrics, :rtt_us)
    RETURNING number, trace_id";

fn insert_run_row(cx: &Connection, run: &Run, target: i64, epoch: i64) -> Result<InsertedRun, Fault> {
    let failure = run.failure.as_ref();
    let protocol = run.protocol.as_ref().map(serde_json::to_string).transpose().map_err(Fault::json)?;
    let values = named_params! {
        ":round": run.round, ":slot": run.slot, ":target": target, ":epoch": epoch, ":protocol": protocol,
        ":workload": run.workload, ":scale": run.scale.name(), ":outcome": run.outcome.name(),
        ":started_us": run.started_us.as_us(), ":utc_offset_seconds": run.utc_offset_seconds, ":seconds": run.seconds,
        ":failure_message": failure.map(|failure| &failure.message),
        ":failure_operation": failure.and_then(|failure| failure.operation).map(|operation| operation.name()),
        ":failure_path": failure.and_then(|failure| failure.path.as_ref()),
        ":failure_error": failure.and_then(|failure| failure.error.as_ref()),
        ":facts": serde_json::to_string(&run.facts).map_err(Fault::json)?,
        ":conditions": serde_json::to_string(&run.conditions).map_err(Fault::json)?,
        ":metrics": history::metric_times_json(run),
        ":rtt_us": run.conditions.round_trip_us.map(u64::cast_signed),
    };
    let mut statement = cx.prepare_cached(INSERT_RUN)?;
    let inserted = |row: &Row<'_>| Ok(InsertedRun { number: row.get(0)?, trace_id: row.get(1)?, epoch });
    Ok(statement.query_row(values, inserted)?)
}

const INSERT_PHASE: &str =
    "INSERT INTO phase (run, position, name, cache, cold_by, began_us, seconds, bytes_read, bytes_written, complete, calls,
        wire_source, wire_scope, wire_read, wire_written, wire_requests, wire_listings)
    VALUES (:run, :position, :name, :cache, :cold_by, :began_us, :seconds, :bytes_read, :bytes_written, :complete, :calls,
        :wire_source, :wire_scope, :wire_read, :wire_written, :wire_requests, :wire_listings)";

fn insert_phase(cx: &Connection, phase: &Phase, run: i64, position: i64) -> Result<(), Fault> {
    let wire = phase.wire.as_ref();
    let count = |count: fn(&WireTraffic) -> Option<u64>| wire.and_then(count).map(u64::cast_signed);
    cx.prepare_cached(INSERT_PHASE)?.execute(named_params! {
        ":run": run, ":position": position, ":name": phase.name, ":cache": phase.cache.name(),
        ":cold_by": phase.cold_by.map(|way| way.name()), ":began_us": phase.began_us.map(Timestamp::as_us), ":seconds": phase.seconds,
        ":bytes_read": phase.bytes_read.cast_signed(), ":bytes_written": phase.bytes_written.cast_signed(),
        ":complete": phase.complete, ":calls": encode_phase_calls(phase),
        ":wire_source": EnumName(wire.map(|wire| &wire.source)), ":wire_scope": EnumName(wire.map(|wire| wire.scope)),
        ":wire_read": count(|wire| wire.read), ":wire_written": count(|wire| wire.written),
        ":wire_requests": count(|wire| wire.requests), ":wire_listings": count(|wire| wire.listings),
    })?;
    let number = cx.last_insert_rowid();
    verified::insert_verified(cx, phase, number)?;
    request_times::insert(cx, phase, number)?;
    for (position, figure) in phase.figures.iter().enumerate() {
        insert_figure(cx, figure, number, position as i64)?;
    }
    for (position, operation) in phase.operations.iter().enumerate() {
        insert_operation(cx, operation, number, position as i64)?;
    }
    Ok(())
}

fn encode_phase_calls(phase: &Phase) -> Option<Vec<u8>> {
    let operations: Vec<Operation> = phase.operations.iter().map(|stats| stats.operation).collect();
    (!phase.calls.is_empty()).then(|| encode_calls(&phase.calls, &operations))
}

fn insert_figure(cx: &Connection, figure: &Figure, phase: i64, position: i64) -> Result<(), Fault> {
    let insert = "INSERT INTO figure (phase, position, name, unit, value) VALUES (:phase, :position, :name, :unit, :value)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":phase": phase, ":position": position, ":name": figure.name, ":unit": figure.unit.symbol(), ":value": figure.value,
    })?;
    Ok(())
}

const INSERT_OPERATION: &str =
    "INSERT INTO operation (phase, position, operation, errors, count, sum_ns, min_ns, max_ns, latency)
    VALUES (:phase, :position, :operation, :errors, :count, :sum_ns, :min_ns, :max_ns, :latency)";

fn insert_operation(cx: &Connection, stats: &OperationStats, phase: i64, position: i64) -> Result<(), Fault> {
    let latency = &stats.latency;
    cx.prepare_cached(INSERT_OPERATION)?.execute(named_params! {
        ":phase": phase, ":position": position, ":operation": stats.operation.name(),
        ":errors": stats.errors.cast_signed(), ":count": latency.count().cast_signed(),
        ":sum_ns": latency.sum_ns().cast_signed(), ":min_ns": latency.min_ns().map(u64::cast_signed),
        ":max_ns": latency.max_ns().map(u64::cast_signed), ":latency": latency.encode(),
    })?;
    Ok(())
}
