//! Delivery status of rounds and samples that are exported to an OpenTelemetry collector.

use longhaul_model::{Event, MachineStep, ProbeStep, Resolution, Stall, Timestamp, TrafficStep};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Fault, Result};
use crate::events::stored_event;
use crate::read_samples::{SampleFilter, stall};
use crate::reader::{Reader, stored_round};
use crate::rows::query_all;
use crate::runs;
use crate::writer::Writer;
use longhaul_model::stored::{StoredRound, StoredRun};

/// An exported signal with its own outbox. An item of `Traces` and `Metrics` is a round, identified by its
/// number; an item of `Samples` is a five-minute step, identified by its start in microseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// A round as a trace.
    Traces,
    /// Figures and histograms of a round as metrics.
    Metrics,
    /// Five minutes of samples of all targets as metrics.
    Samples,
}

impl Signal {
    /// Every signal.
    pub const ALL: [Signal; 3] = [Self::Traces, Self::Metrics, Self::Samples];

    /// Returns the name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Samples => "samples",
        }
    }

    /// Returns the query for all exportable items, with the columns `item`, `began_us` and `ended_us`.
    fn items_query(self) -> String {
        match self {
            Self::Traces | Self::Metrics => {
                format!(
                    "SELECT number AS item, started_us AS began_us, ended_us FROM round WHERE {FINISHED_ROUNDS}"
                )
            }
            Self::Samples => COMPLETE_STEPS.to_owned(),
        }
    }
}

/// Query for the five-minute steps that can be exported. A step is exported when another five minutes have
/// passed and no stall that affected it is still open, because the late answers of a stall are added to the
/// step. After one hour it is exported even if a stall is still open. Steps of the future, from a time when the clock was ahead,
/// neither count as newer ones nor are exported before their time: steps that still grow would seem complete.
const COMPLETE_STEPS: &str = "SELECT at_us AS item, at_us AS began_us, at_us + 300000000 AS ended_us
    FROM machine, (SELECT max(at_us) AS newest_us FROM machine
        WHERE step = '5min' AND at_us <= unixepoch('now') * 1000000)
    WHERE step = '5min' AND at_us <= newest_us - 600000000
    AND (at_us <= newest_us - 3600000000 OR NOT EXISTS (SELECT 1 FROM stall
        WHERE started_us < at_us + 300000000 AND (ended_us IS NULL OR ended_us > newest_us - 300000000)))";

/// Final delivery status of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// The collector accepted the item.
    Sent,
    /// The collector rejected the item or a part of it. Holds the collector's reason.
    Rejected(String),
    /// The item was not sent within the maximum age.
    Expired,
}

impl DeliveryStatus {
    const fn name(&self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Rejected(_) => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// Number of items of one signal by delivery status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxStatus {
    /// Number of items that are waiting to be sent.
    pub pending: u64,
    /// Number of items that the collector accepted.
    pub sent: u64,
    /// Number of items that the collector rejected completely or partly.
    pub rejected: u64,
    /// Number of items that were given up because they were too old.
    pub expired: u64,
    /// Time of the last accepted item. `None`: the collector has accepted no
    /// item.
    pub last_sent: Option<Timestamp>,
    /// The latest rejected item. `None`: the collector has rejected no item.
    pub last_rejection: Option<Rejection>,
}

/// An item that the collector rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Number of the round, or start of the five-minute step in microseconds since 1970 UTC.
    pub item: i64,
    /// Time of the rejection.
    pub at: Timestamp,
    /// The collector's reason.
    pub reason: String,
}

/// A finished round that was not skipped, with its runs and events.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRound {
    /// The round; its `end` is always set.
    pub stored: StoredRound,
    /// Runs of the round, ordered by slot.
    pub runs: Vec<StoredRun>,
    /// Events between the start and the end of the round.
    pub events: Vec<Event>,
    /// Number and start of the previous round that was not skipped. `None`: this
    /// is the first.
    pub previous: Option<(i64, Timestamp)>,
}

