//! The worker of each target, and the workers of removed targets whose process does not end.

use std::collections::BTreeSet;

use longhaul_measure::platform;
use longhaul_measure::worker::FailureReport;
use longhaul_model::{Event, Failure, Outcome, ProbePlan, Target, TargetName, Timestamp};
use serde_json::{Value, json};

use super::target_history::TargetHistory;
use crate::mounts::MountTracker;
use crate::target_path::SpecialFolders;
use crate::worker::{Launcher, Worker, WorkerStatus};

/// The workers of all targets.
pub(super) struct Workers {
    launcher: Launcher,
    /// One worker per target, in the order of the configuration. Empty while a round or an examination has them.
    current: Vec<Worker>,
    /// Stuck workers of targets that are no longer configured. They are kept so that no
    /// second worker starts on such a target.
    removed: Vec<Worker>,
    /// Targets that hung in the last check.
    hung: Vec<TargetName>,
    /// Targets whose mount changed while a round had their workers.
    remounted: Vec<TargetName>,
}

impl Workers {
    /// Creates workers for no target. All later ones are started with `launcher`.
    pub(super) fn new(launcher: Launcher) -> Self {
        Self { launcher, current: vec![], removed: vec![], hung: vec![], remounted: vec![] }
    }

    /// Creates a worker for each target, with this probe plan. Workers of unchanged targets are kept: a second
    /// worker must never start next to a stuck one. Must not be called while a round has the workers.
    pub(super) fn configure(&mut self, targets: &[Target], probe_plan: Option<&ProbePlan>) {
        let mut old: Vec<Worker> = self.current.drain(..).chain(self.removed.drain(..)).collect();
        let mut worker_of = |target: &Target| match old.iter().position(|worker| worker.target() == target) {
            Some(index) => old.swap_remove(index),
            None => Worker::new(target.clone(), self.launcher.clone()),
        };
        self.current = targets.iter().map(&mut worker_of).collect();
        self.current.iter_mut().for_each(|worker| worker.set_probe_plan(probe_plan));
        old.iter_mut().for_each(Worker::shut_down);
        // Idle workers exit by themselves; only stuck ones are kept.
        self.removed = old.into_iter().filter_map(|mut worker| worker.is_stuck().then_some(worker)).collect();
    }

    /// Returns the workers, in the order of the configuration.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Worker> {
        self.current.iter_mut()
    }

    /// Gives the workers to a round or an examination, which brings them back.
    pub(super) fn take(&mut self) -> Vec<Worker> {
        std::mem::take(&mut self.current)
    }

    /// Takes the workers back, and asks their processes to exit.
    pub(super) fn put_back(&mut self, mut workers: Vec<Worker>) {
        workers.iter_mut().for_each(Worker::shut_down);
        self.current = workers;
        std::mem::take(&mut self.remounted).iter().for_each(|target| self.restart(target));
    }

    /// Asks the process of a target to exit, because it only knows the old mount, and forgets the server of that mount: it may have
    /// been another address of the NAS, such as one in a VPN. `ServerAddresses` keeps it until a new process has found the next. A
    /// worker that is away is restarted when it comes back.
    pub(super) fn restart(&mut self, target: &TargetName) {
        match self.current.iter_mut().find(|worker| worker.target().name == *target) {
            Some(worker) => {
                worker.shut_down();
                worker.server = None;
            }
            None => self.remounted.push(target.clone()),
        }
    }

    /// Asks the idle processes of targets to exit. Their earlier mounts have expired, and the probe of a process never writes on a file
    /// system with another device number than its first one: after an unmount, that is the disk below. A worker that is away is shut
    /// down when it comes back.
    pub(super) fn shut_down(&mut self, targets: &BTreeSet<TargetName>) {
        let shares = self.current.iter_mut().filter(|worker| targets.contains(&worker.target().name));
        shares.for_each(Worker::shut_down);
    }

    /// Returns the state of each worker, in the order of the configuration.
    pub(super) fn statuses(&mut self) -> Vec<WorkerStatus> {
        self.current.iter_mut().map(Worker::status).collect()
    }

    /// Returns an event for each target that started to hang, and for each hung target that recovered. A target with
    /// another path has recovered, although the worker of its old path may still be stuck.
    pub(super) fn update_hung(&mut self, now: Timestamp) -> Vec<Event> {
        let configured: Vec<TargetName> =
            self.current.iter().map(|worker| worker.target().name.clone()).collect();
        let removed = self.removed.iter_mut().filter(|worker| !configured.contains(&worker.target().name));
        let statuses: Vec<(TargetName, WorkerStatus)> = self
            .current
            .iter_mut()
            .chain(removed)
            .map(|worker| (worker.target().name.clone(), worker.status()))
            .collect();
        let (mut hung, mut events) = (vec![], vec![]);
        let mut add = |target: TargetName, kind: &str, detail: Value| {
            events.push(Event { target: Some(target), kind: kind.to_owned(), detail, at_us: now });
        };
        for (name, status) in &statuses {
            let WorkerStatus::Stuck { operation, for_seconds } = status else { continue };
            if !self.hung.contains(name) && !hung.contains(name) {
                let operation = operation.map(|operation| operation.to_string());
                add(name.clone(), "hang", json!({ "operation": operation, "seconds": for_seconds }));
            }
            hung.push(name.clone());
        }
        // Only once no worker of the name is stuck: a path that was corrected twice has left two of them.
        let is_known = |name: &TargetName| statuses.iter().any(|(known, _)| known == name);
        for name in self.hung.drain(..).filter(|name| is_known(name) && !hung.contains(name)) {
            add(name, "recovered", json!({}));
        }
        self.hung = hung;
        self.removed.retain_mut(Worker::is_stuck);
        events
    }
}

