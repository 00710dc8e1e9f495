//! What the service was busy with, as spans. Rounds as traces are something else: they come of what is stored, not of this.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;

use crate::Added;
use crate::attributes::{attribute, text, whole};
use crate::identity;
use crate::time::{after, nanoseconds};
use crate::trace::resource_spans;

/// Streams of draws. A trace takes two.
const TRACE: u64 = 0x6469_6167;
const SPAN: u64 = TRACE + 2;

/// Where something stands among traces and spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
}

impl Place {
    /// The place of the piece of work with this number, of a process with this seed: in the trace of what it is part of, or
    /// in one of its own.
    pub fn new((seed, number): (u64, u64), parent: Option<Self>) -> Self {
        let own = || identity::trace(seed, TRACE, number);
        let trace = parent.map_or_else(own, |parent| parent.trace);
        Self { trace, span: identity::id(seed, SPAN, number) }
    }
}

/// Something that the service did.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Where it stands.
    pub place: Place,
    /// What it was part of.
    pub parent: Option<Place>,
    /// What it is called.
    pub name: &'static str,
    /// Which part of longhaul did it.
    pub from: String,
    /// When it began, in microseconds since 1970 UTC.
    pub began_us: i64,
    /// How long it took.
    pub seconds: f64,
    /// Its particulars, by name.
    pub particulars: Vec<(String, String)>,
}

/// Pieces of work as a message.
pub(super) fn message((machine, added): (&str, &Added), all: &[Work], dropped: u64) -> Vec<u8> {
    let spans = all.iter().enumerate().map(|(number, work)| {
        let missing = (number == 0 && dropped > 0).then(|| attribute("longhaul.log.dropped", whole(dropped)));
        let mut span = span(work);
        span.attributes.extend(missing);
        span
    });
    let resource_spans = vec![resource_spans(machine, added, spans.collect())];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn span(work: &Work) -> Span {
    let from = attribute("longhaul.log.from", text(work.from.clone()));
    let particulars = work.particulars.iter().map(|(key, value)| attribute(key, text(value.clone())));
    Span {
        trace_id: work.place.trace.to_vec(),
        span_id: work.place.span.to_vec(),
        parent_span_id: work.parent.map(|parent| parent.span.to_vec()).unwrap_or_default(),
        name: work.name.to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanoseconds(work.began_us),
        end_time_unix_nano: after(work.began_us, work.seconds),
        attributes: std::iter::once(from).chain(particulars).collect(),
        ..Span::default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn work(number: u64) -> Work {
        Work {
            place: Place::new((7, number), None),
            parent: None,
            name: "round",
            from: "longhaul_service".to_owned(),
            began_us: 1_000_000,
            seconds: 0.25,
            particulars: vec![("number".to_owned(), number.to_string())],
        }
    }

    #[test]
    fn what_is_part_of_something_is_in_its_trace() {
        let round = work(1);
        let run = Work {
            place: Place::new((7, 2), Some(round.place)),
            parent: Some(round.place),
            name: "run",
            ..work(2)
        };
        let sent = message(("m", &Added::default()), &[run.clone(), round.clone()], 3);
        let sent = ExportTraceServiceRequest::decode(&*sent).unwrap();
        let spans = &sent.resource_spans[0].scope_spans[0].spans;
        assert_eq!((&spans[0].trace_id, &spans[0].parent_span_id), (&spans[1].trace_id, &spans[1].span_id));
        assert_ne!(spans[0].span_id, spans[1].span_id);
        assert_eq!(spans[1].end_time_unix_nano - spans[1].start_time_unix_nano, 250_000_000);
        let told =
            |span: &Span| span.attributes.iter().any(|attribute| attribute.key == "longhaul.log.dropped");
        assert!(told(&spans[0]) && !told(&spans[1]) && spans[1].parent_span_id.is_empty());
    }
}
