//! The status of a service.

use std::fmt;

/// Words about the last exit of an agent that launchd could not start: 78 also stands for log files that it cannot open,
/// although the program never ran (public reports: NousResearch/hermes-agent#78129 and #107618).
const SPAWN_FAILURES: [&str; 3] = ["last exit code 78", "spawn failed", "OS_REASON_CODESIGNING"];

/// Advice for such an agent. macOS keeps the signature of a program with its file, and kills one that was written over
/// in place (Apple, "Updating Mac Software").
const SPAWN_ADVICE: &str = "launchd cannot start the program or open its log files: check that the program exists, then `longhaul service \
    install`; if you replaced the program by copying over it, delete it and copy it again first";

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
    Starting {
        /// Last exit of the service, such as `last exit code 1`; `None` if it was no failure, or is unknown.
        after: Option<String>,
    },
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

impl RunState {
    /// Returns advice for an agent that launchd cannot start; `None` if the state does not say so.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Starting { after: Some(exit) } | Self::Stopped { reason: Some(exit) } => {
                is_spawn_failure(exit).then_some(SPAWN_ADVICE)
            }
            _ => None,
        }
    }
}

/// Returns true if a text about the last exit says that launchd could not start the agent.
pub(crate) fn is_spawn_failure(exit: &str) -> bool {
    SPAWN_FAILURES.iter().any(|words| exit.contains(words))
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoaded => f.write_str("not loaded"),
            Self::Starting { after: Some(exit) } => write!(f, "starting again, after {exit}"),
            Self::Starting { after: None } => f.write_str("starting"),
            Self::Running { pid: Some(pid) } => write!(f, "running, process {pid}"),
            Self::Running { pid: None } => f.write_str("running"),
            Self::Stopped { reason: Some(how) } => write!(f, "stopped: {how}"),
            Self::Stopped { reason: None } => f.write_str("stopped"),
            Self::Unknown { first_line } => write!(f, "not known: launchctl printed `{first_line}`"),
        }
    }
}
