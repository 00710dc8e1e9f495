//! longhaul: which way of reaching my network drive is better for what I really do, and am I sure?
//!
//! Arguments, then a command, then a rendering. Nothing is computed here.

mod arguments;
mod bench;
mod client;
mod commands;
mod places;
mod progress;
mod render;

use std::process::ExitCode;

use clap::Parser;
use longhaul_service::config::ConfigError;

use arguments::Arguments;
use client::ClientError;

/// What a script learns from the exit code.
pub mod exit {
    use std::process::ExitCode;

    /// Everything went well.
    pub const OK: ExitCode = ExitCode::SUCCESS;
    /// An error of longhaul or of this machine.
    pub const ERROR: u8 = 1;
    /// The command line or the configuration is wrong.
    pub const USAGE: u8 = 2;
    /// At least one run, target or check is not well.
    pub const RUN_FAILED: u8 = 3;
    /// No service runs.
    pub const NO_SERVICE: u8 = 4;
    /// There is not enough data to answer.
    pub const NO_DATA: u8 = 5;
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    start_log();
    // Without more descriptors everything works but the largest presets.
    if let Err(error) = longhaul_measure::platform::raise_descriptor_limit() {
        tracing::warn!(%error, "setrlimit: the limit of open files stays as it is");
    }
    match commands::run(arguments) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("longhaul: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// The log of this process goes to standard error and is silent but for warnings, unless LONGHAUL_LOG says otherwise.
fn start_log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let is_usage = error.downcast_ref::<ConfigError>().is_some() || error.downcast_ref::<Usage>().is_some();
    if let Some(ClientError::Absent(_)) = error.downcast_ref::<ClientError>() {
        return exit::NO_SERVICE;
    }
    match error.downcast_ref::<longhaul_store::Error>() {
        Some(longhaul_store::Error::NoDatabase { .. }) => exit::NO_DATA,
        _ if is_usage => exit::USAGE,
        _ => exit::ERROR,
    }
}

/// Something on the command line that has no meaning.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
