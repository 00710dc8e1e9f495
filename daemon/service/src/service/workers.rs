//! The worker of each target, and the workers of removed targets whose process does not end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longhaul_measure::platform;
use longhaul_measure::worker::FailureReport;
use longhaul_model::{Event, Failure, Outcome, Target, TargetName, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::target_history::TargetHistory;
use crate::mounts::MountTracker;
use crate::target_path::{SpecialFolders, has_link};
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
}

impl Workers {
    /// Creates workers for no target. All later ones are started with `launcher`.
    pub(super) fn new(launcher: Launcher) -> Self {
        Self { launcher, current: vec![], removed: vec![], hung: vec![] }
    }

    /// Creates a worker for each target. Workers of unchanged targets are kept: a second worker
    /// must never start next to a stuck one. New ones have this probe plan.
    pub(super) fn configure(&mut self, targets: &[Target], probe_plan: Option<&longhaul_model::ProbePlan>) {
        let mut old: Vec<Worker> = self.current.drain(..).chain(self.removed.drain(..)).collect();
        let mut worker_of = |target: &Target| match old.iter().position(|worker| worker.target() == target) {
            Some(index) => old.swap_remove(index),
            None => {
                let launcher = Launcher { probe_plan: probe_plan.cloned(), ..self.launcher.clone() };
                Worker::new(target.clone(), launcher)
            }
        };
        self.current = targets.iter().map(&mut worker_of).collect();
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
    }

    /// Asks the process of a target to exit, because it only knows the old mount.
    pub(super) fn restart(&mut self, target: &TargetName) {
        let stale = self.current.iter_mut().filter(|worker| worker.target().name == *target);
        stale.for_each(Worker::shut_down);
    }

    /// Returns the state of each worker, in the order of the configuration.
    pub(super) fn statuses(&mut self) -> Vec<WorkerStatus> {
        self.current.iter_mut().map(Worker::status).collect()
    }

    /// Returns an event for each target that started to hang, and for each hung target that recovered.
    pub(super) fn update_hung(&mut self, now: Timestamp) -> Vec<Event> {
        let (mut hung, mut events) = (vec![], vec![]);
        let mut add = |target: TargetName, kind: &str, detail: Value| {
            events.push(Event { target: Some(target), kind: kind.to_owned(), detail, at_us: now });
        };
        for worker in self.current.iter_mut().chain(&mut self.removed) {
            let name = worker.target().name.clone();
            let was_hung = self.hung.contains(&name);
            match worker.status() {
                WorkerStatus::Stuck { operation, for_seconds } => {
                    let operation = operation.map(|operation| operation.to_string());
                    if !was_hung {
                        add(name.clone(), "hang", json!({ "operation": operation, "seconds": for_seconds }));
                    }
                    hung.push(name);
                }
                WorkerStatus::Available if was_hung => add(name, "recovered", json!({})),
                WorkerStatus::Available => {}
            }
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

/// Returns true if the share or disk of a target is not mounted, as far as the mount table tells: it does not tell where a symbolic
/// link leads.
pub(super) fn is_unmounted(target: &Target, mounts: &MountTracker, history: &TargetHistory) -> bool {
    mounts.is_unmounted(&target.name, history.last_family(&target.name)) && !is_known_link(&target.path)
}

/// Returns true if a path is known to lead through a symbolic link. A thread of its own looks, and this call does not wait for it: a
/// share that is mounted meanwhile and does not answer would stop the service.
fn is_known_link(path: &Path) -> bool {
    /// True for a path that leads through a link, false while a thread looks.
    static KNOWN: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    if let Some(is_link) = KNOWN.lock().get(path) {
        return *is_link;
    }
    KNOWN.lock().insert(path.to_owned(), false);
    let path = path.to_owned();
    let look = move || match has_link(&path) {
        true => KNOWN.lock().insert(path, true),
        // It may become one.
        false => KNOWN.lock().remove(&path),
    };
    // Without a thread the mount table alone decides.
    let _ = std::thread::Builder::new().spawn(look);
    false
}

#[cfg(test)]
mod tests {
    use longhaul_model::Role;

    use super::*;

    #[test]
    fn link_is_known_after_a_look_and_a_folder_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let link = root.join("link");
        assert!(!is_known_link(&link.join("share")));
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let is_known = |_: &u32| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_known_link(&link.join("share"))
        };
        assert!((0..1000).any(|turn| is_known(&turn)), "a later look finds it");
        assert!((0..10).all(|turn| is_known(&turn)));
    }

    #[test]
    fn workers_of_unchanged_targets_are_kept_when_targets_change() {
        let launcher = Launcher {
            program: "/bin/true".into(),
            arguments: vec![],
            machine_id: "m".to_owned(),
            local_folder: "/nonexistent".into(),
            probe_plan: None,
            sample_sender: None,
        };
        let target =
            |name: &str| Target { name: name.parse().unwrap(), path: "/x".into(), role: Role::Share };
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
}