/// Five minutes of samples of all targets and of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledStep {
    /// Start of the five-minute step.
    pub at: Timestamp,
    /// Latencies measured by the latency probe.
    pub probes: Vec<ProbeStep>,
    /// Traffic of each counter source.
    pub traffic: Vec<TrafficStep>,
    /// Machine load. `None`: no observation in this step.
    pub machine: Option<MachineStep>,
    /// Stalls that started in this step.
    pub stalls: Vec<Stall>,
}

/// SQL condition for finished rounds that were not skipped; a skipped round has no results to export.
const FINISHED_ROUNDS: &str = "status IN ('ok', 'void', 'cut-short')";

impl Reader {
    /// Returns up to `limit` items that are waiting to be sent, oldest first.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] if the file is damaged.
    pub fn pending_items(&self, signal: Signal, limit: u32) -> Result<Vec<i64>> {
        let query = format!("SELECT item {} ORDER BY item LIMIT ?2", pending_query(signal));
        self.in_snapshot("read the outbox", |cx| {
            query_all(cx, &query, params![signal.name(), limit], |row| Ok(row.get(0)?))
        })
    }

    /// Returns the number of items of a signal by delivery status, and its latest delivery and rejection.
    pub fn outbox_status(&self, signal: Signal) -> Result<OutboxStatus> {
        self.in_snapshot("read the outbox", |cx| read_outbox_status(cx, signal))
    }

    /// Returns the round with this number. `None`: there is no such round, or it was skipped or is still
    /// running.
    pub fn finished_round(&self, number: i64) -> Result<Option<FinishedRound>> {
        self.in_snapshot("read a round", |cx| finished_round(cx, number))
    }

    /// Returns the samples of the five-minute step that starts at `at`. `None`: the step has no samples.
    pub fn sampled_step(&self, at: Timestamp) -> Result<Option<SampledStep>> {
        let until = at + Resolution::FiveMinutes.length();
        let filter =
            SampleFilter { target: None, kind: None, step: Resolution::FiveMinutes, since: at, until };
        let stalls =
            "SELECT * FROM stall WHERE started_us >= ?1 AND started_us < ?2 ORDER BY started_us, target";
        let step = SampledStep {
            at,
            probes: self.probe_steps(&filter)?,
            traffic: self.traffic_steps(&filter)?,
            machine: self.machine_steps(&filter)?.pop(),
            stalls: self.in_snapshot("read the stall log", |cx| {
                query_all(cx, stalls, [at.as_us(), until.as_us()], stall)
            })?,
        };
        let is_empty = step.probes.is_empty() && step.traffic.is_empty() && step.machine.is_none();
        Ok((!is_empty).then_some(step))
    }

    /// Returns the items of a signal that started at or after `from` and before `to`, oldest first, regardless of their delivery status.
    pub fn items_between(&self, signal: Signal, from: Timestamp, to: Timestamp) -> Result<Vec<i64>> {
        let query = format!(
            "SELECT item FROM ({}) WHERE began_us >= ?1 AND began_us < ?2 ORDER BY item",
            signal.items_query()
        );
        self.in_snapshot("read the exportable items", |cx| {
            query_all(cx, &query, [from.as_us(), to.as_us()], |row| Ok(row.get(0)?))
        })
    }
}

impl Writer {
    /// Stores the delivery status of items. An item that already has a status keeps it.
    pub fn record_delivery(
        &self,
        signal: Signal,
        items: Vec<i64>,
        status: DeliveryStatus,
        at: Timestamp,
    ) -> Result<()> {
        let insert =
            "INSERT OR IGNORE INTO outbox (signal, item, status, at_us, reason) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.transact("store the delivery status", move |cx| {
            let reason = match &status {
                DeliveryStatus::Rejected(reason) => Some(reason),
                DeliveryStatus::Sent | DeliveryStatus::Expired => None,
            };
            let mut statement = cx.prepare_cached(insert)?;
            for item in items {
                statement.execute(params![signal.name(), item, status.name(), at.as_us(), reason])?;
            }
            Ok(())
        })
    }

    /// Marks pending items that ended before `before` as expired and returns
    /// their number. First, items that expired after `at` become pending again: the clock was ahead when they did. None does if
    /// the last round began after `at`: the clock is behind.
    pub fn expire(&self, signal: Signal, before: Timestamp, at: Timestamp) -> Result<u64> {
        let restore = "DELETE FROM outbox WHERE signal = ?1 AND status = 'expired' AND at_us > ?2
            AND NOT EXISTS (SELECT 1 FROM round
                WHERE number = (SELECT max(number) FROM round) AND started_us > ?2)";
        let insert = format!(
            "INSERT OR IGNORE INTO outbox (signal, item, status, at_us)
            SELECT ?1, item, 'expired', ?3 {} AND ended_us < ?2",
            pending_query(signal)
        );
        self.transact("expire old items", move |cx| {
            cx.prepare_cached(restore)?.execute(params![signal.name(), at.as_us()])?;
            Ok(cx.execute(&insert, params![signal.name(), before.as_us(), at.as_us()])? as u64)
        })
    }
}

