//! Renders live updates once a second for all open pages, and only while a page is open.

use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_service::handle::ServiceHandle;
use longhaul_view::charts::svg::strip_control_characters;
use tokio::sync::{Notify, Semaphore, watch};

use crate::limits::MAX_REQUESTS;
use crate::live::LiveState;

/// Interval at which the state of the service is polled. A stall is visible on every page within two intervals.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of open pages. Their streams take at most half of the requests in flight.
const MAX_PAGES: usize = MAX_REQUESTS / 2;

/// Number of live parts.
const PARTS: usize = 4;

/// The live parts of all pages at one time: name and HTML of each part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveUpdate {
    /// Number of the update, which no earlier process used; 0 stands for no update.
    pub number: u64,
    /// Name and HTML of each part; empty before the first update, and while no page is open.
    pub parts: [(&'static str, Arc<str>); PARTS],
}

/// The latest update, and the permits for streams.
#[derive(Clone)]
pub struct LiveUpdates {
    /// Sends each update to the streams of open pages.
    pub sender: Arc<watch::Sender<LiveUpdate>>,
    /// Notified when a page opens its stream.
    pub page_opened: Arc<Notify>,
    /// One permit for each page that may be open.
    pub stream_permits: Arc<Semaphore>,
}

impl Default for LiveUpdates {
    fn default() -> Self {
        // Numbers begin at the wall clock, so that a page of an earlier process is not taken for one that has the
        // latest update. There are far fewer updates than microseconds.
        let number = platform::wall_clock().as_us().unsigned_abs();
        Self {
            sender: Arc::new(watch::Sender::new(LiveUpdate { number, ..LiveUpdate::default() })),
            page_opened: Arc::default(),
            stream_permits: Arc::new(Semaphore::new(MAX_PAGES)),
        }
    }
}

impl LiveUpdates {
    /// Polls and publishes updates for ever, while a page is open. The streams themselves end with
    /// `AppState::shutdown`.
    pub async fn run(self, handle: Arc<ServiceHandle>) {
        loop {
            if self.sender.receiver_count() == 0 {
                // The next page may open hours later, and must not get the parts of now.
                self.sender.send_modify(|update| update.parts = LiveUpdate::default().parts);
                self.page_opened.notified().await;
            }
            let parts = parts(&LiveState { status: handle.status(), live: handle.live_status() });
            self.sender.send_if_modified(|update| {
                let is_new = update.parts != parts;
                if is_new {
                    *update = LiveUpdate { number: update.number + 1, parts };
                }
                is_new
            });
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

fn parts(now: &LiveState) -> [(&'static str, Arc<str>); PARTS] {
    let parts = [
        ("state", now.state_html()),
        ("problems", now.problems_html()),
        ("round", now.round_html()),
        ("targets", now.targets_html()),
    ];
    parts.map(|(name, markup)| (name, strip_control_characters(&markup.into_string()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timeout of the test; generous, because the machine may be busy.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Opens a page, waits for its first update, closes it, and waits until its parts are removed.
    async fn open_and_close(updates: &LiveUpdates) {
        let mut page = updates.sender.subscribe();
        updates.page_opened.notify_one();
        page.wait_for(|update| update.parts[0].0 == "state").await.unwrap();
        drop(page);
        // Another receiver would be another open page.
        while updates.sender.borrow().parts != LiveUpdate::default().parts {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[test]
    fn parts_are_removed_while_no_page_is_open() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let updates = LiveUpdates::default();
            let test = tokio::time::timeout(PATIENCE, open_and_close(&updates));
            tokio::select! {
                () = updates.clone().run(Arc::default()) => {}
                ended = test => ended.unwrap(),
            }
        });
    }
}
