//! longhauld: measures in the background, for weeks.
//!
//! Arguments, configuration, log, lock; then the service on a thread of its own, and the control interface here, until
//! somebody says stop.

mod arguments;
mod diagnosing;
mod exporting;
mod log;
mod running;
mod watching;

use std::path::{Path, PathBuf};
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
use longhaul_service::file_version::FileVersion;
use longhaul_service::host::SystemHost;
use longhaul_service::places;
use longhaul_service::sampling::SystemSensors;
use longhaul_service::service::{Parts, Service};

use arguments::{Arguments, Command};
use log::Log;

/// The command line, or the configuration, is wrong.
const USAGE: u8 = 2;
/// Another longhaul measures with this database.
const TAKEN: u8 = 4;
/// How often the lock of the database is asked for.
const LOCK_ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Some(Command::Worker) => worker(),
        None => run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
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

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config_path = config_path(arguments.config.as_deref());
    // Before it is read: what is written meanwhile is noticed.
    let config_version = config_path.as_deref().and_then(FileVersion::of);
    let config = match &config_path {
        Some(path) if arguments.config.is_some() || path.exists() => Config::read(path)?,
        _ => Config::default(),
    };
    let database = places::database(arguments.database.as_deref(), &config)?;
    let log = Log::start(&config.log, arguments)?;
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
    watching::mounts(Arc::clone(&desk));
    let exporter =
        Arc::new(exporting::start(&desk, (database.clone(), service.shared_writer()), log.diagnostics())?);
    exporter.configure(exporting::settings(&config));
    if let Some(path) = config_path.clone() {
        watching::config(path, config_version, Arc::clone(&desk), Arc::clone(&exporter));
    }
    let web = config.web;
    running::until_stopped(
        service,
        running::Facing { desk, log, database, config: config_path, web, exporter },
    )?;
    starts.forget();
    Ok(())
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

/// The configuration file: it need not be there yet.
fn config_path(given: Option<&Path>) -> Option<PathBuf> {
    let default = || platform::config_directory().map(|folder| folder.join("config.toml"));
    given.and_then(|path| std::path::absolute(path).ok()).or_else(default)
}
