//! The status of a service.

use std::fmt;

/// Status of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStatus {
    /// True if the file that defines the service exists.
    pub is_defined: bool,
    /// Run state of the service.
    pub run_state: RunState,
}

/// Run state of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The service manager has not loaded the service.
    NotLoaded,
    /// The service is starting, or waits for its next start.
    Starting,
    /// The service is running.
    Running {
        /// Process id of the daemon; `None` if the system does not report it.
        pid: Option<u32>,
    },
    /// The service is loaded, but not running.
    Stopped {
        /// Reason of the last failure; `None` if there was none.
        reason: Option<String>,
    },
    /// The service is loaded, but its state could not be parsed.
    Unknown {
        /// First line of the output that could not be parsed.
        first_line: String,
    },
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoaded => f.write_str("not loaded"),
            Self::Starting => f.write_str("starting"),
            Self::Running { pid: Some(pid) } => write!(f, "running, process {pid}"),
            Self::Running { pid: None } => f.write_str("running"),
            Self::Stopped { reason: Some(how) } => write!(f, "stopped: {how}"),
            Self::Stopped { reason: None } => f.write_str("stopped"),
            Self::Unknown { first_line } => write!(f, "not known: launchctl printed `{first_line}`"),
        }
    }
}
