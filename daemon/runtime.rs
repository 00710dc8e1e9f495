//! Runs the service and the web server, from ready to stopped.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_model::Hint;
use longhaul_service::command::Command;
use longhaul_service::config::Web;
use longhaul_service::daemon_address::DaemonAddress;
use longhaul_service::database_lock::{DatabaseLock, DatabaseLockError};
use longhaul_service::handle::ServiceHandle;
use longhaul_service::service::{ExitReason, Service};
use longhaul_telemetry::scrape::ScrapeTotals;
use longhaul_web::{Listeners, ServerDeps};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot::Receiver;

use crate::log::Log;
use crate::watchers::ConfigReceivers;
use crate::{export, read_key};

/// Time that the service's thread may take to exit: a process that was asked to stop may be killed after five
/// seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(4500);

/// Time between two looks at the lock and the address file.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of threads that read the database for pages or wait for the doctor. Each thread needs memory of
/// its own.
const MAX_BLOCKING_THREADS: usize = 16;

/// Everything that the web server and the signal handling need.
pub struct ServerContext {
    /// Log of this process.
    pub log: Log,
    /// Path of the database.
    pub database: PathBuf,
    /// Lock of the database.
    pub exclusive: DatabaseLock,
    /// Path of the configuration file, which need not exist.
    pub config_path: Option<PathBuf>,
    /// Settings of the web server.
    pub web: Web,
    /// Handle of the service, for commands, and the threads that must be stopped.
    pub receivers: ConfigReceivers,
}

/// Runs the service and the web server until a signal, or until the service exits for another version.
pub fn run_until_stopped(service: Service, server: ServerContext) -> anyhow::Result<ExitReason> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("start the runtime")?;
    let reason = runtime.block_on(serve(service, server));
    // A request that waits for an examination must not delay the end.
    runtime.shutdown_background();
    reason
}

async fn serve(service: Service, mut server: ServerContext) -> anyhow::Result<ExitReason> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listeners = open_listeners(&server).await?;
    let address_file = write_address(&listeners, &server.database)?;
    let handle = Arc::clone(&server.receivers.handle);
    let mut ended = start_service(service)?;
    let (mut early_end, mut lost) = (None, None);
    let deps = ServerDeps {
        service: Arc::clone(&handle),
        token: address_file.token.as_str().into(),
        read_key: read_key_for_network(&server),
        set_log_level: server.log.level_setter(),
        metrics: metrics_source(&server),
        sources: longhaul_web::SummarySources {
            database: server.database.clone(),
            config: server.config_path.clone(),
        },
        body_timeout: longhaul_web::BODY_TIMEOUT,
        notice: None,
    };
    tracing::info!(port = address_file.port, "ready");
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tokio::select! {
        served = longhaul_web::serve(listeners, deps, std::future::pending()) => served.context("answer on 127.0.0.1")?,
        () = notify_watchdog(&handle) => {}
        error = keep_files(&mut server.exclusive, &address_file, &server.database) => lost = Some(error),
        end = &mut ended => {
            tracing::info!("the thread of the service ended");
            early_end = Some(end);
        }
        _ = terminate.recv() => tracing::info!("SIGTERM"),
        _ = interrupt.recv() => tracing::info!("SIGINT"),
    }
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    handle.send(Command::Stop);
    let end = async {
        match early_end {
            Some(end) => Ok(end),
            None => tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await,
        }
    };
    let others = async {
        let ConfigReceivers { exporter, notifier, fleet_export, .. } = server.receivers;
        tokio::join!(
            stop(move || exporter.stop()),
            stop(move || notifier.stop()),
            stop(move || fleet_export.stop())
        )
    };
    let (end, _) = tokio::join!(end, others);
    address_file.remove(&server.database);
    let is_clean = end.is_ok();
    // Without an answer in time, the process exits and the system ends the thread.
    let end = end.unwrap_or(Ok(ExitReason::Stopped));
    let end = end.map_err(|_| anyhow::anyhow!("the service panicked; see its log"))?;
    tracing::info!(is_clean, ?end, "longhauld exits");
    lost.map_or(Ok(end), |error| Err(error.into()))
}

