//! Converts a stored round to a trace: the round is the root span, its runs are children of the root, phases
//! are children of runs, and selected calls are children of phases: the first failed call, the slowest calls,
//! and a random sample, each with the reason for its selection.
//!
//! All timestamps are recorded ones. Data without a timestamp of their own become events: the histograms of a
//! phase are one event per operation at the end of the phase, and a phase without a recorded start is an event
//! at the end of its run.

use std::borrow::Cow;

use longhaul_model::{
    Call, Conditions, Event as LogEntry, Figure, LinkKind, MachineSnapshot, OperationStats, Outcome, Phase,
    Power, RoundStatus, Run, SHARE_KEYS,
};
use longhaul_store::{FinishedRound, StoredRun};
use opentelemetry::KeyValue;
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::attributes::{self, int};
use crate::identity::{RoundTrace, call_span_id, phase_span_id, run_span_id};
use crate::time::{nanoseconds, nanoseconds_after, system_time};

/// Maximum number of call spans per run. All other calls appear only in the statistics of the phase events.
const MAX_CALL_SPANS: usize = 200;
/// Minimum number of calls for which the 99th percentile is reported.
const MIN_CALLS_FOR_P99: u64 = 100;

/// Returns all spans of a round: the root first, each run before its phases.
pub fn spans(machine: &str, round: &FinishedRound) -> Vec<SpanData> {
    let id = RoundTrace::from_round(machine, round);
    let runs = round.runs.iter().flat_map(|stored| {
        let phases = stored.run.phases.iter().enumerate().flat_map(move |(index, phase)| {
            let calls = 0..selected_calls(&stored.run, phase).len();
            let calls = calls.filter_map(move |number| call_span(&id, stored, index, number));
            phase_span(&id, stored, index).into_iter().chain(calls)
        });
        std::iter::once(run_span(&id, stored)).chain(phases)
    });
    std::iter::once(root_span(&id, machine, round)).chain(runs).collect()
}

/// Identity and times of a span.
pub(crate) struct SpanFrame {
    /// Trace of the span.
    pub trace_id: TraceId,
    /// Id of the span.
    pub span_id: SpanId,
    /// Id of the parent; [`SpanId::INVALID`] for a root span.
    pub parent: SpanId,
    /// Name of the span.
    pub name: Cow<'static, str>,
    /// Start, in nanoseconds since 1970 UTC.
    pub began_ns: u64,
    /// End, in nanoseconds since 1970 UTC.
    pub ended_ns: u64,
}

impl SpanFrame {
    /// Returns an internal span with these attributes, without events, links and status.
    pub fn with_attributes(self, attributes: Vec<KeyValue>) -> SpanData {
        SpanData {
            span_context: span_context(self.trace_id, self.span_id),
            parent_span_id: self.parent,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: self.name,
            start_time: system_time(self.began_ns),
            end_time: system_time(self.ended_ns),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: attributes::scope(),
        }
    }
}

fn span_context(trace_id: TraceId, span_id: SpanId) -> SpanContext {
    SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, false, TraceState::NONE)
}

fn span_events(events: impl Iterator<Item = Event>) -> SpanEvents {
    let mut found = SpanEvents::default();
    found.events = events.collect();
    found
}

fn event(name: impl Into<Cow<'static, str>>, at_ns: u64, attributes: Vec<KeyValue>) -> Event {
    Event::new(name, system_time(at_ns), attributes, 0)
}

fn root_span(id: &RoundTrace, machine: &str, round: &FinishedRound) -> SpanData {
    let started = round.stored.round.started;
    let ended = round.stored.end.as_ref().map_or(started, |end| end.ended);
    let frame = SpanFrame {
        trace_id: id.trace_id,
        span_id: id.root,
        parent: SpanId::INVALID,
        name: "round".into(),
        began_ns: nanoseconds(started),
        // The wall clock may have been set back during the round.
        ended_ns: nanoseconds(ended.max(started)),
    };
    let mut links = SpanLinks::default();
    links.links = RoundTrace::from_previous_round(machine, round).iter().map(previous_round_link).collect();
    SpanData {
        events: span_events(round.events.iter().map(event_log_entry)),
        links,
        status: round_status(round),
        ..frame.with_attributes(round_attributes(round))
    }
}

fn previous_round_link(previous: &RoundTrace) -> Link {
    let context = span_context(previous.trace_id, previous.root);
    Link::new(context, vec![KeyValue::new("longhaul.span.link", "previous-round")], 0)
}

