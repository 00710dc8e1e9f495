//! The service's part of `longhaul doctor`. The service itself runs these checks, because its permissions may
//! differ from the command line's.

use std::path::Path;

use longhaul_measure::error::KERBEROS_ADVICE;
use longhaul_measure::platform::{self, UnrecognizedOutput};
use longhaul_measure::worker::{FailureReport, TargetExamination};
use longhaul_model::time::DAY;
use longhaul_model::{Hint, MachineSnapshot, Mount, Power, Protocol, SyncKind, Target, Timestamp};

use super::admission::Admission;
use super::freshness_checks::freshness_checks;
use super::target_history::uses_kerberos;
use crate::clock::ClockReading;
use crate::config::Config;
use crate::database::Database;
use crate::mounts::MountTracker;
use crate::recordings::check_recording;
use crate::status::{Check, CheckStatus};
use crate::target_path::SpecialFolders;

/// 1 January 2026. An earlier wall clock was never set.
const EARLIEST_PLAUSIBLE: Timestamp = Timestamp::from_us(1_767_225_600_000_000);
/// Free space of the database's disk in bytes below which `doctor` warns.
const MIN_FREE_BYTES: u64 = 500_000_000;

/// The facts that the checks use.
pub(super) struct Examination<'a> {
    pub(super) now: ClockReading,
    pub(super) snapshot: &'a MachineSnapshot,
    pub(super) mount_table: &'a [Mount],
    pub(super) config: &'a Config,
    pub(super) admission: &'a Admission,
    pub(super) database: &'a Database,
    pub(super) mounts: &'a MountTracker,
    pub(super) special_folders: &'a SpecialFolders,
    pub(super) log_path: Option<&'a Path>,
}

