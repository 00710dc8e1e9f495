//! Tests of writer and watcher in a local folder, which caches nothing.

use std::path::PathBuf;
use std::time::Duration;

use super::{FOLDER, FreshnessSession, WatchLimit, WatchedChange, Watcher, Writer, owns};
use crate::sandbox::CleanMode;
use crate::testing::Site;
use longhaul_model::ChangeKind;

const SPREAD: Duration = Duration::from_millis(300);
const LIMIT: WatchLimit = WatchLimit { total: Duration::from_secs(2), after_first: None };

impl Site {
    fn writer(&self) -> Writer {
        Writer::open(&self.sandbox(), &self.context(0)).ok().unwrap()
    }

    fn folder_of(&self, session: &FreshnessSession) -> PathBuf {
        self.path().join(&session.sandbox).join(FOLDER).join(session.folder_name())
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.path().join(".longhaul-m-nas").join(FOLDER)).unwrap().count()
    }

    /// Makes all changes while another thread watches.
    fn measure(&self, session: &FreshnessSession, disturb: impl Fn() + Sync) -> Vec<WatchedChange> {
        let writer = self.writer();
        writer.prepare(session, &self.context(0)).unwrap();
        let watcher = Watcher::open(session, self.path(), &self.context(1)).unwrap().unwrap();
        assert!(watcher.see_before(&self.context(1)).unwrap());
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| watcher.watch(LIMIT, &self.context(1)));
            let times = vec![SPREAD; session.kinds.len()];
            let made = writer.make(session, &times, &self.context(0)).unwrap();
            assert!(made.iter().all(|change| change.began_ns <= change.ended_ns));
            disturb();
            watching.join().unwrap().unwrap()
        })
    }
}

fn session() -> FreshnessSession {
    let kinds = ChangeKind::ALL.to_vec();
    FreshnessSession { id: 7, sandbox: ".longhaul-m-nas".to_owned(), kinds }
}

#[test]
fn every_change_is_seen_where_nothing_is_cached() {
    let (site, session) = (Site::new(), session());
    for observation in site.measure(&session, || {}) {
        let (unseen_ns, seen_ns) = (observation.unseen_ns.unwrap(), observation.seen_ns.unwrap());
        assert!(unseen_ns < seen_ns && observation.error.is_none());
    }
    let context = site.context(0);
    assert_eq!(site.writer().confirm(&session, &context).unwrap(), [true; 6]);
    site.writer().remove(&session, &context).unwrap();
    assert_eq!(site.left(), 0);
}

#[test]
fn files_removed_by_another_program_are_not_confirmed() {
    let (site, session) = (Site::new(), session());
    let folder = site.folder_of(&session);
    let remove_all = || {
        for place in 0..session.kinds.len() {
            let _ = std::fs::remove_file(folder.join(format!("{place}/new")));
            let _ = std::fs::remove_file(folder.join(format!("{place}/old")));
        }
    };
    site.measure(&session, remove_all);
    let confirmed = site.writer().confirm(&session, &site.context(0)).unwrap();
    let is_deletion = session.kinds.iter().map(|kind| *kind == ChangeKind::Deletion);
    assert_eq!(confirmed, is_deletion.collect::<Vec<_>>());
}

#[test]
fn session_below_another_path_is_not_found() {
    let (site, session) = (Site::new(), session());
    site.writer().prepare(&session, &site.context(0)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(Watcher::open(&session, elsewhere.path(), &site.context(1)).unwrap().is_none());
    let other = FreshnessSession { id: 8, ..session };
    assert!(Watcher::open(&other, site.path(), &site.context(1)).unwrap().is_none());
}

#[test]
fn files_of_a_killed_writer_are_removed_by_the_next_session() {
    let (site, session) = (Site::new(), session());
    let context = site.context(0);
    site.writer().prepare(&session, &context).unwrap();
    // As after a removal that was killed.
    std::fs::remove_dir_all(site.folder_of(&session).join("0")).unwrap();
    let next = FreshnessSession { id: 8, ..session };
    site.writer().prepare(&next, &context).unwrap();
    assert_eq!(site.left(), 1);
    site.writer().remove(&next, &context).unwrap();
    assert_eq!(site.left(), 0);
}

#[test]
fn cleaning_removes_sessions_and_keeps_foreign_files() {
    let (site, session) = (Site::new(), session());
    let context = site.context(0);
    site.writer().prepare(&session, &context).unwrap();
    let foreign = site.folder_of(&session).join("3/letter.txt");
    std::fs::write(&foreign, "mine").unwrap();
    let report = site.sandbox().clean(CleanMode::Remove, &context, &owns).unwrap();
    assert_eq!((report.foreign, report.sandbox_removed), (vec![foreign.clone()], false));
    std::fs::remove_file(foreign).unwrap();
    assert!(site.sandbox().clean(CleanMode::Remove, &context, &owns).unwrap().sandbox_removed);
}

#[test]
fn error_of_a_poll_ends_the_watch_of_its_change() {
    let (site, session) = (Site::new(), session());
    let folder = site.folder_of(&session);
    let content = session.kinds.iter().position(|kind| *kind == ChangeKind::ChangedContent).unwrap();
    let writer = site.writer();
    writer.prepare(&session, &site.context(0)).unwrap();
    let watcher = Watcher::open(&session, site.path(), &site.context(1)).unwrap().unwrap();
    std::fs::remove_file(folder.join(format!("{content}/old"))).unwrap();
    let observations = watcher.watch(LIMIT, &site.context(1)).unwrap();
    assert!(observations[content].error.as_ref().unwrap().contains("open"), "{observations:?}");
    assert!(observations[content].seen_ns.is_none());
}
