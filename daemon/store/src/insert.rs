//! Values into rows. Everything here runs inside a transaction that its caller opens and commits.

use longhaul_measure::model::{
    Event, Figure, Operation, OperationStats, Phase, RoundStatus, Run, Target, Wire, encode_calls,
};
use rusqlite::{Connection, named_params};

use crate::epochs;
use crate::error::Fault;
use crate::history;
use crate::names::path_value;
use crate::records::{NewRound, RoundEnd};
use crate::wire::Word;

/// What the store adds to a run.
pub(crate) struct Receipt {
    pub(crate) number: i64,
    pub(crate) trace_id: String,
    pub(crate) epoch: i64,
}

/// Inserts a run with all that belongs to it.
pub(crate) fn run(cx: &Connection, target: &Target, run: &Run) -> Result<Receipt, Fault> {
    refuse_unstorable(target, run)?;
    require_round(cx, run.round)?;
    let target_number = target_row(cx, target, run.started_us)?;
    let epoch = epochs::of_run(cx, (target_number, target), run)?;
    let (number, trace_id) = run_row(cx, run, (target_number, epoch))?;
    for (place, phase) in run.phases.iter().enumerate() {
        phase_rows(cx, phase, (number, place as i64))?;
    }
    Ok(Receipt { number, trace_id, epoch })
}

/// Inserts a round and gives its number.
pub(crate) fn round(cx: &Connection, round: &NewRound) -> Result<i64, Fault> {
    let planned = serde_json::to_string(&round.planned).map_err(Fault::json)?;
    let before = round.before.as_ref().map(serde_json::to_string).transpose().map_err(Fault::json)?;
    let insert =
        "INSERT INTO round (started_us, utc_offset_seconds, seed, scale, planned, scheduled_us, before)
        VALUES (:started_us, :utc_offset_seconds, :seed, :scale, :planned, :scheduled_us, :before)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":started_us": round.started_us, ":utc_offset_seconds": round.utc_offset_seconds,
        ":seed": round.seed.cast_signed(), ":scale": round.scale.name(), ":planned": planned,
        ":scheduled_us": round.scheduled_us, ":before": before,
    })?;
    Ok(cx.last_insert_rowid())
}

/// For how many days single calls are kept: they are witnesses for whoever looks into a round, and many.
pub const CALLS_KEPT_DAYS: i64 = 7;
const DAY_US: i64 = 86_400_000_000;

/// Closes a round that goes on.
pub(crate) fn round_end(cx: &Connection, round: i64, end: &RoundEnd) -> Result<(), Fault> {
    let after = end.after.as_ref().map(serde_json::to_string).transpose().map_err(Fault::json)?;
    let update = "UPDATE round SET status = :status, reason = :reason, ended_us = :ended_us, after = :after
        WHERE number = :round AND status IS NULL";
    let closed = cx.prepare_cached(update)?.execute(named_params! {
        ":status": end.status.name(), ":reason": end.reason, ":ended_us": end.ended_us, ":after": after,
        ":round": round,
    })?;
    if closed != 1 {
        return Err(Fault::NoSuchRound(round));
    }
    let forget = "UPDATE phase SET calls = NULL WHERE calls IS NOT NULL AND began_us < ?1";
    cx.prepare_cached(forget)?.execute([end.ended_us.saturating_sub(CALLS_KEPT_DAYS * DAY_US)])?;
    Ok(())
}

/// Inserts a round that is not begun.
pub(crate) fn skipped(cx: &Connection, new: &NewRound, reason: &str) -> Result<(), Fault> {
    let number = round(cx, new)?;
    let reason = Some(reason.to_owned());
    let end = RoundEnd { status: RoundStatus::Skipped, reason, ended_us: new.started_us, after: None };
    round_end(cx, number, &end)
}

