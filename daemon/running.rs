//! The service and its face, from ready to stopped.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_service::config::Web;
use longhaul_service::contact::Contact;
use longhaul_service::desk::Desk;
use longhaul_service::service::{End, Service};
use longhaul_telemetry::exporter::Exporter;
use longhaul_telemetry::scrape::Scrape;
use longhaul_web::{Control, Doors};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use crate::exporting;
use crate::log::Log;

/// How long the service's thread may take to end: whoever asked us to stop kills us after five seconds.
const END_WITHIN: Duration = Duration::from_millis(4500);
/// How long the service's thread may say nothing before the watchdog is told nothing either: it looks up once a minute.
const SILENT_SECONDS: i64 = 150;

/// Threads that read the database for pages and wait for the doctor: each keeps memory of its own.
const MOST_READERS: usize = 16;

/// What the outside sees.
pub struct Facing {
    /// Where orders go to.
    pub desk: Arc<Desk>,
    /// The log.
    pub log: Log,
    /// The database.
    pub database: PathBuf,
    /// The configuration file, which need not be there.
    pub config: Option<PathBuf>,
    /// Where the page is.
    pub web: Web,
    /// What hands rounds to a collector.
    pub exporter: Arc<Exporter>,
}

/// Runs the service and answers for it, until a signal says stop or the service ends for another version.
pub fn until_stopped(service: Service, facing: Facing) -> anyhow::Result<End> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime =
        runtime.enable_all().max_blocking_threads(MOST_READERS).build().context("start the runtime")?;
    runtime.block_on(face(service, facing))
}

async fn face(service: Service, facing: Facing) -> anyhow::Result<End> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let doors = doors(&facing).await?;
    let contact = Contact {
        pid: std::process::id(),
        port: doors.loopback.local_addr()?.port(),
        token: longhaul_web::new_token()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_us: platform::wall_clock_us(),
    };
    contact
        .write(&facing.database)
        .with_context(|| format!("write {}", Contact::path(&facing.database).display()))?;
    // The thread drops its half when it ends, also by a panic.
    let (alive, ended) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("service".to_owned()).spawn(|| {
        let _alive = alive;
        service.run()
    });
    let thread = thread.context("start the service's thread")?;
    let control = Control {
        desk: Arc::clone(&facing.desk),
        token: contact.token.as_str().into(),
        set_level: facing.log.setter(),
        metrics: metrics(&facing),
        sources: longhaul_web::Sources { database: facing.database.clone(), config: facing.config.clone() },
        limits: longhaul_web::Limits::default(),
    };
    tracing::info!(port = contact.port, "ready");
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    tokio::select! {
        served = longhaul_web::serve(doors, control, std::future::pending()) => served.context("answer on 127.0.0.1")?,
        () = watchdog(&facing.desk) => {}
        _ = ended => tracing::info!("the service's thread has ended"),
        _ = terminate.recv() => tracing::info!("SIGTERM"),
        _ = interrupt.recv() => tracing::info!("SIGINT"),
    }
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    facing.desk.order(|orders| orders.stop = true);
    let (in_order, ()) = tokio::join!(wait_for(&thread), end(facing.exporter));
    contact.remove(&facing.database);
    let end = if thread.is_finished() { thread.join() } else { Ok(End::Stopped) };
    let end = end.map_err(|_| anyhow::anyhow!("the service ended with a panic; its log says more"))?;
    tracing::info!(in_order, ?end, "longhauld ends");
    Ok(end)
}

/// Listens, on another port or on this machine only where what is configured cannot be had, and says so.
async fn doors(facing: &Facing) -> anyhow::Result<Doors> {
    let complain = |word, text: String| facing.desk.complain(word, text, platform::wall_clock_us());
    let port = facing.web.port;
    let loopback = match longhaul_web::listen(Ipv4Addr::LOCALHOST.into(), port).await {
        Err(error) if port != 0 => {
            complain("port", format!("port {port} is taken ({error}); another one is used until it is free"));
            longhaul_web::listen(Ipv4Addr::LOCALHOST.into(), 0).await
        }
        listener => listener,
    };
    let loopback = loopback.context("listen on 127.0.0.1")?;
    let port = loopback.local_addr()?.port();
    let network = match facing.web.address {
        None => None,
        Some(address) => longhaul_web::listen(address, port)
            .await
            .inspect_err(|error| {
                complain(
                    "address",
                    format!(
                        "the page is not on {address}, port {port} ({error}): it is on this machine only"
                    ),
                );
            })
            .ok(),
    };
    Ok(Doors { loopback, network })
}

/// What Prometheus reads.
fn metrics(facing: &Facing) -> longhaul_web::Metrics {
    let (scrape, desk) = (Scrape::of(facing.database.clone()), Arc::clone(&facing.desk));
    Arc::new(move || scrape.text(&exporting::now(&desk)).map_err(|error| error.to_string()))
}

/// Ends the exporter, which may wait for a collector.
async fn end(exporter: Arc<Exporter>) {
    let _ = tokio::task::spawn_blocking(move || exporter.stop()).await;
}

/// Tells systemd that we live, for as long as the service's thread does. Never ends.
async fn watchdog(desk: &Desk) {
    let interval = sd_notify::watchdog_enabled().map_or(Duration::from_secs(30), |limit| limit / 2);
    loop {
        tokio::time::sleep(interval).await;
        if desk.silent_seconds() < SILENT_SECONDS {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
    }
}

async fn wait_for(thread: &std::thread::JoinHandle<End>) -> bool {
    let began = Instant::now();
    while !thread.is_finished() && began.elapsed() < END_WITHIN {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    thread.is_finished()
}