impl Examination<'_> {
    /// Returns all checks. `found` are the results of the workers, in the order of the configuration.
    pub(super) fn checks(&self, found: &[Result<TargetExamination, FailureReport>]) -> Vec<Check> {
        let mut checks =
            vec![self.check_database(), self.check_clock(), self.check_log(), self.check_conditions()];
        checks.extend(check_recording(self.config.replay.as_ref(), self.database.path()));
        checks.extend(self.check_power());
        checks.extend(self.check_sleep());
        let targets = self.config.targets.iter().zip(found);
        checks.extend(targets.map(|(target, found)| self.check_target(target, found)));
        let mut unknown = platform::unrecognized_outputs();
        let found = found.iter().flatten();
        unknown.extend(found.flat_map(|found| found.unrecognized_outputs.iter().cloned()));
        checks.extend(check_tool_output(unknown));
        checks.extend(freshness_checks(self.database, self.now.wall));
        checks.extend(self.check_afp());
        checks.extend(check_tuning_files());
        checks
    }

    fn check_database(&self) -> Check {
        let path = self.database.path();
        let found = self.database.reader().and_then(|reader| reader.last_round());
        match found {
            Ok(_) => match self.free_bytes_at(path) {
                Some(free) if free < MIN_FREE_BYTES => Check::problem(
                    "database",
                    CheckStatus::Warning,
                    format!("only {} MB are free on the disk of {}", free / 1_000_000, path.display()),
                    "free up space on that disk",
                ),
                _ => Check::ok("database", format!("{} can be read and written", path.display())),
            },
            Err(error) => {
                Check::problem("database", CheckStatus::Failed, error.one_line(), "do what the message says")
            }
        }
    }

    /// Returns the free bytes on the disk of a path, from the mount table.
    fn free_bytes_at(&self, path: &Path) -> Option<u64> {
        Mount::for_path(self.mount_table, path)?.free_bytes
    }

    fn check_clock(&self) -> Check {
        if self.now.wall < EARLIEST_PLAUSIBLE {
            let found = "the date is before 2026".to_owned();
            return Check::problem(
                "clock",
                CheckStatus::Failed,
                found,
                "set the clock, and enable network time",
            );
        }
        Check::ok("clock", "plausible")
    }

    /// Warns about rounds of the last week that are void because the machine slept. A few do no harm; many can
    /// leave days with too few rounds.
    fn check_sleep(&self) -> Option<Check> {
        let since = self.now.wall - 7 * DAY;
        let slept =
            self.database.reader().and_then(|reader| reader.void_rounds_since(since, "slept")).ok()?;
        (slept > 0).then(|| {
            let found = format!("rounds of the last 7 days that are void because the machine slept: {slept}");
            let fix = "a few do no harm; if there are many, let the machine sleep later, or keep it on mains power, \
                where longhaul keeps a Mac awake during rounds";
            Check::problem("sleep", CheckStatus::Warning, found, fix)
        })
    }

    fn check_log(&self) -> Check {
        let warning = |found: String| {
            let fix = "give longhauld a folder that it can write to, with --log-directory";
            Check::problem("log", CheckStatus::Warning, found, fix)
        };
        match self.log_path.map(|path| (path, std::fs::metadata(path))) {
            Some((path, Ok(facts))) => {
                Check::ok("log", format!("{}, {} kB", path.display(), facts.len() / 1000))
            }
            Some((path, Err(error))) => warning(format!("{}: {error}", path.display())),
            None => warning("no log is written".to_owned()),
        }
    }

    /// Checks whether the skip rules and the limits would allow a round now.
    fn check_conditions(&self) -> Check {
        if self.config.targets.is_empty() {
            let found = "no rounds run, because no target is configured".to_owned();
            return Check::problem("conditions", CheckStatus::Warning, found, "`longhaul init` adds some");
        }
        match self.admission.round_blocker(self.config, &self.now, self.snapshot) {
            None => Check::ok("conditions", "a round would run now"),
            Some(reason) => Check::problem(
                "conditions",
                CheckStatus::Warning,
                format!("a round would be skipped now: {reason}"),
                match reason.code {
                    "paused" | "safe-mode" => "`longhaul resume` lets rounds run again",
                    _ => {
                        "no action needed if this is temporary; the rules are in [schedule] and [limits] of the configuration"
                    }
                },
            ),
        }
    }

    fn check_target(&self, target: &Target, found: &Result<TargetExamination, FailureReport>) -> Check {
        let name = format!("target {}", target.name);
        match found {
            Ok(found) => self.add_path_warning(self.examination_check(name, target, found), target),
            Err(failure) => failed_check(name, failure, self.mounts.mount(&target.name)),
        }
    }

    /// Adds a warning about a target's path to a check that is otherwise ok.
    fn add_path_warning(&self, check: Check, target: &Target) -> Check {
        match self.special_folders.concern(&target.path) {
            Some(concern) if check.status == CheckStatus::Ok => {
                let found = format!("{}; {} {concern}", check.message, target.path.display());
                Check::problem(check.name, CheckStatus::Warning, found, concern.advice())
            }
            _ => check,
        }
    }

    fn examination_check(&self, name: String, target: &Target, found: &TargetExamination) -> Check {
        let read_only = self.mounts.mount(&target.name).is_some_and(|mount| mount.read_only);
        let text = format!(
            "read, write and {} work ({:.0} ms); {:.1} GB free",
            found.sync.name(),
            found.seconds * 1e3,
            found.free_bytes as f64 / 1e9
        );
        // On macOS, a sync by plain fsync shows that the server does not support F_FULLFSYNC.
        let is_weak = found.sync == SyncKind::Fsync && platform::system_version().starts_with("macOS");
        match (read_only, is_weak) {
            (true, _) => Check::problem(
                name,
                CheckStatus::Warning,
                text,
                "the share is mounted read-only: mount it with write access",
            ),
            (false, true) => Check::problem(
                name,
                CheckStatus::Warning,
                format!(
                    "{text}; the server does not support F_FULLFSYNC, so synced data may still be in a cache"
                ),
                "no action needed: the kind of sync is stored with every run; different kinds are never compared",
            ),
            (false, false) => Check::ok(name, text),
        }
    }

    fn check_power(&self) -> Option<Check> {
        let warning = |found: &str, fix: &str| Check::problem("power", CheckStatus::Warning, found, fix);
        let is_battery = self.snapshot.power? == Power::Battery;
        Some(match (is_battery, self.snapshot.low_power_mode) {
            (_, Some(true)) => {
                warning("the machine is in low power mode", "turn it off so that rounds can run")
            }
            (true, _) => warning("on battery", &self.battery_advice()),
            (false, _) => Check::ok("power", "mains"),
        })
    }

    fn battery_advice(&self) -> String {
        match self.config.schedule.skip_rules.battery_below {
            Some(percent) => format!("plug it in: rounds are skipped below {percent:.0} %"),
            None => "no action needed: rounds run at any charge".to_owned(),
        }
    }

    /// Warns about targets on AFP. macOS 27 has no AFP client: mount_afp(8) is gone (its manual page is not in
    /// Xcode 27 beta 1, 8 June 2026).
    fn check_afp(&self) -> Option<Check> {
        let mount = |target: &Target| self.mounts.mount(&target.name);
        let is_afp = |target: &&Target| mount(target).is_some_and(|mount| mount.protocol == Protocol::Afp);
        let target = self.config.targets.iter().find(is_afp)?;
        let found = format!("`{}` uses AFP, which macOS 27 no longer supports", target.name);
        Some(Check::problem(
            "AFP",
            CheckStatus::Warning,
            found,
            "also measure SMB or NFS before you upgrade to macOS 27",
        ))
    }
}

