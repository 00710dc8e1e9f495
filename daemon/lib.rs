//! longhauld: the background service, which measures for weeks.
//!
//! At startup it reads arguments and configuration, opens the log and locks the database. Then the service runs on
//! its own thread, and the web server on the main thread, until a signal or a command stops them.

mod arguments;
mod config_file;
mod demo_server;
mod export;
mod fleet_export;
mod log;
mod notifier;
mod read_key;
mod runtime;
mod watchers;

pub use demo_server::demo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_model::{Hint, with_causes};
use longhaul_service::clock::SystemClock;
use longhaul_service::config::{Config, ConfigError};
use longhaul_service::crash_loop::CrashLoopGuard;
use longhaul_service::database_lock::{DatabaseLock, DatabaseLockError};
use longhaul_service::handle::ServiceHandle;
use longhaul_service::host::SystemHost;
use longhaul_service::own_files;
use longhaul_service::paths::{self, PathError};
use longhaul_service::program_file::{ProgramFile, ServiceManager};
use longhaul_service::sampling::SystemSensors;
use longhaul_service::service::{ExitReason, Service, ServiceDeps};

use arguments::{Arguments, Command};
use config_file::LoadedConfig;
use fleet_export::{FleetExport, FleetExportDeps};
use log::Log;
use notifier::{Notifier, NotifierDeps};
use watchers::{ConfigReceivers, ConfigVersions};

