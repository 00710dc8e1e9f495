//! The service's own log on its way to the collector, for whoever looks for a fault in longhaul. It is not kept: what does not
//! fit while a collector is away is dropped and counted, for it is in the log's file anyway.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use prost::Message;
use tracing::Level;

use crate::Added;
use crate::attributes::{self, attribute, text, whole};
use crate::outbox::{Attempts, Becomes};
use crate::sender::Sender;
use crate::time::nanoseconds;

/// Lines that wait at most.
const MOST_LINES: usize = 2000;
/// Lines in a message.
const MOST_AT_ONCE: usize = 512;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// How grave.
    pub level: Level,
    /// What it says.
    pub message: String,
    /// Which part of longhaul says so.
    pub from: String,
    /// Its particulars, by name.
    pub particulars: Vec<(String, String)>,
}

/// Lines between whoever logs and the exporter. Clones share them. To put a line in takes no time to speak of, and nobody
/// waits for a collector.
#[derive(Clone, Default)]
pub struct Diagnostics {
    wanted: Arc<AtomicBool>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Line>,
    dropped: u64,
}

impl Diagnostics {
    /// Whether anybody wants lines: while nobody does, none need be made.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Puts a line in; the oldest makes room.
    pub fn push(&self, line: Line) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.lines.len() >= MOST_LINES {
            kept.lines.pop_front();
            kept.dropped += 1;
        }
        kept.lines.push_back(line);
    }

    pub(crate) fn want(&self, is_wanted: bool) {
        self.wanted.store(is_wanted, Ordering::Relaxed);
        if !is_wanted {
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Kept::default();
        }
    }

    fn take(&self) -> (Vec<Line>, u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let most = kept.lines.len().min(MOST_AT_ONCE);
        (kept.lines.drain(..most).collect(), std::mem::take(&mut kept.dropped))
    }

    fn give_back(&self, lines: Vec<Line>, dropped: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_LINES.saturating_sub(kept.lines.len());
        let lost = lines.len().saturating_sub(room);
        kept.dropped += dropped + lost as u64;
        lines.into_iter().skip(lost).rev().for_each(|line| kept.lines.push_front(line));
    }
}

/// The way of the log.
pub(crate) struct LogLane {
    pub(crate) sender: Sender,
    pub(crate) attempts: Attempts,
}

impl LogLane {
    /// Sends what is there, if it is time to.
    pub(crate) fn advance(
        &mut self,
        diagnostics: &Diagnostics,
        (machine, added): (&str, &Added),
        (now_ns, chance): (u64, f64),
    ) {
        let (lines, dropped) = if self.attempts.is_due(now_ns) { diagnostics.take() } else { return };
        if lines.is_empty() {
            return;
        }
        let answer = self.sender.send(&message(machine, added, (&lines, dropped)));
        if self.attempts.learn(&answer, 1, (now_ns, chance)) == Becomes::Waiting {
            diagnostics.give_back(lines, dropped);
        }
    }
}

fn message(machine: &str, added: &Added, (lines, dropped): (&[Line], u64)) -> Vec<u8> {
    let log_records = lines.iter().enumerate().map(|(place, line)| {
        // That lines are missing is said on the first one after the gap.
        let missing = (place == 0 && dropped > 0).then(|| attribute("longhaul.log.dropped", whole(dropped)));
        LogRecord { attributes: particulars(line).chain(missing).collect(), ..record(line) }
    });
    let scope_logs = ScopeLogs {
        scope: Some(attributes::scope()),
        log_records: log_records.collect(),
        schema_url: attributes::SCHEMA.to_owned(),
    };
    let resource_logs = vec![ResourceLogs {
        resource: Some(attributes::resource(machine, added)),
        scope_logs: vec![scope_logs],
        schema_url: attributes::SCHEMA.to_owned(),
    }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

fn particulars(line: &Line) -> impl Iterator<Item = opentelemetry_proto::tonic::common::v1::KeyValue> {
    let from = attribute("code.namespace", text(line.from.clone()));
    std::iter::once(from)
        .chain(line.particulars.iter().map(|(key, value)| attribute(key, text(value.clone()))))
}

fn record(line: &Line) -> LogRecord {
    let severity = match line.level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    };
    LogRecord {
        time_unix_nano: nanoseconds(line.at_us),
        observed_time_unix_nano: nanoseconds(line.at_us),
        severity_number: severity.into(),
        severity_text: line.level.to_string(),
        body: Some(AnyValue { value: Some(text(line.message.clone())) }),
        ..LogRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize) -> Line {
        Line {
            at_us: number as i64,
            level: Level::INFO,
            message: number.to_string(),
            from: "longhauld".to_owned(),
            particulars: vec![],
        }
    }

    #[test]
    fn the_oldest_lines_make_room_and_are_counted() {
        let diagnostics = Diagnostics::default();
        (0..MOST_LINES + 3).for_each(|number| diagnostics.push(line(number)));
        let (lines, dropped) = diagnostics.take();
        assert_eq!((lines[0].message.as_str(), lines.len(), dropped), ("3", MOST_AT_ONCE, 3));
        (0..10).for_each(|number| diagnostics.push(line(number)));
        diagnostics.give_back(lines, dropped);
        let (lines, dropped) = diagnostics.take();
        assert_eq!((lines[0].message.as_str(), dropped), ("13", 13), "the newest of them are kept, in order");
    }

    #[test]
    fn what_nobody_wants_any_more_is_forgotten() {
        let diagnostics = Diagnostics::default();
        diagnostics.want(true);
        diagnostics.push(line(1));
        diagnostics.want(false);
        assert_eq!((diagnostics.is_wanted(), diagnostics.take().0.len()), (false, 0));
    }
}
