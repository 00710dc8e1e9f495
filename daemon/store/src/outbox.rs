//! What an OpenTelemetry collector has got, has refused, or is still to get.

use longhaul_measure::model::{Event, MachineStep, ProbeStep, Stall, Step, TrafficStep};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Fault, Result};
use crate::read_samples::{SampleFilter, stall};
use crate::reader::{Reader, collect, stored_event, stored_round};
use crate::records::{StoredRound, StoredRun};
use crate::rows;
use crate::writer::Writer;

/// What is exported, each kind with an outbox of its own. Its items are rounds, known by their numbers, or five minutes of
/// samples, known by their begin in microseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// The round as a trace.
    Traces,
    /// Its figures and histograms as metrics.
    Metrics,
    /// Samples of all targets as metrics.
    Samples,
}

impl Signal {
    /// Every signal.
    pub const ALL: [Signal; 3] = [Self::Traces, Self::Metrics, Self::Samples];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Samples => "samples",
        }
    }

    /// What can be exported: item, begin and end of each.
    fn items(self) -> String {
        match self {
            Self::Traces | Self::Metrics => {
                format!("SELECT number AS item, started_us AS began_us, ended_us FROM round WHERE {MADE}")
            }
            Self::Samples => SETTLED.to_owned(),
        }
    }
}

/// Five minutes to which nothing will be added: another five have passed, and no target that kept somebody waiting then does
/// so still. An hour is the longest that they wait for that.
const SETTLED: &str = "SELECT at_us AS item, at_us AS began_us, at_us + 300000000 AS ended_us
    FROM machine, (SELECT max(at_us) AS newest_us FROM machine WHERE step = '5min')
    WHERE step = '5min' AND at_us <= newest_us - 600000000
    AND (at_us <= newest_us - 3600000000 OR NOT EXISTS (SELECT 1 FROM stall
        WHERE started_us < at_us + 300000000 AND (ended_us IS NULL OR ended_us > newest_us - 300000000)))";

/// What became of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The collector has it.
    Sent,
    /// The collector does not take it, or not all of it, and says why.
    Rejected(String),
    /// It waited for longer than is allowed.
    Expired,
}

impl Fate {
    const fn name(&self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Rejected(_) => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// How it stands with one signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outbox {
    /// Items that are still to be sent.
    pub waiting: u64,
    /// Items that the collector has.
    pub sent: u64,
    /// Items that it did not take, or not all of.
    pub rejected: u64,
    /// Items that waited for too long.
    pub expired: u64,
    /// When it last took one, in microseconds since 1970 UTC.
    pub last_sent_us: Option<i64>,
    /// The latest that it did not take.
    pub last_rejection: Option<Rejection>,
}

/// An item that a collector did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Which.
    pub item: i64,
    /// When, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// Why, in the collector's words.
    pub reason: String,
}

/// A round that was made and is over, with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRound {
    /// The round; it has an end.
    pub stored: StoredRound,
    /// Its runs, in the order of their slots.
    pub runs: Vec<StoredRun>,
    /// What happened from its begin to its end.
    pub events: Vec<Event>,
    /// Number and begin of the round that was made before it, if there was one.
    pub previous: Option<(i64, i64)>,
}

/// Five minutes of samples of all targets.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledStep {
    /// The begin, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// What the probes were answered.
    pub probes: Vec<ProbeStep>,
    /// What was counted.
    pub traffic: Vec<TrafficStep>,
    /// The machine; `None`: it was not looked at.
    pub machine: Option<MachineStep>,
    /// The waits that began in it.
    pub stalls: Vec<Stall>,
}

/// Rounds that were made: skipped ones have nothing to tell but that they were.
const MADE: &str = "status IN ('ok', 'void', 'cut-short')";

impl Reader {
    /// The items that are still to be sent, oldest first, at most so many.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] for a broken file.
    pub fn waiting(&self, signal: Signal, most: u32) -> Result<Vec<i64>> {
        let query = format!("SELECT item {} ORDER BY item LIMIT ?2", waits(signal));
        self.in_snapshot("read the outbox", |cx| {
            collect(cx, &query, params![signal.name(), most], |row| Ok(row.get(0)?))
        })
    }

    /// How it stands with a signal.
    ///
    /// # Errors
    ///
    /// As [`Reader::waiting`].
    pub fn outbox(&self, signal: Signal) -> Result<Outbox> {
        self.in_snapshot("read the outbox", |cx| outbox(cx, signal))
    }