fn round_attributes(round: &FinishedRound) -> Vec<KeyValue> {
    let stored = &round.stored;
    let mut found = vec![
        KeyValue::new("longhaul.round.number", int(stored.number)),
        KeyValue::new("longhaul.scale", stored.round.scale.name()),
        KeyValue::new("longhaul.round.runs", int(round.runs.len())),
        KeyValue::new("longhaul.round.planned", int(stored.round.planned.len())),
    ];
    if let Some(end) = &stored.end {
        found.push(KeyValue::new("longhaul.round.status", end.status.name()));
        found.extend(end.reason.as_deref().map(reason_attribute));
    }
    found.extend(
        stored.round.scheduled.map(|at| KeyValue::new("longhaul.round.scheduled_us", int(at.as_us()))),
    );
    found.extend(stored.round.before.iter().flat_map(machine_attributes));
    found
}

/// Returns the reason of a round up to the first colon. The rest can contain a path and is not sent.
fn reason_attribute(reason: &str) -> KeyValue {
    let word = reason.split(':').next().unwrap_or_default();
    KeyValue::new("longhaul.round.reason", word.to_owned())
}

fn round_status(round: &FinishedRound) -> Status {
    let is_ok = round.stored.end.as_ref().is_some_and(|end| end.status == RoundStatus::Ok);
    if is_ok { Status::Ok } else { Status::Unset }
}