/// Exit code for an invalid command line or configuration, and for a database that cannot be used where it is. systemd does not restart
/// a service that exits with it (`RestartPreventExitStatus` of the unit).
const EXIT_USAGE: u8 = 2;
/// Exit code if another longhaul process measures with this database.
const EXIT_ALREADY_RUNNING: u8 = 4;
/// Exit code after another version was installed. Service managers restart a service that exits with a failure
/// (`EX_TEMPFAIL` of sysexits(3): try again).
const EXIT_REPLACED: u8 = 75;
/// Maximum number of attempts to lock the database.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the service, or a worker process, until it ends, and returns the exit code. `version` is what `--version` prints.
pub fn main(version: &'static str) -> ExitCode {
    let arguments = Arguments::of_process(version);
    let done = match arguments.command {
        Some(Command::Worker) => run_worker().map(|()| ExitReason::Stopped),
        None => run(&arguments),
    };
    match done {
        Ok(ExitReason::Stopped) => ExitCode::SUCCESS,
        Ok(ExitReason::Replaced) => ExitCode::from(EXIT_REPLACED),
        Err(error) => {
            let text = error_text(&error);
            eprintln!("longhauld: {text}");
            tracing::error!(error = text, "longhauld cannot go on");
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Returns an error with its causes and the next step.
fn error_text(error: &anyhow::Error) -> String {
    let hint = store_error(error).and_then(Hint::hint);
    [with_causes(error.chain())].into_iter().chain(hint).collect::<Vec<_>>().join(": ")
}

fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<DatabaseLockError>() {
        Some(DatabaseLockError::AlreadyLocked { .. }) => EXIT_ALREADY_RUNNING,
        _ if error.downcast_ref::<ConfigError>().is_some() || is_unusable_database(error) => EXIT_USAGE,
        _ => 1,
    }
}

/// Returns whether the database cannot be used however often the service is restarted.
fn is_unusable_database(error: &anyhow::Error) -> bool {
    use longhaul_store::Error::{Foreign, NotLocal, SchemaTooNew};
    let is_final = |cause: &longhaul_store::Error| {
        matches!(cause, NotLocal { .. } | Foreign { .. } | SchemaTooNew { .. }) && !cause.is_at_automount()
    };
    store_error(error).is_some_and(is_final)
}

fn store_error(error: &anyhow::Error) -> Option<&longhaul_store::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

fn run_worker() -> anyhow::Result<()> {
    let input = std::io::BufReader::new(std::io::stdin());
    Ok(longhaul_measure::worker::serve(input, std::io::stdout(), longhaul_presets::catalog())?)
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitReason> {
    // This must come first, so that a program file that is replaced later is recognized as a different one.
    let program_file = ProgramFile::of_process();
    let limit = platform::raise_descriptor_limit();
    let (configuration, log) = load_config_and_log(arguments)?;
    let LoadedConfig { values: config, path: config_path, version, managed_version } = configuration;
    config_file::log_ignored_settings(&config);
    let database = database_path(arguments, &config)?;
    let exclusive = lock_database(&database)?;
    restrict_own_files(&database);
    let starts = CrashLoopGuard::for_database(&database);
    let safe_mode = record_start(&starts, &database);
    let handle = Arc::new(ServiceHandle::default());
    handle.set_log_level(log.level());
    let longhauld = std::env::current_exe().context("find longhauld's own program file")?;
    let service = Service::open(ServiceDeps {
        clock: Box::new(SystemClock),
        host: Box::new(SystemHost::default()),
        sensors: Box::new(SystemSensors::default()),
        worker_command: (longhauld.clone(), vec!["worker".to_owned()]),
        program_file,
        handle: Arc::clone(&handle),
        config: config.clone(),
        config_path: config_path.clone(),
        database_path: database.clone(),
        log_path: log.path().map(Into::into),
        safe_mode,
    })
    // A start that is refused is no crash: one after an upgrade must not find the service in safe mode.
    .inspect_err(|_| starts.reset())?;
    log_start(safe_mode, limit.err());
    watchers::watch_mounts(Arc::clone(&handle));
    let writer = service.shared_writer();
    let exporter = Arc::new(export::start_exporter(&handle, database.clone(), writer, log.diagnostics())?);
    exporter.configure(export::resolve_settings(&config));
    let notifier = start_notifier(&handle, &database, &service)?;
    notifier.configure(config.clone());
    let fleet_export = start_fleet_export(FleetExportDeps {
        handle: Arc::clone(&handle),
        database: database.clone(),
        config: config_path.clone(),
        // All packages and `cargo build` put both programs into one folder.
        program: longhauld.with_file_name("longhaul"),
    })?;
    fleet_export.configure(&config);
    let receivers = ConfigReceivers { handle, exporter, notifier, fleet_export };
    let versions = ConfigVersions { path: config_path.clone(), user: version, managed: managed_version };
    watchers::watch_config(versions, receivers.clone());
    let web = config.web;
    let end = runtime::run_until_stopped(
        service,
        runtime::ServerContext { log, database, exclusive, config_path, web, receivers },
    )?;
    // Also reset before another version takes over: that exit is no crash.
    starts.reset();
    Ok(end)
}

/// Records this start. Returns whether the service must start in safe mode. A start that cannot be recorded is reported in the log
/// and counts as no crash loop: a full disk must not keep the service from measuring when there is space again.
fn record_start(starts: &CrashLoopGuard, database: &Path) -> bool {
    starts.record_start(platform::wall_clock()).unwrap_or_else(|error| {
        let folder = database.parent().unwrap_or(database).display();
        tracing::warn!(
            %error,
            %folder,
            "this start could not be recorded, so a crash loop may not be noticed: free space on this disk, or make the folder writable"
        );
        false
    })
}

/// Logs that the service has started, and the error if the limit of open files was not raised.
fn log_start(safe_mode: bool, limit: Option<std::io::Error>) {
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(version, pid, safe_mode, "longhauld started");
    if let Some(error) = limit {
        tracing::warn!(%error, "setrlimit: the limit of open files was not raised");
    }
}

/// Returns the path of the database. An argument that the administrator overrides is reported and not used: the service's
/// definition may be older than the administrator's file.
fn database_path(arguments: &Arguments, config: &Config) -> Result<PathBuf, PathError> {
    match paths::database_path(arguments.database.as_deref(), config) {
        Err(PathError::Fixed(error)) => {
            tracing::warn!(%error, "an argument is not used");
            paths::database_path(None, config)
        }
        found => found,
    }
}

/// Takes the access of other users away from files of earlier versions, and says so in the log.
fn restrict_own_files(database: &Path) {
    for path in own_files::restrict_to_user(database, platform::log_directory().as_deref()) {
        let path = path.display();
        tracing::warn!(%path, "other users could read this; now only its owner can");
    }
}

/// Starts the thread that exports results into a collection.
fn start_fleet_export(deps: FleetExportDeps) -> anyhow::Result<Arc<FleetExport>> {
    Ok(Arc::new(FleetExport::start(deps).context("start the thread of the exports")?))
}

/// Starts the thread that notifies the user.
fn start_notifier(
    handle: &Arc<ServiceHandle>,
    database: &Path,
    service: &Service,
) -> anyhow::Result<Arc<Notifier>> {
    let deps = NotifierDeps {
        database: database.to_owned(),
        writer: service.shared_writer(),
        handle: Arc::clone(handle),
    };
    Ok(Arc::new(Notifier::start(deps).context("start the notifier's thread")?))
}

/// Reads the configuration and starts the log. Under launchd, waits until the configuration is valid.
fn load_config_and_log(arguments: &Arguments) -> anyhow::Result<(LoadedConfig, Log)> {
    let given = arguments.config.as_deref();
    match LoadedConfig::read(given) {
        Ok(read) => {
            let log = Log::start(&read.values.log, &allowed_arguments(arguments, &read.values))?;
            Ok((read, log))
        }
        Err(_) if ServiceManager::of_process() == Some(ServiceManager::Launchd) => {
            let mut log = Log::start(&Config::default().log, arguments)?;
            let read = LoadedConfig::wait_until_valid(given);
            log.apply_config(&read.values.log, &allowed_arguments(arguments, &read.values))?;
            Ok((read, log))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the arguments without a log level if the administrator has set it.
fn allowed_arguments(arguments: &Arguments, config: &Config) -> Arguments {
    let is_fixed = config.managed.covering("log.level").is_some();
    Arguments { log_level: arguments.log_level.clone().filter(|_| !is_fixed), ..arguments.clone() }
}

/// Locks the database, with some attempts: a daemon that was just killed may have a child process that still holds
/// the lock for a moment, before it becomes a worker.
fn lock_database(database: &Path) -> anyhow::Result<DatabaseLock> {
    let mounts = platform::mounts().context("read the mount table")?;
    for _ in 0..LOCK_ATTEMPTS {
        match DatabaseLock::acquire(database, &mounts) {
            Err(DatabaseLockError::AlreadyLocked { .. }) => std::thread::sleep(LOCK_RETRY_INTERVAL),
            other => return Ok(other?),
        }
    }
    Ok(DatabaseLock::acquire(database, &mounts)?)
}

#[cfg(test)]
mod tests {
    use longhaul_model::{Mount, Protocol};
    use longhaul_store::Error;

    use super::*;

    #[test]
    fn database_on_a_share_ends_without_a_restart() {
        let home = [Mount::new("/", "nas:/home", Protocol::Nfs(None))];
        let database = Path::new("/nonexistent/longhaul.sqlite");
        let error = DatabaseLock::acquire(database, &home).err().unwrap();
        assert_eq!(exit_code(&error.into()), EXIT_USAGE);
        let foreign = Error::Foreign { path: database.to_owned() };
        assert_eq!(exit_code(&foreign.into()), EXIT_USAGE, "from opening it");
        let full = Error::DiskFull { path: database.to_owned(), operation: "open the database" };
        assert_eq!(exit_code(&DatabaseLockError::from(full).into()), 1, "a later start may succeed");
    }

    #[test]
    fn database_at_an_automount_is_tried_again() {
        let automount = [Mount::new("/", "systemd-1", Protocol::Other("autofs".to_owned()))];
        let database = Path::new("/nonexistent/longhaul.sqlite");
        let error: anyhow::Error = DatabaseLock::acquire(database, &automount).err().unwrap().into();
        assert_eq!(exit_code(&error), 1);
        let text = error_text(&error);
        assert!(text.contains(": open that folder once, so that its disk is mounted"), "{text}");
    }
}
