//! The command line program of longhaul: it parses arguments, runs a command and prints its result. Nothing is
//! computed here.

mod arguments;
mod client;
mod commands;
mod config_file;
mod errors;
mod exit;
mod output;
mod output_format;
mod paths;
mod progress;
mod render;
mod result_file;
mod sudo;

pub use commands::RunDemo;

use std::process::ExitCode;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs the command of the command line, and returns the exit code. `version` is what `--version` prints.
pub fn main(version: &'static str, run_demo: RunDemo) -> ExitCode {
    let arguments = arguments::parse(version);
    init_log();
    // If the limit cannot be raised, only the largest presets fail, because they open the most files.
    if let Err(error) = longhaul_measure::platform::raise_descriptor_limit() {
        tracing::warn!(%error, "setrlimit: the limit of open files stays as it is");
    }
    match commands::run(arguments, run_demo) {
        Ok(code) => code,
        Err(error) => {
            output::print_error(format_args!("longhaul: {}", errors::text(&error)));
            if let Some(hint) = errors::hint(&error) {
                output::print_error(hint);
            }
            ExitCode::from(errors::exit_code(&error))
        }
    }
}

/// Sets up logging to standard error. Only errors are shown unless LONGHAUL_LOG sets another level, for all code
/// (`debug`) or for a part of it (`longhaul_measure=debug`).
fn init_log() {
    let asked = std::env::var("LONGHAUL_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::ERROR));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}