/// Returns the `FROM` and `WHERE` clauses that select the pending items; query parameter 1 is the name of the
/// signal.
fn pending_query(signal: Signal) -> String {
    format!(
        "FROM ({}) AS able
        WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.signal = ?1 AND outbox.item = able.item)",
        signal.items_query()
    )
}

fn read_outbox_status(cx: &Connection, signal: Signal) -> Result<OutboxStatus, Fault> {
    let count = |status: &str| -> Result<u64, Fault> {
        let query = "SELECT count(*) FROM outbox WHERE signal = ?1 AND status = ?2";
        let count: i64 = cx.prepare_cached(query)?.query_row([signal.name(), status], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    };
    let pending = format!("SELECT count(*) {}", pending_query(signal));
    let pending: i64 = cx.prepare_cached(&pending)?.query_row([signal.name()], |row| row.get(0))?;
    let last = "SELECT max(at_us) FROM outbox WHERE signal = ?1 AND status = 'sent'";
    let last_sent: Option<i64> = cx.prepare_cached(last)?.query_row([signal.name()], |row| row.get(0))?;
    let rejection = "SELECT item, at_us, reason FROM outbox WHERE signal = ?1 AND status = 'rejected'
        ORDER BY at_us DESC, item DESC LIMIT 1";
    Ok(OutboxStatus {
        pending: pending.cast_unsigned(),
        sent: count("sent")?,
        rejected: count("rejected")?,
        expired: count("expired")?,
        last_sent: last_sent.map(Timestamp::from_us),
        last_rejection: cx
            .prepare_cached(rejection)?
            .query_row([signal.name()], read_rejection)
            .optional()?,
    })
}

fn read_rejection(row: &Row<'_>) -> rusqlite::Result<Rejection> {
    let reason: Option<String> = row.get(2)?;
    let at = Timestamp::from_us(row.get(1)?);
    Ok(Rejection { item: row.get(0)?, at, reason: reason.unwrap_or_default() })
}

fn finished_round(cx: &Connection, number: i64) -> Result<Option<FinishedRound>, Fault> {
    let round = format!("SELECT * FROM round WHERE number = ?1 AND {FINISHED_ROUNDS}");
    let Some(stored) = query_all(cx, &round, [number], stored_round)?.pop() else { return Ok(None) };
    let runs = format!("{} WHERE run.round = ?1 ORDER BY run.slot, run.number", runs::RUNS_QUERY);
    let events = "SELECT * FROM event WHERE at_us BETWEEN ?1 AND ?2 ORDER BY at_us, number";
    let previous = format!(
        "SELECT number, started_us FROM round WHERE number < ?1 AND {FINISHED_ROUNDS} ORDER BY number DESC LIMIT 1"
    );
    let ended = stored.end.as_ref().map_or(stored.round.started, |end| end.ended);
    let events = query_all(cx, events, [stored.round.started.as_us(), ended.as_us()], stored_event)?;
    Ok(Some(FinishedRound {
        runs: query_all(cx, &runs, [number], |row| runs::stored_run(cx, row))?,
        events: events.into_iter().map(|stored| stored.event).collect(),
        previous: query_all(cx, &previous, [number], |row| {
            Ok((row.get(0)?, Timestamp::from_us(row.get(1)?)))
        })?
        .pop(),
        stored,
    }))
}
