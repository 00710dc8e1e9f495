//! Stores samples. Each sample is merged into all three time steps (5 minutes, 1 hour, 12 hours) when it
//! arrives, so that no later job has to aggregate rows.

use longhaul_model::time::DAY;
use longhaul_model::{
    MachineStep, ProbeStep, Resolution, Stall, Target, TargetName, Timestamp, TrafficStep, UsageStep,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params};

use crate::error::Fault;
use crate::insert::upsert_target;
use crate::read_samples::{MACHINE_TARGET, PROBE_COLUMNS, machine_step, probe_step, traffic_step};
use crate::usage;

/// Maximum number of free pages released to the file system per call; releasing them takes a few milliseconds.
const MAX_PAGES_RELEASED: i64 = 256;

/// Samples to be stored in one transaction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// All targets that the other fields refer to by name.
    pub targets: Vec<Target>,
    /// Latencies measured by the latency probe.
    pub probes: Vec<ProbeStep>,
    /// Traffic of each counter source.
    pub traffic: Vec<TrafficStep>,
    /// Machine load: CPU, memory, load average and radio signal.
    pub machine: Vec<MachineStep>,
    /// Requests of programs other than longhaul.
    pub usage: Vec<UsageStep>,
    /// New stalls, and stored stalls for which more is known now.
    pub stalls: Vec<Stall>,
    /// Current wall clock time. Rows older than their retention period at this time are deleted, unless fewer days have samples.
    pub now: Timestamp,
}

impl Samples {
    /// Returns true if there is no sample and no stall; `targets` is ignored.
    pub fn is_empty(&self) -> bool {
        self.probes.is_empty()
            && self.traffic.is_empty()
            && self.machine.is_empty()
            && self.usage.is_empty()
            && self.stalls.is_empty()
    }
}

/// Merges samples into the stored rows and deletes expired rows.
pub(crate) fn add(cx: &Connection, samples: &Samples) -> Result<(), Fault> {
    let number = |name: &TargetName| {
        let target = samples.targets.iter().find(|target| target.name == *name);
        let target = target
            .ok_or_else(|| Fault::Unstorable(format!("samples of `{name}`, but no target of this name")))?;
        upsert_target(cx, target, samples.now)
    };
    for step in Resolution::ALL {
        for sample in &samples.probes {
            merge_probe(cx, number(&sample.target)?, step, sample)?;
        }
        for sample in &samples.traffic {
            let target = sample.target.as_ref().map_or(Ok(MACHINE_TARGET), number)?;
            merge_traffic(cx, target, step, sample)?;
        }
        samples.machine.iter().try_for_each(|sample| merge_machine(cx, step, sample))?;
    }
    for step in &samples.usage {
        usage::merge(cx, number(&step.target)?, step)?;
    }
    samples.stalls.iter().try_for_each(|stall| upsert_stall(cx, stall))?;
    delete_expired(cx, samples.now)
}

/// Deletes samples that are older than the retention period of their time step.
fn delete_expired(cx: &Connection, now: Timestamp) -> Result<(), Fault> {
    for step in Resolution::ALL {
        let Some(oldest) = oldest_kept(cx, now, step.days_kept())? else { continue };
        let oldest = oldest.as_us();
        cx.prepare_cached("DELETE FROM machine WHERE step = ?1 AND at_us < ?2")?
            .execute((step.name(), oldest))?;
        // The primary keys of these tables start with the target. Listing all targets lets SQLite seek in the key; a
        // condition on `step` and `at_us` alone would scan the whole table.
        for table in ["probe", "traffic"] {
            let delete = format!(
                "DELETE FROM {table} WHERE step = ?1 AND at_us < ?2 AND target IN (SELECT {MACHINE_TARGET} UNION SELECT number FROM target)"
            );
            cx.prepare_cached(&delete)?.execute((step.name(), oldest))?;
        }
    }
    usage::delete_expired(cx, now)
}

/// Returns the time before which samples expire that are kept for a number of days; see [`oldest_kept_of`].
pub(crate) fn oldest_kept(cx: &Connection, now: Timestamp, days: u32) -> Result<Option<Timestamp>, Fault> {
    oldest_kept_of(cx, &format!("machine WHERE step = '{}'", Resolution::HalfDay.name()), now, days)
}

