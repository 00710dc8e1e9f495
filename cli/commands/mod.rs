//! One file per command.

mod clean;
mod config;
mod export;
mod list;
mod measure;
mod report;
mod targets;
mod trial;
mod week;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};
use crate::exit;

/// Does what the command line says.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let shared = &arguments.shared;
    match arguments.command {
        Command::Try(arguments) => trial::run(shared, &arguments),
        Command::Targets(arguments) => targets::run(&arguments),
        Command::Run(arguments) => measure::run(shared, &arguments),
        Command::Summary(arguments) => list::summary(shared, &arguments),
        Command::Week(arguments) => week::week(shared, &arguments),
        Command::Compare(arguments) => week::compare(shared, &arguments),
        Command::Verdict(arguments) => week::verdict(shared, &arguments),
        Command::Report(arguments) => report::run(shared, &arguments),
        Command::Runs(arguments) => list::runs(shared, &arguments),
        Command::Show(arguments) => list::show(shared, &arguments),
        Command::Export(arguments) => export::run(shared, &arguments),
        Command::Clean(arguments) => clean::run(shared, &arguments),
        Command::Config(arguments) => config::run(shared, &arguments),
        Command::Worker => worker(),
        Command::Bench(command) => crate::bench::run(shared, command).map(|()| exit::OK),
    }
}

fn worker() -> anyhow::Result<ExitCode> {
    let input = std::io::BufReader::new(std::io::stdin());
    longhaul_measure::worker::serve(input, std::io::stdout().lock())?;
    Ok(exit::OK)
}
