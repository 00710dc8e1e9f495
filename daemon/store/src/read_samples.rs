//! Reads samples of a time window, for one target or all targets.

use std::collections::BTreeMap;

use longhaul_model::stored::StallRecords;
use longhaul_model::time::DAY;
use longhaul_model::{
    CounterScope, CounterSource, LoadContext, MachineStep, ProbeKind, ProbeStep, Resolution, Stall,
    TargetName, Timestamp, Traffic, TrafficStep,
};
use rusqlite::Row;

use crate::CALL_RETENTION_DAYS;
use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::runs::histogram;

/// Target number that stands for the machine in the `traffic` table. Real targets count from 1.
pub(crate) const MACHINE_TARGET: i64 = 0;

/// Filter for samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFilter {
    /// Only samples of this target. `None`: samples of all targets and of the machine.
    pub target: Option<TargetName>,
    /// Only latencies of this kind of probe request. `None`: all kinds. Ignored for traffic and machine
    /// samples.
    pub kind: Option<ProbeKind>,
    /// Time step of the samples.
    pub step: Resolution,
    /// Start of the window. The step that contains this time is included.
    pub since: Timestamp,
    /// End of the window (exclusive).
    pub until: Timestamp,
}

impl Reader {
    /// Returns the latencies measured by the latency probe, oldest first.
    pub fn probe_steps(&self, filter: &SampleFilter) -> Result<Vec<ProbeStep>> {
        // Rows of a target are stored in key order, and the kind is part of the key and precedes the histogram
        // in a row. Rows of other kinds are therefore skipped without reading their histograms, and no extra
        // index is needed.
        let query = format!(
            "SELECT {PROBE_COLUMNS} FROM target CROSS JOIN probe ON probe.target = target.number
            WHERE (?1 IS NULL OR target.name = ?1) AND step = ?2 AND at_us >= ?3 AND at_us < ?4
                AND (?5 IS NULL OR kind = ?5)
            ORDER BY target.number, at_us, kind, during"
        );
        let (target, step, since, until) = filter_params(filter);
        let values = (target, step, since, until, filter.kind.map(ProbeKind::name));
        let mut found =
            self.in_snapshot("read the probe samples", |cx| query_all(cx, &query, values, probe_step))?;
        // Sorted here and not in SQL, because SQLite would copy the histograms while sorting. The sort is
        // stable, so targets stay in order within a step.
        found.sort_by_key(|step| step.at_us);
        Ok(found)
    }

    /// Returns the traffic of each counter source, oldest first.
    pub fn traffic_steps(&self, filter: &SampleFilter) -> Result<Vec<TrafficStep>> {
        let query = format!(
            "SELECT traffic.*, subject.name AS target_name
            FROM (SELECT number, name FROM target UNION ALL SELECT {MACHINE_TARGET}, NULL) AS subject
            CROSS JOIN traffic ON traffic.target = subject.number
            WHERE (?1 IS NULL OR subject.name = ?1) AND step = ?2 AND at_us >= ?3 AND at_us < ?4
            ORDER BY at_us, target, source, scope"
        );
        self.in_snapshot("read the traffic", |cx| query_all(cx, &query, filter_params(filter), traffic_step))
    }

    /// Returns the machine samples (CPU, memory, load average, radio signal), oldest first.
    pub fn machine_steps(&self, filter: &SampleFilter) -> Result<Vec<MachineStep>> {
        let query = "SELECT * FROM machine WHERE step = ?1 AND at_us >= ?2 AND at_us < ?3 ORDER BY at_us";
        let values = (filter.step.name(), filter.step.start(filter.since).as_us(), filter.until.as_us());
        self.in_snapshot("read the machine samples", |cx| query_all(cx, query, values, machine_step))
    }

    /// Returns the stalls that are still open or ended at or after `since`, oldest first.
    pub fn stalls(&self, since: Timestamp) -> Result<Vec<Stall>> {
        let query =
            "SELECT * FROM stall WHERE ended_us IS NULL OR ended_us >= ?1 ORDER BY started_us, target";
        self.in_snapshot("read the stall log", |cx| query_all(cx, query, [since.as_us()], stall))
    }

    /// Returns what is stored about stalls and slow calls: all stalls of a window, and what can explain them in its last
    /// days, for as long as single calls are kept.
    pub fn stall_records(&self, since: Timestamp, until: Timestamp) -> Result<StallRecords> {
        let recent = since.max(until - CALL_RETENTION_DAYS * DAY);
        let filter =
            SampleFilter { target: None, kind: None, step: Resolution::FiveMinutes, since: recent, until };
        Ok(StallRecords {
            stalls: self.stalls(since)?,
            calls: self.calls(None, recent)?.into_iter().filter(|phase| phase.began < until).collect(),
            probes: self.probe_steps(&filter)?,
            traffic: self.traffic_steps(&filter)?,
            events: self.events(Some(since))?.into_iter().map(|stored| stored.event).collect(),
        })
    }

