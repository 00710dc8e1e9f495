//! Samples into rows: merged into every step of time at once, so that nothing has to be rolled up later.

use longhaul_measure::model::{MachineStep, ProbeStep, Stall, Step, Target, TargetName, TrafficStep};
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params};

use crate::error::Fault;
use crate::insert::target_row;
use crate::read_samples::{PROBE_COLUMNS, machine_step, probe_step, traffic_step};

/// The number that stands for the machine where a target is expected.
pub(crate) const MACHINE: i64 = 0;
/// How many pages are given back to the file system at once: a few milliseconds of work.
const PAGES_FREED: i64 = 256;
const DAY_US: i64 = 86_400_000_000;

/// What sampling brings at a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// The targets that are named in the rest.
    pub targets: Vec<Target>,
    /// Answers of the probe.
    pub probes: Vec<ProbeStep>,
    /// What was counted.
    pub traffic: Vec<TrafficStep>,
    /// The machine.
    pub machine: Vec<MachineStep>,
    /// The ledger: new lines, and lines of which more is known.
    pub stalls: Vec<Stall>,
    /// The wall clock, in microseconds since 1970 UTC: decides what is old.
    pub now_us: i64,
}

impl Samples {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty() && self.traffic.is_empty() && self.machine.is_empty() && self.stalls.is_empty()
    }
}

/// Merges samples into what is there, and lets go of what is old.
pub(crate) fn add(cx: &Connection, samples: &Samples) -> Result<(), Fault> {
    let number = |name: &TargetName| {
        let target = samples.targets.iter().find(|target| target.name == *name);
        let target =
            target.ok_or_else(|| Fault::Unstorable(format!("samples of `{name}` without the target")))?;
        target_row(cx, target, samples.now_us)
    };
    for step in Step::ALL {
        for sample in &samples.probes {
            merge_probe(cx, (number(&sample.target)?, step), sample)?;
        }
        for sample in &samples.traffic {
            let target = sample.target.as_ref().map_or(Ok(MACHINE), number)?;
            merge_traffic(cx, (target, step), sample)?;
        }
        samples.machine.iter().try_for_each(|sample| merge_machine(cx, step, sample))?;
    }
    samples.stalls.iter().try_for_each(|stall| put_stall(cx, stall))?;
    forget(cx, samples.now_us)
}

/// Deletes what is older than its step is kept.
fn forget(cx: &Connection, now_us: i64) -> Result<(), Fault> {
    for step in Step::ALL {
        let oldest_us = now_us - step.days_kept() * DAY_US;
        cx.prepare_cached("DELETE FROM machine WHERE step = ?1 AND at_us < ?2")?
            .execute((step.name(), oldest_us))?;
        for table in ["probe", "traffic"] {
            let delete = format!(
                "DELETE FROM {table} WHERE step = ?1 AND at_us < ?2 AND target IN (SELECT {MACHINE} UNION SELECT number FROM target)"
            );
            cx.prepare_cached(&delete)?.execute((step.name(), oldest_us))?;
        }
    }
    Ok(())
}

/// Gives free pages back to the file system, a few at a time.
pub(crate) fn shrink(cx: &Connection) -> Result<(), Fault> {
    // Each row is a step of the work.
    let mut statement = cx.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES_FREED})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// What is there already of a step.
fn found<T>(
    cx: &Connection,
    query: &str,
    values: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let row = cx.prepare_cached(query)?.query_row(values, |row| Ok(read(row))).optional()?;
    row.transpose()
}

fn merge_probe(cx: &Connection, place: (i64, Step), sample: &ProbeStep) -> Result<(), Fault> {
    let (target, step) = place;
    let mut merged = ProbeStep { at_us: step.begin(sample.at_us), ..sample.clone() };
    let key = (target, step.name(), merged.at_us, sample.kind.name(), sample.beside.name());
    let query = format!(
        "SELECT {PROBE_COLUMNS} FROM probe JOIN target ON target.number = probe.target
        WHERE target = ?1 AND step = ?2 AND at_us = ?3 AND kind = ?4 AND beside = ?5"
    );
    if let Some(before) = found(cx, &query, key, probe_step)? {
        merged.merge(&before);
    }
    let replace = "INSERT OR REPLACE INTO probe (target, step, at_us, kind, beside, errors, lost, latency)
        VALUES (:target, :step, :at_us, :kind, :beside, :errors, :lost, :latency)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":target": target, ":step": step.name(), ":at_us": merged.at_us, ":kind": merged.kind.name(),
        ":beside": merged.beside.name(), ":errors": merged.errors.cast_signed(),
        ":lost": merged.lost.cast_signed(), ":latency": merged.latency.encode(),
    })?;
    Ok(())
}

const TRAFFIC: &str =
    "SELECT traffic.*, target.name AS target_name FROM traffic LEFT JOIN target ON target.number = traffic.target
    WHERE target = ?1 AND step = ?2 AND at_us = ?3 AND source = ?4 AND covers = ?5";

