//! longhauld: measures in the background, for weeks.
//!
//! Arguments, configuration, log, lock; then the service on a thread of its own, and the control interface here, until
//! somebody says stop.

mod arguments;
mod configuration;
mod diagnosing;
mod exporting;
mod log;
mod running;
mod watching;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use longhaul_measure::platform;
use longhaul_service::clock::SystemClock;
use longhaul_service::config::{Config, ConfigError};
use longhaul_service::crashes::Starts;
use longhaul_service::desk::Desk;
use longhaul_service::exclusive::{Exclusive, ExclusiveError};
use longhaul_service::host::SystemHost;
use longhaul_service::places;
use longhaul_service::program::{ProgramFile, ServiceManager};
use longhaul_service::sampling::SystemSensors;
use longhaul_service::service::{End, Parts, Service};

use arguments::{Arguments, Command};
use configuration::Configuration;
use log::Log;

/// The command line, or the configuration, is wrong.
const USAGE: u8 = 2;
/// Another longhaul measures with this database.
const TAKEN: u8 = 4;
/// Another version was installed. A service manager starts a service again that ends with a failure (`EX_TEMPFAIL` of
/// sysexits(3): try again).
const REPLACED: u8 = 75;
/// How often the lock of the database is asked for.
const LOCK_ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Some(Command::Worker) => worker().map(|()| End::Stopped),
        None => run(&arguments),
    };
    match done {
        Ok(End::Stopped) => ExitCode::SUCCESS,
        Ok(End::Replaced) => ExitCode::from(REPLACED),
        Err(error) => {
            eprintln!("longhauld: {error:#}");
            tracing::error!("{error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<ExclusiveError>() {
        Some(_) => TAKEN,
        None if error.downcast_ref::<ConfigError>().is_some() => USAGE,
        None => 1,
    }
}

fn worker() -> anyhow::Result<()> {
    let input = std::io::BufReader::new(std::io::stdin());
    Ok(longhaul_measure::worker::serve(input, std::io::stdout())?)
}

fn run(arguments: &Arguments) -> anyhow::Result<End> {
    // First, so that what is in its place later is known to be another one.
    let program_file = ProgramFile::of_process();
    let limit = platform::raise_descriptor_limit();
    let (configuration, log) = begin(arguments)?;
    let Configuration { values: config, path: config_path, version } = configuration;
    let database = places::database(arguments.database.as_deref(), &config)?;
    let _exclusive = take(&database)?;
    let starts = Starts::beside(&database);
    let safe_mode = starts.note(platform::wall_clock_us()).unwrap_or(false);
    let desk = Arc::new(Desk::default());
    desk.set_log_level(log.level());
    let service = Service::open(Parts {
        clock: Box::new(SystemClock),
        host: Box::new(SystemHost::default()),
        sensors: Box::new(SystemSensors::default()),
        program: (
            std::env::current_exe().context("find longhauld's own program file")?,
            vec!["worker".to_owned()],
        ),
        program_file,
        desk: Arc::clone(&desk),
        config: config.clone(),
        config_path: config_path.clone(),
        database: database.clone(),
        log: log.path().map(Into::into),
        safe_mode,
    })?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        safe_mode,
        "longhauld begins"
    );
    if let Err(error) = limit {
        tracing::warn!(%error, "setrlimit: the limit of open files stays as it is");
    }
    watching::mounts(Arc::clone(&desk));
    let exporter =
        Arc::new(exporting::start(&desk, (database.clone(), service.shared_writer()), log.diagnostics())?);
    exporter.configure(exporting::settings(&config));
    if let Some(path) = config_path.clone() {
        watching::config(path, version, Arc::clone(&desk), Arc::clone(&exporter));
    }
    let web = config.web;
    let end = running::until_stopped(
        service,
        running::Facing { desk, log, database, config: config_path, web, exporter },
    )?;
    // Also when another version takes over: that is no crash.
    starts.forget();
    Ok(end)
}

/// Reads the configuration and starts the log. Under launchd it waits for a configuration that is good.
fn begin(arguments: &Arguments) -> anyhow::Result<(Configuration, Log)> {
    let given = arguments.config.as_deref();
    match Configuration::read(given) {
        Ok(read) => {
            let log = Log::start(&read.values.log, arguments)?;
            Ok((read, log))
        }
        Err(_) if ServiceManager::of_process() == Some(ServiceManager::Launchd) => {
            let mut log = Log::start(&Config::default().log, arguments)?;
            let read = Configuration::await_good(given);
            log.adopt(&read.values.log, arguments)?;
            Ok((read, log))
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes the lock of the database. One that was just killed may have a child that is not quite a worker yet and holds it
/// for another moment.
fn take(database: &Path) -> Result<Exclusive, ExclusiveError> {
    for _ in 0..LOCK_ATTEMPTS {
        match Exclusive::take(database) {
            Err(ExclusiveError::Taken { .. }) => std::thread::sleep(BETWEEN_ATTEMPTS),
            other => return other,
        }
    }
    Exclusive::take(database)
}
