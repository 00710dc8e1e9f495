//! Who runs background services on a system, and what a person can want of them.

use std::fmt;

use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::Runner;
use crate::step::{Step, StepError};
use crate::{launchctl, systemctl};

/// Who runs background services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// macOS.
    Launchd,
    /// The instance of systemd that each user has.
    Systemd,
}

/// How a service stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whether the file that defines it is there.
    pub defined: bool,
    /// What the system has of it.
    pub activity: Activity,
}

/// What the system has of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// Nothing: it is not loaded.
    Absent,
    /// It is being started, or waits for its next start.
    Starting,
    /// It runs.
    Running {
        /// The daemon's process; `None` if the system does not say.
        pid: Option<u32>,
    },
    /// It is loaded and does not run.
    Stopped {
        /// How it failed, if it did.
        how: Option<String>,
    },
    /// It is loaded, and what the system says of it is not known to this longhaul.
    Unknown {
        /// The first line of what the system says.
        first_line: String,
    },
}

impl Manager {
    /// That of this system.
    pub const fn here() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launchd => "launchd",
            Self::Systemd => "systemd --user",
        }
    }

    /// The name of the file that defines the service.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Launchd => "org.longhaul.agent.plist",
            Self::Systemd => crate::UNIT,
        }
    }

    /// Installs the service, or updates it, and has it running.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the plan cannot be written down.
    pub fn install(self, plan: &ServicePlan) -> Result<Vec<Step>, PlanError> {
        match self {
            Self::Launchd => launchctl::install(plan),
            Self::Systemd => systemctl::install(plan),
        }
    }

    /// Stops the service and takes it away. Without a standing, as where the manager cannot be asked: only its files.
    pub fn remove(self, service: &Service, standing: Option<&Standing>) -> Vec<Step> {
        match (self, standing) {
            (Self::Launchd, Some(_)) => launchctl::remove(service),
            (Self::Launchd, None) => vec![Step::Remove(service.definition.clone())],
            (Self::Systemd, standing) => systemctl::remove(service, standing),
        }
    }

    /// Starts the service; nothing to do if it runs.
    pub fn start(self, service: &Service, standing: &Standing) -> Vec<Step> {
        match self {
            Self::Launchd => launchctl::start(service, standing),
            Self::Systemd => systemctl::start(),
        }
    }

    /// Stops the service until it is started or the person logs in anew.
    pub fn stop(self, service: &Service) -> Vec<Step> {
        match self {
            Self::Launchd => launchctl::stop(service),
            Self::Systemd => systemctl::stop(),
        }
    }

    /// Stops the service if it runs, and starts it.
    pub fn restart(self, service: &Service, standing: &Standing) -> Vec<Step> {
        match self {
            Self::Launchd => launchctl::restart(service, standing),
            Self::Systemd => systemctl::restart(),
        }
    }

    /// How the service stands. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`StepError`] if the manager cannot be asked.
    pub fn standing(self, service: &Service, runner: &dyn Runner) -> Result<Standing, StepError> {
        match self {
            Self::Launchd => launchctl::standing(service, runner),
            Self::Systemd => systemctl::standing(service, runner),
        }
    }

    /// Services of other installers that run longhaul already, by the names that their system gives them.
    ///
    /// # Errors
    ///
    /// [`StepError`] if the manager cannot be asked.
    pub fn rivals(self, service: &Service, runner: &dyn Runner) -> Result<Vec<&'static str>, StepError> {
        match self {
            Self::Launchd => launchctl::rivals(service, runner),
            Self::Systemd => Ok(vec![]),
        }
    }

    /// Whether the service goes on when the person logs out; `None` where that is not known.
    pub fn survives_logout(self, service: &Service, runner: &dyn Runner) -> Option<bool> {
        match self {
            // an agent of the screen's session ends with it, and so do the shares that Finder has mounted
            Self::Launchd => Some(false),
            Self::Systemd => systemctl::lingers(service, runner),
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not loaded"),
            Self::Starting => f.write_str("starting"),
            Self::Running { pid: Some(pid) } => write!(f, "running, process {pid}"),
            Self::Running { pid: None } => f.write_str("running"),
            Self::Stopped { how: Some(how) } => write!(f, "stopped: {how}"),
            Self::Stopped { how: None } => f.write_str("stopped"),
            Self::Unknown { first_line } => write!(f, "not known: launchctl printed `{first_line}`"),
        }
    }
}
