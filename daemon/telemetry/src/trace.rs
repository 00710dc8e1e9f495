//! A stored round as a trace: the round is the root span, its runs are below it, their phases below them, and some of their
//! calls below these: the first that failed, the slowest, and a sample, each with its reason.
//!
//! Every instant is one that was recorded. What has none of its own is told where it was known to be true: all calls of a
//! phase, which are kept as histograms, are an event for each kind of call at the phase's end; a phase whose begin was not
//! kept is an event at its run's end.

use longhaul_measure::model::{
    Call, Conditions, Event as Happened, Figure, LinkKind, OperationStats, Outcome, Phase, Power,
    RoundStatus, Run, Surroundings,
};
use longhaul_store::{FinishedRound, StoredRun};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

use crate::attributes::{self, attribute, number, text, truth, whole};
use crate::identity::{RoundId, call_span, phase_span, run_span};
use crate::time::{after, nanoseconds};

/// Spans of single calls that a run has at most. What is told of the others is in the events of its phases.
const MOST_CALLS: usize = 200;
/// Quantiles beyond the median need so many calls.
const P99_NEEDS: u64 = 100;

/// All spans of a round, the root first, each run before its phases.
pub fn spans(machine: &str, round: &FinishedRound) -> Vec<Span> {
    let id = RoundId::of_round(machine, round);
    let runs = round.runs.iter().flat_map(|stored| {
        let phases = stored.run.phases.iter().enumerate().flat_map(move |(place, phase)| {
            let calls = told(&stored.run, phase).iter().enumerate();
            let calls = calls.filter_map(move |(number, call)| call_of(&id, (stored, place, number), call));
            phase_of(&id, (stored, place), phase).into_iter().chain(calls)
        });
        std::iter::once(run(&id, stored)).chain(phases)
    });
    std::iter::once(root(&id, machine, round)).chain(runs).collect()
}

/// Spans as a collector takes them.
pub fn resource_spans(machine: &str, added: &crate::Added, spans: Vec<Span>) -> ResourceSpans {
    ResourceSpans {
        resource: Some(attributes::resource(machine, added)),
        scope_spans: vec![ScopeSpans {
            scope: Some(attributes::scope()),
            spans,
            schema_url: attributes::SCHEMA.to_owned(),
        }],
        schema_url: attributes::SCHEMA.to_owned(),
    }
}

fn root(id: &RoundId, machine: &str, round: &FinishedRound) -> Span {
    let started_us = round.stored.round.started_us;
    let ended_us = round.stored.end.as_ref().map_or(started_us, |end| end.ended_us);
    Span {
        trace_id: id.trace.to_vec(),
        span_id: id.root.to_vec(),
        name: "round".to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanoseconds(started_us),
        // The wall clock may have been set back in between.
        end_time_unix_nano: nanoseconds(ended_us.max(started_us)),
        attributes: of_round(round),
        events: round.events.iter().map(happened).collect(),
        links: RoundId::of_previous(machine, round).iter().map(link).collect(),
        status: status_of_round(round),
        ..Span::default()
    }
}

fn link(previous: &RoundId) -> Link {
    Link {
        trace_id: previous.trace.to_vec(),
        span_id: previous.root.to_vec(),
        attributes: vec![attribute("longhaul.link", text("previous-round"))],
        ..Link::default()
    }
}

fn of_round(round: &FinishedRound) -> Vec<KeyValue> {
    let stored = &round.stored;
    let mut found = vec![
        attribute("longhaul.round.number", whole(stored.number)),
        attribute("longhaul.scale", text(stored.round.scale.name())),
        attribute("longhaul.round.runs", whole(round.runs.len())),
        attribute("longhaul.round.planned", whole(stored.round.planned.len())),
    ];
    if let Some(end) = &stored.end {
        found.push(attribute("longhaul.round.status", text(end.status.name())));
        found.extend(end.reason.as_deref().map(reason));
    }
    found.extend(stored.round.scheduled_us.map(|us| attribute("longhaul.round.scheduled_us", whole(us))));
    found.extend(stored.round.before.iter().flat_map(surroundings));
    found
}

