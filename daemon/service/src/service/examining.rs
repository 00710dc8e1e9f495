//! What `longhaul doctor` asks the service, for only the service can say what the service may do.

use std::path::Path;
use std::time::Duration;

use longhaul_measure::model::{Mount, Power, Progress, Protocol, Surroundings, SyncKind, Target, TargetName};
use longhaul_measure::platform::{self, UnknownAnswer};
use longhaul_measure::worker::{Ending, Examined};

use super::Service;
use super::publishing::Latest;
use crate::schedule::skip;
use crate::status::{Check, Verdict};
use crate::worker::{Observer, Watch, Worker};

/// How long a target may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How long its worker may take to stop after that.
const PATIENCE: Duration = Duration::from_secs(1);
/// The wall clock of a machine whose clock was never set is before this: 1 January 2026.
const PLAUSIBLE_US: i64 = 1_767_225_600_000_000;
/// Below this a log or a database may soon not be written any more.
const FREE_BYTES: u64 = 500_000_000;

impl Service {
    /// Looks at everything that has to be right for rounds to be made. Targets are examined one after the other; each
    /// has ten seconds.
    pub(super) fn examine(&mut self) -> Vec<Check> {
        let around = self.host.borrow_mut().look(&self.servers());
        let mut checks =
            vec![self.check_database(), self.check_clock(), self.check_log(), self.check_now(&around)];
        checks.extend(check_power(&around));
        let mut workers = std::mem::take(&mut self.workers);
        let mut unknown = platform::unknown_answers();
        for worker in &mut workers {
            worker.close(self.why_not(worker.target()));
            let check = self.check_target(worker, &mut unknown);
            if check.verdict == Verdict::Ok
                && let Some(latest) = self.latest.get_mut(&worker.target().name)
            {
                latest.forget_refusal();
            }
            checks.push(check);
            worker.dismiss();
        }
        self.workers = workers;
        checks.extend(check_answers(unknown));
        checks.extend(self.check_afp());
        checks.extend(check_tuning());
        checks
    }

    /// Asks a target that the privacy settings refused the last time, with one open in place of one for each task. It is left
    /// alone for this round if they still do.
    pub(super) fn ask_again(&self, worker: &mut Worker) {
        let latest = self.latest.get(&worker.target().name);
        if latest.and_then(Latest::refusal).is_none() {
            return;
        }
        let interrupted = || self.desk.is_stopping();
        let mut nobody = Nobody;
        let mut watch =
            Watch { cap: WITHIN, patience: PATIENCE, interrupted: &interrupted, observer: &mut nobody };
        if let Err(ending) = worker.claim(&mut watch)
            && ending.failure.is_blocked(ending.outcome)
        {
            worker.close(Some(ending));
        }
    }

    fn check_database(&self) -> Check {
        let path = self.database.path();
        let found = self.database.reader().and_then(|reader| reader.last_round());
        match found {
            Ok(_) => match self.free_beside(path) {
                Some(free) if free < FREE_BYTES => Check::bad(
                    "database",
                    Verdict::Warning,
                    format!("{} MB are free on the disk of {}", free / 1_000_000, path.display()),
                    "make room on that disk",
                ),
                _ => Check::ok("database", format!("{} can be read and written", path.display())),
            },
            Err(error) => {
                Check::bad("database", Verdict::Failed, error.to_string(), "see the way out that is named")
            }
        }
    }

    /// Free bytes on the local disk of a path, as the mount table says.
    fn free_beside(&self, path: &Path) -> Option<u64> {
        Mount::of_path(&self.mounts(), path)?.free_bytes
    }

    fn check_clock(&self) -> Check {
        let now = self.clock.now();
        if now.wall_us < PLAUSIBLE_US {
            let found = "it is before 2026".to_owned();
            return Check::bad("clock", Verdict::Failed, found, "set it, and have it kept by the network");
        }
        Check::ok("clock", "plausible")
    }

    fn check_log(&self) -> Check {
        let bad = |found: String| {
            let fix = "give longhauld a folder that it may write to, with --log-directory";
            Check::bad("log", Verdict::Warning, found, fix)
        };
        match self.log.as_ref().map(|path| (path, std::fs::metadata(path))) {
            Some((path, Ok(facts))) => {
                Check::ok("log", format!("{}, {} kB", path.display(), facts.len() / 1000))
            }
            Some((path, Err(error))) => bad(format!("{}: {error}", path.display())),
            None => bad("none is written".to_owned()),
        }
    }

    /// Whether a round would be made now.
    fn check_now(&self, around: &Surroundings) -> Check {
        let rules = &self.config.schedule.rules;
        match skip::reason(rules, around, self.usual.as_ref(), self.clock.now().minute_of_day()) {
            None => Check::ok("conditions", "a round would be made now"),
            Some(reason) => Check::bad(
                "conditions",
                Verdict::Warning,
                format!("a round would be skipped now: {reason}"),
                "nothing, or change [schedule] in the configuration",
            ),
        }
    }

    /// Examines a target, and collects what the system's tools answered its worker that is not known.
    fn check_target(&self, worker: &mut Worker, unknown: &mut Vec<UnknownAnswer>) -> Check {
        let what = format!("target {}", worker.target().name);
        let mut nobody = Nobody;
        let interrupted = || self.desk.is_stopping();
        let mut watch =
            Watch { cap: WITHIN, patience: PATIENCE, interrupted: &interrupted, observer: &mut nobody };
        match worker.examine(&mut watch) {
            Ok(found) => {
                unknown.extend(found.unknown_answers.iter().cloned());
                self.warn_of_path(self.check_found(what, worker.target(), &found), worker.target())
            }
            Err(ending) => failed(what, &ending),
        }
    }

