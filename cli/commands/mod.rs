//! One file per command.

mod classic;
mod clean;
mod config;
mod control;
mod doctor;
mod export;
mod init;
mod list;
mod measure;
mod otel;
mod profile;
mod report;
mod sampling;
mod selfcheck;
mod service;
mod targets;
pub mod top;
mod trial;
mod week;

use std::process::ExitCode;

pub use init::Init;
pub use service::Doing;
pub use service::logs::Logs;
pub use service::uninstall::Uninstall;

use crate::arguments::{Arguments, Command, RoundCommand};
use crate::exit;

/// Does what the command line says.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let shared = &arguments.shared;
    match arguments.command {
        Command::Try(arguments) => trial::run(shared, &arguments),
        Command::Targets(arguments) => targets::run(&arguments),
        Command::Run(arguments) => measure::run(shared, &arguments),
        Command::Classic(arguments) => classic::run(shared, &arguments),
        Command::Profile(command) => profile::run(&command),
        Command::Summary(arguments) => list::summary(shared, &arguments),
        Command::Week(arguments) => week::week(shared, &arguments),
        Command::Compare(arguments) => week::compare(shared, &arguments),
        Command::Verdict(arguments) => week::verdict(shared, &arguments),
        Command::Report(arguments) => report::run(shared, &arguments),
        Command::Runs(arguments) => list::runs(shared, &arguments),
        Command::Show(arguments) => list::show(shared, &arguments),
        Command::Samples(arguments) => sampling::samples(shared, &arguments),
        Command::Stalls(window) => sampling::stalls(shared, &window),
        Command::Events(window) => sampling::events(shared, &window),
        Command::Export(arguments) => export::run(shared, &arguments),
        Command::Otel(command) => otel::run(shared, command),
        Command::Clean(arguments) => clean::run(shared, &arguments),
        Command::Config(arguments) => config::run(shared, &arguments),
        Command::Init(arguments) => init::run(shared, &arguments),
        Command::Install(doing) => service::install(shared, &doing),
        Command::Uninstall(arguments) => service::uninstall::run(shared, &arguments),
        Command::Start(doing) => service::start(&doing),
        Command::Stop(doing) => service::stop(&doing),
        Command::Restart(doing) => service::restart(&doing),
        Command::Logs(arguments) => service::logs::run(&arguments),
        Command::Status(arguments) => control::show(shared, &arguments),
        Command::Pause(arguments) => control::pause(shared, &arguments),
        Command::Resume => control::resume(shared),
        Command::Round(RoundCommand::Now) => control::round_now(shared),
        Command::LogLevel { level } => control::log_level(shared, &level),
        Command::Doctor(arguments) => doctor::run(shared, &arguments),
        Command::Selfcheck(arguments) => selfcheck::run(shared, &arguments),
        Command::Top => top::run(shared),
        Command::Page => control::page(shared),
        Command::Worker => worker(),
        Command::Bench(command) => crate::bench::run(shared, command).map(|()| exit::OK),
    }
}

fn worker() -> anyhow::Result<ExitCode> {
    let input = std::io::BufReader::new(std::io::stdin());
    longhaul_measure::worker::serve(input, std::io::stdout())?;
    Ok(exit::OK)
}
