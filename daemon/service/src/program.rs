//! The program file of the service, and what to do when another version takes its place.
//!
//! An upgrade replaces the file and leaves the process: the old service would go on, and start workers of the new version.

use std::path::{Path, PathBuf};

use crate::file_version::FileVersion;

/// A service manager that starts the service again when it ends with a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceManager {
    /// macOS.
    Launchd,
    /// The instance of systemd that each user has.
    Systemd,
}

impl ServiceManager {
    /// Returns the manager that started this process; `None`: a user or a script did.
    pub fn of_process() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok(), std::process::id())
    }

    /// The variables are inherited: a terminal that a manager started has them too, and so has what is started in it.
    /// launchd gives a job its label, a terminal `0`, and an application `application.` with its bundle, which the shells in
    /// VS Code and JetBrains' programs pass on. systemd says which process it started (systemd.exec(5), since 248).
    fn of(variable: impl Fn(&str) -> Option<String>, pid: u32) -> Option<Self> {
        let is_job = |name: &String| !name.is_empty() && name != "0" && !name.starts_with("application.");
        if variable("XPC_SERVICE_NAME").is_some_and(|name| is_job(&name)) {
            return Some(Self::Launchd);
        }
        let is_started = variable("SYSTEMD_EXEC_PID").is_none_or(|started| started == pid.to_string());
        (is_started && variable("INVOCATION_ID").is_some()).then_some(Self::Systemd)
    }
}

/// What the service does about its program file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// Nothing: it is the file that was started, or there is none just now, as in the middle of an upgrade.
    Continue,
    /// Raise a problem: nothing would start the service again.
    Warn,
    /// End, so that the service manager starts the other version.
    End,
}

impl Takeover {
    /// Decides by the file at the start, the file now, and the manager.
    fn of(started: Option<FileVersion>, now: Option<FileVersion>, manager: Option<ServiceManager>) -> Self {
        match (started, now, manager) {
            (Some(started), Some(now), Some(_)) if started != now => Self::End,
            (Some(started), Some(now), None) if started != now => Self::Warn,
            _ => Self::Continue,
        }
    }
}

/// The program file of this process as it was at the start.
#[derive(Debug, Clone)]
pub struct ProgramFile {
    path: PathBuf,
    started: Option<FileVersion>,
    manager: Option<ServiceManager>,
}

impl ProgramFile {
    /// Notes the program file of this process; `None` if the system does not say where it is.
    pub fn of_process() -> Option<Self> {
        let actual = std::env::current_exe().ok()?;
        let called = std::env::args_os().next().map(PathBuf::from);
        Some(Self::new(followed(called, actual), ServiceManager::of_process()))
    }

    /// Notes a program file.
    pub fn new(path: PathBuf, manager: Option<ServiceManager>) -> Self {
        Self { started: FileVersion::of(&path), path, manager }
    }

    /// Looks at the file again, and says what to do.
    pub fn look(&self) -> Takeover {
        Takeover::of(self.started, FileVersion::of(&self.path), self.manager)
    }

    /// Returns what to do when a worker says that it is another version.
    pub fn replaced(&self) -> Takeover {
        if self.manager.is_some() { Takeover::End } else { Takeover::Warn }
    }

    /// Returns the path that is looked at.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Chooses the path by which the program was called, if it is absolute and leads to the program: where that is a link, as
/// Homebrew makes one, an upgrade changes the link, and leaves or removes the file behind it, whose path Linux gives.
fn followed(called: Option<PathBuf>, actual: PathBuf) -> PathBuf {
    let is_same = |called: &PathBuf| FileVersion::of(called) == FileVersion::of(&actual);
    called.filter(|called| called.is_absolute() && is_same(called)).unwrap_or(actual)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_manager_is_known_by_what_it_tells_its_own_process() {
        let of = |variables: &[(&str, &str)]| {
            let found = |name: &str| variables.iter().find(|(key, _)| *key == name);
            ServiceManager::of(|name| found(name).map(|(_, value)| (*value).to_owned()), 42)
        };
        assert_eq!(of(&[("XPC_SERVICE_NAME", "org.longhaul.agent")]), Some(ServiceManager::Launchd));
        assert_eq!(of(&[("INVOCATION_ID", "1f")]), Some(ServiceManager::Systemd));
        assert_eq!(of(&[("INVOCATION_ID", "1f"), ("SYSTEMD_EXEC_PID", "42")]), Some(ServiceManager::Systemd));
        for inherited in [
            &[][..],
            &[("XPC_SERVICE_NAME", "0")],
            &[("XPC_SERVICE_NAME", "")],
            &[("XPC_SERVICE_NAME", "application.com.microsoft.VSCode.59852660.59852666")],
            &[("INVOCATION_ID", "1f"), ("SYSTEMD_EXEC_PID", "7")],
        ] {
            assert_eq!(of(inherited), None, "{inherited:?}");
        }
    }

    #[test]
    fn only_a_file_in_the_place_of_the_started_one_is_a_takeover() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        fs::write(&ours, "1").unwrap();
        fs::write(&theirs, "2").unwrap();
        let (ours, theirs) = (FileVersion::of(&ours), FileVersion::of(&theirs));
        let systemd = Some(ServiceManager::Systemd);
        assert_eq!(Takeover::of(ours, theirs, systemd), Takeover::End);
        assert_eq!(Takeover::of(ours, theirs, None), Takeover::Warn);
        for manager in [systemd, None] {
            for (started, now) in [(ours, ours), (ours, None), (None, theirs), (None, None)] {
                assert_eq!(Takeover::of(started, now, manager), Takeover::Continue);
            }
        }
    }

    #[test]
    fn a_link_that_leads_elsewhere_after_an_upgrade_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("1.0"), "1").unwrap();
        fs::write(path("2.0"), "2").unwrap();
        symlink("1.0", path("longhauld")).unwrap();
        let file =
            ProgramFile::new(followed(Some(path("longhauld")), path("1.0")), Some(ServiceManager::Launchd));
        assert_eq!((file.path(), file.look()), (path("longhauld").as_path(), Takeover::Continue));
        symlink("2.0", path("new")).unwrap();
        fs::rename(path("new"), path("longhauld")).unwrap();
        assert_eq!(file.look(), Takeover::End);
    }

    #[test]
    fn a_name_that_does_not_lead_to_the_program_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (program, other) = (folder.path().join("longhauld"), folder.path().join("other"));
        fs::write(&program, "1").unwrap();
        fs::write(&other, "2").unwrap();
        for called in [None, Some("longhauld".into()), Some(other), Some("/nowhere/longhauld".into())] {
            assert_eq!(followed(called, program.clone()), program);
        }
    }
}
