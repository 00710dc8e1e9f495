//! The definition of a background service.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use longhaul_model::Hint;

/// Identity of a service in the service manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Path of the file that defines the service: the plist or the unit.
    pub definition_path: PathBuf,
    /// Numeric id of the user whose service it is.
    pub user: u32,
}

/// The program to run, with its files. Every path is absolute: neither launchd nor systemd expands `~`, and they
/// do not know the working directory of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePlan {
    /// Identity of the service.
    pub service: Service,
    /// Path of `longhauld` that stays the same after updates.
    pub program: PathBuf,
    /// Path of the configuration.
    pub config: PathBuf,
    /// Path of the database.
    pub database: PathBuf,
    /// Path of the log folder.
    pub log_folder: PathBuf,
    /// Environment variables to set in addition to those of the system: the XDG folders that the user has moved.
    pub environment: BTreeMap<String, OsString>,
}

/// The reason why a definition file cannot represent a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The file format cannot represent this text.
    #[error("{what} is {}: {why}", .text.to_string_lossy().escape_debug())]
    Unrepresentable {
        /// Role of the text, such as "the program" or "the database".
        what: String,
        /// The text that cannot be represented.
        text: OsString,
        /// The reason why the file format cannot represent the text.
        why: &'static str,
        /// Advice for the user.
        advice: &'static str,
    },
    /// The path is relative.
    #[error("{what} is {}", path.display())]
    Relative {
        /// Role of the path, such as "the database".
        what: &'static str,
        /// The relative path.
        path: PathBuf,
    },
}

impl Hint for PlanError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unrepresentable { advice, .. } => advice,
            Self::Relative { .. } => {
                "give a path that begins with `/`, as the system does not know the current folder"
            }
        };
        Some(hint.to_owned())
    }
}

impl ServicePlan {
    /// Returns the command line: the program and its arguments, each with its role for error messages.
    pub(crate) fn command_line(&self) -> Result<[(&'static str, &OsStr); 5], PlanError> {
        let places = [
            ("the program", &self.program),
            ("the configuration", &self.config),
            ("the database", &self.database),
            ("the folder of the logs", &self.log_folder),
        ];
        for (what, path) in places {
            require_absolute(what, path)?;
        }
        Ok([
            ("the program", self.program.as_os_str()),
            ("an option", OsStr::new("--config")),
            ("the configuration", self.config.as_os_str()),
            ("an option", OsStr::new("--database")),
            ("the database", self.database.as_os_str()),
        ])
    }
}

fn require_absolute(what: &'static str, path: &Path) -> Result<(), PlanError> {
    if path.is_absolute() { Ok(()) } else { Err(PlanError::Relative { what, path: path.to_owned() }) }
}

/// A plan for tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the plan of a user called Ada, as in tests/fixtures/org.longhaul.agent.plist.
    pub fn plan() -> ServicePlan {
        ServicePlan {
            service: Service {
                definition_path: "/Users/ada/Library/LaunchAgents/org.longhaul.agent.plist".into(),
                user: 501,
            },
            program: "/opt/homebrew/bin/longhauld".into(),
            config: "/Users/ada/Library/Application Support/longhaul/config.toml".into(),
            database: "/Users/ada/Library/Application Support/longhaul/longhaul.sqlite".into(),
            log_folder: "/Users/ada/Library/Logs/longhaul".into(),
            environment: BTreeMap::new(),
        }
    }

    #[test]
    fn relative_path_is_refused_by_name() {
        let plan = ServicePlan { database: "x.sqlite".into(), ..plan() };
        let message = plan.command_line().unwrap_err().one_line();
        assert!(
            message.starts_with("the database is x.sqlite: give a path that begins with `/`"),
            "{message}"
        );
    }
}
