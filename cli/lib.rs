//! The command line program of longhaul: it parses arguments, runs a command and prints its result. Nothing is
//! computed here.

mod arguments;
mod client;
mod commands;
mod paths;
mod progress;
mod render;

use std::process::ExitCode;

use longhaul_model::Hint;
use longhaul_service::config::ConfigError;

use client::ClientError;

/// Exit codes, for scripts.
pub mod exit {
    use std::process::ExitCode;

    /// The command succeeded.
    pub const OK: ExitCode = ExitCode::SUCCESS;
    /// An internal error, or an error of this machine.
    pub const ERROR: u8 = 1;
    /// The command line or the configuration is invalid.
    pub const USAGE: u8 = 2;
    /// At least one run, target or check failed.
    pub const RUN_FAILED: u8 = 3;
    /// No background service is running.
    pub const NO_SERVICE: u8 = 4;
    /// There is not enough data for an answer.
    pub const NO_DATA: u8 = 5;
}

/// Runs the command of the command line, and returns the exit code.
pub fn main() -> ExitCode {
    let arguments = arguments::parse();
    init_log();
    // If the limit cannot be raised, only the largest presets fail, because they open the most files.
    if let Err(error) = longhaul_measure::platform::raise_descriptor_limit() {
        tracing::warn!(%error, "setrlimit: the limit of open files stays as it is");
    }
    match commands::run(arguments) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("longhaul: {error:#}");
            if let Some(hint) = hint(&error) {
                anstream::eprintln!("{hint}");
            }
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Sets up logging to standard error. Only errors are shown unless LONGHAUL_LOG sets another level.
fn init_log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let is_usage =
        error.downcast_ref::<ConfigError>().is_some() || error.downcast_ref::<UsageError>().is_some();
    if let Some(ClientError::NotRunning(_)) = error.downcast_ref::<ClientError>() {
        return exit::NO_SERVICE;
    }
    match error.downcast_ref::<longhaul_store::Error>() {
        Some(longhaul_store::Error::NoDatabase { .. }) => exit::NO_DATA,
        _ if is_usage => exit::USAGE,
        _ => exit::ERROR,
    }
}

/// Returns the next step that the error, or one of its causes, knows.
fn hint(error: &anyhow::Error) -> Option<String> {
    fn hint_as<E: Hint + 'static>(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
        cause.downcast_ref::<E>()?.hint()
    }
    let known = [
        hint_as::<longhaul_store::Error>,
        hint_as::<longhaul_export::Error>,
        hint_as::<longhaul_launchd::PlanError>,
        hint_as::<longhaul_launchd::StepError>,
    ];
    error.chain().find_map(|cause| known.iter().find_map(|hint| hint(cause)))
}

/// Returns text, causes and next step of an error in one line.
fn one_line(error: &anyhow::Error) -> String {
    [format!("{error:#}")].into_iter().chain(hint(error)).collect::<Vec<_>>().join(": ")
}

/// An invalid command line.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