    /// A round that was made and is over; `None` if there is none of that number.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn finished_round(&self, number: i64) -> Result<Option<FinishedRound>> {
        self.in_snapshot("read a round", |cx| finished_round(cx, number))
    }

    /// Five minutes of samples; `None` if there was nothing then.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn sampled_step(&self, at_us: i64) -> Result<Option<SampledStep>> {
        let until_us = at_us + Step::FiveMinutes.seconds() * 1_000_000;
        let filter =
            SampleFilter { target: None, kind: None, step: Step::FiveMinutes, since_us: at_us, until_us };
        let stalls =
            "SELECT * FROM stall WHERE started_us >= ?1 AND started_us < ?2 ORDER BY started_us, target";
        let step = SampledStep {
            at_us,
            probes: self.probes(&filter)?,
            traffic: self.traffic(&filter)?,
            machine: self.machine(&filter)?.pop(),
            stalls: self.in_snapshot("read the ledger of waits", |cx| {
                collect(cx, stalls, [at_us, until_us], stall)
            })?,
        };
        let is_empty = step.probes.is_empty() && step.traffic.is_empty() && step.machine.is_none();
        Ok((!is_empty).then_some(step))
    }

    /// The items of a signal that began in a stretch of time, oldest first, whatever became of them. It is given in
    /// microseconds since 1970 UTC, from its begin up to but without its end.
    ///
    /// # Errors
    ///
    /// As [`Reader::waiting`].
    pub fn items_between(&self, signal: Signal, from_us: i64, to_us: i64) -> Result<Vec<i64>> {
        let query = format!(
            "SELECT item FROM ({}) WHERE began_us >= ?1 AND began_us < ?2 ORDER BY item",
            signal.items()
        );
        self.in_snapshot("read what can be exported", |cx| {
            collect(cx, &query, [from_us, to_us], |row| Ok(row.get(0)?))
        })
    }
}

impl Writer {
    /// Books what became of items. What was booked before stays.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn settle(&self, signal: Signal, items: Vec<i64>, (fate, at_us): (Fate, i64)) -> Result<()> {
        let insert =
            "INSERT OR IGNORE INTO outbox (signal, item, fate, at_us, reason) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.call(move |store| {
            store.in_transaction("book what was exported", |cx| {
                let reason = match &fate {
                    Fate::Rejected(reason) => Some(reason),
                    Fate::Sent | Fate::Expired => None,
                };
                let mut statement = cx.prepare_cached(insert)?;
                for item in items {
                    statement.execute(params![signal.name(), item, fate.name(), at_us, reason])?;
                }
                Ok(())
            })
        })
    }

    /// Gives up the items that ended before a moment and still wait. Says how many they were.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn expire(&self, signal: Signal, before_us: i64, at_us: i64) -> Result<u64> {
        let insert = format!(
            "INSERT OR IGNORE INTO outbox (signal, item, fate, at_us)
            SELECT ?1, item, 'expired', ?3 {} AND ended_us < ?2",
            waits(signal)
        );
        self.call(move |store| {
            store.in_transaction("give up what waited too long", |cx| {
                Ok(cx.execute(&insert, params![signal.name(), before_us, at_us])? as u64)
            })
        })
    }
}

/// From which items which wait; the signal's name is the first parameter.
fn waits(signal: Signal) -> String {
    format!(
        "FROM ({}) AS able
        WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.signal = ?1 AND outbox.item = able.item)",
        signal.items()
    )
}

fn outbox(cx: &Connection, signal: Signal) -> Result<Outbox, Fault> {
    let count = |fate: &str| -> Result<u64, Fault> {
        let query = "SELECT count(*) FROM outbox WHERE signal = ?1 AND fate = ?2";
        let count: i64 = cx.prepare_cached(query)?.query_row([signal.name(), fate], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    };
    let waiting = format!("SELECT count(*) {}", waits(signal));
    let waiting: i64 = cx.prepare_cached(&waiting)?.query_row([signal.name()], |row| row.get(0))?;
    let last = "SELECT max(at_us) FROM outbox WHERE signal = ?1 AND fate = 'sent'";
    let rejection = "SELECT item, at_us, reason FROM outbox WHERE signal = ?1 AND fate = 'rejected'
        ORDER BY at_us DESC, item DESC LIMIT 1";
    Ok(Outbox {
        waiting: waiting.cast_unsigned(),
        sent: count("sent")?,
        rejected: count("rejected")?,
        expired: count("expired")?,
        last_sent_us: cx.prepare_cached(last)?.query_row([signal.name()], |row| row.get(0))?,
        last_rejection: cx.prepare_cached(rejection)?.query_row([signal.name()], rejected).optional()?,
    })
}

fn rejected(row: &Row<'_>) -> rusqlite::Result<Rejection> {
    let reason: Option<String> = row.get(2)?;
    Ok(Rejection { item: row.get(0)?, at_us: row.get(1)?, reason: reason.unwrap_or_default() })
}

fn finished_round(cx: &Connection, number: i64) -> Result<Option<FinishedRound>, Fault> {
    let round = format!("SELECT * FROM round WHERE number = ?1 AND {MADE}");
    let Some(stored) = collect(cx, &round, [number], stored_round)?.pop() else { return Ok(None) };
    let runs = format!("{} WHERE run.round = ?1 ORDER BY run.slot, run.number", rows::RUNS);
    let events = "SELECT * FROM event WHERE at_us BETWEEN ?1 AND ?2 ORDER BY at_us, number";
    let previous = format!(
        "SELECT number, started_us FROM round WHERE number < ?1 AND {MADE} ORDER BY number DESC LIMIT 1"
    );
    let ended_us = stored.end.as_ref().map_or(stored.round.started_us, |end| end.ended_us);
    let events = collect(cx, events, [stored.round.started_us, ended_us], stored_event)?;
    Ok(Some(FinishedRound {
        runs: collect(cx, &runs, [number], |row| rows::stored_run(cx, row))?,
        events: events.into_iter().map(|stored| stored.event).collect(),
        previous: collect(cx, &previous, [number], |row| Ok((row.get(0)?, row.get(1)?)))?.pop(),
        stored,
    }))
}
