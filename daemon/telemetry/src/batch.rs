//! Rounds put together as one message.

use longhaul_measure::corpus::draw::draw;
use longhaul_store::{FinishedRound, Reader, Signal};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::Added;
use crate::metrics::{self, Temporality};
use crate::now::Now;
use crate::time::nanoseconds;
use crate::trace;
use crate::values::{Period, Point, Totals};

/// Spans in a message, unless a round alone has more.
const MOST_SPANS: usize = 512;
/// Points in a message, likewise.
const MOST_POINTS: usize = 2048;
/// A UTC day, in microseconds.
const DAY_US: i64 = 86_400_000_000;

/// Makes messages of one signal.
#[derive(Debug, Clone)]
pub struct Maker {
    signal: Signal,
    machine: String,
    added: Added,
    temporality: Temporality,
    totals: Totals,
    /// The round that the totals hold as their last.
    last: Option<i64>,
}

/// Some rounds as a message.
#[derive(Debug)]
pub struct Batch {
    /// The rounds, at least one.
    pub rounds: Vec<i64>,
    /// The message, in OTLP's binary form.
    pub message: Vec<u8>,
    /// How many spans or points it holds.
    pub values: usize,
    /// What makes the next one, once this one is settled.
    pub next: Maker,
}

/// What a round is in a message.
enum Content {
    Spans(Vec<Span>),
    Points(Vec<(usize, Point)>),
}

impl Maker {
    /// One that has made nothing yet.
    pub fn new(signal: Signal, machine: &str, added: &Added, temporality: Temporality) -> Self {
        Self {
            signal,
            machine: machine.to_owned(),
            added: added.clone(),
            temporality,
            totals: Totals::over(Period::Day),
            last: None,
        }
    }

    /// The first of these rounds that fit into a message; `None` if there is none, or none of them is there any more.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn batch(&self, reader: &Reader, rounds: &[i64]) -> longhaul_store::Result<Option<Batch>> {
        let mut next = self.clone();
        let mut batch = Content::empty(self.signal);
        let mut taken = vec![];
        for number in rounds {
            let Some(round) = reader.finished_round(*number)? else { continue };
            let before = next.clone();
            let content = next.content(reader, &round)?;
            if !taken.is_empty() && batch.is_full_with(&content) {
                next = before;
                break;
            }
            batch.extend(content);
            taken.push(*number);
        }
        let values = batch.len();
        Ok((!taken.is_empty()).then(|| Batch { message: self.message(batch), rounds: taken, values, next }))
    }

    /// What is so just now, as a message.
    pub fn of_now(&self, now: &Now) -> Vec<u8> {
        self.message(Content::Points(crate::instruments::of_now(now)))
    }

    fn content(&mut self, reader: &Reader, round: &FinishedRound) -> longhaul_store::Result<Content> {
        Ok(match self.signal {
            Signal::Traces => Content::Spans(trace::spans(&self.machine, round)),
            Signal::Metrics => {
                self.catch_up(reader, round)?;
                self.last = Some(round.stored.number);
                Content::Points(metrics::points(round, self.temporality, &mut self.totals))
            }
        })
    }

    /// Totals say the same whoever adds them up: they hold all rounds of the day that were before this one.
    fn catch_up(&mut self, reader: &Reader, round: &FinishedRound) -> longhaul_store::Result<()> {
        let is_next = self.last.is_some() && self.last == round.previous.map(|(number, _)| number);
        if self.temporality == Temporality::Delta || is_next {
            return Ok(());
        }
        self.totals = Totals::over(Period::Day);
        let started_us = round.stored.round.started_us;
        let day = started_us.div_euclid(DAY_US) * DAY_US;
        for number in reader.made_between(day, day + DAY_US)? {
            if number >= round.stored.number {
                break;
            }
            if let Some(before) = reader.finished_round(number)? {
                metrics::points(&before, self.temporality, &mut self.totals);
            }
        }
        self.totals.reach(nanoseconds(started_us));
        Ok(())
    }

    fn message(&self, content: Content) -> Vec<u8> {
        match content {
            Content::Spans(spans) => {
                let resource_spans = vec![trace::resource_spans(&self.machine, &self.added, spans)];
                ExportTraceServiceRequest { resource_spans }.encode_to_vec()
            }
            Content::Points(points) => {
                let metrics = metrics::resource_metrics(&self.machine, &self.added, points, self.temporality);
                ExportMetricsServiceRequest { resource_metrics: vec![metrics] }.encode_to_vec()
            }
        }
    }

    /// A span or a point that says only that the way is open.
    pub fn greeting(&self, now_us: i64) -> Vec<u8> {
        let at_ns = nanoseconds(now_us);
        match self.signal {
            Signal::Traces => {
                let part = |stream| draw(now_us.cast_unsigned(), stream, 0).max(1).to_be_bytes();
                let span = Span {
                    trace_id: [part(1), part(2)].concat(),
                    span_id: part(3).to_vec(),
                    name: "longhaul otel check".to_owned(),
                    start_time_unix_nano: at_ns,
                    end_time_unix_nano: at_ns,
                    ..Span::default()
                };
                self.message(Content::Spans(vec![span]))
            }
            Signal::Metrics => {
                let rounds = Some(longhaul_store::RoundCounts::default());
                self.of_now(&Now { at_us: now_us, rounds, ..Now::default() })
            }
        }
    }
}

impl Content {
    fn empty(signal: Signal) -> Self {
        match signal {
            Signal::Traces => Self::Spans(vec![]),
            Signal::Metrics => Self::Points(vec![]),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Spans(spans) => spans.len(),
            Self::Points(points) => points.len(),
        }
    }

    fn is_full_with(&self, other: &Self) -> bool {
        let most = match self {
            Self::Spans(_) => MOST_SPANS,
            Self::Points(_) => MOST_POINTS,
        };
        self.len() + other.len() > most
    }

    fn extend(&mut self, other: Self) {
        match (self, other) {
            (Self::Spans(mine), Self::Spans(theirs)) => mine.extend(theirs),
            (Self::Points(mine), Self::Points(theirs)) => mine.extend(theirs),
            (Self::Spans(_), Self::Points(_)) | (Self::Points(_), Self::Spans(_)) => {}
        }
    }
}
