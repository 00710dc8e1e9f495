//! `longhaul otel`: the collector that rounds are exported to.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use longhaul_export::Window;
use longhaul_measure::platform::wall_clock_us;
use longhaul_service::config::Config;
use longhaul_store::{Reader, Signal};
use longhaul_telemetry::answer::{Answer, Expected};
use longhaul_telemetry::batch::{Batch, Maker};
use longhaul_telemetry::environment::Environment;
use longhaul_telemetry::sender::Sender;
use longhaul_telemetry::settings::Settings;
use serde_json::json;

use crate::arguments::{OtelCommand, Shared};
use crate::{Usage, exit, places, render};

use super::list::Form;

/// How often a message is sent that the collector wants later.
const ATTEMPTS: u32 = 5;
/// The wait before the second attempt; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait that a collector is granted.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// What a check does not say: on macOS a program in Terminal may use the local network, and the service may not.
const SCOPE: &str =
    "Sent by this program, not by the background service: `longhaul status` says how its own export goes.";
/// Items that are looked at for a message.
const MOST_ITEMS: usize = 32;

/// Does what the command says.
pub fn run(shared: &Shared, command: OtelCommand) -> anyhow::Result<ExitCode> {
    match command {
        OtelCommand::Check { json } => check(shared, Form::of(json)),
        OtelCommand::Replay { from, to } => replay(shared, &from, to.as_deref()),
    }
}

fn settings(config: &Config) -> anyhow::Result<Settings> {
    let read = Settings::of(&config.telemetry, &Environment::of_process());
    read.map_err(|error| Usage(error.to_string()))?.ok_or_else(|| {
        let text = "no collector is named: set `endpoint` in [telemetry] of the configuration, or OTEL_EXPORTER_OTLP_ENDPOINT";
        Usage(text.to_owned()).into()
    })
}

/// The signals that are exported, each with its way.
fn senders(settings: &Settings) -> anyhow::Result<Vec<(Signal, Sender)>> {
    let routes = Signal::ALL.into_iter().filter_map(|signal| Some((signal, settings.route(signal)?)));
    routes.map(|(signal, route)| Ok((signal, Sender::new(route, Expected::of(signal))?))).collect()
}

fn maker(signal: Signal, machine: &str, settings: &Settings) -> Maker {
    Maker::new(signal, machine, &settings.attributes, settings.temporality)
}

fn check(shared: &Shared, form: Form) -> anyhow::Result<ExitCode> {
    let config = places::config(shared)?;
    let settings = settings(&config)?;
    // It is of use before anything was measured.
    let known = places::database(shared, &config).and_then(|path| Ok(Reader::open(&path)?.machine_id()?));
    let machine = known.ok().flatten().unwrap_or_else(|| "check".to_owned());
    let mut all_well = true;
    // Samples go the way of metrics.
    for (signal, sender) in senders(&settings)?.into_iter().filter(|(signal, _)| *signal != Signal::Samples) {
        let message = maker(signal, &machine, &settings).greeting(wall_clock_us());
        let began = Instant::now();
        let answer = sender.send(&message);
        let (is_well, said) = verdict(&answer);
        all_well &= is_well;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        if form == Form::Json {
            let (name, address) = (signal.name(), sender.address());
            anstream::println!(
                "{}",
                json!({"signal": name, "endpoint": address, "ok": is_well, "answer": said, "milliseconds": milliseconds})
            );
        } else {
            let word = if is_well { "ok" } else { "failed" };
            let (name, address) = (signal.name(), sender.address());
            anstream::println!("{word:<8} {name:<8} {address}: {said} ({milliseconds:.0} ms)");
        }
    }
    if form != Form::Json {
        anstream::println!("{SCOPE}");
    }
    Ok(if all_well { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

fn verdict(answer: &Answer) -> (bool, String) {
    match answer {
        Answer::Taken => (true, "taken".to_owned()),
        Answer::TakenInPart { refused, why } => (false, format!("{refused} values were not taken: {why}")),
        Answer::Later { why, .. } => (false, why.clone()),
        Answer::Refused { why } => (false, format!("refused: {why}")),
    }
}

fn replay(shared: &Shared, from: &str, to: Option<&str>) -> anyhow::Result<ExitCode> {
    let window = Window::between(Some(from), to, &TimeZone::system());
    let window = window.map_err(|error| Usage(error.to_string()))?;
    let config = places::config(shared)?;
    let settings = settings(&config)?;
    let reader = Reader::open(&places::database(shared, &config)?)?;
    let (from_us, to_us) = (window.from_us.unwrap_or(i64::MIN), window.to_us.unwrap_or(i64::MAX));
    let machine = reader.machine_id()?.unwrap_or_default();
    let mut refused = 0;
    for (signal, sender) in senders(&settings)? {
        let items = reader.items_between(signal, from_us, to_us)?;
        let replayed = replay_signal(&reader, &items, (maker(signal, &machine, &settings), &sender))?;
        refused += replayed.refused;
        anstream::println!(
            "{:<8} {}: {} {}, {} {}, {} messages refused",
            signal.name(),
            sender.address(),
            items.len(),
            render::status::items(signal.name()),
            replayed.values,
            if signal == Signal::Traces { "spans" } else { "points" },
            replayed.refused
        );
    }
    Ok(if refused == 0 { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

/// What was sent.
#[derive(Default)]
struct Replayed {
    values: usize,
    refused: usize,
}

fn replay_signal(
    reader: &Reader,
    mut items: &[i64],
    (mut maker, sender): (Maker, &Sender),
) -> anyhow::Result<Replayed> {
    let mut replayed = Replayed::default();
    while let Some(batch) = maker.batch(reader, &items[..items.len().min(MOST_ITEMS)])? {
        let last = batch.items.last().copied();
        match insist(sender, &batch)? {
            Answer::Taken => replayed.values += batch.values,
            answer => {
                replayed.refused += 1;
                anstream::eprintln!("{:?}: {}", batch.items, verdict(&answer).1);
            }
        }
        let after = items.iter().position(|number| Some(*number) > last).unwrap_or(items.len());
        (items, maker) = (&items[after..], batch.next);
    }
    Ok(replayed)
}

/// Sends a message, several times if the collector wants it later.
fn insist(sender: &Sender, batch: &Batch) -> anyhow::Result<Answer> {
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match sender.send(&batch.message) {
            Answer::Later { after, .. } => std::thread::sleep(after.unwrap_or(wait).min(LONGEST_WAIT)),
            answer => return Ok(answer),
        }
        wait *= 2;
    }
    match sender.send(&batch.message) {
        Answer::Later { why, .. } => {
            anyhow::bail!(
                "{} does not take it: {why}. Try again when it does; what was sent stays",
                sender.address()
            )
        }
        answer => Ok(answer),
    }
}
