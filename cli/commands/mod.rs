//! One file per command.

mod clean;
mod config;
mod control;
mod doctor;
mod list;
mod measure;
mod targets;
pub mod top;
mod trial;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command, RoundCommand};
use crate::exit;

/// Does what the command line says.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let shared = &arguments.shared;
    match arguments.command {
        Command::Try(arguments) => trial::run(shared, &arguments),
        Command::Targets(arguments) => targets::run(&arguments),
        Command::Run(arguments) => measure::run(shared, &arguments),
        Command::Summary(arguments) => list::summary(shared, &arguments),
        Command::Runs(arguments) => list::runs(shared, &arguments),
        Command::Show(arguments) => list::show(shared, &arguments),
        Command::Clean(arguments) => clean::run(shared, &arguments),
        Command::Config(arguments) => config::run(shared, &arguments),
        Command::Status(arguments) => control::show(shared, &arguments),
        Command::Pause(arguments) => control::pause(shared, &arguments),
        Command::Resume => control::resume(shared),
        Command::Round(RoundCommand::Now) => control::round_now(shared),
        Command::LogLevel { level } => control::log_level(shared, &level),
        Command::Doctor(arguments) => doctor::run(shared, &arguments),
        Command::Top => top::run(shared),
        Command::Worker => worker(),
        Command::Bench(command) => crate::bench::run(command).map(|()| exit::OK),
    }
}

fn worker() -> anyhow::Result<ExitCode> {
    let input = std::io::BufReader::new(std::io::stdin());
    longhaul_measure::worker::serve(input, std::io::stdout().lock())?;
    Ok(exit::OK)
}