/// Inserts an event and gives its number.
pub(crate) fn event(cx: &Connection, event: &Event) -> Result<i64, Fault> {
    let insert = "INSERT INTO event (at_us, target, kind, detail) VALUES (:at_us, :target, :kind, :detail)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":at_us": event.at_us, ":target": event.target.as_ref().map(|name| name.as_str()),
        ":kind": event.kind, ":detail": event.detail.to_string(),
    })?;
    Ok(cx.last_insert_rowid())
}

/// Stops what would come back as something else: SQLite keeps NaN as NULL, and JSON has no infinity.
fn refuse_unstorable(target: &Target, run: &Run) -> Result<(), Fault> {
    if run.target != target.name {
        return Err(Fault::Unstorable(format!(
            "a run on `{}` was given as one on `{}`",
            run.target, target.name
        )));
    }
    let conditions = &run.conditions;
    let known = [conditions.load_average, conditions.instrument_ns, conditions.slept_seconds];
    let phases = run.phases.iter().flat_map(|phase| {
        std::iter::once(phase.seconds).chain(phase.figures.iter().map(|figure| figure.value))
    });
    let mut numbers = phases.chain(known.into_iter().flatten()).chain([run.seconds]);
    match numbers.find(|number| !number.is_finite()) {
        Some(number) => {
            Err(Fault::Unstorable(format!("a run of `{}` holds the number {number}", run.workload)))
        }
        None => Ok(()),
    }
}

fn require_round(cx: &Connection, round: i64) -> Result<(), Fault> {
    let mut statement = cx.prepare_cached("SELECT 1 FROM round WHERE number = ?1")?;
    if statement.exists([round])? { Ok(()) } else { Err(Fault::NoSuchRound(round)) }
}

/// The number of the target's row, which is made or brought up to date.
pub(crate) fn target_row(cx: &Connection, target: &Target, now_us: i64) -> Result<i64, Fault> {
    let upsert = "INSERT INTO target (name, path, role, added_us) VALUES (:name, :path, :role, :now_us)
        ON CONFLICT (name) DO UPDATE SET path = excluded.path, role = excluded.role
        RETURNING number";
    let values = named_params! {
        ":name": target.name.as_str(), ":path": path_value(&target.path),
        ":role": target.role.name(), ":now_us": now_us,
    };
    Ok(cx.prepare_cached(upsert)?.query_row(values, |row| row.get(0))?)
}

const RUN: &str = "INSERT INTO run (trace_id, round, slot, target, epoch, protocol, workload, scale, outcome,
        started_us, utc_offset_seconds, seconds, failure_message, failure_operation, failure_path, failure_error,
        facts, conditions, endpoints)
    VALUES (lower(hex(randomblob(16))), :round, :slot, :target, :epoch, :protocol, :workload, :scale, :outcome,
        :started_us, :utc_offset_seconds, :seconds, :failure_message, :failure_operation, :failure_path,
        :failure_error, :facts, :conditions, :endpoints)
    RETURNING number, trace_id";

fn run_row(cx: &Connection, run: &Run, place: (i64, i64)) -> Result<(i64, String), Fault> {
    let (target, epoch) = place;
    let failure = run.failure.as_ref();
    let protocol = run.protocol.as_ref().map(serde_json::to_string).transpose().map_err(Fault::json)?;
    let values = named_params! {
        ":round": run.round, ":slot": run.slot, ":target": target, ":epoch": epoch, ":protocol": protocol,
        ":workload": run.workload, ":scale": run.scale.name(), ":outcome": run.outcome.name(),
        ":started_us": run.started_us, ":utc_offset_seconds": run.utc_offset_seconds, ":seconds": run.seconds,
        ":failure_message": failure.map(|failure| &failure.message),
        ":failure_operation": failure.and_then(|failure| failure.operation).map(|operation| operation.name()),
        ":failure_path": failure.and_then(|failure| failure.path.as_ref()),
        ":failure_error": failure.and_then(|failure| failure.error.as_ref()),
        ":facts": serde_json::to_string(&run.facts).map_err(Fault::json)?,
        ":conditions": serde_json::to_string(&run.conditions).map_err(Fault::json)?,
        ":endpoints": history::endpoints_of(run),
    };
    let mut statement = cx.prepare_cached(RUN)?;
    Ok(statement.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?)
}