/// The facts that forbid access to a target.
pub(super) struct TargetAccess<'a> {
    pub(super) special_folders: &'a SpecialFolders,
    pub(super) mounts: &'a MountTracker,
    pub(super) history: &'a TargetHistory,
}

impl TargetAccess<'_> {
    /// Returns true if the share or disk of a target is not mounted, as far as the mount table tells.
    pub(super) fn is_unmounted(&self, target: &Target) -> bool {
        is_unmounted(target, self.mounts, self.history)
    }

    fn is_refused(&self, target: &Target) -> bool {
        let mount = self.mounts.mount(&target.name);
        mount.is_some_and(|mount| mount.is_refused_to(platform::user_id()))
    }

    /// Tells a worker whether it may access its target, and whether that belongs on a share.
    pub(super) fn apply_to(&self, worker: &mut Worker) {
        self.apply(worker, self.unavailable_reason(worker.target()));
    }

    /// Like [`Self::apply_to`], but also forbids access if the privacy settings refused the target in the last round.
    pub(super) fn apply_to_sampling(&self, worker: &mut Worker) {
        let target = worker.target();
        let refusal = || self.history.refusal(&target.name).cloned();
        self.apply(worker, self.unavailable_reason(target).or_else(refusal));
    }

    fn apply(&self, worker: &mut Worker, unavailable: Option<FailureReport>) {
        let name = &worker.target().name;
        worker.set_on_share(self.mounts.is_on_share(name, self.history.last_family(name)));
        worker.set_unavailable(unavailable);
    }

    /// Returns the reason why a target must not be accessed: it is the folder of the database, its share is unmounted and the
    /// empty folder below would be measured instead, or another user of a Mac mounted it.
    pub(super) fn unavailable_reason(&self, target: &Target) -> Option<FailureReport> {
        let path = target.path.display();
        let message = match self.special_folders.concern(&target.path).filter(|concern| concern.is_refused())
        {
            Some(concern) => format!("{path} {concern}; {}", concern.advice()),
            None if self.is_unmounted(target) => self.unmounted_text(target),
            None if self.is_refused(target) => format!(
                "another user mounted the SMB share at {path}, and macOS lets no other user use it. Mount it in your own \
                 session; longhaul then continues by itself"
            ),
            None => return None,
        };
        let path = Some(path.to_string());
        let failure = Failure { operation: None, path, error: None, message };
        Some(FailureReport { outcome: Outcome::Unavailable, failure })
    }

    fn unmounted_text(&self, target: &Target) -> String {
        let missing = self.mounts.missing_disk(&target.name).unwrap_or(&target.path).display();
        let advice = match self.mounts.moved_to(&target.name) {
            Some(point) => format!(
                "Its share is mounted at {} now: unmount that and mount it again, or change the path of the target",
                point.display()
            ),
            None => "Mount the share or the disk; longhaul then continues by itself".to_owned(),
        };
        format!(
            "nothing is mounted at {missing}, and longhaul does not measure the empty folder there. {advice}"
        )
    }
}

