//! Combines items of an outbox (rounds, or steps of samples) into OTLP messages.

use longhaul_model::draw::draw;
use longhaul_model::time::DAY;
use longhaul_store::{Reader, Signal};
use opentelemetry::{SpanId, TraceId};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::trace::SpanData;

use crate::ResourceAttributes;
use crate::attributes;
use crate::current_state::CurrentState;
use crate::item::Item;
use crate::metrics::{self, Temporality};
use crate::time::nanoseconds;
use crate::totals::{Period, Totals};
use crate::trace::{self, SpanFrame};
use crate::transport::message::Message;
use crate::values::Point;
use longhaul_model::Timestamp;

/// Maximum number of spans in a message. A single item with more spans is sent alone.
const MAX_SPANS: usize = 512;
/// Maximum number of data points in a message. A single item with more points is sent alone.
const MAX_POINTS: usize = 2048;

/// Builds the messages of one signal.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    signal: Signal,
    machine: String,
    resource_attributes: ResourceAttributes,
    temporality: Temporality,
    totals: Totals,
    /// The last item that was added to the totals. `None`: no item yet.
    last_item: Option<i64>,
}

/// A message and the items that it contains.
#[derive(Debug)]
pub struct Batch {
    /// Numbers of the items; at least one.
    pub items: Vec<i64>,
    /// The message.
    pub message: Message,
    /// Number of spans or data points in the message.
    pub value_count: usize,
    /// Builder of the next batch, to be used once this batch is delivered.
    pub next_builder: BatchBuilder,
}

/// The spans or data points of one or more items.
enum Content {
    Spans(Vec<SpanData>),
    Points(Vec<(usize, Point)>),
}

impl BatchBuilder {
    /// Creates a builder with empty totals.
    pub fn new(signal: Signal, machine: &str, added: &ResourceAttributes, temporality: Temporality) -> Self {
        Self {
            signal,
            machine: machine.to_owned(),
            resource_attributes: added.clone(),
            temporality,
            totals: Totals::new(Period::Day),
            last_item: None,
        }
    }

    /// Builds a message from as many of the first `items` as fit. `None`: `items` is empty, or none of them
    /// exists in the database any more.
    pub fn build(&self, reader: &Reader, items: &[i64]) -> longhaul_store::Result<Option<Batch>> {
        let mut next = self.clone();
        let mut batch = Content::empty(self.signal);
        let mut included = vec![];
        for number in items {
            let Some(item) = Item::read(reader, self.signal, *number)? else { continue };
            let before = next.clone();
            let content = next.content(reader, &item)?;
            next.last_item = Some(*number);
            if !included.is_empty() && batch.is_full_with(&content) {
                // The item goes into the next message, so the totals must not contain it yet.
                next = before;
                break;
            }
            batch.extend(content);
            included.push(*number);
        }
        let values = batch.len();
        Ok((!included.is_empty()).then(|| Batch {
            message: self.message(batch),
            items: included,
            value_count: values,
            next_builder: next,
        }))
    }

    /// Returns the current state as a message.
    pub fn current_state_message(&self, now: &CurrentState) -> Message {
        self.message(Content::Points(crate::instruments::current_state_points(now)))
    }

    fn content(&mut self, reader: &Reader, item: &Item) -> longhaul_store::Result<Content> {
        Ok(match (self.signal, item) {
            (Signal::Traces, Item::Round(round)) => Content::Spans(trace::spans(&self.machine, round)),
            (Signal::Traces | Signal::Metrics | Signal::Samples, _) => {
                self.load_totals(reader, item)?;
                Content::Points(item.points(self.temporality, &mut self.totals))
            }
        })
    }

    /// Ensures that the totals contain all items of the same UTC day before `item`. A cumulative value
    /// therefore depends only on the stored data, not on when or by which process it is sent.
    fn load_totals(&mut self, reader: &Reader, item: &Item) -> longhaul_store::Result<()> {
        if self.temporality == Temporality::Delta {
            return Ok(());
        }
        let began = item.began();
        let before = reader.items_between(self.signal, began.floor(DAY), began)?;
        if self.last_item.is_some() && before.last() == self.last_item.as_ref() {
            return Ok(());
        }
        self.totals = Totals::new(Period::Day);
        for number in before {
            if let Some(item) = Item::read(reader, self.signal, number)? {
                item.points(self.temporality, &mut self.totals);
            }
        }
        Ok(())
    }

    fn message(&self, content: Content) -> Message {
        match content {
            Content::Spans(spans) => {
                let resource = attributes::resource(&self.machine, &self.resource_attributes);
                let resource_spans = group_spans_by_resource_and_scope(spans, &resource);
                Message::Traces(ExportTraceServiceRequest { resource_spans })
            }
            Content::Points(points) => {
                let metrics = metrics::resource_metrics(
                    &self.machine,
                    &self.resource_attributes,
                    points,
                    self.temporality,
                );
                Message::Metrics(ExportMetricsServiceRequest { resource_metrics: vec![metrics] })
            }
        }
    }

    /// Returns a message with one span or data point that tests the connection to the collector.
    pub fn test_message(&self, now: Timestamp) -> Message {
        let at_ns = nanoseconds(now);
        match self.signal {
            Signal::Traces => {
                let part = |stream| draw(now.as_us().cast_unsigned(), stream, 0).max(1);
                let frame = SpanFrame {
                    trace_id: TraceId::from((u128::from(part(1)) << 64) | u128::from(part(2))),
                    span_id: SpanId::from(part(3)),
                    parent: SpanId::INVALID,
                    name: "longhaul telemetry check".into(),
                    began_ns: at_ns,
                    ended_ns: at_ns,
                };
                let span = frame.with_attributes(vec![]);
                self.message(Content::Spans(vec![span]))
            }
            Signal::Metrics | Signal::Samples => {
                let rounds = Some(longhaul_store::RoundCounts::default());
                self.current_state_message(&CurrentState { at: now, rounds, ..CurrentState::default() })
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
        let limit = match self {
            Self::Spans(_) => MAX_SPANS,
            Self::Points(_) => MAX_POINTS,
        };
        self.len() + other.len() > limit
    }

    fn extend(&mut self, other: Self) {
        match (self, other) {
            (Self::Spans(mine), Self::Spans(theirs)) => mine.extend(theirs),
            (Self::Points(mine), Self::Points(theirs)) => mine.extend(theirs),
            (Self::Spans(_), Self::Points(_)) | (Self::Points(_), Self::Spans(_)) => {}
        }
    }
}
