//! `longhaul telemetry`: checks the OpenTelemetry collector, or sends stored data to it again.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use longhaul_export::Window;
use longhaul_measure::platform::wall_clock;
use longhaul_model::Timestamp;
use longhaul_service::config::Config;
use longhaul_store::{Reader, Signal};
use longhaul_telemetry::batch::{Batch, BatchBuilder};
use longhaul_telemetry::settings::ExportSettings;
use longhaul_telemetry::transport::response::ExportResult;
use longhaul_telemetry::transport::sender::Sender;
use longhaul_view::screens;
use serde_json::json;

use crate::arguments::{GlobalArgs, TelemetryCommand};
use crate::errors::UsageError;
use crate::output_format::OutputFormat;
use crate::{exit, paths};

/// Maximum number of attempts to send a batch that the collector asks to retry.
const MAX_ATTEMPTS: u32 = 5;
/// Delay before the second attempt; it doubles with each further attempt.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Maximum delay between two attempts, even if the collector asks for more.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Printed with the check: on macOS, a program started in Terminal may access the local network while the service
/// may not.
const LOCAL_NETWORK_NOTE: &str = "Sent by this program, not by the background service: `longhaul status` shows the state of its own export.";
/// Maximum number of items in one batch.
const MAX_ITEMS: usize = 32;

/// Runs the subcommand.
pub fn run(shared: &GlobalArgs, command: TelemetryCommand) -> anyhow::Result<ExitCode> {
    match command {
        TelemetryCommand::Check { json } => check(shared, OutputFormat::from_json_flag(json)),
        TelemetryCommand::Replay { from, to } => replay(shared, &from, to.as_deref()),
    }
}

fn settings(config: &Config) -> anyhow::Result<ExportSettings> {
    let read = ExportSettings::resolve(&config.telemetry, &config.telemetry_environment());
    read.map_err(|error| UsageError(error.to_string()))?.ok_or_else(|| {
        let text = "no collector is configured: set `endpoint` in [telemetry] of the configuration, or OTEL_EXPORTER_OTLP_ENDPOINT";
        UsageError(text.to_owned()).into()
    })
}

/// Returns the exported signals, each with a sender for its endpoint.
fn senders(settings: &ExportSettings) -> anyhow::Result<Vec<(Signal, Sender)>> {
    let routes = Signal::ALL.into_iter().filter_map(|signal| Some((signal, settings.endpoint(signal)?)));
    routes.map(|(signal, route)| Ok((signal, Sender::new(route)?))).collect()
}

fn batch_builder(signal: Signal, machine: &str, settings: &ExportSettings) -> BatchBuilder {
    BatchBuilder::new(signal, machine, &settings.attributes, settings.temporality)
}

fn check(shared: &GlobalArgs, form: OutputFormat) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let settings = settings(&config)?;
    // The check also has to work before the first run, when there is no machine id yet.
    let known = paths::database(shared, &config).and_then(|path| Ok(Reader::open(&path)?.machine_id()?));
    let machine = known.ok().flatten().unwrap_or_else(|| "check".to_owned());
    let mut all_well = true;
    // Samples use the endpoint of the metrics, so a check of it would be a duplicate.
    for (signal, sender) in senders(&settings)?.into_iter().filter(|(signal, _)| *signal != Signal::Samples) {
        let message = batch_builder(signal, &machine, &settings).test_message(wall_clock());
        let began = Instant::now();
        let answer = sender.send(&message);
        let (is_well, text) = describe(&answer);
        all_well &= is_well;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        if form == OutputFormat::Json {
            let (name, address) = (signal.name(), sender.display_url());
            crate::output::println!(
                "{}",
                json!({"signal": name, "endpoint": address, "ok": is_well, "answer": text, "milliseconds": milliseconds})
            );
        } else {
            let word = if is_well { "ok" } else { "failed" };
            let (name, address) = (signal.name(), sender.display_url());
            crate::output::print_line(format_args!(
                "{word:<8} {name:<8} {address}: {text} ({milliseconds:.0} ms)"
            ));
        }
    }
    if form != OutputFormat::Json {
        crate::output::println!("{LOCAL_NETWORK_NOTE}");
    }
    Ok(if all_well { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

fn describe(answer: &ExportResult) -> (bool, String) {
    match answer {
        ExportResult::Accepted => (true, "accepted".to_owned()),
        ExportResult::PartiallyAccepted { rejected, reason } => {
            (false, format!("{rejected} values were rejected: {reason}"))
        }
        ExportResult::RetryLater { reason, .. } => (false, reason.clone()),
        ExportResult::Rejected { reason } => (false, format!("rejected: {reason}")),
    }
}

fn replay(shared: &GlobalArgs, from: &str, to: Option<&str>) -> anyhow::Result<ExitCode> {
    let window = Window::between(Some(from), to, &TimeZone::system());
    let window = window.map_err(|error| UsageError(error.to_string()))?;
    let config = paths::load_config(shared)?;
    let settings = settings(&config)?;
    let reader = Reader::open(&paths::database(shared, &config)?)?;
    let from = window.from.unwrap_or(Timestamp::MIN);
    let to = window.to.unwrap_or(Timestamp::MAX);
    let machine = reader.machine_id()?.unwrap_or_default();
    let mut rejected = 0;
    for (signal, sender) in senders(&settings)? {
        let items = reader.items_between(signal, from, to)?;
        let replayed = replay_signal(&reader, &items, batch_builder(signal, &machine, &settings), &sender)?;
        rejected += replayed.rejected;
        crate::output::print_line(format_args!(
            "{:<8} {}: {} {}, {} {}, {} messages rejected",
            signal.name(),
            sender.display_url(),
            items.len(),
            screens::status::item_unit(signal.name()),
            replayed.values,
            if signal == Signal::Traces { "spans" } else { "points" },
            replayed.rejected
        ));
    }
    Ok(if rejected == 0 { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

/// Numbers of values that were sent, and of batches that were rejected.
#[derive(Default)]
struct ReplayCounts {
    values: usize,
    rejected: usize,
}

fn replay_signal(
    reader: &Reader,
    mut items: &[i64],
    mut builder: BatchBuilder,
    sender: &Sender,
) -> anyhow::Result<ReplayCounts> {
    let mut replayed = ReplayCounts::default();
    while let Some(batch) = builder.build(reader, &items[..items.len().min(MAX_ITEMS)])? {
        let last = batch.items.last().copied();
        match send_with_retry(sender, &batch)? {
            ExportResult::Accepted => replayed.values += batch.value_count,
            answer => {
                replayed.rejected += 1;
                crate::output::eprintln!("{:?}: {}", batch.items, describe(&answer).1);
            }
        }
        let after = items.iter().position(|number| Some(*number) > last).unwrap_or(items.len());
        (items, builder) = (&items[after..], batch.next_builder);
    }
    Ok(replayed)
}

/// Sends a batch, and repeats it if the collector asks to retry.
fn send_with_retry(sender: &Sender, batch: &Batch) -> anyhow::Result<ExportResult> {
    let mut wait = FIRST_WAIT;
    for _ in 1..MAX_ATTEMPTS {
        match sender.send(&batch.message) {
            ExportResult::RetryLater { after, .. } => std::thread::sleep(after.unwrap_or(wait).min(MAX_WAIT)),
            answer => return Ok(answer),
        }
        wait *= 2;
    }
    match sender.send(&batch.message) {
        ExportResult::RetryLater { reason, .. } => {
            anyhow::bail!(
                "{} is not accepting data: {reason}. Try again later; everything sent so far is kept",
                sender.display_url()
            )
        }
        answer => Ok(answer),
    }
}
