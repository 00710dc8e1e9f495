//! The service's face: HTTP on 127.0.0.1. The page, and status and figures as JSON, for everybody on this machine who asks
//! in the right way; orders for who holds the token, or comes from the page with a key.
//!
//! Answers come from memory and from the database, never from a target: whatever hangs, an answer takes no longer.

mod api;
mod assets;
mod badges;
mod body;
mod connections;
mod environment;
mod face;
mod guard;
mod gzip;
mod headers;
pub mod json;
mod keys;
mod openapi;
mod pages;
mod routes;
mod shelf;

pub use environment::environment;
pub use shelf::Sources;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use longhaul_service::desk::Desk;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use connections::{Connections, Place};
use face::Face;
use guard::{Guard, Reach};
use keys::Keys;
use pages::Frames;
use shelf::Shelf;

/// How long a client may take to send its headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);
/// The largest head of a request, in bytes.
const MOST_HEADER_BYTES: usize = 16 << 10;
/// The largest body of a request, in bytes.
const MOST_BODY_BYTES: usize = 16 << 10;
/// Requests in flight at a time of callers without token and key, and streams.
const MOST_REQUESTS: usize = 256;
/// Connections at a time: beside those requests there is room for the command line and for pages with a key.
const MOST_CONNECTIONS: usize = MOST_REQUESTS + 32;
/// How long a connection may last in all: longer than the longest answer, which is the doctor's. A page that is open comes
/// back by itself.
const CONNECTION_WITHIN: Duration = Duration::from_secs(120);

/// Changes what the log says; the error is for the person.
pub type SetLevel = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What Prometheus reads, as text; the error is for the person.
pub type Metrics = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// How patient the interface is.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a client may take to send the body of a request.
    pub body: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: Duration::from_secs(5) }
    }
}

/// What the interface needs.
#[derive(Clone)]
pub struct Control {
    /// Where orders go to and status comes from.
    pub desk: Arc<Desk>,
    /// What every order has to carry.
    pub token: Arc<str>,
    /// Changes the log level.
    pub set_level: SetLevel,
    /// What Prometheus reads.
    pub metrics: Metrics,
    /// Where figures come from.
    pub sources: Sources,
    /// How patient it is.
    pub limits: Limits,
}

/// Where people and programs come in.
#[derive(Debug)]
pub struct Doors {
    /// On this machine: everybody may read, orders need the token or a key.
    pub loopback: TcpListener,
    /// From other machines, where the person wants that: whoever has neither token nor key reads nothing either.
    pub network: Option<TcpListener>,
}

/// Takes a port, or whichever is free for 0.
///
/// # Errors
///
/// If the port is taken, or the address is not this machine's.
pub async fn listen(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((address, port))).await
}

/// A token that nobody can guess: 32 bytes of the system's randomness, in hexadecimal digits.
///
/// # Errors
///
/// If the system gives none.
pub fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Answers until it is told to stop, and ends the streams of all open pages then.
///
/// # Errors
///
/// If the system gives no randomness, or does not say on which port it listens.
pub async fn serve(doors: Doors, control: Control, stop: impl Future<Output = ()>) -> io::Result<()> {
    let port = doors.loopback.local_addr()?.port();
    let (ending, ends) = watch::channel(false);
    let frames = Frames::default();
    let desk = Arc::clone(&control.desk);
    let face = Face {
        shelf: Arc::new(Shelf::new(control.sources.clone())),
        guard: Guard {
            reach: Reach::Loopback,
            port,
            token: control.token.clone(),
            keys: Keys::new(port, new_token()?),
            requests: Arc::new(Semaphore::new(MOST_REQUESTS)),
        },
        frames: frames.clone(),
        stop: ends,
        control,
    };
    let behind = |reach| {
        // Neither side takes the places of the other.
        let requests = Arc::new(Semaphore::new(MOST_REQUESTS));
        let guard = Guard { reach, requests, ..face.guard.clone() };
        TowerToHyperService::new(routes::routes(Face { guard, ..face.clone() }))
    };
    let (here, elsewhere) = (behind(Reach::Loopback), behind(Reach::Network));
    let from_elsewhere = async {
        match doors.network {
            Some(listener) => accept(listener, elsewhere).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop => {}
        () = frames.draw(desk) => {}
        () = accept(doors.loopback, here) => {}
        () = from_elsewhere => {}
    }
    let _ = ending.send(true);
    Ok(())
}

/// Takes whoever comes, as far as there are places.
async fn accept(listener: TcpListener, service: TowerToHyperService<axum::Router>) {
    let connections = Connections::new(MOST_CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: whoever comes next may have more luck.
            connections.close_idle();
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Whoever finds no place is let go at once, so that nobody waits behind a crowd.
        let Some(place) = connections.admit() else { continue };
        tokio::spawn(serve_connection(stream, place, service.clone()));
        // A request that came with its connection is read before further connections may push that one out.
        tokio::task::yield_now().await;
    }
}

async fn serve_connection(stream: TcpStream, place: Place, service: TowerToHyperService<axum::Router>) {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(MOST_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), place.watch(service));
    tokio::select! {
        _ = tokio::time::timeout(CONNECTION_WITHIN, connection) => {}
        () = place.closing() => {}
    }
}