/// Its first word: what follows it may name a place.
fn reason(reason: &str) -> KeyValue {
    let word = reason.split(':').next().unwrap_or_default();
    attribute("longhaul.round.reason", text(word))
}

fn status_of_round(round: &FinishedRound) -> Option<Status> {
    let end = round.stored.end.as_ref()?;
    (end.status == RoundStatus::Ok).then(|| Status { code: StatusCode::Ok.into(), message: String::new() })
}

fn surroundings(before: &Surroundings) -> Vec<KeyValue> {
    let link = before.link.as_ref();
    let kind = link.and_then(|link| match link.kind {
        LinkKind::Wired => Some("wired"),
        LinkKind::Wireless => Some("wifi"),
        LinkKind::Tunnel => Some("vpn"),
        LinkKind::Unknown => None,
    });
    [
        before.load_average.map(|load| attribute("longhaul.host.load_average", number(load))),
        before.processor_share.map(|share| attribute("longhaul.host.processor_share", number(share))),
        before.memory_available.map(|bytes| attribute("longhaul.host.memory_available", whole(bytes))),
        before.power.map(|power| attribute("longhaul.host.on_battery", truth(power == Power::Battery))),
        before.traffic.map(|rate| attribute("longhaul.host.traffic", number(rate))),
        kind.map(|kind| attribute("network.connection.type", text(kind))),
        link.and_then(|link| link.mtu).map(|mtu| attribute("longhaul.host.link.mtu", whole(mtu))),
        link.and_then(|link| link.megabits)
            .map(|speed| attribute("longhaul.host.link.megabits", whole(speed))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An entry of the journal: what happened and when. Its particulars may name places and stay here.
fn happened(event: &Happened) -> Event {
    let target = event.target.as_ref();
    Event {
        time_unix_nano: nanoseconds(event.at_us),
        name: format!("longhaul.{}", event.kind),
        attributes: target
            .map(|name| attribute("longhaul.target", text(name.as_str())))
            .into_iter()
            .collect(),
        ..Event::default()
    }
}

/// When a run was over, in nanoseconds since 1970 UTC: its last phase's end, and for one that hung at least the cap.
pub fn ended(run: &Run) -> u64 {
    let phases = run.phases.iter().filter_map(|phase| Some(after(phase.began_us?, phase.seconds)));
    phases.chain([after(run.started_us, run.seconds)]).max().unwrap_or_default()
}

fn run(id: &RoundId, stored: &StoredRun) -> Span {
    let run = &stored.run;
    let ended = ended(run);
    let unplaced = run.phases.iter().filter(|phase| phase.began_us.is_none());
    Span {
        trace_id: id.trace.to_vec(),
        span_id: run_span(&stored.trace_id).to_vec(),
        parent_span_id: id.root.to_vec(),
        name: run.workload.clone(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanoseconds(run.started_us),
        end_time_unix_nano: ended,
        attributes: of_run(stored),
        events: unplaced.map(|phase| unplaced_phase(phase, ended)).chain(failure(run, ended)).collect(),
        status: status(run),
        ..Span::default()
    }
}

fn of_run(stored: &StoredRun) -> Vec<KeyValue> {
    let run = &stored.run;
    let sum = |part: fn(&Phase) -> u64| run.phases.iter().map(part).fold(0, u64::saturating_add);
    let mut found = attributes::of_labels(&attributes::of_run(run));
    found.extend([
        attribute("longhaul.run.id", text(stored.trace_id.clone())),
        attribute("longhaul.run.number", whole(stored.number)),
        attribute("longhaul.run.slot", whole(run.slot)),
        attribute("longhaul.run.outcome", text(run.outcome.name())),
        attribute("longhaul.run.measured_seconds", number(run.seconds)),
        attribute("longhaul.run.bytes_read", whole(sum(|phase| phase.bytes_read))),
        attribute("longhaul.run.bytes_written", whole(sum(|phase| phase.bytes_written))),
        attribute("longhaul.run.operations", whole(sum(|phase| calls(phase, |stats| stats.latency.count())))),
        attribute("longhaul.run.errors", whole(sum(|phase| calls(phase, |stats| stats.errors)))),
        attribute(
            "longhaul.run.spans.sampled",
            whole(run.phases.iter().map(|phase| told(run, phase).len()).sum::<usize>()),
        ),
        attribute("longhaul.epoch", whole(stored.epoch)),
    ]);
    found.extend(error_type(run));
    found.extend(conditions(&run.conditions));
    found
}

fn calls(phase: &Phase, count: fn(&OperationStats) -> u64) -> u64 {
    phase.operations.iter().map(count).fold(0, u64::saturating_add)
}

fn conditions(conditions: &Conditions) -> Vec<KeyValue> {
    let known = [
        conditions.system.as_ref().map(|system| attribute("os.description", text(system.clone()))),
        conditions.load_average.map(|load| attribute("longhaul.host.load_average", number(load))),
        conditions.instrument_ns.map(|cost| attribute("longhaul.instrument_ns", number(cost))),
        conditions.io_policy.as_ref().map(|policy| attribute("longhaul.io_policy", text(policy.clone()))),
        conditions.free_bytes.map(|bytes| attribute("longhaul.target.free_bytes", whole(bytes))),
    ];
    // What was negotiated holds no address and no name: only telling options are kept.
    let options = conditions.negotiated.iter();
    let options =
        options.map(|(key, value)| attribute(format!("longhaul.mount.option.{key}"), text(value.clone())));
    known.into_iter().flatten().chain(options).collect()
}

/// What failed, in one word that has few values: the system's name for it, or the outcome.
fn error_type(run: &Run) -> Option<KeyValue> {
    let name = run.failure.as_ref().and_then(|failure| failure.error.clone());
    (run.outcome != Outcome::Ok)
        .then(|| attribute("error.type", text(name.unwrap_or_else(|| run.outcome.name().to_owned()))))
}

/// The message for people names a path, so the status says which call failed and how.
fn status(run: &Run) -> Option<Status> {
    let code = match run.outcome {
        Outcome::Ok => StatusCode::Ok,
        Outcome::Error | Outcome::Hung => StatusCode::Error,
        Outcome::Unavailable | Outcome::Void => return None,
    };
    let failure = run.failure.as_ref();
    let call = failure.and_then(|failure| failure.operation).map(|operation| format!(" in {operation}"));
    let error = failure.and_then(|failure| failure.error.as_ref()).map(|error| format!(": {error}"));
    let message = match code {
        StatusCode::Error => {
            format!("{}{}{}", run.outcome, call.unwrap_or_default(), error.unwrap_or_default())
        }
        _ => String::new(),
    };
    Some(Status { code: code.into(), message })
}

/// A hang, or another failure. When the call began that hung is not kept; that it had not returned at the cap is.
fn failure(run: &Run, at: u64) -> Option<Event> {
    let failure = run.failure.as_ref()?;
    let operation =
        failure.operation.map(|operation| attribute("longhaul.file.operation.name", text(operation.name())));
    Some(Event {
        time_unix_nano: at,
        name: format!("longhaul.{}", run.outcome),
        attributes: operation.into_iter().chain(error_type(run)).collect(),
        ..Event::default()
    })
}

fn phase_of(id: &RoundId, (stored, place): (&StoredRun, usize), phase: &Phase) -> Option<Span> {
    let began_us = phase.began_us?;
    let ended = after(began_us, phase.seconds);
    Some(Span {
        trace_id: id.trace.to_vec(),
        span_id: phase_span(&stored.trace_id, place).to_vec(),
        parent_span_id: run_span(&stored.trace_id).to_vec(),
        name: phase.name.clone(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanoseconds(began_us),
        end_time_unix_nano: ended,
        attributes: of_phase(phase),
        events: phase.operations.iter().map(|stats| operation(stats, ended)).collect(),
        status: (!phase.complete)
            .then(|| Status { code: StatusCode::Error.into(), message: "cut short".into() }),
        ..Span::default()
    })
}

/// The calls of a phase that are told one by one: its share of all that may be, the most telling first.
fn told<'run>(run: &Run, phase: &'run Phase) -> &'run [Call] {
    let share = MOST_CALLS / run.phases.len().max(1);
    let calls = if phase.began_us.is_some() { &phase.calls[..] } else { &[] };
    &calls[..calls.len().min(share)]
}

fn call_of(id: &RoundId, (stored, place, number): (&StoredRun, usize, usize), call: &Call) -> Option<Span> {
    let began_ns = nanoseconds(stored.run.phases.get(place)?.began_us?).saturating_add(call.after_ns);
    let failed = || Status { code: StatusCode::Error.into(), message: "failed".into() };
    Some(Span {
        trace_id: id.trace.to_vec(),
        span_id: call_span(&stored.trace_id, (place, number)).to_vec(),
        parent_span_id: phase_span(&stored.trace_id, place).to_vec(),
        name: call.operation.name().to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: began_ns,
        end_time_unix_nano: began_ns.saturating_add(call.nanoseconds),
        attributes: vec![
            attribute("longhaul.file.operation.name", text(call.operation.name())),
            attribute("longhaul.call.kept", text(call.kept.name())),
        ],
        status: call.is_error.then(failed),
        ..Span::default()
    })
}

fn of_phase(phase: &Phase) -> Vec<KeyValue> {
    let mut found = vec![
        attribute("longhaul.phase", text(phase.name.clone())),
        attribute("longhaul.cache.state", text(phase.cache.name())),
        attribute("longhaul.phase.seconds", number(phase.seconds)),
        attribute("longhaul.phase.complete", truth(phase.complete)),
        attribute("longhaul.phase.bytes_read", whole(phase.bytes_read)),
        attribute("longhaul.phase.bytes_written", whole(phase.bytes_written)),
    ];
    found.extend(phase.cold_by.map(|way| attribute("longhaul.cache.cold_by", text(way.name()))));
    found.extend(phase.figures.iter().map(figure));
    found
}

fn figure(figure: &Figure) -> KeyValue {
    attribute(format!("longhaul.figure.{}", figure.name), number(figure.value))
}

/// All calls of one kind in a phase: how many, how many failed, the usual and the slowest.
fn operation(stats: &OperationStats, at: u64) -> Event {
    let latency = &stats.latency;
    let microseconds = |key: &str, ns: Option<f64>| ns.map(|ns| attribute(key, number(ns / 1e3)));
    let is_many = latency.count() >= P99_NEEDS;
    let mut found = vec![
        attribute("longhaul.file.operation.name", text(stats.operation.name())),
        attribute("longhaul.file.operation.count", whole(latency.count())),
        attribute("longhaul.file.operation.errors", whole(stats.errors)),
        attribute("longhaul.file.operation.sum_us", number(latency.sum_ns() as f64 / 1e3)),
    ];
    let quantiles = [
        microseconds("longhaul.file.operation.min_us", latency.min_ns().map(|ns| ns as f64)),
        microseconds("longhaul.file.operation.p50_us", latency.quantile_ns(0.5)),
        microseconds("longhaul.file.operation.p99_us", latency.quantile_ns(0.99).filter(|_| is_many)),
        microseconds("longhaul.file.operation.max_us", latency.max_ns().map(|ns| ns as f64)),
    ];
    found.extend(quantiles.into_iter().flatten());
    Event { time_unix_nano: at, name: "longhaul.operation".to_owned(), attributes: found, ..Event::default() }
}

fn unplaced_phase(phase: &Phase, at: u64) -> Event {
    Event {
        time_unix_nano: at,
        name: "longhaul.phase".to_owned(),
        attributes: of_phase(phase),
        ..Event::default()
    }
}
