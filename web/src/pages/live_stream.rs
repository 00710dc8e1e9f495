//! `/stream`: sends live updates to an open page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::app_state::AppState;
use crate::live_updates::LiveUpdate;

/// Interval of keep-alive messages on an open stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Delay after which a page reconnects when its connection is lost.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// State of the stream of one page.
struct PageStream {
    updates: watch::Receiver<LiveUpdate>,
    shutdown: watch::Receiver<bool>,
    seen: LiveUpdate,
    queued: Vec<Event>,
    _permit: OwnedSemaphorePermit,
}

/// Serves the event stream of one page. A page that reconnects with the id of the latest update gets only newer
/// ones.
pub async fn stream(app: AppState, headers: HeaderMap) -> Response {
    let Ok(permit) = Arc::clone(&app.live_updates.stream_permits).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, [(CONNECTION, "close")]).into_response();
    };
    let mut receiver = app.live_updates.sender.subscribe();
    app.live_updates.page_opened.notify_one();
    let current = receiver.borrow_and_update().clone();
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    let has_it = last == Some(current.number);
    let seen = if has_it { current } else { LiveUpdate::default() };
    if !has_it {
        receiver.mark_changed();
    }
    let page = PageStream {
        updates: receiver,
        shutdown: app.shutdown.clone(),
        seen,
        queued: vec![],
        _permit: permit,
    };
    Sse::new(event_stream(page)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)).into_response()
}

fn event_stream(page: PageStream) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(page, |mut page| async move {
        loop {
            if let Some(event) = page.queued.pop() {
                return Some((Ok(event), page));
            }
            tokio::select! {
                _ = page.shutdown.wait_for(|stop| *stop) => return None,
                changed = page.updates.changed() => changed.ok()?,
            }
            let update = page.updates.borrow_and_update().clone();
            page.queued = changed_parts(&update, &page.seen);
            page.seen = update;
        }
    })
}

/// Returns the parts that differ from those already sent, in reverse order, because the queue is popped from its
/// end.
fn changed_parts(update: &LiveUpdate, seen: &LiveUpdate) -> Vec<Event> {
    let is_new = |part: &&(&str, Arc<str>)| !seen.parts.contains(part) && !part.0.is_empty();
    let event = |(name, content): &(&'static str, Arc<str>)| {
        Event::default().event(*name).id(update.number.to_string()).retry(RECONNECT_DELAY).data(&**content)
    };
    update.parts.iter().rev().filter(is_new).map(event).collect()
}
