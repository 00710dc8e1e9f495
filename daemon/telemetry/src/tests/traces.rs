//! A round as a trace.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_measure::model::{Call, Kept, Operation};
use longhaul_store::FinishedRound;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::samples;
use crate::attributes::{attribute, whole};
use crate::identity::RoundId;
use crate::time::nanoseconds;
use crate::trace::spans;

const MACHINE: &str = "00c0ffee00c0ffee";

#[test]
fn a_round_is_one_trace_with_every_run_below_it_and_every_phase_below_its_run() {
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
fn every_instant_is_one_that_was_recorded() {
    let round = samples::round(3);
    let spans = spans(MACHINE, &round);
    let end = round.stored.end.as_ref().unwrap();
    let times = |span: &Span| (span.start_time_unix_nano, span.end_time_unix_nano);
    assert_eq!(times(&spans[0]), (nanoseconds(round.stored.round.started_us), nanoseconds(end.ended_us)));
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

/// A round whose phases have kept so many calls.
fn with_calls(count: u64) -> FinishedRound {
    let mut round = samples::round(3);
    for phase in round.runs.iter_mut().flat_map(|stored| &mut stored.run.phases) {
        let call = |number: u64| Call {
            operation: Operation::Read,
            after_ns: 1_000 * number + 7,
            nanoseconds: 500 + number,
            is_error: number == 0,
            kept: if number == 0 { Kept::Failed } else { Kept::Slowest },
        };
        phase.calls = (0..count).map(call).collect();
    }
    round
}

#[test]
fn a_call_that_was_kept_is_below_its_phase_at_its_own_instant_with_its_reason() {
    let round = with_calls(3);
    let spans = spans(MACHINE, &round);
    let phase = &round.runs[0].run.phases[1];
    let below = spans.iter().find(|span| span.name == phase.name).unwrap();
    let calls: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == below.span_id).collect();
    assert_eq!(calls.len(), 3);
    let began = nanoseconds(phase.began_us.unwrap());
    for (number, call) in (0u64..).zip(&calls) {
        assert_eq!(call.start_time_unix_nano, began + 1_000 * number + 7);
        assert_eq!(call.end_time_unix_nano - call.start_time_unix_nano, 500 + number);
        assert_eq!((call.name.as_str(), call.status.is_some()), ("read", number == 0));
    }
    let ids: BTreeSet<&Vec<u8>> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "ids are unique");
}

#[test]
fn a_run_tells_of_two_hundred_calls_at_most_and_says_how_many() {
    let round = with_calls(300);
    let run = &round.runs[0];
    let spans = spans(MACHINE, &round);
    let span = spans.iter().find(|span| span.name == run.run.workload).unwrap();
    let said =
        span.attributes.iter().find(|attribute| attribute.key == "longhaul.run.spans.sampled").unwrap();
    assert_eq!(said.value, attribute("", whole(198)).value, "three phases share 200");
    assert_eq!(spans.iter().filter(|span| span.name == "read").count(), 198 * round.runs.len());
}

#[test]
fn a_phase_whose_begin_is_not_known_is_told_at_its_runs_end_and_is_no_span() {
    let mut round = samples::round(3);
    round.runs.iter_mut().flat_map(|stored| &mut stored.run.phases).for_each(|phase| phase.began_us = None);
    let spans = spans(MACHINE, &round);
    assert_eq!(spans.len(), 1 + round.runs.len());
    for run in &spans[1..] {
        let told = run.events.iter().filter(|event| event.name == "longhaul.phase");
        assert!(told.clone().all(|event| event.time_unix_nano == run.end_time_unix_nano));
        assert_eq!(told.count(), 3);
    }
}

#[test]
fn the_next_round_leads_back_to_the_one_before() {
    let (first, second) = (spans(MACHINE, &samples::round(1)), spans(MACHINE, &samples::round(2)));
    assert!(first[0].links.is_empty());
    assert_eq!(second[0].links[0].trace_id, first[0].trace_id);
    assert_eq!(second[0].links[0].span_id, first[0].span_id);
    assert_eq!(first[0].trace_id, RoundId::of_round(MACHINE, &samples::round(1)).trace);
}

#[test]
fn a_hang_is_told_with_its_call_and_no_path_leaves_the_machine() {
    let spans = spans(MACHINE, &samples::round(1));
    let hung = spans.iter().find(|span| span.status.as_ref().is_some_and(|status| status.code == 2)).unwrap();
    assert_eq!(hung.status.as_ref().unwrap().message, "hung in sync");
    assert!(hung.events.iter().any(|event| event.name == "longhaul.hung"));
    assert!(spans[0].events.iter().any(|event| event.name == "longhaul.hang"), "of the journal");
    assert!(!format!("{spans:?}").contains("secret"));
}

#[test]
fn each_kind_of_call_of_a_phase_is_an_event_at_its_end() {
    let round = samples::round(1);
    let spans = spans(MACHINE, &round);
    let phase = spans.iter().find(|span| span.name.starts_with("phase-")).unwrap();
    assert_eq!(phase.events.len(), 2);
    assert!(phase.events.iter().all(|event| event.time_unix_nano == phase.end_time_unix_nano));
}
