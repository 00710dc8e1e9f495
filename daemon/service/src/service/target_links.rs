//! Follows the symbolic links in the targets' paths. A thread of its own reads them, and the service hardly waits for it: a share that
//! is mounted meanwhile and does not answer would stop the service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use longhaul_model::{Mount, Target};

use crate::mounts::{is_below_in_other_case, without_free_space};
use crate::target_path::real_path;

/// Longest wait for the links of new targets. Without an answer, their paths count as they are written until the next call.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Paths as they are written, and where they lead.
type RealPaths = BTreeMap<PathBuf, PathBuf>;

/// Paths whose links are to be followed, and the mount table, which tells where shares are.
#[derive(Clone, PartialEq)]
struct LinkQuery {
    paths: Vec<PathBuf>,
    mounts: Vec<Mount>,
}

/// The real paths of the targets, as far as they are known.
pub(super) struct TargetLinks {
    queries: Sender<LinkQuery>,
    answers: Receiver<RealPaths>,
    /// The last query, with the mounts above the targets only. Another one is needed only if these or the targets have changed: it may
    /// wake a sleeping disk up.
    last: Option<LinkQuery>,
    /// True until the thread has answered. A second query would wait behind one that does not return.
    is_waiting: bool,
    known: RealPaths,
}

impl TargetLinks {
    /// Starts the thread. Without it, paths count as they are written.
    pub(super) fn start() -> Self {
        let (queries, received) = channel::<LinkQuery>();
        let (sender, answers) = channel::<RealPaths>();
        let work = move || {
            for query in received {
                let real = |path: PathBuf| (path.clone(), real_path(&path, &query.mounts));
                if sender.send(query.paths.into_iter().map(real).collect()).is_err() {
                    break;
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("links".to_owned()).spawn(work) {
            tracing::warn!(%error, "a thread could not be started: symbolic links in the paths of targets are not followed");
        }
        Self { queries, answers, last: None, is_waiting: false, known: RealPaths::new() }
    }

    /// Returns the targets with their real paths. A link that was changed is noticed when a mount above the target changes. An empty
    /// mount table, which could not be read, does not tell where shares are: no link is read.
    pub(super) fn resolve(&mut self, targets: &[Target], mounts: &[Mount]) -> Vec<Target> {
        self.take_answer(Duration::ZERO);
        let paths: Vec<PathBuf> = targets.iter().map(|target| target.path.clone()).collect();
        let query = LinkQuery { mounts: self.mounts_above(&paths, mounts), paths };
        if !self.is_waiting && !mounts.is_empty() && self.last.as_ref() != Some(&query) {
            // All mounts: a link may lead to any of them.
            let full = LinkQuery { mounts: mounts.to_vec(), ..query.clone() };
            self.is_waiting = self.queries.send(full).is_ok();
            self.last = Some(query);
            if targets.iter().any(|target| !self.known.contains_key(&target.path)) {
                self.take_answer(FIRST_ANSWER_TIMEOUT);
            }
        }
        let real = |target: &Target| self.known.get(&target.path).unwrap_or(&target.path).clone();
        targets.iter().map(|target| Target { path: real(target), ..target.clone() }).collect()
    }

    /// Reads the links again with the next call: they may have been changed without a mount.
    pub(super) fn expire(&mut self) {
        self.last = None;
    }

    /// Returns the mounts at or above these paths and the known real paths.
    fn mounts_above(&self, paths: &[PathBuf], mounts: &[Mount]) -> Vec<Mount> {
        let is_above = |mount: &&Mount| {
            paths.iter().chain(self.known.values()).any(|path| is_below_in_other_case(path, &mount.point))
        };
        mounts.iter().filter(is_above).map(without_free_space).collect()
    }

    /// Takes an answer if one comes within this time.
    fn take_answer(&mut self, timeout: Duration) {
        if self.is_waiting
            && let Ok(known) = self.answers.recv_timeout(timeout)
        {
            self.known = known;
            self.is_waiting = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_model::{Protocol, Role};

    use super::*;
    use crate::mounts::MountTracker;

    #[test]
    fn mount_of_a_target_behind_a_link_is_that_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (link, real) = (root.join("link"), root.join("real"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let share = Target { name: "nas".parse().unwrap(), path: link.join("x"), role: Role::Share };
        let disk = Mount::new("/", "disk", Protocol::Local("ext4".into()));
        let mounted = [disk.clone(), Mount::new(&real, "nas:/x", Protocol::Nfs(None))];
        let (mut links, mut tracker) = (TargetLinks::start(), MountTracker::default());
        let targets = std::slice::from_ref(&share);
        let is_real = |found: &Vec<Target>| found[0].path == real.join("x");
        // The first call has the answer, unless this machine is very busy.
        let mut calls = std::iter::repeat_with(|| links.resolve(targets, &mounted)).take(100_000);
        let resolved = calls.find(is_real).unwrap();
        assert!(tracker.update(&resolved, &mounted).is_empty());
        assert_eq!(tracker.mount(&share.name).unwrap().point, real);
        let changes = tracker.update(&resolved, &[disk]);
        assert_eq!(changes.first().map(|change| change.kind), Some("unmount"));
        assert!(tracker.is_unmounted(&share.name, None));
    }

    #[test]
    fn mount_elsewhere_causes_no_reading_of_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (link, real) = (root.join("link"), root.join("real"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let target = Target { name: "nas".parse().unwrap(), path: link, role: Role::Share };
        let targets = std::slice::from_ref(&target);
        let local = |point: &Path| Mount::new(point, "disk", Protocol::Local("ext4".into()));
        let disk = local(Path::new("/"));
        let mut links = TargetLinks::start();
        links.resolve(targets, std::slice::from_ref(&disk));
        links.take_answer(Duration::from_secs(60));
        assert_eq!(links.resolve(targets, std::slice::from_ref(&disk))[0].path, real);
        links.resolve(targets, &[disk.clone(), local(Path::new("/var/lib/containers/x"))]);
        assert!(!links.is_waiting, "a container was started");
        links.resolve(targets, &[disk, local(&real)]);
        assert!(links.is_waiting, "a disk was mounted where the link leads");
    }
}
