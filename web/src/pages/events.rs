//! `/events`: what is live, to every page that is open. Drawn once a second for all of them, and only while one is open.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use longhaul_report::charts::svg::readable;
use longhaul_service::desk::Desk;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::Now;
use crate::MOST_REQUESTS;
use crate::face::Face;

/// How often it is looked whether something is new: a stall is on every page within two of these.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How often a page that is open hears that we are still there.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// After how long a page comes back when the connection is lost.
const BACK_AFTER: Duration = Duration::from_secs(2);
/// Pages that are open at a time: their share of the requests in flight.
const MOST_PAGES: usize = MOST_REQUESTS / 2;

/// What all pages show at one moment: name and content of each live place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Frame {
    number: u64,
    parts: [(&'static str, Arc<str>); 3],
}

/// The frames, and who may have them.
#[derive(Clone)]
pub struct Frames {
    sender: Arc<watch::Sender<Frame>>,
    pages: Arc<Semaphore>,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(Frame::default())),
            pages: Arc::new(Semaphore::new(MOST_PAGES)),
        }
    }
}

impl Frames {
    /// Draws again and again, until it is dropped. The streams end with `stop`.
    pub async fn draw(self, desk: Arc<Desk>) {
        loop {
            if self.sender.receiver_count() > 0 {
                let parts = parts(&Now { status: desk.status(), live: desk.live() });
                self.sender.send_if_modified(|frame| {
                    let is_new = frame.parts != parts;
                    if is_new {
                        *frame = Frame { number: frame.number + 1, parts };
                    }
                    is_new
                });
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
}

fn parts(now: &Now) -> [(&'static str, Arc<str>); 3] {
    [("state", now.state()), ("troubles", now.troubles()), ("round", now.round())]
        .map(|(name, markup)| (name, readable(&markup.into_string()).into()))
}

/// What one page has seen.
struct Watching {
    frames: watch::Receiver<Frame>,
    stop: watch::Receiver<bool>,
    seen: Frame,
    waiting: Vec<Event>,
    _place: OwnedSemaphorePermit,
}

/// The stream of one page. One that comes back with the number of the newest frame gets only what is new.
pub async fn stream(State(face): State<Face>, headers: HeaderMap) -> Response {
    let Ok(place) = Arc::clone(&face.frames.pages).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, [(CONNECTION, "close")]).into_response();
    };
    let mut frames = face.frames.sender.subscribe();
    let current = frames.borrow_and_update().clone();
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    let has_it = last == Some(current.number) && current.number > 0;
    let seen = if has_it { current } else { Frame::default() };
    if !has_it {
        frames.mark_changed();
    }
    let watching = Watching { frames, stop: face.stop.clone(), seen, waiting: vec![], _place: place };
    Sse::new(events(watching)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
}

fn events(watching: Watching) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(watching, |mut watching| async move {
        loop {
            if let Some(event) = watching.waiting.pop() {
                return Some((Ok(event), watching));
            }
            tokio::select! {
                _ = watching.stop.wait_for(|stop| *stop) => return None,
                changed = watching.frames.changed() => changed.ok()?,
            }
            let frame = watching.frames.borrow_and_update().clone();
            watching.waiting = new_parts(&frame, &watching.seen);
            watching.seen = frame;
        }
    })
}

/// What is new, the last first.
fn new_parts(frame: &Frame, seen: &Frame) -> Vec<Event> {
    let is_new = |part: &&(&str, Arc<str>)| !seen.parts.contains(part) && !part.0.is_empty();
    let event = |(name, content): &(&'static str, Arc<str>)| {
        Event::default().event(*name).id(frame.number.to_string()).retry(BACK_AFTER).data(&**content)
    };
    frame.parts.iter().rev().filter(is_new).map(event).collect()
}
