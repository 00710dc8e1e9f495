//! The open connections, and which one gives way when there are too many.
//!
//! A connection without a request in flight holds a place that somebody else may need more. So when all places are taken,
//! the one that has been idle for longest is closed. How many requests may be in flight at a time is the business of
//! [`Guard`](crate::guard::Guard): fewer than there are places, but for those who are trusted. From both together follows
//! that a trusted client always finds a place.

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

/// The connections of one listener. It is cheap to clone.
#[derive(Clone)]
pub struct Connections {
    most: usize,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Arc<Activity>>,
}

/// What one connection does.
struct Activity {
    /// Since when no request is in flight; `None`: one is.
    idle_since: Mutex<Option<Instant>>,
    closing: Notify,
}

/// A place among the connections, given back when it is dropped.
pub struct Place {
    number: u64,
    activity: Arc<Activity>,
    connections: Connections,
}

impl Connections {
    /// So many places, all of them free.
    pub fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// A place for a new connection. If all are taken, the connection that has been idle for longest is closed; `None`:
    /// each of them has a request in flight.
    pub fn admit(&self) -> Option<Place> {
        let mut open = lock(&self.open);
        if open.connections.len() >= self.most {
            open.close_idle()?;
        }
        let number = open.next;
        open.next += 1;
        let activity =
            Arc::new(Activity { idle_since: Mutex::new(Some(Instant::now())), closing: Notify::new() });
        open.connections.insert(number, Arc::clone(&activity));
        Some(Place { number, activity, connections: self.clone() })
    }

    /// Closes the connection that has been idle for longest, if any is idle.
    pub fn close_idle(&self) {
        let _ = lock(&self.open).close_idle();
    }
}

impl Open {
    /// Among equals the first that came.
    fn close_idle(&mut self) -> Option<()> {
        let idle = self.connections.iter().filter_map(|(number, activity)| {
            let since = *lock(&activity.idle_since);
            Some((since?, *number))
        });
        let (_, number) = idle.min()?;
        self.connections.remove(&number)?.closing.notify_one();
        Some(())
    }
}

impl Place {
    /// Returns when the connection has to give way.
    pub async fn closing(&self) {
        self.activity.closing.notified().await;
    }

    /// The service of this connection: its requests are known to be in flight.
    pub fn watch<S>(&self, service: S) -> Watched<S> {
        Watched { service, activity: Arc::clone(&self.activity) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.connections.open).connections.remove(&self.number);
    }
}

/// A request in flight: from its head until its answer was handed over to be sent.
struct InFlight(Arc<Activity>);

impl InFlight {
    fn of(activity: &Arc<Activity>) -> Self {
        *lock(&activity.idle_since) = None;
        Self(Arc::clone(activity))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        *lock(&self.0.idle_since) = Some(Instant::now());
    }
}

/// A service whose requests are known to be in flight.
pub struct Watched<S> {
    service: S,
    activity: Arc<Activity>,
}

impl<S> Service<Request<Incoming>> for Watched<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<HeldBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_flight = InFlight::of(&self.activity);
        let answer = self.service.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| HeldBody::new(body, in_flight))) })
    }
}

/// The body of an answer, which holds something until it was handed over to be sent.
pub struct HeldBody {
    body: Body,
    _held: Box<dyn Send>,
}

impl HeldBody {
    /// Holds something for as long as a body.
    pub fn new(body: Body, held: impl Send + 'static) -> Self {
        Self { body, _held: Box::new(held) }
    }
}

impl HttpBody for HeldBody {
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

    /// Whether a connection was told to give way.
    fn is_closing(place: &Place) -> bool {
        let mut closing = std::pin::pin!(place.closing());
        closing.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn the_longest_idle_connection_gives_way() {
        let connections = Connections::new(2);
        let (first, second) = (connections.admit().unwrap(), connections.admit().unwrap());
        drop(InFlight::of(&first.activity));
        let third = connections.admit().unwrap();
        assert_eq!(
            [&first, &second, &third].map(is_closing),
            [false, true, false],
            "the first was used since"
        );
        drop((first, second, third));
        assert!(lock(&connections.open).connections.is_empty());
    }

    #[test]
    fn a_request_in_flight_is_never_cut_off() {
        let connections = Connections::new(2);
        let (first, second) = (connections.admit().unwrap(), connections.admit().unwrap());
        let requests = [&first, &second].map(|place| InFlight::of(&place.activity));
        assert!(connections.admit().is_none() && !is_closing(&first) && !is_closing(&second));
        drop(requests);
        assert!(connections.admit().is_some());
    }

    #[test]
    fn a_place_is_given_back_with_its_connection() {
        let connections = Connections::new(1);
        for _ in 0..3 {
            let place = connections.admit().unwrap();
            let _request = InFlight::of(&place.activity);
            assert!(connections.admit().is_none());
        }
        assert!(connections.admit().is_some());
    }

    #[test]
    fn a_body_holds_until_it_is_dropped() {
        let held = Arc::new(());
        let body = HeldBody::new(Body::from("abc"), Arc::clone(&held));
        assert_eq!((body.size_hint().exact(), Arc::strong_count(&held)), (Some(3), 2));
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
