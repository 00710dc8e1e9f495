//! Everything that the web server needs from the service.

use std::sync::Arc;
use std::time::Duration;

use longhaul_service::handle::ServiceHandle;

use crate::cache::SummarySources;

/// Callback that changes the log level. The error is a message for the user.
pub type SetLogLevel = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// Callback that returns the metrics as text for Prometheus. The error is a message for the user.
pub type Metrics = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// Everything that the web server needs from the service.
#[derive(Clone)]
pub struct ServerDeps {
    /// Handle of the service, for commands and status.
    pub service: Arc<ServiceHandle>,
    /// Secret that every command from a program has to carry.
    pub token: Arc<str>,
    /// Key with which a program on another machine may read; `None` if there is none.
    pub read_key: Option<Arc<str>>,
    /// Callback that changes the log level.
    pub set_log_level: SetLogLevel,
    /// Callback that returns the metrics as text for Prometheus.
    pub metrics: Metrics,
    /// Paths of the database and the configuration.
    pub sources: SummarySources,
    /// Time within which a client has to send the body of a request; [`BODY_TIMEOUT`](crate::BODY_TIMEOUT) outside tests.
    pub body_timeout: Duration,
    /// Notice at the top of each page, for example that the data is made up.
    pub notice: Option<&'static str>,
}
