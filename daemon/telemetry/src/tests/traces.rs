//! Tests of the conversion of a round to a trace.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_model::{Call, KeepReason, Operation};
use longhaul_store::FinishedRound;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use super::samples;
use crate::identity::RoundTrace;
use crate::time::nanoseconds;

const MACHINE: &str = "00c0ffee00c0ffee";

/// Returns the spans of a round as they are sent.
fn spans(machine: &str, round: &FinishedRound) -> Vec<Span> {
    crate::trace::spans(machine, round).into_iter().map(Span::from).collect()
}

#[test]
fn round_is_one_trace_of_runs_and_phases() {
    let round = samples::round(3);
    let spans = spans(MACHINE, &round);
    let phases: usize = round.runs.iter().map(|stored| stored.run.phases.len()).sum();
    assert_eq!(spans.len(), 1 + round.runs.len() + phases);
    let ids: BTreeSet<&Vec<u8>> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "ids are unique");
    let by_id: BTreeMap<&Vec<u8>, &Span> = spans.iter().map(|span| (&span.span_id, span)).collect();
    for span in &spans {
        assert_eq!(span.trace_id, spans[0].trace_id);
        let Some(parent) = by_id.get(&span.parent_span_id) else {
            assert_eq!(span.name, "round");
            continue;
        };
        assert!(parent.start_time_unix_nano <= span.start_time_unix_nano, "{}", span.name);
    }
}

#[test]
fn span_times_are_the_recorded_times() {
    let round = samples::round(3);
    let spans = spans(MACHINE, &round);
    let end = round.stored.end.as_ref().unwrap();
    let times = |span: &Span| (span.start_time_unix_nano, span.end_time_unix_nano);
    assert_eq!(times(&spans[0]), (nanoseconds(round.stored.round.started), nanoseconds(end.ended)));
    let mut spans = spans[1..].iter();
    for stored in &round.runs {
        assert_eq!(spans.next().unwrap().start_time_unix_nano, nanoseconds(stored.run.started_us));
        for phase in &stored.run.phases {
            let (began, ended) = times(spans.next().unwrap());
            assert_eq!(began, nanoseconds(phase.began_us.unwrap()));
            assert_eq!(ended - began, (phase.seconds * 1e9).round() as u64);
        }
    }
}

/// Returns a round with `count` stored calls in every phase.
fn with_calls(count: u64) -> FinishedRound {
    let mut round = samples::round(3);
    for phase in round.runs.iter_mut().flat_map(|stored| &mut stored.run.phases) {
        let call = |number: u64| Call {
            operation: Operation::Read,
            offset_ns: 1_000 * number + 7,
            duration_ns: 500 + number,
            is_error: number == 0,
            keep_reason: if number == 0 { KeepReason::Failed } else { KeepReason::Slowest },
        };
        phase.calls = (0..count).map(call).collect();
    }
    round
}

#[test]
fn stored_call_is_a_child_span_of_its_phase() {
    let round = with_calls(3);
    let spans = spans(MACHINE, &round);
    let phase = &round.runs[0].run.phases[1];
    let parent = spans.iter().find(|span| span.name == phase.name).unwrap();
    let calls: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == parent.span_id).collect();
    assert_eq!(calls.len(), 3);
    let began = nanoseconds(phase.began_us.unwrap());
    for (number, call) in (0u64..).zip(&calls) {
        assert_eq!(call.start_time_unix_nano, began + 1_000 * number + 7);
        assert_eq!(call.end_time_unix_nano - call.start_time_unix_nano, 500 + number);
        let has_failed = call.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        assert_eq!((call.name.as_str(), has_failed), ("read", number == 0));
    }
    let ids: BTreeSet<&Vec<u8>> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "ids are unique");
}

#[test]
fn run_has_at_most_200_call_spans() {
    let round = with_calls(300);
    let run = &round.runs[0];
    let spans = spans(MACHINE, &round);
    let span = spans.iter().find(|span| span.name == run.run.workload).unwrap();
    let sampled =
        span.attributes.iter().find(|attribute| attribute.key == "longhaul.run.spans.sampled").unwrap();
    assert_eq!(
        sampled.value,
        Some(opentelemetry::Value::I64(198).into()),
        "each of three phases may use a third of 200"
    );
    assert_eq!(spans.iter().filter(|span| span.name == "read").count(), 198 * round.runs.len());
}

#[test]
fn phase_without_a_start_is_an_event_of_its_run() {
    let mut round = samples::round(3);
    round.runs.iter_mut().flat_map(|stored| &mut stored.run.phases).for_each(|phase| phase.began_us = None);
    let spans = spans(MACHINE, &round);
    assert_eq!(spans.len(), 1 + round.runs.len());
    for run in &spans[1..] {
        let events = run.events.iter().filter(|event| event.name == "longhaul.phase");
        assert!(events.clone().all(|event| event.time_unix_nano == run.end_time_unix_nano));
        assert_eq!(events.count(), 3);
    }
}

#[test]
fn round_links_to_the_previous_round() {
    let (first, second) = (spans(MACHINE, &samples::round(1)), spans(MACHINE, &samples::round(2)));
    assert!(first[0].links.is_empty());
    assert_eq!(second[0].links[0].trace_id, first[0].trace_id);
    assert_eq!(second[0].links[0].span_id, first[0].span_id);
    assert_eq!(first[0].trace_id, RoundTrace::from_round(MACHINE, &samples::round(1)).trace_id.to_bytes());
}

#[test]
fn hung_run_names_its_operation_but_no_path() {
    let spans = spans(MACHINE, &samples::round(1));
    let hung = spans.iter().find(|span| span.status.as_ref().is_some_and(|status| status.code == 2)).unwrap();
    assert_eq!(hung.status.as_ref().unwrap().message, "hung in sync");
    assert!(hung.events.iter().any(|event| event.name == "longhaul.hung"));
    assert!(spans[0].events.iter().any(|event| event.name == "longhaul.hang"), "the event log is included");
    assert!(!format!("{spans:?}").contains("secret"));
}

#[test]
fn each_operation_is_an_event_at_the_end_of_its_phase() {
    let round = samples::round(1);
    let spans = spans(MACHINE, &round);
    let phase = spans.iter().find(|span| span.name.starts_with("phase-")).unwrap();
    assert_eq!(phase.events.len(), 2);
    assert!(phase.events.iter().all(|event| event.time_unix_nano == phase.end_time_unix_nano));
}
