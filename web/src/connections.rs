//! Open connections, and the choice of the one to close when there are too many.
//!
//! An idle connection occupies a slot that another client may need. When all slots are in use, the connection that
//! has been idle for longest is closed. [`Guard`](crate::guard::Guard) limits the requests in flight of untrusted
//! clients to fewer than there are slots. Together, both limits guarantee that a trusted client always gets a
//! slot.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::service::Service;
use tokio::sync::Notify;

/// The open connections of one listener. Cloning is cheap.
#[derive(Clone)]
pub struct Connections {
    capacity: usize,
    open: Arc<Mutex<OpenConnections>>,
}

#[derive(Default)]
struct OpenConnections {
    next_id: u64,
    connections: BTreeMap<u64, Arc<ConnectionActivity>>,
}

/// State of one connection: idle, or serving a request.
struct ConnectionActivity {
    /// Time since when no request is in flight; `None` while one is.
    idle_since: Mutex<Option<Instant>>,
    close_requested: Notify,
}

/// A slot for one connection, released on drop.
pub struct ConnectionSlot {
    id: u64,
    activity: Arc<ConnectionActivity>,
    connections: Connections,
}

impl Connections {
    /// Creates the list of connections for one listener, with room for `most` connections.
    pub fn new(most: usize) -> Self {
        Self { capacity: most, open: Arc::default() }
    }

    /// Returns a slot for a new connection. If all slots are in use, closes the connection that has been idle for
    /// longest; returns `None` if no connection is idle.
    pub fn acquire(&self) -> Option<ConnectionSlot> {
        let mut open = lock(&self.open);
        if open.connections.len() >= self.capacity {
            open.close_idle()?;
        }
        let number = open.next_id;
        open.next_id += 1;
        let activity = Arc::new(ConnectionActivity {
            idle_since: Mutex::new(Some(Instant::now())),
            close_requested: Notify::new(),
        });
        open.connections.insert(number, Arc::clone(&activity));
        Some(ConnectionSlot { id: number, activity, connections: self.clone() })
    }

    /// Closes the connection that has been idle for longest, if any is idle.
    pub fn close_idle(&self) {
        let _ = lock(&self.open).close_idle();
    }
}

impl OpenConnections {
    /// Closes the connection that has been idle for longest; on a tie, the oldest one. Returns `None` if none is
    /// idle.
    fn close_idle(&mut self) -> Option<()> {
        let idle = self.connections.iter().filter_map(|(number, activity)| {
            let since = *lock(&activity.idle_since);
            Some((since?, *number))
        });
        let (_, number) = idle.min()?;
        self.connections.remove(&number)?.close_requested.notify_one();
        Some(())
    }
}

impl ConnectionSlot {
    /// Completes when the connection has to be closed in favour of another one.
    pub async fn close_requested(&self) {
        self.activity.close_requested.notified().await;
    }

    /// Wraps the service of this connection, so that its requests are counted as in flight.
    pub fn track<S>(&self, service: S) -> TrackedService<S> {
        TrackedService { service, activity: Arc::clone(&self.activity) }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.connections.open).connections.remove(&self.id);
    }
}

/// Marks a connection as busy, from the head of a request until its response was handed over to be sent.
struct InFlight(Arc<ConnectionActivity>);

impl InFlight {
    fn of(activity: &Arc<ConnectionActivity>) -> Self {
        *lock(&activity.idle_since) = None;
        Self(Arc::clone(activity))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        *lock(&self.0.idle_since) = Some(Instant::now());
    }
}

/// An HTTP service that marks its connection as busy while a request is in flight.
pub struct TrackedService<S> {
    service: S,
    activity: Arc<ConnectionActivity>,
}

impl<S> Service<Request<Incoming>> for TrackedService<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<GuardedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_flight = InFlight::of(&self.activity);
        let answer = self.service.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| GuardedBody::new(body, in_flight))) })
    }
}

/// A response body that keeps a guard value alive until the body was handed over to be sent.
pub struct GuardedBody {
    body: Body,
    _held: Box<dyn Send>,
}

impl GuardedBody {
    /// Creates a body that keeps `held` alive until the body is dropped.
    pub fn new(body: Body, held: impl Send + 'static) -> Self {
        Self { body, _held: Box::new(held) }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a connection was requested to close.
    fn is_closing(slot: &ConnectionSlot) -> bool {
        let mut closing = std::pin::pin!(slot.close_requested());
        closing.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn longest_idle_connection_is_closed() {
        let connections = Connections::new(2);
        let (first, second) = (connections.acquire().unwrap(), connections.acquire().unwrap());
        drop(InFlight::of(&first.activity));
        let third = connections.acquire().unwrap();
        assert_eq!(
            [&first, &second, &third].map(is_closing),
            [false, true, false],
            "the first connection was used after the second"
        );
        drop((first, second, third));
        assert!(lock(&connections.open).connections.is_empty());
    }

    #[test]
    fn connection_with_request_in_flight_is_kept() {
        let connections = Connections::new(2);
        let (first, second) = (connections.acquire().unwrap(), connections.acquire().unwrap());
        let requests = [&first, &second].map(|slot| InFlight::of(&slot.activity));
        assert!(connections.acquire().is_none() && !is_closing(&first) && !is_closing(&second));
        drop(requests);
        assert!(connections.acquire().is_some());
    }

    #[test]
    fn slot_is_released_when_its_connection_ends() {
        let connections = Connections::new(1);
        for _ in 0..3 {
            let slot = connections.acquire().unwrap();
            let _request = InFlight::of(&slot.activity);
            assert!(connections.acquire().is_none());
        }
        assert!(connections.acquire().is_some());
    }

    #[test]
    fn body_keeps_its_guard_until_it_is_dropped() {
        let held = Arc::new(());
        let body = GuardedBody::new(Body::from("abc"), Arc::clone(&held));
        assert_eq!((body.size_hint().exact(), Arc::strong_count(&held)), (Some(3), 2));
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
