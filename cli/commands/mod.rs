//! The commands, one module each.

mod clean;
mod config;
mod control;
mod doctor;
mod export;
mod fidelity;
mod fleet;
mod freshness;
mod generate;
mod init;
mod integrity;
mod latency;
mod menubar;
mod merge;
mod nas;
mod notify;
mod overview;
mod preset;
mod record;
mod report;
mod run;
mod runs;
mod selfcheck;
mod service;
mod share;
mod targets;
mod telemetry;
mod trial;
mod usage;
pub mod watch;
mod what_if;
mod why;

use std::process::ExitCode;

use crate::arguments::{Cli, Command, GlobalArgs, ServiceCommand, TargetsArgs, TargetsCommand};
use crate::output_format::OutputFormat;
use crate::{exit, sudo};

/// Serves the dashboard with made-up data on a port until a signal ends it. The program passes it in, because this crate does not
/// contain the web server.
pub type RunDemo = fn(u16) -> anyhow::Result<()>;

/// Runs the command that was given on the command line.
pub fn run(arguments: Cli, run_demo: RunDemo) -> anyhow::Result<ExitCode> {
    let shared = &arguments.global;
    if arguments.command.as_ref().is_none_or(uses_home) {
        sudo::check()?;
    }
    let Some(command) = arguments.command else { return overview::run(shared) };
    match command {
        Command::Init(arguments) => init::run(shared, &arguments),
        Command::Doctor(arguments) => doctor::run(shared, &arguments),
        Command::Status(arguments) => control::status(shared, &arguments),
        Command::Demo(arguments) => run_demo(arguments.port.unwrap_or(0)).map(|()| exit::OK),
        Command::Dashboard => control::dashboard(shared),
        Command::Run(arguments) => run::run(shared, &arguments),
        Command::Try(arguments) => trial::run(shared, &arguments),
        Command::Preset(arguments) => preset::run(shared, &arguments),
        Command::Record(arguments) => record::run(shared, &arguments),
        Command::Targets(arguments) => targets(shared, arguments),
        Command::Report(arguments) => report::run(shared, &arguments),
        Command::Runs(arguments) => runs::run(shared, &arguments),
        Command::Latency(arguments) => latency::latency(shared, &arguments),
        Command::Stalls(window) => latency::stalls(shared, &window),
        Command::Events(window) => latency::events(shared, &window),
        Command::WhatIf(arguments) => what_if::run(shared, &arguments),
        Command::Why(arguments) => why::run(shared, &arguments),
        Command::Freshness(arguments) => freshness::run(shared, &arguments),
        Command::Integrity(arguments) => integrity::run(shared, &arguments),
        Command::Usage(arguments) => usage::run(shared, &arguments),
        Command::Fidelity(arguments) => fidelity::run(shared, &arguments),
        Command::Export(arguments) => export::run(shared, &arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Service(command) => service_command(shared, command),
        Command::Pause(arguments) => control::pause(shared, &arguments),
        Command::Resume => control::resume(shared),
        Command::Round => control::start_round(shared),
        Command::Config(arguments) => config::run(shared, &arguments),
        Command::Nas(command) => nas::run(shared, &command),
        Command::Notify(command) => notify::run(shared, command),
        Command::Telemetry(command) => telemetry::run(shared, command),
        Command::Selfcheck(arguments) => selfcheck::run(shared, &arguments),
        Command::Menubar(arguments) => menubar::run(shared, &arguments),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { folder } => generate::manual(&folder),
        Command::Worker => run_worker(),
    }
}

/// Returns whether a command opens files of the home folder. To read a database makes files next to it, too.
const fn uses_home(command: &Command) -> bool {
    !matches!(
        command,
        Command::Completions { .. }
            | Command::Man { .. }
            | Command::Merge(_)
            | Command::Worker
            | Command::Demo(_)
    )
}

fn targets(shared: &GlobalArgs, arguments: TargetsArgs) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => targets::run(OutputFormat::from_json_flag(arguments.json)),
        Some(TargetsCommand::Clean(arguments)) => clean::run(shared, &arguments),
    }
}

fn service_command(shared: &GlobalArgs, command: ServiceCommand) -> anyhow::Result<ExitCode> {
    match command {
        ServiceCommand::Install(arguments) => service::install(shared, &arguments),
        ServiceCommand::Uninstall(arguments) => service::uninstall::run(shared, &arguments),
        ServiceCommand::Start(arguments) => service::start(&arguments),
        ServiceCommand::Stop(arguments) => service::stop(&arguments),
        ServiceCommand::Restart(arguments) => service::restart(&arguments),
        ServiceCommand::Logs(arguments) => service::logs::run(&arguments),
        ServiceCommand::LogLevel { level } => control::log_level(shared, &level),
    }
}

fn run_worker() -> anyhow::Result<ExitCode> {
    let input = std::io::BufReader::new(std::io::stdin());
    longhaul_measure::worker::serve(input, std::io::stdout(), longhaul_presets::catalog())?;
    Ok(exit::OK)
}
