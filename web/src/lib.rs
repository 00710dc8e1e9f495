//! The web server of the service: HTTP on 127.0.0.1. Everyone on this machine may read pages and JSON; commands
//! need the token, or a browser that logged in with a key.
//!
//! Responses use memory and the database, never a target, so a hanging target cannot delay a response.
//!
//! ```
//! // A token allows commands. It is drawn anew at each start of the service.
//! let token = longhaul_web::new_token().unwrap();
//! assert_ne!(token, longhaul_web::new_token().unwrap());
//! ```

mod api;
mod app_state;
mod assets;
mod badges;
mod body;
mod cache;
mod commands;
mod compression;
mod connections;
mod cookies;
mod deps;
mod environment;
mod guard;
mod headers;
mod json;
mod keys;
mod limits;
mod live;
mod live_updates;
mod openapi;
mod pages;
mod params;
mod routes;
mod theme;

pub use cache::SummarySources;
pub use deps::{Metrics, ServerDeps, SetLogLevel};
pub use environment::report_environment;
pub use keys::new_token;
pub use limits::BODY_TIMEOUT;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use app_state::AppState;
use cache::SummaryCache;
use connections::{ConnectionSlot, Connections};
use guard::{Exposure, Guard};
use keys::LoginKeys;
use limits::MAX_REQUESTS;
use live_updates::LiveUpdates;

/// Time within which a client has to send the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the head of a request, in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Maximum number of open connections. The surplus over `MAX_REQUESTS` is for the command line and for logged-in
/// pages.
const MAX_CONNECTIONS: usize = MAX_REQUESTS + 32;
/// Maximum lifetime of a connection: longer than the longest response, which is the doctor's. An open page
/// reconnects by itself, without a notice.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);

/// Sockets on which the web server listens.
#[derive(Debug)]
pub struct Listeners {
    /// Listener for this machine: everyone may read, commands need the token or a key.
    pub loopback: TcpListener,
    /// Listener for other machines, if enabled by the user: even reading needs the token or a key.
    pub network: Option<TcpListener>,
}

/// Binds a TCP port; 0 lets the system choose a free one.
///
/// # Errors
///
/// If the port is in use, or the address does not belong to this machine.
pub async fn bind(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((address, port))).await
}

/// Serves requests until `stop` completes, then closes the event streams of all open pages.
///
/// # Errors
///
/// If the system has no random numbers, or the address of the listener cannot be read.
pub async fn serve(
    listeners: Listeners,
    control: ServerDeps,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let port = listeners.loopback.local_addr()?.port();
    let (shutdown_sender, shutdown_receiver) = watch::channel(false);
    let updates = LiveUpdates::default();
    let handle = Arc::clone(&control.service);
    let app = AppState {
        cache: Arc::new(SummaryCache::new(control.sources.clone())),
        guard: Guard {
            exposure: Exposure::Loopback,
            port,
            token: control.token.clone(),
            read_key: control.read_key.clone(),
            keys: LoginKeys::new(port, new_token()?),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
        },
        live_updates: updates.clone(),
        shutdown: shutdown_receiver,
        theme: theme::Theme::default(),
        path: "/".into(),
        deps: control,
    };
    let local = service(app.clone());
    let accept_remote = async {
        let Some(listener) = listeners.network else { return std::future::pending().await };
        // The limit is its own, so that requests from the network cannot block those from this machine.
        let requests = Arc::new(Semaphore::new(MAX_REQUESTS));
        let guard = Guard { exposure: Exposure::Network, requests, ..app.guard.clone() };
        let remote = service(AppState { guard, ..app.clone() });
        accept(listener, remote).await;
    };
    tokio::select! {
        () = stop => {}
        () = updates.run(handle) => {}
        () = accept(listeners.loopback, local) => {}
        () = accept_remote => {}
    }
    let _ = shutdown_sender.send(true);
    Ok(())
}

/// Returns the service that answers the requests of a listener.
fn service(app: AppState) -> TowerToHyperService<axum::Router> {
    TowerToHyperService::new(routes::routes(app))
}

/// Accepts connections for ever. When all connection slots are in use by active requests, new connections are
/// dropped.
async fn accept(listener: TcpListener, service: TowerToHyperService<axum::Router>) {
    let connections = Connections::new(MAX_CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: close an idle connection and try again shortly.
            connections.close_idle();
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Dropping the connection at once is better than queueing it: the client sees an error and can retry.
        let Some(slot) = connections.acquire() else { continue };
        tokio::spawn(serve_connection(stream, slot, service.clone()));
        // Yield, so that the request of this connection is read before the next connection can evict it as idle.
        tokio::task::yield_now().await;
    }
}

async fn serve_connection(
    stream: TcpStream,
    slot: ConnectionSlot,
    service: TowerToHyperService<axum::Router>,
) {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), slot.track(service));
    tokio::select! {
        _ = tokio::time::timeout(CONNECTION_TIMEOUT, connection) => {}
        () = slot.close_requested() => {}
    }
}
