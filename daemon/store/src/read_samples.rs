//! Samples read back: a window of one target, or of all.

use std::collections::BTreeMap;

use longhaul_measure::model::{
    Beside, Covers, MachineStep, ProbeKind, ProbeStep, Source, Stall, Step, TargetName, Traffic, TrafficStep,
};
use longhaul_measure::stats::Histogram;
use rusqlite::{OptionalExtension, Row};

use crate::error::{Fault, Result};
use crate::reader::{Reader, collect};
use crate::rows::{json_of, named, named_at, optional_named, unknown};
use crate::samples::MACHINE;

/// Which samples are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFilter {
    /// Of this target; `None`: of all, and of the machine.
    pub target: Option<TargetName>,
    /// Answers to this question of the probe alone; `None`: to all. What counters say has no kind.
    pub kind: Option<ProbeKind>,
    /// How finely.
    pub step: Step,
    /// From then, in microseconds since 1970 UTC: the step in which this lies is the first.
    pub since_us: i64,
    /// Before then.
    pub until_us: i64,
}

impl Reader {
    /// Answers of the probe, oldest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn probes(&self, filter: &SampleFilter) -> Result<Vec<ProbeStep>> {
        // The rows of a target lie in the order of their key, in which the kind comes before the histogram: no index is
        // needed to pass over other kinds.
        let query = format!(
            "SELECT {PROBE_COLUMNS} FROM target CROSS JOIN probe ON probe.target = target.number
            WHERE (?1 IS NULL OR target.name = ?1) AND step = ?2 AND at_us >= ?3 AND at_us < ?4
                AND (?5 IS NULL OR kind = ?5)
            ORDER BY target.number, at_us, kind, beside"
        );
        let (target, step, since_us, until_us) = values(filter);
        let values = (target, step, since_us, until_us, filter.kind.map(ProbeKind::name));
        let mut found = self.in_snapshot("read the probe", |cx| collect(cx, &query, values, probe_step))?;
        // Stable, so that targets keep their order within a step. SQLite would have to carry the histograms around.
        found.sort_by_key(|step| step.at_us);
        Ok(found)
    }

    /// What was counted, oldest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn traffic(&self, filter: &SampleFilter) -> Result<Vec<TrafficStep>> {
        let query = format!(
            "SELECT traffic.*, subject.name AS target_name
            FROM (SELECT number, name FROM target UNION ALL SELECT {MACHINE}, NULL) AS subject
            CROSS JOIN traffic ON traffic.target = subject.number
            WHERE (?1 IS NULL OR subject.name = ?1) AND step = ?2 AND at_us >= ?3 AND at_us < ?4
            ORDER BY at_us, target, source, covers"
        );
        self.in_snapshot("read the traffic", |cx| collect(cx, &query, values(filter), traffic_step))
    }

    /// The machine, oldest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn machine(&self, filter: &SampleFilter) -> Result<Vec<MachineStep>> {
        let query = "SELECT * FROM machine WHERE step = ?1 AND at_us >= ?2 AND at_us < ?3 ORDER BY at_us";
        let values = (filter.step.name(), filter.step.begin(filter.since_us), filter.until_us);
        self.in_snapshot("read the machine", |cx| collect(cx, query, values, machine_step))
    }

    /// The ledger of waits that had not ended before a moment in microseconds since 1970 UTC, oldest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn stalls(&self, since_us: i64) -> Result<Vec<Stall>> {
        let query =
            "SELECT * FROM stall WHERE ended_us IS NULL OR ended_us >= ?1 ORDER BY started_us, target";
        self.in_snapshot("read the ledger of waits", |cx| collect(cx, query, [since_us], stall))
    }

    /// What a target, or the machine for an empty name, was like when it was last looked at.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn surroundings(&self, subject: &str) -> Result<Option<BTreeMap<String, String>>> {
        self.in_snapshot("read what the surroundings were like", |cx| {
            let query = "SELECT facts FROM surroundings WHERE subject = ?1";
            let facts: Option<String> = cx.query_row(query, [subject], |row| row.get(0)).optional()?;
            let parse = |text: String| {
                serde_json::from_str(&text).map_err(|_| unknown(("surroundings", 0), "facts", text))
            };
            facts.map(parse).transpose()
        })
    }
}