/// Returns the time before which rows expire that are kept for a number of days; `None` while fewer days have `rows`, a table in SQL
/// that may have a condition. It is also before that many days with rows: a clock that is years ahead for a minute must not delete
/// what was measured.
pub(crate) fn oldest_kept_of(
    cx: &Connection,
    rows: &str,
    now: Timestamp,
    days: u32,
) -> Result<Option<Timestamp>, Fault> {
    let query = format!(
        "SELECT DISTINCT at_us / {day} * {day} FROM {rows} ORDER BY 1 DESC LIMIT 1 OFFSET ?1",
        day = DAY.as_micros()
    );
    let first_day = existing_row(cx, &query, [days], |row| Ok(Timestamp::from_us(row.get(0)?)))?;
    Ok(first_day.map(|first_day| first_day.min(now - days * DAY)))
}

/// Releases up to [`MAX_PAGES_RELEASED`] free pages to the file system.
pub(crate) fn release_free_pages(cx: &Connection) -> Result<(), Fault> {
    // `incremental_vacuum` frees one page per `sqlite3_step` call, so all rows have to be fetched.
    let mut statement = cx.prepare_cached(&format!("PRAGMA incremental_vacuum({MAX_PAGES_RELEASED})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Returns the stored row that `query` finds, converted by `read`. `None`: there is no such row.
fn existing_row<T>(
    cx: &Connection,
    query: &str,
    values: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let row = cx.prepare_cached(query)?.query_row(values, |row| Ok(read(row))).optional()?;
    row.transpose()
}

fn merge_probe(cx: &Connection, target: i64, step: Resolution, sample: &ProbeStep) -> Result<(), Fault> {
    let mut merged = ProbeStep { at_us: step.start(sample.at_us), ..sample.clone() };
    let key = (target, step.name(), merged.at_us.as_us(), sample.kind.name(), sample.during.name());
    let query = format!(
        "SELECT {PROBE_COLUMNS} FROM probe JOIN target ON target.number = probe.target
        WHERE target = ?1 AND step = ?2 AND at_us = ?3 AND kind = ?4 AND during = ?5"
    );
    if let Some(before) = existing_row(cx, &query, key, probe_step)? {
        merged.merge(&before);
    }
    let replace =
        "INSERT OR REPLACE INTO probe (target, step, at_us, kind, during, errors, timeouts, latency)
        VALUES (:target, :step, :at_us, :kind, :during, :errors, :timeouts, :latency)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":target": target, ":step": step.name(), ":at_us": merged.at_us.as_us(), ":kind": merged.kind.name(),
        ":during": merged.during.name(), ":errors": merged.errors.cast_signed(),
        ":timeouts": merged.timeouts.cast_signed(), ":latency": merged.latency.encode(),
    })?;
    Ok(())
}

const TRAFFIC: &str =
    "SELECT traffic.*, target.name AS target_name FROM traffic LEFT JOIN target ON target.number = traffic.target
    WHERE target = ?1 AND step = ?2 AND at_us = ?3 AND source = ?4 AND scope = ?5";

fn merge_traffic(cx: &Connection, target: i64, step: Resolution, sample: &TrafficStep) -> Result<(), Fault> {
    let mut merged = TrafficStep { at_us: step.start(sample.at_us), ..sample.clone() };
    let (source, scope) = (sample.traffic.source.name(), sample.traffic.scope.name());
    if let Some(before) =
        existing_row(cx, TRAFFIC, (target, step.name(), merged.at_us.as_us(), &source, scope), traffic_step)?
    {
        merged.merge(&before);
    }
    let signed = |count: Option<u64>| count.map(u64::cast_signed);
    let sum = &merged.traffic;
    let replace = "INSERT OR REPLACE INTO traffic (target, step, at_us, source, scope, seconds, user_read, user_written,
            longhaul_read, longhaul_written, requests, retransmits, errors, reconnects, round_trips, round_trip_us_sum,
            tcp_rtt_us, busy_seconds, peak_bytes_per_second)
        VALUES (:target, :step, :at_us, :source, :scope, :seconds, :user_read, :user_written, :longhaul_read, :longhaul_written,
            :requests, :retransmits, :errors, :reconnects, :round_trips, :round_trip_us_sum,
            :tcp_rtt_us, :busy_seconds, :peak_bytes_per_second)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":target": target, ":step": step.name(), ":at_us": merged.at_us.as_us(), ":source": source, ":scope": scope,
        ":seconds": sum.seconds, ":user_read": signed(sum.user_read), ":user_written": signed(sum.user_written),
        ":longhaul_read": signed(sum.longhaul_read), ":longhaul_written": signed(sum.longhaul_written),
        ":requests": signed(sum.requests), ":retransmits": signed(sum.retransmits), ":errors": signed(sum.errors),
        ":reconnects": signed(sum.reconnects), ":round_trips": signed(sum.round_trips.map(|(count, _)| count)),
        ":round_trip_us_sum": signed(sum.round_trips.map(|(_, time)| time)), ":tcp_rtt_us": signed(sum.tcp_rtt_us), ":busy_seconds": merged.busy_seconds,
        ":peak_bytes_per_second": merged.peak_bytes_per_second,
    })?;
    Ok(())
}

