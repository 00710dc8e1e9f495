//! State shared by all request handlers.

use std::sync::Arc;

use longhaul_measure::platform;
use tokio::sync::watch;

use crate::cache::SummaryCache;
use crate::deps::ServerDeps;
use crate::guard::Guard;
use crate::live::LiveState;
use crate::live_updates::LiveUpdates;
use longhaul_model::Timestamp;

/// Everything that a request handler needs. Cloning is cheap.
#[derive(Clone)]
pub struct AppState {
    /// Dependencies of the server: the service handle, the log level, the metrics.
    pub deps: ServerDeps,
    /// Cached history and weekly summaries.
    pub cache: Arc<SummaryCache>,
    /// Access rules of the listener that received the request.
    pub guard: Guard,
    /// Live updates of open pages.
    pub live_updates: LiveUpdates,
    /// Becomes true when the service shuts down.
    pub shutdown: watch::Receiver<bool>,
}

impl AppState {
    /// Returns the current status of the service and the round in progress.
    pub fn live_state(&self) -> LiveState {
        LiveState { status: self.deps.service.status(), live: self.deps.service.live_status() }
    }

    /// Returns the wall clock.
    pub fn now(&self) -> Timestamp {
        platform::wall_clock()
    }
}