fn values(filter: &SampleFilter) -> (Option<&str>, &'static str, i64, i64) {
    let target = filter.target.as_ref().map(TargetName::as_str);
    (target, filter.step.name(), filter.step.begin(filter.since_us), filter.until_us)
}

fn unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
}

/// What [`probe_step`] reads, in this order.
pub(crate) const PROBE_COLUMNS: &str =
    "target.name, probe.at_us, probe.kind, probe.beside, probe.errors, probe.lost, probe.latency";

/// A step from a row of [`PROBE_COLUMNS`]. Columns by number: names would be looked up each time.
pub(crate) fn probe_step(row: &Row<'_>) -> Result<ProbeStep, Fault> {
    let at_us = row.get(1)?;
    let place = ("probe", at_us);
    let latency = row.get_ref(6)?.as_blob().map_err(rusqlite::Error::from)?;
    Ok(ProbeStep {
        target: named_at(row, (place, 0, "target_name"), |name| name.parse().ok())?,
        at_us,
        kind: named_at(row, (place, 2, "kind"), ProbeKind::from_name)?,
        beside: named_at(row, (place, 3, "beside"), Beside::from_name)?,
        errors: row.get::<_, i64>(4)?.cast_unsigned(),
        lost: row.get::<_, i64>(5)?.cast_unsigned(),
        latency: Histogram::decode(latency).map_err(|error| unknown(place, "latency", error))?,
    })
}

pub(crate) fn traffic_step(row: &Row<'_>) -> Result<TrafficStep, Fault> {
    let at_us = row.get("at_us")?;
    let place = ("traffic", at_us);
    let traffic = Traffic {
        source: named(row, (place, "source"), Source::from_name)?,
        covers: named(row, (place, "covers"), Covers::from_name)?,
        seconds: row.get("seconds")?,
        user_read: unsigned(row, "user_read")?,
        user_written: unsigned(row, "user_written")?,
        own_read: unsigned(row, "own_read")?,
        own_written: unsigned(row, "own_written")?,
        requests: unsigned(row, "requests")?,
        retransmissions: unsigned(row, "retransmissions")?,
        errors: unsigned(row, "errors")?,
        reconnects: unsigned(row, "reconnects")?,
        round_trips: unsigned(row, "answered")?.zip(unsigned(row, "answered_us")?),
        packet_round_trip_us: unsigned(row, "packet_us")?,
    };
    Ok(TrafficStep {
        target: optional_named(row, (place, "target_name"), |name| name.parse().ok())?,
        at_us,
        traffic,
        busy_seconds: row.get("busy_seconds")?,
        peak: row.get("peak")?,
    })
}

pub(crate) fn machine_step(row: &Row<'_>) -> Result<MachineStep, Fault> {
    Ok(MachineStep {
        at_us: row.get("at_us")?,
        looks: row.get::<_, i64>("looks")?.cast_unsigned(),
        processor_share: row.get("processor_share")?,
        processor_peak: row.get("processor_peak")?,
        memory_least: unsigned(row, "memory_least")?,
        load_most: row.get("load_most")?,
        signal_least: row.get("signal_least")?,
        probe_ns: row.get::<_, i64>("probe_ns")?.cast_unsigned(),
    })
}

pub(crate) fn stall(row: &Row<'_>) -> Result<Stall, Fault> {
    let opened_us = row.get("opened_us")?;
    let place = ("stall", opened_us);
    Ok(Stall {
        target: named(row, (place, "target"), |name| name.parse().ok())?,
        opened_us,
        started_us: row.get("started_us")?,
        ended_us: row.get("ended_us")?,
        is_cut: row.get("is_cut")?,
        operation: row.get("operation")?,
        calls: row.get::<_, i64>("calls")?.cast_unsigned(),
        longest_ns: row.get::<_, i64>("longest_ns")?.cast_unsigned(),
        errors: json_of(row, place, "errors")?,
        who: json_of(row, place, "who")?,
        beside: row.get("beside")?,
    })
}
