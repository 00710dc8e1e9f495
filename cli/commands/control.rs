//! `longhaul status`, `pause`, `resume`, `round`, `dashboard` and `service log-level`: send requests to the
//! service.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use jiff::tz::TimeZone;
use longhaul_service::status::{State, Status, TargetState, TargetStatus};
use longhaul_view::screens;
use longhaul_view::units::duration;
use serde_json::{Value, json};

use crate::arguments::{GlobalArgs, PauseArgs, StatusArgs};
use crate::client::connect;
use crate::errors::{self, UsageError};
use crate::output_format::OutputFormat;
use crate::{exit, output, paths};

/// Interval at which `status --watch --json` prints a status.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Prints the status, once or repeatedly.
pub fn status(shared: &GlobalArgs, arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    match (arguments.watch, arguments.json) {
        (true, false) => super::watch::run(shared),
        (true, true) => watch_as_json(shared),
        (false, as_json) => {
            let status = connect(shared)?.status()?;
            let screen = || screens::status::status(&status, &TimeZone::system());
            OutputFormat::from_json_flag(as_json).print(|| &status, screen)?;
            Ok(exit_code(&status))
        }
    }
}

/// Prints a status every few seconds until the reader closes the pipe. A restarted service is found again; while none answers, `null`
/// is printed.
fn watch_as_json(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let mut status = Some(connect(shared)?.status()?);
    while output::write_if_read(format_args!("{}\n", json!(status))) {
        std::thread::sleep(POLL_INTERVAL);
        let answer = connect(shared).and_then(|client| Ok(client.status()?));
        if let (Some(_), Err(error)) = (&status, &answer) {
            output::eprintln!("longhaul: {}", errors::text(error));
        }
        status = answer.ok();
    }
    Ok(exit::OK)
}

/// Returns the exit code, which tells a script whether all targets can be measured.
fn exit_code(status: &Status) -> ExitCode {
    let is_well = |target: &TargetStatus| {
        let is_usable = matches!(target.state, TargetState::Measuring { .. } | TargetState::Waiting { .. });
        is_usable && target.failed_tasks.is_empty()
    };
    let is_in_safe_mode = status.state == State::SafeMode;
    let all_well = status.problems.is_empty() && status.targets.iter().all(is_well);
    if all_well && !is_in_safe_mode { exit::OK } else { ExitCode::from(exit::RUN_FAILED) }
}

/// Pauses rounds for a time, or until `resume`.
pub fn pause(shared: &GlobalArgs, arguments: &PauseArgs) -> anyhow::Result<ExitCode> {
    let seconds = arguments.duration.map(|duration| duration.0);
    send_command(shared, "pause", &json!({ "seconds": seconds }))?;
    let length = seconds.map(|seconds| format!(" for {}", duration(seconds.into()))).unwrap_or_default();
    crate::output::println!(
        "Paused{length}. A round in progress is cut short. `longhaul resume` ends the pause."
    );
    Ok(exit::OK)
}

/// Resumes rounds.
pub fn resume(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    send_command(shared, "resume", &json!({}))?;
    crate::output::println!("Resumed. `longhaul status` shows when the next round starts.");
    Ok(exit::OK)
}

/// Starts a round.
pub fn start_round(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let client = connect(shared)?;
    let state = client.status()?.state;
    if state == State::Idle {
        let message = "no target is configured, so there is nothing to measure: run `longhaul init`";
        return Err(UsageError(message.to_owned()).into());
    }
    client.send_command("round", &json!({}))?;
    let answer = match state {
        State::Paused { .. } => "A round starts now, although rounds are paused; the pause stays.",
        _ => "A round starts as soon as none is in progress.",
    };
    crate::output::println!("{answer} `longhaul status --watch` shows it.");
    Ok(exit::OK)
}

/// Prints the URL of the dashboard with a key for one browser, and nothing else, for `open "$(longhaul
/// dashboard)"`.
pub fn dashboard(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let url = connect(shared)?.dashboard_url()?;
    if let Some(address) = paths::load_config(shared).unwrap_or_default().web.address {
        let host = SocketAddr::new(address, 0).to_string();
        let host = host.trim_end_matches(":0");
        crate::output::eprintln!("longhaul: on another machine, open it with {host} instead of 127.0.0.1");
    }
    crate::output::println!("{url}");
    Ok(exit::OK)
}

/// Changes the log level of the service.
pub fn log_level(shared: &GlobalArgs, level: &str) -> anyhow::Result<ExitCode> {
    send_command(shared, "log-level", &json!({ "level": level }))?;
    Ok(exit::OK)
}

fn send_command(shared: &GlobalArgs, what: &str, order: &Value) -> anyhow::Result<()> {
    Ok(connect(shared)?.send_command(what, order)?)
}
