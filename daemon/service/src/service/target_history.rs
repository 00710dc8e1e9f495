//! Results of the last round on each target: outcomes, refusals and the file system.

use std::collections::BTreeMap;

use longhaul_measure::error::KERBEROS_ADVICE;
use longhaul_measure::worker::FailureReport;
use longhaul_model::{NegotiatedOptions, Outcome, ProtocolFamily, Target, TargetName};
use longhaul_store::{RunFilter, StoredRun};

use crate::database::Database;
use crate::status::{FailedTask, TargetState};
use crate::worker::is_worker_failure;

/// Number of recent runs that are read to determine the state of a target.
const RECENT_RUNS: u32 = 16;

/// The last round of each target.
#[derive(Default)]
pub(super) struct TargetHistory {
    recent_runs: BTreeMap<TargetName, RecentRuns>,
    /// File system family of each target when it was last measured at its path.
    last_families: BTreeMap<TargetName, ProtocolFamily>,
}

impl TargetHistory {
    /// Reads the last round of each target. Called once per round.
    ///
    /// # Errors
    ///
    /// If the database cannot be read: then nothing changes.
    pub(super) fn refresh(&mut self, database: &Database, targets: &[Target]) -> longhaul_store::Result<()> {
        let reader = database.reader()?;
        let recent = |name: &TargetName| {
            let filter =
                RunFilter { target: Some(name.clone()), limit: Some(RECENT_RUNS), ..RunFilter::default() };
            Ok(RecentRuns::from_runs(&reader.runs_without_phases(&filter)?)
                .map(|recent| (name.clone(), recent)))
        };
        let all: longhaul_store::Result<Vec<_>> = targets.iter().map(|target| recent(&target.name)).collect();
        let (all, mut epochs) = (all?, reader.epochs()?);
        // A target whose path was changed does not belong on the share of its old path.
        epochs.retain(|epoch| {
            targets.iter().any(|target| target.name == epoch.target && target.path == epoch.path)
        });
        self.last_families.clear();
        for epoch in epochs {
            // Epochs are sorted oldest first, so the last one of a target remains.
            match epoch.protocol.map(|protocol| protocol.family()) {
                Some(family) => self.last_families.insert(epoch.target, family),
                None => self.last_families.remove(&epoch.target),
            };
        }
        self.recent_runs = all.into_iter().flatten().collect();
        Ok(())
    }

    /// Returns the outcomes of a target's last round. `None`: there was no run yet.
    pub(super) fn recent_runs(&self, name: &TargetName) -> Option<&RecentRuns> {
        self.recent_runs.get(name)
    }

    /// Returns the failure report if the privacy settings refused a target in its last round.
    pub(super) fn refusal(&self, name: &TargetName) -> Option<&FailureReport> {
        self.recent_runs.get(name)?.refusal.as_ref()
    }

    /// Removes the refusal after a check has found that the privacy settings allow access again.
    pub(super) fn clear_refusal(&mut self, name: &TargetName) {
        if let Some(recent) = self.recent_runs.get_mut(name)
            && recent.refusal.take().is_some()
        {
            recent.problem = None;
        }
    }

    /// Returns the file system family of a target when it was last measured. `None`: it was not measured at its path yet.
    pub(super) fn last_family(&self, name: &TargetName) -> Option<ProtocolFamily> {
        self.last_families.get(name).copied()
    }
}

/// Outcomes of a target's runs in its last round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecentRuns {
    pub(super) runs: u32,
    pub(super) ok_runs: u32,
    /// State of a target that failed in every run, or had no worker. `None`: a run was ok, or all were void for another reason.
    pub(super) problem: Option<TargetState>,
    /// Tasks that failed although another run was ok.
    pub(super) failed_tasks: Vec<FailedTask>,
    /// Failure report if the system's privacy settings refused the target.
    refusal: Option<FailureReport>,
}

impl RecentRuns {
    fn from_runs(runs: &[StoredRun]) -> Option<Self> {
        let round = runs.last()?.run.round;
        let runs: Vec<&StoredRun> = runs.iter().filter(|stored| stored.run.round == round).collect();
        let ok = runs.iter().filter(|stored| stored.run.outcome == Outcome::Ok).count();
        let failed =
            || runs.iter().filter(|stored| !matches!(stored.run.outcome, Outcome::Ok | Outcome::Void));
        let last = failed().next_back().filter(|_| ok == 0);
        let is_without_worker = |stored: &&&StoredRun| {
            ok == 0 && stored.run.failure.as_ref().is_some_and(|failure| is_worker_failure(&failure.message))
        };
        let worker_failure = runs.last().filter(is_without_worker).and_then(|stored| problem_state(stored));
        let task = |stored: &&StoredRun| FailedTask {
            task: stored.run.workload.clone(),
            reason: stored.run.failure.as_ref().map_or_else(String::new, |failure| failure.message.clone()),
        };
        Some(Self {
            failed_tasks: if ok > 0 { failed().map(task).collect() } else { vec![] },
            // A void run is no failure of the target, for example after a pause.
            runs: (ok + failed().count()) as u32,
            ok_runs: ok as u32,
            problem: last.and_then(|stored| problem_state(stored)).or(worker_failure),
            refusal: last.and_then(|stored| privacy_refusal(stored)),
        })
    }
}

