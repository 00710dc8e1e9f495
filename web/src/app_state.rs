//! State shared by all request handlers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use longhaul_measure::platform;
use tokio::sync::watch;

use crate::cache::SummaryCache;
use crate::deps::ServerDeps;
use crate::guard::Guard;
use crate::live::LiveState;
use crate::live_updates::LiveUpdates;
use crate::theme::Theme;
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
    /// Colours that the reader of the request chose.
    pub theme: Theme,
    /// Path and query of the request.
    pub path: Arc<str>,
}

/// Handlers of pages take the state with the reader's choices from the request.
impl FromRequestParts<AppState> for AppState {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self { theme: Theme::of_request(&parts.headers), path: path.into(), ..app.clone() })
    }
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