fn merge_machine(cx: &Connection, step: Resolution, sample: &MachineStep) -> Result<(), Fault> {
    let mut merged = MachineStep { at_us: step.start(sample.at_us), ..sample.clone() };
    let query = "SELECT * FROM machine WHERE step = ?1 AND at_us = ?2";
    if let Some(before) = existing_row(cx, query, (step.name(), merged.at_us.as_us()), machine_step)? {
        merged.merge(&before);
    }
    let replace = "INSERT OR REPLACE INTO machine (step, at_us, observations, processor_share, processor_share_max, memory_available_min,
            load_average_max, signal_dbm_min, probe_cpu_ns)
        VALUES (:step, :at_us, :observations, :processor_share, :processor_share_max, :memory_available_min, :load_average_max, :signal_dbm_min,
            :probe_cpu_ns)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":step": step.name(), ":at_us": merged.at_us.as_us(), ":observations": merged.observations.cast_signed(),
        ":processor_share": merged.processor_share, ":processor_share_max": merged.processor_share_max,
        ":memory_available_min": merged.memory_available_min.map(u64::cast_signed), ":load_average_max": merged.load_average_max,
        ":signal_dbm_min": merged.signal_dbm_min, ":probe_cpu_ns": merged.probe_cpu_ns.cast_signed(),
    })?;
    Ok(())
}

fn upsert_stall(cx: &Connection, stall: &Stall) -> Result<(), Fault> {
    let json = |value: serde_json::Result<String>| value.map_err(Fault::json);
    let replace = "INSERT OR REPLACE INTO stall (target, opened_us, started_us, ended_us, is_truncated, operation, calls,
            longest_ns, errors, sources, during)
        VALUES (:target, :opened_us, :started_us, :ended_us, :is_truncated, :operation, :calls, :longest_ns, :errors, :sources,
            :during)";
    cx.prepare_cached(replace)?.execute(named_params! {
        ":target": stall.target.as_str(), ":opened_us": stall.opened_us.as_us(), ":started_us": stall.started_us.as_us(),
        ":ended_us": stall.ended_us.map(Timestamp::as_us), ":is_truncated": stall.is_truncated, ":operation": stall.operation, ":calls": stall.calls.cast_signed(),
        ":longest_ns": stall.longest_ns.cast_signed(), ":errors": json(serde_json::to_string(&stall.errors))?,
        ":sources": json(serde_json::to_string(&stall.sources))?, ":during": stall.during,
    })?;
    Ok(())
}

/// Closes stalls without an end, which remain when longhaul stops during a stall. The end becomes the end of
/// the last five-minute step with machine samples, because longhaul was still running then, but at most
/// `now` and at least the start of the stall plus its longest call.
pub(crate) fn close_stalls(cx: &Connection, now: Timestamp) -> Result<(), Fault> {
    let step = Resolution::FiveMinutes;
    let update =
        "UPDATE stall SET is_truncated = 1, ended_us = max(started_us + longest_ns / 1000, started_us,
            min(?1, coalesce((SELECT max(at_us) FROM machine WHERE step = ?2) + ?3, started_us)))
        WHERE ended_us IS NULL";
    cx.prepare_cached(update)?.execute((now.as_us(), step.name(), step.length().as_micros() as i64))?;
    Ok(())
}