fn failed_check(name: String, report: &FailureReport, mount: Option<&Mount>) -> Check {
    let failure = &report.failure;
    let fix = match failure.error.as_deref() {
        _ if failure.is_blocked(report.outcome) => "then run `longhaul doctor` again",
        Some("EPERM") if platform::system_version().starts_with("macOS") => {
            "System Settings, Privacy & Security, Files & Folders (or Full Disk Access): allow longhauld network volumes"
        }
        Some("EACCES") if mount.is_some_and(|mount| uses_kerberos(&mount.negotiated)) => KERBEROS_ADVICE,
        Some("EACCES") => "give this user write access to that folder",
        _ => "do what the message says",
    };
    Check::problem(name, CheckStatus::Failed, failure.message.clone(), fix)
}

/// Warns about tool output that no parser understands. Values from it are treated as unknown, never as zero.
fn check_tool_output(mut unknown: Vec<UnrecognizedOutput>) -> Vec<Check> {
    unknown.sort_by(|one, other| one.tool.cmp(&other.tool));
    unknown.dedup_by(|one, other| one.tool == other.tool);
    let check = |output: UnrecognizedOutput| {
        let found = format!(
            "`{}` printed output that this version of longhaul does not know: {}",
            output.tool, output.first_line
        );
        let fix = "no action needed: its values are treated as unknown. Please report that line in an issue, with the \
            version of your system";
        Check::problem("tool output", CheckStatus::Warning, found, fix)
    };
    unknown.into_iter().map(check).collect()
}

/// Warns about files that change how a Mac's network file systems behave: results
/// with and without them are not comparable.
fn check_tuning_files() -> Option<Check> {
    let files = ["/etc/nsmb.conf", "/etc/nfs.conf", "/etc/sysctl.conf"];
    let is_mac = platform::system_version().starts_with("macOS");
    let existing: Vec<&str> = files.into_iter().filter(|path| is_mac && Path::new(path).exists()).collect();
    (!existing.is_empty()).then(|| {
        let found = format!("{} change how network drives behave", existing.join(", "));
        Check::problem(
            "tuning files",
            CheckStatus::Warning,
            found,
            "no action needed, if that is what you want to measure",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn battery_advice_names_the_configured_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (database, _) =
            Database::open(&folder.path().join("longhaul.sqlite"), &[], Timestamp::from_us(1)).unwrap();
        let fix = |battery_below: Option<f64>| {
            let mut config = Config::default();
            config.schedule.skip_rules.battery_below = battery_below;
            let on_battery = MachineSnapshot { power: Some(Power::Battery), ..MachineSnapshot::default() };
            let examination = Examination {
                now: ClockReading::default(),
                snapshot: &on_battery,
                mount_table: &[],
                config: &config,
                admission: &Admission::default(),
                database: &database,
                mounts: &MountTracker::default(),
                special_folders: &SpecialFolders::default(),
                log_path: None,
            };
            examination.check_power().unwrap().fix.unwrap()
        };
        assert_eq!(fix(Some(25.0)), "plug it in: rounds are skipped below 25 %");
        assert_eq!(fix(None), "no action needed: rounds run at any charge");
    }

    #[test]
    fn refused_access_with_kerberos_has_advice_about_the_ticket() {
        let failure = longhaul_model::Failure {
            operation: None,
            path: None,
            error: Some("EACCES".to_owned()),
            message: "open /m/nas: Permission denied".to_owned(),
        };
        let report = FailureReport { outcome: longhaul_model::Outcome::Error, failure };
        let fix = |sec: &str| {
            let mut mount = Mount::new("/m/nas", "nas:/export", Protocol::Nfs(Some("4.2".to_owned())));
            mount.negotiated = [("sec".to_owned(), sec.to_owned())].into();
            failed_check("target nas".to_owned(), &report, Some(&mount)).fix.unwrap()
        };
        assert_eq!(fix("krb5p"), KERBEROS_ADVICE);
        assert_eq!(fix("sys"), "give this user write access to that folder");
    }

    #[test]
    fn unknown_tool_output_is_a_warning_with_its_first_line() {
        let output = |tool: &str, line: &str| UnrecognizedOutput {
            tool: tool.to_owned(),
            first_line: line.to_owned(),
        };
        let checks = check_tool_output(vec![
            output("smbutil statshares", "Usage: smbutil"),
            output("nfsstat -m", "no output, exit code 1"),
            output("smbutil statshares", "Usage: smbutil"),
        ]);
        let found: Vec<&str> = checks.iter().map(|check| check.message.as_str()).collect();
        let line =
            "`smbutil statshares` printed output that this version of longhaul does not know: Usage: smbutil";
        assert_eq!(
            found,
            [
                "`nfsstat -m` printed output that this version of longhaul does not know: no output, exit code 1",
                line
            ]
        );
        assert!(checks.iter().all(|check| check.status == CheckStatus::Warning));
    }
}
