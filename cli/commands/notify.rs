//! `longhaul notify`: sends a test message to the channels of the configuration, and a heartbeat.

use std::process::ExitCode;
use std::time::Instant;

use longhaul_measure::platform::wall_clock;
use longhaul_model::Notification;
use longhaul_notify::{ChannelConfig, Delivery, Heartbeat, Message, Sender, origin, ping};
use longhaul_service::config::Config;
use longhaul_view::screens::notifications;
use serde_json::json;

use crate::arguments::{GlobalArgs, NotifyCommand};
use crate::errors::UsageError;
use crate::output_format::OutputFormat;
use crate::{exit, paths};

/// Printed with the test: the service may lack an environment variable that this program has.
const OWN_PROGRAM_NOTE: &str = "Sent by this program, not by the background service: `longhaul doctor` checks the channels from the service.";

/// Runs the subcommand.
pub fn run(shared: &GlobalArgs, command: NotifyCommand) -> anyhow::Result<ExitCode> {
    let NotifyCommand::Test { channel, json } = command;
    let config = paths::load_config(shared)?;
    let form = OutputFormat::from_json_flag(json);
    let mut all_well = true;
    for channel in chosen(&config, channel.as_deref())? {
        all_well &= test(channel, form);
    }
    if let Some(heartbeat) = config.notify.heartbeat.as_ref().filter(|_| channel.is_none()) {
        all_well &= test_heartbeat(heartbeat, form);
    }
    if form != OutputFormat::Json {
        crate::output::println!("{OWN_PROGRAM_NOTE}");
    }
    Ok(if all_well { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

fn chosen<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a ChannelConfig>, UsageError> {
    let channels = &config.notify.channels;
    let names: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
    match name {
        None if channels.is_empty() && config.notify.heartbeat.is_some() => Ok(vec![]),
        _ if channels.is_empty() => {
            let text = "no channel is configured: `longhaul config --print` shows how to add one to [notify]";
            Err(UsageError(text.to_owned()))
        }
        Some(name) if !names.contains(&name) => {
            Err(UsageError(format!("there is no channel `{name}`; known channels: {}", names.join(", "))))
        }
        _ => Ok(channels.iter().filter(|channel| name.is_none_or(|name| channel.name == name)).collect()),
    }
}

/// Sends the test message. Returns whether it was accepted.
fn test(channel: &ChannelConfig, form: OutputFormat) -> bool {
    let receiver = Receiver {
        name: &channel.name,
        kind: channel.kind(),
        address: channel.host().unwrap_or_default().to_owned(),
    };
    receiver.test(form, || match Sender::new(channel) {
        Ok(sender) => sender.send(&message()),
        Err(error) => Delivery::Failed { reason: error.to_string(), after: None },
    })
}

/// Requests the address of the heartbeat once. Returns whether the request was accepted.
fn test_heartbeat(heartbeat: &Heartbeat, form: OutputFormat) -> bool {
    let address = heartbeat.url.read().ok().and_then(|url| origin(url.reveal())).unwrap_or_default();
    let receiver = Receiver { name: "heartbeat", kind: "request", address };
    receiver.test(form, || {
        ping(&heartbeat.url)
            .unwrap_or_else(|error| Delivery::Failed { reason: error.to_string(), after: None })
    })
}

/// The receiver of a test.
struct Receiver<'a> {
    name: &'a str,
    kind: &'a str,
    /// Address without path and secrets.
    address: String,
}

impl Receiver<'_> {
    /// Sends and prints the outcome. Returns whether it was accepted.
    fn test(&self, form: OutputFormat, send: impl FnOnce() -> Delivery) -> bool {
        let began = Instant::now();
        let outcome = send();
        let is_well = outcome == Delivery::Accepted;
        let answer = outcome.reason().unwrap_or("accepted");
        let Self { name, kind, address } = self;
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        if form == OutputFormat::Json {
            crate::output::println!(
                "{}",
                json!({"channel": name, "kind": kind, "receiver": address, "ok": is_well, "answer": answer,
                    "milliseconds": milliseconds})
            );
        } else {
            let word = if is_well { "ok" } else { "failed" };
            crate::output::print_line(format_args!(
                "{word:<8} {name:<8} {kind} {address}: {answer} ({milliseconds:.0} ms)"
            ));
        }
        is_well
    }
}

fn message() -> Message {
    let Notification { kind, at, title, text, .. } = notifications::test(wall_clock());
    Message { kind, at, title, text, report: None }
}
