//! `longhaul latency`, `stalls` and `events`: print what the probe measured and what happened.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use jiff::tz::TimeZone;
use longhaul_analysis::stalls::{StallCauses, explain_stalls};
use longhaul_analysis::summary::{LatencyRow, latency_rows, summarize_window};
use longhaul_measure::platform;
use longhaul_model::{ProbeStep, Resolution, Stall, TargetName, Timestamp};
use longhaul_store::{Reader, SampleFilter, StoredEvent};
use longhaul_view::screens::{self, events::Entry, stalls::StallList};
use longhaul_view::time::utc_offset_at;
use serde_json::json;

use crate::arguments::{GlobalArgs, HistoryArgs, LatencyArgs, StallArgs};
use crate::output_format::OutputFormat;
use crate::{exit, paths, render};

/// Prints latency and traffic of a window of time.
pub fn latency(shared: &GlobalArgs, arguments: &LatencyArgs) -> anyhow::Result<ExitCode> {
    let reader = paths::open_reader(shared)?;
    paths::check_known(shared, arguments.history.target.as_ref())?;
    let span = window(&arguments.history);
    let step = arguments.by.unwrap_or_else(|| Resolution::for_window(span.1.since(span.0)));
    let target = arguments.history.target.clone();
    let filter = SampleFilter { target, kind: None, step, since: span.0, until: span.1 };
    match arguments.by {
        Some(_) => print_series(&reader, &filter, OutputFormat::from_json_flag(arguments.history.json)),
        None => print_window(&reader, &filter, OutputFormat::from_json_flag(arguments.history.json)),
    }
}

fn print_window(reader: &Reader, filter: &SampleFilter, form: OutputFormat) -> anyhow::Result<ExitCode> {
    let window = longhaul_analysis::summary::SampledWindow {
        span: (filter.since, filter.until),
        probes: reader.probe_steps(filter)?,
        traffic: reader.traffic_steps(filter)?,
        machine: reader.machine_steps(filter)?,
        stalls: for_target(reader.stalls(filter.since)?, filter.target.as_ref()),
    };
    let sampled = summarize_window(&window);
    form.print(|| &sampled, || screens::latency::window(&sampled, filter.step))?;
    let samples = window.probes.len() + window.traffic.len() + window.machine.len();
    Ok(exit_code(samples))
}

/// Prints the latency step by step.
fn print_series(reader: &Reader, filter: &SampleFilter, form: OutputFormat) -> anyhow::Result<ExitCode> {
    let mut steps: BTreeMap<Timestamp, Vec<ProbeStep>> = BTreeMap::new();
    for probe in reader.probe_steps(filter)? {
        steps.entry(probe.at_us).or_default().push(probe);
    }
    let steps: Vec<(Timestamp, Vec<LatencyRow>)> =
        steps.into_iter().map(|(at, probes)| (at, latency_rows(&probes))).collect();
    if form == OutputFormat::Json {
        steps
            .iter()
            .for_each(|(at, rows)| crate::output::println!("{}", json!({ "at_us": at, "rows": rows })));
    } else {
        render::print(&screens::latency::series(&steps, &TimeZone::system()));
    }
    Ok(exit_code(steps.len()))
}

/// Prints the stalls in a window of time and their causes, or only the causes.
pub fn stalls(shared: &GlobalArgs, arguments: &StallArgs) -> anyhow::Result<ExitCode> {
    let StallArgs { history, causes: only_causes } = arguments;
    let span = window(history);
    let reader = paths::open_reader(shared)?;
    paths::check_known(shared, history.target.as_ref())?;
    let causes = stall_causes(&reader, history, span)?;
    match (history.json, only_causes) {
        (true, true) => causes.named.iter().for_each(|named| crate::output::println!("{}", json!(named))),
        (true, false) => causes.stalls.iter().for_each(|stall| crate::output::println!("{}", json!(stall))),
        (false, true) => render::print(&screens::stall_causes::only(&causes.named)),
        (false, false) => {
            render::print(&screens::stalls::stalls(&causes, span, StallList::All, &TimeZone::system()));
        }
    }
    Ok(exit::OK)
}

fn stall_causes(
    reader: &Reader,
    arguments: &HistoryArgs,
    span: (Timestamp, Timestamp),
) -> anyhow::Result<StallCauses> {
    let records = reader.stall_records(span.0, span.1)?;
    let mut causes = explain_stalls(&records, utc_offset_at(span.1, &TimeZone::system()));
    let is_meant = |target: &TargetName| arguments.target.as_ref().is_none_or(|meant| meant == target);
    causes.stalls.retain(|explained| is_meant(&explained.stall.target));
    causes.named.retain(|named| is_meant(&named.target));
    Ok(causes)
}

/// Prints the events in a window of time.
pub fn events(shared: &GlobalArgs, arguments: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let reader = paths::open_reader(shared)?;
    paths::check_known(shared, arguments.target.as_ref())?;
    let mut events = reader.events(Some(window(arguments).0))?;
    events.retain(|StoredEvent { event, .. }| {
        arguments.target.is_none() || event.target.is_none() || event.target == arguments.target
    });
    if arguments.json {
        let print = |stored| crate::output::println!("{}", json!(stored));
        events.into_iter().for_each(print);
    } else {
        let entries: Vec<Entry> = events.into_iter().map(|stored| Entry::Event(stored.event)).collect();
        let window = Duration::from_secs(arguments.since.0.into());
        render::print(&screens::events::recent_events(entries, window, &TimeZone::system()));
    }
    Ok(exit::OK)
}

fn for_target(stalls: Vec<Stall>, target: Option<&TargetName>) -> Vec<Stall> {
    stalls.into_iter().filter(|stall| target.is_none_or(|target| stall.target == *target)).collect()
}

fn window(window: &HistoryArgs) -> (Timestamp, Timestamp) {
    let now = platform::wall_clock();
    (now - Duration::from_secs(window.since.0.into()), now)
}

/// Returns the exit code, which tells a script whether there was any data.
fn exit_code(samples: usize) -> ExitCode {
    if samples == 0 { ExitCode::from(exit::NO_DATA) } else { exit::OK }
}