fn merge_traffic(cx: &Connection, place: (i64, Step), sample: &TrafficStep) -> Result<(), Fault> {
    let (target, step) = place;
    let mut merged = TrafficStep { at_us: step.begin(sample.at_us), ..sample.clone() };
    let (source, covers) = (sample.traffic.source.name(), sample.traffic.covers.name());
    if let Some(before) =
        found(cx, TRAFFIC, (target, step.name(), merged.at_us, &source, covers), traffic_step)?
    {
        merged.merge(&before);
    }
    let signed = |count: Option<u64>| count.map(u64::cast_signed);
    let sum = &merged.traffic;
    let replace = "INSERT OR REPLACE INTO traffic (target, step, at_us, source, covers, seconds, user_read, user_written,
            own_read, own_written, requests, retransmissions, errors, reconnects, answered, answered_us, packet_us, busy_seconds, peak)
        VALUES (:target, :step, :at_us, :source, :covers, :seconds, :user_read, :user_written, :own_read, :own_written,
            :requests, :retransmissions, :errors, :reconnects, :answered, :answered_us, :packet_us, :busy_seconds, :peak)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":target": target, ":step": step.name(), ":at_us": merged.at_us, ":source": source, ":covers": covers,
        ":seconds": sum.seconds, ":user_read": signed(sum.user_read), ":user_written": signed(sum.user_written),
        ":own_read": signed(sum.own_read), ":own_written": signed(sum.own_written),
        ":requests": signed(sum.requests), ":retransmissions": signed(sum.retransmissions), ":errors": signed(sum.errors),
        ":reconnects": signed(sum.reconnects), ":answered": signed(sum.round_trips.map(|(count, _)| count)),
        ":answered_us": signed(sum.round_trips.map(|(_, time)| time)), ":packet_us": signed(sum.packet_round_trip_us), ":busy_seconds": merged.busy_seconds,
        ":peak": merged.peak,
    })?;
    Ok(())
}

fn merge_machine(cx: &Connection, step: Step, sample: &MachineStep) -> Result<(), Fault> {
    let mut merged = MachineStep { at_us: step.begin(sample.at_us), ..sample.clone() };
    let query = "SELECT * FROM machine WHERE step = ?1 AND at_us = ?2";
    if let Some(before) = found(cx, query, (step.name(), merged.at_us), machine_step)? {
        merged.merge(&before);
    }
    let replace = "INSERT OR REPLACE INTO machine (step, at_us, looks, processor_share, processor_peak, memory_least,
            load_most, signal_least, probe_ns)
        VALUES (:step, :at_us, :looks, :processor_share, :processor_peak, :memory_least, :load_most, :signal_least,
            :probe_ns)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":step": step.name(), ":at_us": merged.at_us, ":looks": merged.looks.cast_signed(),
        ":processor_share": merged.processor_share, ":processor_peak": merged.processor_peak,
        ":memory_least": merged.memory_least.map(u64::cast_signed), ":load_most": merged.load_most,
        ":signal_least": merged.signal_least, ":probe_ns": merged.probe_ns.cast_signed(),
    })?;
    Ok(())
}

fn put_stall(cx: &Connection, stall: &Stall) -> Result<(), Fault> {
    let json = |value: serde_json::Result<String>| value.map_err(Fault::json);
    let replace = "INSERT OR REPLACE INTO stall (target, opened_us, started_us, ended_us, is_cut, operation, calls,
            longest_ns, errors, who, beside)
        VALUES (:target, :opened_us, :started_us, :ended_us, :is_cut, :operation, :calls, :longest_ns, :errors, :who,
            :beside)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":target": stall.target.as_str(), ":opened_us": stall.opened_us, ":started_us": stall.started_us,
        ":ended_us": stall.ended_us, ":is_cut": stall.is_cut, ":operation": stall.operation, ":calls": stall.calls.cast_signed(),
        ":longest_ns": stall.longest_ns.cast_signed(), ":errors": json(serde_json::to_string(&stall.errors))?,
        ":who": json(serde_json::to_string(&stall.who))?, ":beside": stall.beside,
    })?;
    Ok(())
}

/// Ends the lines of the ledger that have no end, for nobody was there to see it: at the latest moment at which somebody
/// was, as far as the samples tell.
pub(crate) fn close_stalls(cx: &Connection, now_us: i64) -> Result<(), Fault> {
    let step = Step::FiveMinutes;
    let update = "UPDATE stall SET is_cut = 1, ended_us = max(started_us + longest_ns / 1000, started_us,
            min(?1, coalesce((SELECT max(at_us) FROM machine WHERE step = ?2) + ?3, started_us)))
        WHERE ended_us IS NULL";
    cx.prepare_cached(update)?.execute((now_us, step.name(), step.seconds() * 1_000_000))?;
    Ok(())
}