fn machine_attributes(before: &MachineSnapshot) -> Vec<KeyValue> {
    let link = before.link.as_ref();
    let kind = link.and_then(|link| match link.kind {
        LinkKind::Wired => Some("wired"),
        LinkKind::Wireless => Some("wifi"),
        LinkKind::Tunnel => Some("vpn"),
        LinkKind::Unknown => None,
    });
    [
        before.load_average.map(|load| KeyValue::new("longhaul.host.load_average", load)),
        before.processor_share.map(|share| KeyValue::new("longhaul.host.processor_share", share)),
        before.memory_available.map(|bytes| KeyValue::new("longhaul.host.memory_available", int(bytes))),
        before.power.map(|power| KeyValue::new("longhaul.host.on_battery", power == Power::Battery)),
        before.traffic.map(|rate| KeyValue::new("longhaul.host.traffic", rate)),
        kind.map(|kind| KeyValue::new("network.connection.type", kind)),
        link.and_then(|link| link.mtu).map(|mtu| KeyValue::new("longhaul.host.link.mtu", int(mtu))),
        link.and_then(|link| link.megabits)
            .map(|speed| KeyValue::new("longhaul.host.link.megabits", int(speed))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Converts an entry of the event log to a span event. Its details can contain paths and are not sent.
fn event_log_entry(entry: &LogEntry) -> Event {
    let target = entry.target.as_ref().map(|name| KeyValue::new("longhaul.target", name.to_string()));
    event(format!("longhaul.{}", entry.kind), nanoseconds(entry.at_us), target.into_iter().collect())
}

/// Returns the end of a run, in nanoseconds since 1970 UTC: the end of its last phase or the start plus the
/// duration of the run, whichever is later. For a hung run this is at least its timeout.
pub fn end_ns(run: &Run) -> u64 {
    let phases =
        run.phases.iter().filter_map(|phase| Some(nanoseconds_after(phase.began_us?, phase.seconds)));
    phases.chain([nanoseconds_after(run.started_us, run.seconds)]).max().unwrap_or_default()
}

fn run_span(id: &RoundTrace, stored: &StoredRun) -> SpanData {
    let run = &stored.run;
    let ended_ns = end_ns(run);
    let frame = SpanFrame {
        trace_id: id.trace_id,
        span_id: run_span_id(&stored.trace_id),
        parent: id.root,
        name: run.workload.clone().into(),
        began_ns: nanoseconds(run.started_us),
        ended_ns,
    };
    let without_start = run.phases.iter().filter(|phase| phase.began_us.is_none());
    let phases = without_start.map(|phase| event("longhaul.phase", ended_ns, phase_attributes(phase)));
    SpanData {
        events: span_events(phases.chain(failure_event(run, ended_ns))),
        status: run_status(run),
        ..frame.with_attributes(run_attributes(stored))
    }
}

fn run_attributes(stored: &StoredRun) -> Vec<KeyValue> {
    let run = &stored.run;
    let sum = |value: fn(&Phase) -> u64| attributes::sum_over_phases(run, value);
    let mut found = attributes::from_labels(&attributes::run_labels(run));
    found.extend([
        KeyValue::new("longhaul.run.id", stored.trace_id.clone()),
        KeyValue::new("longhaul.run.number", int(stored.number)),
        KeyValue::new("longhaul.run.slot", int(run.slot)),
        KeyValue::new("longhaul.run.outcome", run.outcome.name()),
        KeyValue::new("longhaul.run.measured_seconds", run.seconds),
        KeyValue::new("longhaul.run.bytes_read", int(sum(|phase| phase.bytes_read))),
        KeyValue::new("longhaul.run.bytes_written", int(sum(|phase| phase.bytes_written))),
        KeyValue::new(
            "longhaul.run.operations",
            int(sum(|phase| sum_over_operations(phase, |stats| stats.latency.count()))),
        ),
        KeyValue::new(
            "longhaul.run.errors",
            int(sum(|phase| sum_over_operations(phase, |stats| stats.errors))),
        ),
        KeyValue::new(
            "longhaul.run.spans.sampled",
            int(run.phases.iter().map(|phase| selected_calls(run, phase).len()).sum::<usize>()),
        ),
        KeyValue::new("longhaul.epoch", int(stored.epoch)),
    ]);
    found.extend(error_type(run));
    found.extend(condition_attributes(&run.conditions));
    found
}

fn sum_over_operations(phase: &Phase, count: fn(&OperationStats) -> u64) -> u64 {
    phase.operations.iter().map(count).fold(0, u64::saturating_add)
}

fn condition_attributes(conditions: &Conditions) -> Vec<KeyValue> {
    let known = [
        conditions.system.as_ref().map(|system| KeyValue::new("os.description", system.clone())),
        conditions.load_average.map(|load| KeyValue::new("longhaul.host.load_average", load)),
        conditions.timing_overhead_ns.map(|cost| KeyValue::new("longhaul.timing_overhead_ns", cost)),
        conditions.io_policy.as_ref().map(|policy| KeyValue::new("longhaul.io_policy", policy.clone())),
        conditions.free_bytes.map(|bytes| KeyValue::new("longhaul.target.free_bytes", int(bytes))),
    ];
    // The negotiated options contain no address and no name: only options that affect performance are stored, and tags of shares.
    let options = conditions.negotiated.iter().filter(|(key, _)| !SHARE_KEYS.contains(&key.as_str()));
    let options =
        options.map(|(key, value)| KeyValue::new(format!("longhaul.mount.option.{key}"), value.clone()));
    known.into_iter().flatten().chain(options).collect()
}

/// Returns the attribute `error.type` of a failed run: the error name of the operating system, or else the
/// outcome. Both have few different values.
fn error_type(run: &Run) -> Option<KeyValue> {
    let name = run.failure.as_ref().and_then(|failure| failure.error.clone());
    (run.outcome != Outcome::Ok)
        .then(|| KeyValue::new("error.type", name.unwrap_or_else(|| run.outcome.name().to_owned())))
}

/// Returns the span status of a run. The message is built from the failed operation and the error name, because
/// the stored failure message contains a path.
fn run_status(run: &Run) -> Status {
    match run.outcome {
        Outcome::Ok => Status::Ok,
        Outcome::Unavailable | Outcome::Void => Status::Unset,
        Outcome::Error | Outcome::Hung => {
            let failure = run.failure.as_ref();
            let call =
                failure.and_then(|failure| failure.operation).map(|operation| format!(" in {operation}"));
            let error = failure.and_then(|failure| failure.error.as_ref()).map(|error| format!(": {error}"));
            Status::error(format!("{}{}{}", run.outcome, call.unwrap_or_default(), error.unwrap_or_default()))
        }
    }
}

/// Returns an event for the failure of a run at its end. The start of a hung call is not recorded, only that
/// the call had not returned at the timeout.
fn failure_event(run: &Run, at_ns: u64) -> Option<Event> {
    let failure = run.failure.as_ref()?;
    let operation =
        failure.operation.map(|operation| KeyValue::new("longhaul.file.operation.name", operation.name()));
    let attributes = operation.into_iter().chain(error_type(run)).collect();
    Some(event(format!("longhaul.{}", run.outcome), at_ns, attributes))
}

fn phase_span(id: &RoundTrace, stored: &StoredRun, index: usize) -> Option<SpanData> {
    let phase = stored.run.phases.get(index)?;
    let began = phase.began_us?;
    let ended_ns = nanoseconds_after(began, phase.seconds);
    let frame = SpanFrame {
        trace_id: id.trace_id,
        span_id: phase_span_id(&stored.trace_id, index),
        parent: run_span_id(&stored.trace_id),
        name: phase.name.clone().into(),
        began_ns: nanoseconds(began),
        ended_ns,
    };
    Some(SpanData {
        events: span_events(phase.operations.iter().map(|stats| operation_event(stats, ended_ns))),
        status: if phase.complete { Status::Unset } else { Status::error("cut short") },
        ..frame.with_attributes(phase_attributes(phase))
    })
}

/// Returns the calls of a phase that become spans: the first ones, up to the phase's equal share of
/// [`MAX_CALL_SPANS`]. Calls are stored in order of importance.
fn selected_calls<'run>(run: &Run, phase: &'run Phase) -> &'run [Call] {
    let share = MAX_CALL_SPANS / run.phases.len().max(1);
    let calls = if phase.began_us.is_some() { &phase.calls[..] } else { &[] };
    &calls[..calls.len().min(share)]
}

fn call_span(id: &RoundTrace, stored: &StoredRun, index: usize, number: usize) -> Option<SpanData> {
    let phase = stored.run.phases.get(index)?;
    let call = phase.calls.get(number)?;
    let began_ns = nanoseconds(phase.began_us?).saturating_add(call.offset_ns);
    let frame = SpanFrame {
        trace_id: id.trace_id,
        span_id: call_span_id(&stored.trace_id, index, number),
        parent: phase_span_id(&stored.trace_id, index),
        name: call.operation.name().into(),
        began_ns,
        ended_ns: began_ns.saturating_add(call.duration_ns),
    };
    Some(SpanData {
        status: if call.is_error { Status::error("failed") } else { Status::Unset },
        ..frame.with_attributes(vec![
            KeyValue::new("longhaul.file.operation.name", call.operation.name()),
            KeyValue::new("longhaul.call.keep_reason", call.keep_reason.name()),
        ])
    })
}

fn phase_attributes(phase: &Phase) -> Vec<KeyValue> {
    let mut found = vec![
        KeyValue::new("longhaul.phase", phase.name.clone()),
        KeyValue::new("longhaul.cache.state", phase.cache.name()),
        KeyValue::new("longhaul.phase.seconds", phase.seconds),
        KeyValue::new("longhaul.phase.complete", phase.complete),
        KeyValue::new("longhaul.phase.bytes_read", int(phase.bytes_read)),
        KeyValue::new("longhaul.phase.bytes_written", int(phase.bytes_written)),
    ];
    found.extend(phase.cold_by.map(|method| KeyValue::new("longhaul.cache.cold_by", method.name())));
    found.extend(phase.figures.iter().map(figure_attribute));
    found
}

fn figure_attribute(figure: &Figure) -> KeyValue {
    KeyValue::new(format!("longhaul.figure.{}", figure.name), figure.value)
}

/// Returns an event with the statistics of one operation in a phase: counts, total time and percentiles.
fn operation_event(stats: &OperationStats, at_ns: u64) -> Event {
    let latency = &stats.latency;
    let microseconds = |key: &'static str, ns: Option<f64>| ns.map(|ns| KeyValue::new(key, ns / 1e3));
    let is_many = latency.count() >= MIN_CALLS_FOR_P99;
    let mut found = vec![
        KeyValue::new("longhaul.file.operation.name", stats.operation.name()),
        KeyValue::new("longhaul.file.operation.count", int(latency.count())),
        KeyValue::new("longhaul.file.operation.errors", int(stats.errors)),
        KeyValue::new("longhaul.file.operation.sum_us", latency.sum_ns() as f64 / 1e3),
    ];
    let quantiles = [
        microseconds("longhaul.file.operation.min_us", latency.min_ns().map(|ns| ns as f64)),
        microseconds("longhaul.file.operation.p50_us", latency.quantile_ns(0.5)),
        microseconds("longhaul.file.operation.p99_us", latency.quantile_ns(0.99).filter(|_| is_many)),
        microseconds("longhaul.file.operation.max_us", latency.max_ns().map(|ns| ns as f64)),
    ];
    found.extend(quantiles.into_iter().flatten());
    event("longhaul.operation", at_ns, found)
}
