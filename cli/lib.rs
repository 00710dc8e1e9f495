//! The command line program of longhaul: it parses arguments, runs a command and prints its result. Nothing is
//! computed here.

mod arguments;
mod client;
mod commands;
mod config_file;
mod errors;
mod exit;
mod paths;
mod progress;
mod render;

use std::process::ExitCode;

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
            if let Some(hint) = errors::hint(&error) {
                anstream::eprintln!("{hint}");
            }
            ExitCode::from(errors::exit_code(&error))
        }
    }
}

/// Sets up logging to standard error. Only errors are shown unless LONGHAUL_LOG sets another level.
fn init_log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