/// Returns true if the share or disk of a target is not mounted, as far as the mount table tells.
pub(super) fn is_unmounted(target: &Target, mounts: &MountTracker, history: &TargetHistory) -> bool {
    mounts.is_unmounted(&target.name, history.last_family(&target.name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use longhaul_measure::lock::FileLock;
    use longhaul_measure::worker::lock_path;
    use longhaul_model::{FreeSpaceReserve, ProbeKind, ProbeMode, Role};

    use super::*;

    fn target(name: &str, path: &str) -> Target {
        Target { name: name.parse().unwrap(), path: path.into(), role: Role::Share }
    }

    fn probe_every(interval_ms: u64) -> ProbePlan {
        ProbePlan {
            interval_ms,
            kinds: vec![ProbeKind::Read],
            seed: 7,
            initial_mode: ProbeMode::DuringRuns,
            read_file_bytes: 4096,
            reserve: FreeSpaceReserve::NONE,
        }
    }

    #[test]
    fn workers_of_unchanged_targets_are_kept_when_targets_change() {
        let database = Path::new("/nonexistent/longhaul.sqlite");
        let launcher = Launcher::for_database("/bin/true".into(), database, "m");
        let target = |name: &str| target(name, "/x");
        let mut workers = Workers::new(launcher);
        workers.configure(&[target("a"), target("b")], None);
        workers.iter_mut().for_each(|worker| worker.protocol = Some(longhaul_model::Protocol::Afp));
        workers.configure(&[target("c"), target("b")], None);
        let found: Vec<_> = workers
            .iter_mut()
            .map(|worker| (worker.target().name.to_string(), worker.protocol.is_some()))
            .collect();
        assert_eq!(found, [("c".to_owned(), false), ("b".to_owned(), true)]);
        let taken = workers.take();
        assert_eq!((taken.len(), workers.statuses().len()), (2, 0));
        workers.put_back(taken);
        assert_eq!(workers.statuses(), [WorkerStatus::Available; 2]);
        assert!(workers.update_hung(Timestamp::UNIX_EPOCH).is_empty());
    }

    #[test]
    fn changed_probe_settings_reach_a_new_process_of_a_kept_worker() {
        let folder = tempfile::tempdir().unwrap();
        let setup = folder.path().join("setup");
        // A program that writes what it is sent into a file, until its input is closed.
        let arguments = vec!["-c".to_owned(), format!("cat > '{}'", setup.display())];
        let launcher = Launcher::for_database("/bin/sh".into(), &folder.path().join("x.sqlite"), "m");
        let mut workers = Workers::new(Launcher { arguments, ..launcher });
        for interval_ms in [5_000, 1_000] {
            workers.configure(&[target("smb", "/x")], Some(&probe_every(interval_ms)));
            let expected = format!("\"interval_ms\":{interval_ms},");
            let has_setup = |_| {
                std::thread::sleep(Duration::from_millis(10));
                let is_started = workers.current[0].ensure_started().is_ok();
                is_started && std::fs::read_to_string(&setup).is_ok_and(|text| text.contains(&expected))
            };
            assert!((0..6_000).any(has_setup), "{expected}");
        }
        let worker = &mut workers.current[0];
        worker.set_probing(ProbeMode::On);
        let before = worker.recorder().unwrap();
        workers.configure(&[target("smb", "/x")], Some(&probe_every(1_000)));
        let worker = &mut workers.current[0];
        assert!(worker.ensure_started().is_ok());
        assert!(Arc::ptr_eq(&before, &worker.recorder().unwrap()), "unchanged settings keep the process");
    }

    #[test]
    fn share_whose_mount_expired_gets_a_new_process() {
        let folder = tempfile::tempdir().unwrap();
        // A program that runs until its input is closed.
        let arguments = ["-c", "cat > /dev/null"].map(str::to_owned).to_vec();
        let launcher = Launcher::for_database("/bin/sh".into(), &folder.path().join("x.sqlite"), "m");
        let mut workers = Workers::new(Launcher { arguments, ..launcher });
        workers.configure(&[target("smb", "/x"), target("nfs", "/y")], None);
        let start = |worker: &mut Worker| {
            let has_started = |_| {
                std::thread::sleep(Duration::from_millis(10));
                worker.ensure_started().is_ok()
            };
            assert!((0..6_000).any(has_started));
            worker.recorder().unwrap()
        };
        let before: Vec<_> = workers.iter_mut().map(start).collect();
        workers.shut_down(&BTreeSet::from(["smb".parse().unwrap()]));
        let after: Vec<_> = workers.iter_mut().map(start).collect();
        assert_eq!([0, 1].map(|index| Arc::ptr_eq(&before[index], &after[index])), [false, true]);
    }

    #[test]
    fn stuck_worker_of_a_corrected_path_causes_no_more_events() {
        let folder = tempfile::tempdir().unwrap();
        let launcher = Launcher::for_database("/bin/true".into(), &folder.path().join("x.sqlite"), "m");
        let lock = lock_path(&launcher.local_folder.join("smb"), Path::new("/old"));
        let _lock = FileLock::acquire(&lock).unwrap();
        let mut workers = Workers::new(launcher);
        let mut kinds_at = |path: &str| -> Vec<String> {
            workers.configure(&[target("smb", path)], None);
            if path == "/old" {
                workers.current[0].set_orphaned(Instant::now() - Duration::from_secs(60));
            }
            workers.update_hung(Timestamp::UNIX_EPOCH).into_iter().map(|event| event.kind).collect()
        };
        assert_eq!(kinds_at("/old"), ["hang"]);
        assert_eq!(kinds_at("/new"), ["recovered"], "the target is reachable at its new path");
        assert!(kinds_at("/new").is_empty());
        assert_eq!(workers.removed.len(), 1, "the old worker is still stuck");
    }
}
