//! The supported service managers and their operations.

use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::CommandRunner;
use crate::status::ServiceStatus;
use crate::step::{Step, StepError};
use crate::{launchctl, systemctl};

/// The service manager of an operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// launchd of macOS.
    Launchd,
    /// The user instance of systemd on Linux.
    Systemd,
}

impl Manager {
    /// Returns the service manager of this operating system.
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    /// Returns the name of the service manager, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launchd => "launchd",
            Self::Systemd => "systemd --user",
        }
    }

    /// Returns the name of the file that defines the service.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Launchd => "org.longhaul.agent.plist",
            Self::Systemd => crate::UNIT_NAME,
        }
    }

    /// Returns the steps to install or update the service, and to start it.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the definition file cannot represent the plan.
    pub fn install(self, plan: &ServicePlan) -> Result<Vec<Step>, PlanError> {
        match self {
            Self::Launchd => launchctl::install(plan),
            Self::Systemd => systemctl::install(plan),
        }
    }

    /// Returns the steps to stop and remove the service. Without a status, when the manager cannot be reached,
    /// only the files are removed.
    pub fn remove(self, service: &Service, status: Option<&ServiceStatus>) -> Vec<Step> {
        match (self, status) {
            (Self::Launchd, Some(_)) => launchctl::remove(service),
            (Self::Launchd, None) => vec![Step::Remove(service.definition_path.clone())],
            (Self::Systemd, status) => systemctl::remove(service, status),
        }
    }

    /// Returns the steps to start the service; none if it is running.
    pub fn start(self, service: &Service, status: &ServiceStatus) -> Vec<Step> {
        match self {
            Self::Launchd => launchctl::start(service, status),
            Self::Systemd => systemctl::start(),
        }
    }

    /// Returns the steps to stop the service until it is started, or until the next login.
    pub fn stop(self, service: &Service) -> Vec<Step> {
        match self {
            Self::Launchd => launchctl::stop(service),
            Self::Systemd => systemctl::stop(),
        }
    }

    /// Returns the steps to restart the service, or to start it if it is not running.
    pub fn restart(self, service: &Service, status: &ServiceStatus) -> Vec<Step> {
        match self {
            Self::Launchd => launchctl::restart(service, status),
            Self::Systemd => systemctl::restart(),
        }
    }

    /// Returns the status of the service. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`StepError`] if the manager cannot be reached.
    pub fn status(self, service: &Service, runner: &dyn CommandRunner) -> Result<ServiceStatus, StepError> {
        match self {
            Self::Launchd => launchctl::status(service, runner),
            Self::Systemd => systemctl::status(service, runner),
        }
    }

    /// Returns whether the service keeps running when the user logs out; `None` if that is unknown.
    pub fn survives_logout(self, service: &Service, runner: &dyn CommandRunner) -> Option<bool> {
        match self {
            // A launchd agent belongs to the GUI session and ends with it, as do the shares that Finder has
            // mounted.
            Self::Launchd => Some(false),
            Self::Systemd => systemctl::has_lingering(service, runner),
        }
    }
}