const PHASE: &str =
    "INSERT INTO phase (run, place, name, cache, cold_by, began_us, seconds, bytes_read, bytes_written, complete, calls,
        wire_source, wire_covers, wire_read, wire_written, wire_requests)
    VALUES (:run, :place, :name, :cache, :cold_by, :began_us, :seconds, :bytes_read, :bytes_written, :complete, :calls,
        :wire_source, :wire_covers, :wire_read, :wire_written, :wire_requests)";

fn phase_rows(cx: &Connection, phase: &Phase, position: (i64, i64)) -> Result<(), Fault> {
    let (run, place) = position;
    let wire = phase.wire.as_ref();
    let count = |count: fn(&Wire) -> Option<u64>| wire.and_then(count).map(u64::cast_signed);
    cx.prepare_cached(PHASE)?.execute(named_params! {
        ":run": run, ":place": place, ":name": phase.name, ":cache": phase.cache.name(),
        ":cold_by": phase.cold_by.map(|way| way.name()), ":began_us": phase.began_us, ":seconds": phase.seconds,
        ":bytes_read": phase.bytes_read.cast_signed(), ":bytes_written": phase.bytes_written.cast_signed(),
        ":complete": phase.complete, ":calls": calls_of(phase),
        ":wire_source": Word(wire.map(|wire| &wire.source)), ":wire_covers": Word(wire.map(|wire| wire.covers)),
        ":wire_read": count(|wire| wire.read), ":wire_written": count(|wire| wire.written),
        ":wire_requests": count(|wire| wire.requests),
    })?;
    let number = cx.last_insert_rowid();
    for (place, figure) in phase.figures.iter().enumerate() {
        figure_row(cx, figure, (number, place as i64))?;
    }
    for (place, operation) in phase.operations.iter().enumerate() {
        operation_row(cx, operation, (number, place as i64))?;
    }
    Ok(())
}

fn calls_of(phase: &Phase) -> Option<Vec<u8>> {
    let operations: Vec<Operation> = phase.operations.iter().map(|stats| stats.operation).collect();
    (!phase.calls.is_empty()).then(|| encode_calls(&phase.calls, &operations))
}

fn figure_row(cx: &Connection, figure: &Figure, position: (i64, i64)) -> Result<(), Fault> {
    let (phase, place) = position;
    let insert =
        "INSERT INTO figure (phase, place, name, unit, value) VALUES (:phase, :place, :name, :unit, :value)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":phase": phase, ":place": place, ":name": figure.name, ":unit": figure.unit.symbol(), ":value": figure.value,
    })?;
    Ok(())
}

const OPERATION: &str =
    "INSERT INTO operation (phase, place, operation, errors, count, sum_ns, min_ns, max_ns, latency)
    VALUES (:phase, :place, :operation, :errors, :count, :sum_ns, :min_ns, :max_ns, :latency)";

fn operation_row(cx: &Connection, stats: &OperationStats, position: (i64, i64)) -> Result<(), Fault> {
    let (phase, place) = position;
    let latency = &stats.latency;
    cx.prepare_cached(OPERATION)?.execute(named_params! {
        ":phase": phase, ":place": place, ":operation": stats.operation.name(),
        ":errors": stats.errors.cast_signed(), ":count": latency.count().cast_signed(),
        ":sum_ns": latency.sum_ns().cast_signed(), ":min_ns": latency.min_ns().map(u64::cast_signed),
        ":max_ns": latency.max_ns().map(u64::cast_signed), ":latency": latency.encode(),
    })?;
    Ok(())
}
