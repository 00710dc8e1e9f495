//! The service's program file, and the service's reaction when an upgrade replaces it.
//!
//! An upgrade replaces the file but not the running process: the old service would
//! continue and start workers of the new version.

use std::path::{Path, PathBuf};

use crate::file_version::FileVersion;

/// A service manager that restarts the service when it exits with a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceManager {
    /// launchd on macOS.
    Launchd,
    /// The systemd instance of the user.
    Systemd,
}

impl ServiceManager {
    /// Returns the manager that started this process. `None`: a user or a script started it.
    pub fn of_process() -> Option<Self> {
        Self::from_environment(|name| std::env::var(name).ok(), std::process::id())
    }

    /// Detects the manager from environment variables. Processes inherit them, so a variable may only mean that
    /// a parent process, such as a terminal, was started by the manager. launchd sets the label of a job, `0`
    /// in a terminal, and `application.` with the bundle in an application, which the shells in VS Code and
    /// JetBrains' programs pass on. systemd names the process it started (systemd.exec(5), since 248).
    fn from_environment(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Option<Self> {
        let is_job = |name: &String| !name.is_empty() && name != "0" && !name.starts_with("application.");
        if variable("XPC_SERVICE_NAME").is_some_and(|name| is_job(&name)) {
            return Some(Self::Launchd);
        }
        let is_started = variable("SYSTEMD_EXEC_PID").is_none_or(|started| started == pid.to_string());
        (is_started && variable("INVOCATION_ID").is_some()).then_some(Self::Systemd)
    }
}

/// The service's reaction to the state of its program file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeAction {
    /// Continue: the file is unchanged, or temporarily missing, as in the middle of an upgrade.
    Continue,
    /// Raise a problem: no service manager would restart the service.
    Warn,
    /// Exit, so that the service manager starts the new version.
    Exit,
}

impl UpgradeAction {
    /// Returns the reaction to the file's version at the start and now, with or without a service manager.
    fn decide(
        started: Option<FileVersion>,
        now: Option<FileVersion>,
        manager: Option<ServiceManager>,
    ) -> Self {
        match (started, now, manager) {
            (Some(started), Some(now), Some(_)) if started != now => Self::Exit,
            (Some(started), Some(now), None) if started != now => Self::Warn,
            _ => Self::Continue,
        }
    }
}

/// Path of the program file, with its version when the service started.
#[derive(Debug, Clone)]
pub struct ProgramFile {
    path: PathBuf,
    started_version: Option<FileVersion>,
    manager: Option<ServiceManager>,
}

impl ProgramFile {
    /// Records the program file of this process. `None`: the operating system does not return its path.
    pub fn of_process() -> Option<Self> {
        let actual = std::env::current_exe().ok()?;
        let called = std::env::args_os().next().map(PathBuf::from);
        Some(Self::new(service_program(called, actual), ServiceManager::of_process()))
    }

    /// Records the current version of a program file.
    pub fn new(path: PathBuf, manager: Option<ServiceManager>) -> Self {
        Self { started_version: FileVersion::of(&path), path, manager }
    }

    /// Checks whether the file was replaced, and returns the reaction.
    pub fn check(&self) -> UpgradeAction {
        UpgradeAction::decide(self.started_version, FileVersion::of(&self.path), self.manager)
    }

    /// Returns the reaction to a worker that reports another version.
    pub fn on_version_mismatch(&self) -> UpgradeAction {
        if self.manager.is_some() { UpgradeAction::Exit } else { UpgradeAction::Warn }
    }

    /// Returns the path of the program file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the path by which the program was called, if it is absolute and leads to the program; otherwise
/// `actual`. If that path is a symbolic link, as with Homebrew, an upgrade changes the link but keeps or
/// removes the file behind it, which is what Linux returns as `actual`.
fn service_program(called: Option<PathBuf>, actual: PathBuf) -> PathBuf {
    let is_same = |called: &PathBuf| FileVersion::of(called) == FileVersion::of(&actual);
    called.filter(|called| called.is_absolute() && is_same(called)).unwrap_or(actual)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn service_manager_is_detected_only_by_its_own_process() {
        let detect = |variables: &[(&str, &str)]| {
            let found = |name: &str| variables.iter().find(|(key, _)| *key == name);
            ServiceManager::from_environment(|name| found(name).map(|(_, value)| (*value).to_owned()), 42)
        };
        assert_eq!(detect(&[("XPC_SERVICE_NAME", "org.longhaul.agent")]), Some(ServiceManager::Launchd));
        assert_eq!(detect(&[("INVOCATION_ID", "1f")]), Some(ServiceManager::Systemd));
        assert_eq!(
            detect(&[("INVOCATION_ID", "1f"), ("SYSTEMD_EXEC_PID", "42")]),
            Some(ServiceManager::Systemd)
        );
        for inherited in [
            &[][..],
            &[("XPC_SERVICE_NAME", "0")],
            &[("XPC_SERVICE_NAME", "")],
            &[("XPC_SERVICE_NAME", "application.com.microsoft.VSCode.59852660.59852666")],
            &[("INVOCATION_ID", "1f"), ("SYSTEMD_EXEC_PID", "7")],
        ] {
            assert_eq!(detect(inherited), None, "{inherited:?}");
        }
    }

    #[test]
    fn only_a_replaced_file_is_an_upgrade() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "1").unwrap();
        fs::write(&new, "2").unwrap();
        let (old, new) = (FileVersion::of(&old), FileVersion::of(&new));
        let systemd = Some(ServiceManager::Systemd);
        assert_eq!(UpgradeAction::decide(old, new, systemd), UpgradeAction::Exit);
        assert_eq!(UpgradeAction::decide(old, new, None), UpgradeAction::Warn);
        for manager in [systemd, None] {
            for (started, now) in [(old, old), (old, None), (None, new), (None, None)] {
                assert_eq!(UpgradeAction::decide(started, now, manager), UpgradeAction::Continue);
            }
        }
    }

    #[test]
    fn link_to_another_program_after_an_upgrade_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("1.0"), "1").unwrap();
        fs::write(path("2.0"), "2").unwrap();
        symlink("1.0", path("longhauld")).unwrap();
        let file = ProgramFile::new(
            service_program(Some(path("longhauld")), path("1.0")),
            Some(ServiceManager::Launchd),
        );
        assert_eq!((file.path(), file.check()), (path("longhauld").as_path(), UpgradeAction::Continue));
        symlink("2.0", path("new")).unwrap();
        fs::rename(path("new"), path("longhauld")).unwrap();
        assert_eq!(file.check(), UpgradeAction::Exit);
    }

    #[test]
    fn path_that_is_not_the_program_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (program, other) = (folder.path().join("longhauld"), folder.path().join("other"));
        fs::write(&program, "1").unwrap();
        fs::write(&other, "2").unwrap();
        for called in [None, Some("longhauld".into()), Some(other), Some("/nowhere/longhauld".into())] {
            assert_eq!(service_program(called, program.clone()), program);
        }
    }
}