    /// Returns the facts last stored about a target, or about the machine if `subject` is empty. `None`:
    /// nothing is stored.
    pub fn environment_facts(&self, subject: &str) -> Result<Option<BTreeMap<String, String>>> {
        self.in_snapshot("read the environment facts", |cx| {
            let query = "SELECT facts FROM snapshot WHERE subject = ?1";
            let facts = |row: &Row<'_>| TableRow::new(row, "snapshot", 0).json("facts");
            Ok(query_all(cx, query, [subject], facts)?.pop())
        })
    }
}

fn filter_params(filter: &SampleFilter) -> (Option<&str>, &'static str, i64, i64) {
    let target = filter.target.as_ref().map(TargetName::as_str);
    (target, filter.step.name(), filter.step.start(filter.since).as_us(), filter.until.as_us())
}

/// Columns that [`probe_step`] reads, in this order.
pub(crate) const PROBE_COLUMNS: &str =
    "target.name, probe.at_us, probe.kind, probe.during, probe.errors, probe.timeouts, probe.latency";

/// Converts a row with [`PROBE_COLUMNS`] to a step. Columns are accessed by index because rusqlite searches for
/// a column name in every row.
pub(crate) fn probe_step(row: &Row<'_>) -> Result<ProbeStep, Fault> {
    let row = TableRow::new(row, "probe", row.get(1)?);
    Ok(ProbeStep {
        target: row.parsed_at(0, "target_name", |name| name.parse().ok())?,
        at_us: row.time(1)?,
        kind: row.parsed_at(2, "kind", ProbeKind::from_name)?,
        during: row.parsed_at(3, "during", LoadContext::from_name)?,
        errors: row.unsigned(4)?,
        timeouts: row.unsigned(5)?,
        latency: histogram(row, 6)?,
    })
}

pub(crate) fn traffic_step(row: &Row<'_>) -> Result<TrafficStep, Fault> {
    let row = TableRow::new(row, "traffic", row.get("at_us")?);
    let traffic = Traffic {
        source: row.parsed("source", CounterSource::from_name)?,
        scope: row.parsed("scope", CounterScope::from_name)?,
        seconds: row.get("seconds")?,
        user_read: row.optional_unsigned("user_read")?,
        user_written: row.optional_unsigned("user_written")?,
        longhaul_read: row.optional_unsigned("longhaul_read")?,
        longhaul_written: row.optional_unsigned("longhaul_written")?,
        requests: row.optional_unsigned("requests")?,
        retransmits: row.optional_unsigned("retransmits")?,
        errors: row.optional_unsigned("errors")?,
        reconnects: row.optional_unsigned("reconnects")?,
        round_trips: row.optional_unsigned("round_trips")?.zip(row.optional_unsigned("round_trip_us_sum")?),
        tcp_rtt_us: row.optional_unsigned("tcp_rtt_us")?,
    };
    Ok(TrafficStep {
        target: row.optional_parsed("target_name", |name| name.parse().ok())?,
        at_us: row.time("at_us")?,
        traffic,
        busy_seconds: row.get("busy_seconds")?,
        peak_bytes_per_second: row.get("peak_bytes_per_second")?,
    })
}

pub(crate) fn machine_step(row: &Row<'_>) -> Result<MachineStep, Fault> {
    let row = TableRow::new(row, "machine", row.get("at_us")?);
    Ok(MachineStep {
        at_us: row.time("at_us")?,
        observations: row.unsigned("observations")?,
        processor_share: row.get("processor_share")?,
        processor_share_max: row.get("processor_share_max")?,
        memory_available_min: row.optional_unsigned("memory_available_min")?,
        load_average_max: row.get("load_average_max")?,
        signal_dbm_min: row.get("signal_dbm_min")?,
        probe_cpu_ns: row.unsigned("probe_cpu_ns")?,
    })
}

pub(crate) fn stall(row: &Row<'_>) -> Result<Stall, Fault> {
    let row = TableRow::new(row, "stall", row.get("opened_us")?);
    Ok(Stall {
        target: row.parsed("target", |name| name.parse().ok())?,
        opened_us: row.time("opened_us")?,
        started_us: row.time("started_us")?,
        ended_us: row.optional_time("ended_us")?,
        is_truncated: row.get("is_truncated")?,
        operation: row.get("operation")?,
        calls: row.unsigned("calls")?,
        longest_ns: row.unsigned("longest_ns")?,
        errors: row.json("errors")?,
        sources: row.json("sources")?,
        during: row.get("during")?,
    })
}
