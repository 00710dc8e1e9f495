//! `longhaul status`, `pause`, `resume` and `round now`: talk to the service.

use std::process::ExitCode;
use std::time::Duration;

use longhaul_service::status::{State, Status, TargetState};
use serde_json::{Value, json};

use crate::arguments::{Pause, Shared, StatusArguments};
use crate::client::Client;
use crate::render::status;
use crate::{exit, places};

/// How often a status that is watched is asked for.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// The service of the database that is meant.
pub fn client(shared: &Shared) -> anyhow::Result<Client> {
    // A configuration that is broken must not keep anybody from the service that goes on with the one before.
    let config = places::config(shared).unwrap_or_default();
    Ok(Client::find(&places::database(shared, &config)?)?)
}

/// Prints the status, once or again and again.
pub fn show(shared: &Shared, arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    loop {
        let status = client(shared)?.status()?;
        if arguments.json {
            anstream::println!(
                "{}",
                if arguments.watch {
                    json!(status).to_string()
                } else {
                    serde_json::to_string_pretty(&status)?
                }
            );
        } else {
            let clear = if arguments.watch { "\x1b[H\x1b[2J" } else { "" };
            anstream::print!("{clear}{}", status::status(&status));
        }
        if !arguments.watch {
            return Ok(code(&status));
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// A script learns from the exit code whether everything measures as it should.
fn code(status: &Status) -> ExitCode {
    let is_well =
        |state: &TargetState| matches!(state, TargetState::Measuring { .. } | TargetState::Waiting { .. });
    let is_safe = status.state == State::SafeMode;
    let all_well = status.problems.is_empty() && status.targets.iter().all(|target| is_well(&target.state));
    if all_well && !is_safe { exit::OK } else { ExitCode::from(exit::RUN_FAILED) }
}

/// Pauses: no rounds until the time is over, or until `resume`.
pub fn pause(shared: &Shared, arguments: &Pause) -> anyhow::Result<ExitCode> {
    let seconds = arguments.duration.map(|duration| duration.0);
    order(shared, "pause", &json!({ "seconds": seconds }))?;
    match arguments.duration {
        Some(_) => anstream::println!(
            "Paused. A round in progress is cut short; `longhaul resume` goes on before the time is over."
        ),
        None => anstream::println!("Paused. A round in progress is cut short; `longhaul resume` goes on."),
    }
    Ok(exit::OK)
}

/// Goes on.
pub fn resume(shared: &Shared) -> anyhow::Result<ExitCode> {
    order(shared, "resume", &json!({}))?;
    anstream::println!("Rounds are made again; `longhaul status` says when the next one is.");
    Ok(exit::OK)
}

/// Makes a round now.
pub fn round_now(shared: &Shared) -> anyhow::Result<ExitCode> {
    order(shared, "round", &json!({}))?;
    anstream::println!("A round begins as soon as none is in progress; `longhaul top` shows it.");
    Ok(exit::OK)
}

/// Prints where the page is, with a key for one browser, and nothing else: `open "$(longhaul page)"`.
pub fn page(shared: &Shared) -> anyhow::Result<ExitCode> {
    anstream::println!("{}", client(shared)?.page()?);
    Ok(exit::OK)
}

/// Changes what the service's log says.
pub fn log_level(shared: &Shared, level: &str) -> anyhow::Result<ExitCode> {
    order(shared, "log-level", &json!({ "level": level }))?;
    Ok(exit::OK)
}

fn order(shared: &Shared, what: &str, order: &Value) -> anyhow::Result<()> {
    Ok(client(shared)?.order(what, order)?)
}