    /// Adds that the target's path is no good place, if nothing else is the matter with it.
    fn warn_of_path(&self, check: Check, target: &Target) -> Check {
        match self.folders.concern(&target.path) {
            Some(concern) if check.verdict == Verdict::Ok => {
                let found = format!("{}; {} {concern}", check.found, target.path.display());
                Check::bad(check.what, Verdict::Warning, found, concern.advice())
            }
            _ => check,
        }
    }

    fn check_found(&self, what: String, target: &Target, found: &Examined) -> Check {
        let read_only = self.book.borrow().mount(&target.name).is_some_and(|mount| mount.read_only);
        let text = format!(
            "opens, reads, writes and syncs ({}, {:.0} ms); {:.1} GB free",
            found.sync.name(),
            found.seconds * 1e3,
            found.free_bytes as f64 / 1e9
        );
        let is_weak = found.sync == SyncKind::Fsync && platform::system_version().starts_with("macOS");
        match (read_only, is_weak) {
            (true, _) => {
                Check::bad(what, Verdict::Warning, text, "its mount says it is read-only: mount it again")
            }
            (false, true) => Check::bad(
                what,
                Verdict::Warning,
                format!(
                    "{text}; its server does not offer F_FULLFSYNC, so that data may still be in a cache when it is synced"
                ),
                "nothing: it is stored with every run and never compared with the other kind",
            ),
            (false, false) => Check::ok(what, text),
        }
    }

    /// The AFP client was removed in macOS 27: mount_afp(8) is gone from it (knowledge: 2.7).
    fn check_afp(&self) -> Option<Check> {
        let is_afp = |target: &Target| {
            let book = self.book.borrow();
            book.mount(&target.name).is_some_and(|mount| mount.protocol == Protocol::Afp)
        };
        let any = self.config.targets.iter().find(|target| is_afp(target))?;
        let found = format!("`{}` is reached by AFP, for which macOS 27 has no client any more", any.name);
        Some(Check::bad("AFP", Verdict::Warning, found, "measure SMB or NFS beside it before it is gone"))
    }
}

fn failed(what: String, ending: &Ending) -> Check {
    let failure = &ending.failure;
    let fix = match failure.error.as_deref() {
        _ if failure.is_blocked(ending.outcome) => "then ask again: `longhaul doctor`",
        Some("EPERM") if platform::system_version().starts_with("macOS") => {
            "System Settings, Privacy & Security, Files & Folders (or Full Disk Access): allow longhauld network volumes"
        }
        Some("EACCES" | "EPERM") => "let this user write in that folder",
        _ => "see the way out that is named",
    };
    Check::bad(what, Verdict::Failed, failure.message.clone(), fix)
}

fn check_power(around: &Surroundings) -> Option<Check> {
    let is_battery = around.power? == Power::Battery;
    Some(match (is_battery, around.low_power_mode) {
        (_, Some(true)) => Check::bad(
            "power",
            Verdict::Warning,
            "the machine saves energy",
            "switch that off to have rounds made",
        ),
        (true, _) => {
            Check::bad("power", Verdict::Warning, "on battery", "plug it in: below 40 % no rounds are made")
        }
        (false, _) => Check::ok("power", "mains"),
    })
}

/// What the system's tools answer and no parser knows: nothing is made of it, and nothing is counted as zero.
fn check_answers(mut unknown: Vec<UnknownAnswer>) -> Vec<Check> {
    unknown.sort_by(|one, other| one.tool.cmp(&other.tool));
    unknown.dedup_by(|one, other| one.tool == other.tool);
    let check = |answer: UnknownAnswer| {
        let found =
            format!("`{}` answered what this longhaul does not know: {}", answer.tool, answer.first_line);
        let fix = "nothing: what it tells is left open. Put that line into an issue, with the version of the system";
        Check::bad("tool answer", Verdict::Warning, found, fix)
    };
    unknown.into_iter().map(check).collect()
}

/// Files that change how a Mac's network file systems behave: figures made with and without them are not comparable.
fn check_tuning() -> Option<Check> {
    let files = ["/etc/nsmb.conf", "/etc/nfs.conf", "/etc/sysctl.conf"];
    let is_mac = platform::system_version().starts_with("macOS");
    let there: Vec<&str> = files.into_iter().filter(|path| is_mac && Path::new(path).exists()).collect();
    (!there.is_empty()).then(|| {
        let found = format!("{} change how network drives behave", there.join(", "));
        Check::bad("tuning files", Verdict::Warning, found, "nothing, if that is what you want to measure")
    })
}

/// An observer that ignores everything.
struct Nobody;

impl Observer for Nobody {
    fn progress(&mut self, _: &TargetName, _: &Progress) {}
    fn phase_began(&mut self, _: &TargetName, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_answer_is_a_warning_with_its_first_line() {
        let answer =
            |tool: &str, line: &str| UnknownAnswer { tool: tool.to_owned(), first_line: line.to_owned() };
        let checks = check_answers(vec![
            answer("smbutil statshares", "Usage: smbutil"),
            answer("nfsstat -m", "nothing, and exit code 1"),
            answer("smbutil statshares", "Usage: smbutil"),
        ]);
        let found: Vec<&str> = checks.iter().map(|check| check.found.as_str()).collect();
        let line = "`smbutil statshares` answered what this longhaul does not know: Usage: smbutil";
        assert_eq!(
            found,
            ["`nfsstat -m` answered what this longhaul does not know: nothing, and exit code 1", line]
        );
        assert!(checks.iter().all(|check| check.verdict == Verdict::Warning));
    }
}
