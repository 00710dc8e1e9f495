//! `longhaul samples`, `stalls` and `events`: how it was, not how fast it could be.

use std::collections::BTreeMap;
use std::process::ExitCode;

use jiff::tz::TimeZone;
use longhaul_measure::model::{ProbeStep, Stall, Step};
use longhaul_measure::platform;
use longhaul_measure::summary::{Felt, felt, sampled};
use longhaul_store::{Reader, SampleFilter, StoredEvent};
use serde_json::json;

use crate::arguments::{Samples, Shared, Window};
use crate::render::{journal, sampling};
use crate::{exit, places};

use super::list::Form;

/// Prints what was sampled.
pub fn samples(shared: &Shared, arguments: &Samples) -> anyhow::Result<ExitCode> {
    let reader = places::reader(shared)?;
    let span_us = span(&arguments.window);
    let step = arguments.by.map_or_else(|| Step::for_window((span_us.1 - span_us.0) / 1_000_000), Step::from);
    let target = arguments.window.target.clone();
    let filter = SampleFilter { target, kind: None, step, since_us: span_us.0, until_us: span_us.1 };
    match arguments.by {
        Some(_) => series(&reader, &filter, Form::of(arguments.window.json)),
        None => whole(&reader, &filter, Form::of(arguments.window.json)),
    }
}

fn whole(reader: &Reader, filter: &SampleFilter, form: Form) -> anyhow::Result<ExitCode> {
    let window = longhaul_measure::summary::Window {
        span_us: (filter.since_us, filter.until_us),
        probes: reader.probes(filter)?,
        traffic: reader.traffic(filter)?,
        machine: reader.machine(filter)?,
        stalls: of_window(reader.stalls(filter.since_us)?, filter.target.as_ref()),
    };
    let sampled = sampled(&window);
    if form == Form::Json {
        anstream::println!("{}", serde_json::to_string_pretty(&sampled)?);
    } else {
        anstream::print!("{}", sampling::sampled(&sampled, filter.step));
    }
    let samples = window.probes.len() + window.traffic.len() + window.machine.len();
    Ok(code(samples))
}

/// How it felt, step by step.
fn series(reader: &Reader, filter: &SampleFilter, form: Form) -> anyhow::Result<ExitCode> {
    let mut steps: BTreeMap<i64, Vec<ProbeStep>> = BTreeMap::new();
    for probe in reader.probes(filter)? {
        steps.entry(probe.at_us).or_default().push(probe);
    }
    let steps: Vec<(i64, Vec<Felt>)> =
        steps.into_iter().map(|(at_us, probes)| (at_us, felt(&probes))).collect();
    if form == Form::Json {
        steps
            .iter()
            .for_each(|(at_us, felt)| anstream::println!("{}", json!({ "at_us": at_us, "felt": felt })));
    } else {
        anstream::print!("{}", sampling::series(&steps, &TimeZone::system()));
    }
    Ok(code(steps.len()))
}

/// Prints the ledger of waits.
pub fn stalls(shared: &Shared, arguments: &Window) -> anyhow::Result<ExitCode> {
    let span_us = span(arguments);
    let stalls = of_window(places::reader(shared)?.stalls(span_us.0)?, arguments.target.as_ref());
    if arguments.json {
        stalls.iter().for_each(|stall| anstream::println!("{}", json!(stall)));
    } else {
        anstream::print!("{}", sampling::stalls(&stalls, span_us, &TimeZone::system()));
    }
    Ok(exit::OK)
}

/// Prints the journal.
pub fn events(shared: &Shared, arguments: &Window) -> anyhow::Result<ExitCode> {
    let events = places::reader(shared)?.events(Some(span(arguments).0))?;
    let is_meant = |stored: &&StoredEvent| {
        arguments.target.is_none() || stored.event.target.is_none() || stored.event.target == arguments.target
    };
    for stored in events.iter().filter(is_meant) {
        if arguments.json {
            anstream::println!("{}", json!({ "number": stored.number, "event": stored.event }));
        } else {
            anstream::println!("{}", journal::event(&stored.event, &TimeZone::system()));
        }
    }
    Ok(exit::OK)
}

fn of_window(stalls: Vec<Stall>, target: Option<&longhaul_measure::model::TargetName>) -> Vec<Stall> {
    stalls.into_iter().filter(|stall| target.is_none_or(|target| stall.target == *target)).collect()
}

fn span(window: &Window) -> (i64, i64) {
    let now_us = platform::wall_clock_us();
    (now_us - i64::from(window.since.0) * 1_000_000, now_us)
}

/// A script learns from the exit code whether there was anything.
fn code(samples: usize) -> ExitCode {
    if samples == 0 { ExitCode::from(exit::NO_DATA) } else { exit::OK }
}
