//! `longhaul demo`: the dashboard with made-up data, from a temporary folder that is removed at the end.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use longhaul_service::handle::ServiceHandle;
use longhaul_web::{BODY_TIMEOUT, Listeners, ServerDeps, SummarySources};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Number of whole weeks of data before this week: enough for verdicts, and made within a second.
const WEEKS: u32 = 4;
/// Notice on each page.
const NOTICE: &str = "Demo: these weeks are made up. Nothing was measured.";

/// Serves the dashboard with made-up data on 127.0.0.1 until SIGINT, SIGTERM or SIGHUP. Nothing is left afterwards. `port` 0 lets
/// the system choose a free one.
///
/// # Errors
///
/// If the port is in use, or the temporary folder cannot be written or removed.
pub fn demo(port: u16) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().context("start the runtime")?;
    let (folder, served) = runtime.block_on(serve_until_stopped(port))?;
    // Waits for the thread that may still write the data.
    drop(runtime);
    let place = folder.path().to_owned();
    folder.close().with_context(|| format!("remove {}; delete it yourself", place.display()))?;
    served
}

/// Serves until a signal, and returns the folder with the data, which has to be removed.
async fn serve_until_stopped(port: u16) -> anyhow::Result<(TempDir, anyhow::Result<()>)> {
    // Before the folder exists, so that no signal can leave it behind.
    let mut stop = StopSignals::listen().context("listen for signals")?;
    let folder = tempfile::Builder::new().prefix("longhaul-demo-").tempdir();
    let folder = folder.context("create a folder for the demo's data")?;
    let served = tokio::select! {
        served = serve(folder.path(), port) => served,
        () = stop.received() => Ok(()),
    };
    Ok((folder, served))
}

async fn serve(folder: &Path, port: u16) -> anyhow::Result<()> {
    let loopback = longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), port).await;
    let loopback = loopback
        .map_err(|error| anyhow::anyhow!("listen on 127.0.0.1, port {port}: {error}; try another --port"))?;
    let place = folder.to_owned();
    let database = tokio::task::spawn_blocking(move || longhaul_demo::database(&place, WEEKS));
    let database = database.await?.context("make up the demo's data")?;
    let handle = Arc::new(ServiceHandle::default());
    handle.publish(longhaul_demo::status(&database));
    println!("Open in a browser: http://127.0.0.1:{}/", loopback.local_addr()?.port());
    println!("The data is made up. Ctrl-C ends the demo and removes everything.");
    tokio::select! {
        served = serve_pages(loopback, &handle, &database) => served.context("answer on 127.0.0.1"),
        shown = longhaul_demo::repeat_rounds(Arc::clone(&handle)) => shown,
    }
}

async fn serve_pages(
    loopback: TcpListener,
    handle: &Arc<ServiceHandle>,
    database: &Path,
) -> std::io::Result<()> {
    let deps = ServerDeps {
        service: Arc::clone(handle),
        token: longhaul_web::new_token()?.as_str().into(),
        read_key: None,
        set_log_level: Arc::new(|_| Err("the demo has no log".to_owned())),
        metrics: Arc::new(|| Err("the demo has no metrics".to_owned())),
        sources: SummarySources { database: database.to_owned(), config: None },
        body_timeout: BODY_TIMEOUT,
        notice: Some(NOTICE),
    };
    longhaul_web::serve(Listeners { loopback, network: None }, deps, std::future::pending()).await
}

/// The signals that end the demo.
struct StopSignals([Signal; 3]);

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    /// Waits for the first signal.
    async fn received(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