/// Creates the lock and the address file again after they were removed, for example with the folder of the database. Returns the
/// error if another longhaul has taken the database meanwhile.
async fn keep_files(lock: &mut DatabaseLock, address: &DaemonAddress, database: &Path) -> DatabaseLockError {
    loop {
        tokio::time::sleep(FILE_CHECK_INTERVAL).await;
        if let Err(error @ DatabaseLockError::AlreadyLocked { .. }) = lock.keep() {
            return error;
        }
        // The service itself tells what is wrong with the folder.
        if !DaemonAddress::path(database).exists() {
            let _ = address.write(database);
        }
    }
}

/// Writes the file by which commands find this process.
fn write_address(listeners: &Listeners, database: &Path) -> anyhow::Result<DaemonAddress> {
    let address = DaemonAddress {
        pid: std::process::id(),
        port: listeners.loopback.local_addr()?.port(),
        token: longhaul_web::new_token()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_us: platform::wall_clock(),
    };
    let written = address.write(database);
    written.with_context(|| format!("cannot write {}", DaemonAddress::path(database).display()))?;
    Ok(address)
}

/// Runs the service on a thread of its own, because it waits for the database. The returned channel receives the
/// reason of its exit; it is closed without one if the service panics.
fn start_service(service: Service) -> anyhow::Result<Receiver<ExitReason>> {
    let (exit, ended) = tokio::sync::oneshot::channel();
    let work = move || {
        let _ = exit.send(service.run());
    };
    let thread = std::thread::Builder::new().name("service".to_owned());
    thread.spawn(work).context("start the service's thread")?;
    Ok(ended)
}

/// Opens the listeners. If a configured port or address is unavailable, falls back to another port or to this
/// machine only, and raises a problem.
async fn open_listeners(server: &ServerContext) -> anyhow::Result<Listeners> {
    let raise_problem =
        |word, text: String| server.receivers.handle.raise_problem(word, text, platform::wall_clock());
    let port = server.web.port;
    let loopback = match longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), port).await {
        Err(error) if port != 0 => {
            raise_problem(
                "port",
                format!("port {port} is in use ({error}); another one is used until the service restarts"),
            );
            longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), 0).await
        }
        listener => listener,
    };
    let loopback = loopback.context("listen on 127.0.0.1")?;
    let port = loopback.local_addr()?.port();
    let network = match server.web.address {
        None => None,
        Some(address) => longhaul_web::bind(address, port)
            .await
            .inspect_err(|error| {
                raise_problem(
                    "address",
                    format!(
                        "the dashboard is not available on {address}, port {port} ({error}); it is available on this machine only"
                    ),
                );
            })
            .ok(),
    };
    Ok(Listeners { loopback, network })
}

/// Returns the key with which other machines may read; `None` if the page is for this machine only.
fn read_key_for_network(server: &ServerContext) -> Option<Arc<str>> {
    server.web.address?;
    let raise_problem =
        |text| server.receivers.handle.raise_problem("read-key", text, platform::wall_clock());
    read_key::load_or_create(&server.database).map_err(raise_problem).ok().map(Into::into)
}

/// Returns the function that renders the metrics for Prometheus.
fn metrics_source(server: &ServerContext) -> longhaul_web::Metrics {
    let (scrape, handle) = (ScrapeTotals::new(server.database.clone()), Arc::clone(&server.receivers.handle));
    Arc::new(move || scrape.text(&export::current_state(&handle)).map_err(|error| error.one_line()))
}

/// Stops something on another thread, because it may be waiting for a server.
async fn stop(stop: impl FnOnce() + Send + 'static) {
    let _ = tokio::task::spawn_blocking(stop).await;
}

/// Notifies systemd's watchdog for as long as the service's thread sends heartbeats. Never returns.
async fn notify_watchdog(handle: &ServiceHandle) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    loop {
        tokio::time::sleep(limit / 2).await;
        if handle.is_alive() {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
    }
}