fn privacy_refusal(stored: &StoredRun) -> Option<FailureReport> {
    let (outcome, failure) = (stored.run.outcome, stored.run.failure.clone()?);
    failure.is_blocked(outcome).then_some(FailureReport { outcome, failure })
}

fn problem_state(stored: &StoredRun) -> Option<TargetState> {
    let failure = stored.run.failure.as_ref()?;
    match failure.error.as_deref() {
        // The message of a blocked access already says what to do.
        _ if failure.is_blocked(stored.run.outcome) => {
            Some(TargetState::Blocked { reason: failure.message.clone() })
        }
        Some(error @ ("EPERM" | "EACCES")) => {
            Some(TargetState::Blocked { reason: blocked_text(stored, error, &failure.message) })
        }
        _ => Some(TargetState::Unavailable { reason: failure.message.clone(), is_now: false }),
    }
}

/// Returns whether a mount proves its user by Kerberos (nfs(5) and mount.cifs(8), option `sec`).
pub(super) fn uses_kerberos(options: &NegotiatedOptions) -> bool {
    options.get("sec").is_some_and(|sec| sec.starts_with("krb5"))
}

/// Explains a refused access: on macOS, privacy settings refuse with EPERM
/// (docs/macos.md#launch-agent-and-privacy). Without a Kerberos ticket, Linux refuses with EACCES. EACCES has other causes, too,
/// which the message names.
fn blocked_text(stored: &StoredRun, error: &str, message: &str) -> String {
    let is_network =
        stored.run.protocol.as_ref().is_none_or(|protocol| protocol.family() == ProtocolFamily::Network);
    let is_mac = stored.run.conditions.system.as_deref().is_some_and(|system| system.starts_with("macOS"));
    if is_network && is_mac && error == "EPERM" {
        return format!(
            "{message}. System Settings, Privacy & Security, Files & Folders (or Full Disk Access): allow longhauld network \
             volumes"
        );
    }
    if error == "EACCES" && uses_kerberos(&stored.run.conditions.negotiated) {
        return format!("{message}. {KERBEROS_ADVICE}");
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use longhaul_model::{Protocol, Role, Run, Scale, Timestamp};
    use longhaul_store::NewRound;

    use super::*;

    #[test]
    fn void_runs_are_not_counted() {
        let stored = |outcome| {
            let run =
                Run { outcome, ..Run::new(1, "x".parse().unwrap(), "photo-batch", Timestamp::from_us(1)) };
            StoredRun { number: 1, trace_id: String::new(), epoch: 1, run }
        };
        let counts = |outcomes: &[Outcome]| {
            let runs: Vec<StoredRun> = outcomes.iter().copied().map(stored).collect();
            RecentRuns::from_runs(&runs).map(|recent| (recent.runs, recent.ok_runs))
        };
        assert_eq!(counts(&[Outcome::Ok, Outcome::Error, Outcome::Void]), Some((2, 1)));
        assert_eq!(counts(&[Outcome::Void]), Some((0, 0)));
    }

    #[test]
    fn refused_access_with_kerberos_has_advice_about_the_ticket() {
        let reason = |sec: &str| {
            let mut run = Run::new(1, "x".parse().unwrap(), "photo-batch", Timestamp::from_us(1));
            run.conditions.negotiated = [("sec".to_owned(), sec.to_owned())].into();
            let stored = StoredRun { number: 1, trace_id: String::new(), epoch: 1, run };
            blocked_text(&stored, "EACCES", "open /m/nas: Permission denied")
        };
        assert!(reason("krb5").ends_with(KERBEROS_ADVICE));
        assert_eq!(reason("sys"), "open /m/nas: Permission denied");
    }

    #[test]
    fn family_of_an_earlier_path_is_not_the_family_of_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::from_us(1);
        let (database, _) = Database::open(&folder.path().join("longhaul.sqlite"), &[], now).unwrap();
        let share = Target { name: "x".parse().unwrap(), path: "/m/nas/x".into(), role: Role::Share };
        let round = database.writer().begin_round(NewRound::new(now, 1, Scale::Quick)).unwrap();
        let run = Run {
            protocol: Some(Protocol::Smb(None)),
            ..Run::new(round, share.name.clone(), "photo-batch", now)
        };
        database.writer().add_run(&share, &run, &[]).unwrap();
        let mut history = TargetHistory::default();
        let mut family = |target: &Target| {
            history.refresh(&database, std::slice::from_ref(target)).unwrap();
            history.last_family(&target.name)
        };
        assert_eq!(family(&share), Some(ProtocolFamily::Network));
        assert_eq!(family(&Target { path: "/home/ada/x".into(), ..share }), None);
    }
}
