//! Items of an outbox put together as one message: rounds, or samples.

use longhaul_measure::corpus::draw::draw;
use longhaul_store::{Reader, Signal};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::Added;
use crate::item::Item;
use crate::metrics::{self, Temporality};
use crate::now::Now;
use crate::time::nanoseconds;
use crate::trace;
use crate::values::{Period, Point, Totals};

/// Spans in a message, unless an item alone has more.
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
    /// The item that the totals hold as their last.
    last: Option<i64>,
}

/// Some items as a message.
#[derive(Debug)]
pub struct Batch {
    /// The items, at least one.
    pub items: Vec<i64>,
    /// The message, in OTLP's binary form.
    pub message: Vec<u8>,
    /// How many spans or points it holds.
    pub values: usize,
    /// What makes the next one, once this one is settled.
    pub next: Maker,
}

/// What an item is in a message.
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

    /// The first of these items that fit into a message; `None` if there is none, or none of them is there any more.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn batch(&self, reader: &Reader, items: &[i64]) -> longhaul_store::Result<Option<Batch>> {
        let mut next = self.clone();
        let mut batch = Content::empty(self.signal);
        let mut taken = vec![];
        for number in items {
            let Some(item) = Item::read(reader, self.signal, *number)? else { continue };
            let before = next.clone();
            let content = next.content(reader, &item)?;
            next.last = Some(*number);
            if !taken.is_empty() && batch.is_full_with(&content) {
                next = before;
                break;
            }
            batch.extend(content);
            taken.push(*number);
        }
        let values = batch.len();
        Ok((!taken.is_empty()).then(|| Batch { message: self.message(batch), items: taken, values, next }))
    }

    /// What is so just now, as a message.
    pub fn of_now(&self, now: &Now) -> Vec<u8> {
        self.message(Content::Points(crate::instruments::of_now(now)))
    }

    fn content(&mut self, reader: &Reader, item: &Item) -> longhaul_store::Result<Content> {
        Ok(match (self.signal, item) {
            (Signal::Traces, Item::Round(round)) => Content::Spans(trace::spans(&self.machine, round)),
            (Signal::Traces | Signal::Metrics | Signal::Samples, _) => {
                self.catch_up(reader, item)?;
                Content::Points(item.points(self.temporality, &mut self.totals))
            }
        })
    }

    /// Totals say the same whoever adds them up: they hold all items of the day that were before this one.
    fn catch_up(&mut self, reader: &Reader, item: &Item) -> longhaul_store::Result<()> {
        if self.temporality == Temporality::Delta {
            return Ok(());
        }
        let day_us = item.began_us().div_euclid(DAY_US) * DAY_US;
        let before = reader.items_between(self.signal, day_us, item.began_us())?;
        if self.last.is_some() && before.last() == self.last.as_ref() {
            return Ok(());
        }
        self.totals = Totals::over(Period::Day);
        for number in before {
            if let Some(item) = Item::read(reader, self.signal, number)? {
                item.points(self.temporality, &mut self.totals);
            }
        }
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
            Signal::Metrics | Signal::Samples => {
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
            Signal::Metrics | Signal::Samples => Self::Points(vec![]),
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
