//! The watcher: looks for the changes of a session through its own mount. Only reads.

use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

use super::item::Item;
use super::session::{FOLDER, FreshnessSession, View, WatchLimit, WatchedChange, item_folder};
use crate::error::RunError;
use crate::platform::monotonic_ns;
use crate::timed_fs::{Folder, TimedFs};
use longhaul_model::ChangeKind;

/// Pause between the starts of two polls of all changes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Pause between two reads of a file. The Linux client keeps a file of an SMB share open for a second after a program
/// closed it (`closetimeo`) and reads it from memory meanwhile. Polls every 0.1 s would keep it open for ever and never
/// show a change that was made on the NAS (Linux 6.1, Samba 4.22), which no ordinary program meets.
const CONTENT_INTERVAL: Duration = Duration::from_millis(1500);
/// Time within which the files of a session that was just created have to be seen.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// Open folders of a session.
pub struct Watcher {
    session: Folder,
    items: Vec<WatchedItem>,
}

struct WatchedItem {
    name: CString,
    folder: Folder,
    kind: ChangeKind,
}

impl Watcher {
    /// Opens the folders of a session below the path of a target. `None`: they are not there, so that the target
    /// leads to another folder than the writer's.
    pub fn open(
        session: &FreshnessSession,
        target: &Path,
        context: &TimedFs<'_>,
    ) -> Result<Option<Self>, RunError> {
        let mut folder = context.open_folder_path(target)?;
        for name in [session.sandbox.as_str(), FOLDER, &session.folder_name()] {
            let Ok(name) = CString::new(name) else { return Ok(None) };
            folder = match context.open_folder(&folder, &name) {
                Err(error) if error.is_not_found() => return Ok(None),
                opened => opened?,
            };
        }
        Self::open_items(session, folder, context).map(Some)
    }

    /// Opens the folders of all changes in the folder of a session.
    pub fn open_items(
        session: &FreshnessSession,
        folder: Folder,
        context: &TimedFs<'_>,
    ) -> Result<Self, RunError> {
        let open = |(place, kind): (usize, &ChangeKind)| {
            let name = item_folder(place);
            Ok(WatchedItem { folder: context.open_folder(&folder, &name)?, name, kind: *kind })
        };
        let items = session.kinds.iter().enumerate().map(open).collect::<Result<_, RunError>>()?;
        Ok(Self { session: folder, items })
    }

    /// Returns the changes in the order of the session.
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.items.iter().map(|item| Item {
            session: &self.session,
            name: &item.name,
            folder: &item.folder,
            kind: item.kind,
        })
    }

    /// Waits until the state before every change is seen, so that the client knows it. Returns whether it is.
    pub fn see_before(&self, context: &TimedFs<'_>) -> Result<bool, RunError> {
        let deadline_ns = monotonic_ns() + READY_TIMEOUT.as_nanos() as u64;
        loop {
            let views = self.items().map(|item| item.view(context)).collect::<Result<Vec<_>, _>>()?;
            let is_seen = views.iter().all(|view| *view == View::Before);
            if is_seen || monotonic_ns() >= deadline_ns {
                return Ok(is_seen);
            }
            context.pause(POLL_INTERVAL)?;
        }
    }

    /// Polls all changes until each was seen or a limit has passed.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`] if a stop was requested. Errors of a poll are part of its observation.
    pub fn watch(&self, limit: WatchLimit, context: &TimedFs<'_>) -> Result<Vec<WatchedChange>, RunError> {
        let mut deadline_ns = monotonic_ns() + limit.total.as_nanos() as u64;
        let mut after_first = limit.after_first;
        let mut observations = vec![WatchedChange::default(); self.items.len()];
        let mut due_ns = vec![0; self.items.len()];
        loop {
            let began_ns = monotonic_ns();
            for ((item, observation), due_ns) in self.items().zip(&mut observations).zip(&mut due_ns) {
                if observation.is_open() && *due_ns <= monotonic_ns() {
                    *due_ns = monotonic_ns() + poll_interval(item.kind).as_nanos() as u64;
                    observation.poll(&item, context)?;
                }
            }
            let is_first_seen = observations.iter().any(|observation| observation.seen_ns.is_some());
            if let Some(after) = after_first.take_if(|_| is_first_seen) {
                deadline_ns = deadline_ns.min(monotonic_ns() + after.as_nanos() as u64);
            }
            let is_complete = !observations.iter().any(WatchedChange::is_open);
            if is_complete || monotonic_ns() >= deadline_ns {
                return Ok(observations);
            }
            let next_ns = began_ns + POLL_INTERVAL.as_nanos() as u64;
            context.pause(Duration::from_nanos(next_ns.saturating_sub(monotonic_ns())))?;
        }
    }
}

/// Returns the pause between the starts of two polls of a change.
const fn poll_interval(kind: ChangeKind) -> Duration {
    match kind {
        ChangeKind::ChangedContent => CONTENT_INTERVAL,
        ChangeKind::NewFile
        | ChangeKind::LookedUpName
        | ChangeKind::GrownFile
        | ChangeKind::Deletion
        | ChangeKind::Rename => Duration::ZERO,
    }
}

impl WatchedChange {
    /// Returns whether the change is still looked for.
    const fn is_open(&self) -> bool {
        self.seen_ns.is_none() && self.error.is_none()
    }

    fn poll(&mut self, item: &Item<'_>, context: &TimedFs<'_>) -> Result<(), RunError> {
        let began_ns = monotonic_ns();
        match item.view(context) {
            Ok(View::After) => self.seen_ns = Some(monotonic_ns()),
            Ok(View::Before | View::Other) => self.unseen_ns = Some(began_ns),
            Err(error @ RunError::Stopped(_)) => return Err(error),
            Err(error) => self.error = Some(error.to_string()),
        }
        Ok(())
    }
}
