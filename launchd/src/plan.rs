//! What is to run in the background.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Which service is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The file that tells the system of it: the plist, or the unit.
    pub definition: PathBuf,
    /// The user whose service it is.
    pub user: u32,
}

/// What is to run, and where it finds and leaves its things. Every path is absolute: neither launchd nor systemd
/// expands `~` or knows the folder of whoever installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePlan {
    /// Which service.
    pub service: Service,
    /// `longhauld`, by a path that stays the same over updates.
    pub program: PathBuf,
    /// Its configuration.
    pub config: PathBuf,
    /// Its database.
    pub database: PathBuf,
    /// The folder of its logs.
    pub logs: PathBuf,
    /// What its environment has to say beside what the system gives: where a person has moved the XDG folders to.
    pub environment: BTreeMap<String, OsString>,
}

/// Why a plan cannot be written down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The format has no way to say this text.
    #[error("{what} is {}: {why}. {advice}", .text.to_string_lossy().escape_debug())]
    Unwritable {
        /// What it is: "the program", "the database".
        what: String,
        /// The text.
        text: OsString,
        /// Why the format cannot carry it.
        why: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A path that begins nowhere.
    #[error("{what} is {}: give a path that begins with `/`, as the system does not know the current folder", path.display())]
    Relative {
        /// What it is.
        what: &'static str,
        /// The path.
        path: PathBuf,
    },
}

impl ServicePlan {
    /// The command line: the program and its arguments, each with what it is, for messages.
    pub(crate) fn words(&self) -> Result<[(&'static str, &OsStr); 5], PlanError> {
        let places = [
            ("the program", &self.program),
            ("the configuration", &self.config),
            ("the database", &self.database),
            ("the folder of the logs", &self.logs),
        ];
        for (what, path) in places {
            absolute(what, path)?;
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

fn absolute(what: &'static str, path: &Path) -> Result<(), PlanError> {
    if path.is_absolute() { Ok(()) } else { Err(PlanError::Relative { what, path: path.to_owned() }) }
}

/// A plan as a test wants it.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The plan of a person called Ada, as in the handbook.
    pub fn plan() -> ServicePlan {
        ServicePlan {
            service: Service {
                definition: "/Users/ada/Library/LaunchAgents/org.longhaul.agent.plist".into(),
                user: 501,
            },
            program: "/opt/homebrew/bin/longhauld".into(),
            config: "/Users/ada/Library/Application Support/longhaul/config.toml".into(),
            database: "/Users/ada/Library/Application Support/longhaul/longhaul.sqlite".into(),
            logs: "/Users/ada/Library/Logs/longhaul".into(),
            environment: BTreeMap::new(),
        }
    }

    #[test]
    fn a_path_that_begins_nowhere_is_refused_by_name() {
        let plan = ServicePlan { database: "x.sqlite".into(), ..plan() };
        let said = plan.words().unwrap_err().to_string();
        assert!(said.starts_with("the database is x.sqlite: give a path that begins with `/`"), "{said}");
    }
}
