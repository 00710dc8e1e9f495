//! The writer: makes the changes of a session in its sandbox, and removes everything.

use std::ffi::{CStr, CString};
use std::time::Duration;

use super::nas_clock::{self, ClockOffset};
use super::session::{
    FILES, FOLDER, FreshnessSession, MadeChange, is_item_folder, is_session_folder, item_folder,
};
use super::watcher::Watcher;
use crate::error::RunError;
use crate::platform::{self, monotonic_ns};
use crate::sandbox::Sandbox;
use crate::timed_fs::{Folder, TimedFs};
use crate::workloads::unlink_leftover;

/// [`FOLDER`] as a C string.
const FOLDER_NAME: &CStr = c"freshness";
/// Time within which a share must show that files were removed, because SMB clients close files late.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two attempts to remove a folder.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(50);

/// Open folder for sessions in a sandbox.
pub struct Writer {
    folder: Folder,
}

impl Writer {
    /// Opens the folder for sessions, and creates it if it does not exist.
    pub fn open(sandbox: &Sandbox, context: &TimedFs<'_>) -> Result<Self, RunError> {
        // The manifest entry is written before the folder is created, because only folders that are in the manifest
        // are ever removed.
        if sandbox.manifest_entry::<bool>(FOLDER)?.is_none() {
            sandbox.record_entry(FOLDER, &true, context)?;
        }
        Ok(Self { folder: context.create_and_open_folder(&sandbox.folder()?, FOLDER_NAME)? })
    }

    /// Creates a session with the files that exist before the changes, and removes those of earlier sessions that
    /// were not ended.
    pub fn prepare(&self, session: &FreshnessSession, context: &TimedFs<'_>) -> Result<(), RunError> {
        self.remove_leftovers(context)?;
        let folder = context.create_and_open_folder(&self.folder, &session_name(session))?;
        for place in 0..session.kinds.len() {
            context.create_folder(&folder, &item_folder(place))?;
        }
        Watcher::open_items(session, folder, context)?.items().try_for_each(|item| item.prepare(context))
    }

    /// Makes each change after its time, counted from now. `after` has a time for each change of the session.
    pub fn make(
        &self,
        session: &FreshnessSession,
        after: &[Duration],
        context: &TimedFs<'_>,
    ) -> Result<Vec<MadeChange>, RunError> {
        let items = self.items_of(session, context)?;
        let begun_ns = monotonic_ns();
        let mut order: Vec<_> = items.items().zip(after).enumerate().collect();
        order.sort_by_key(|(_, (_, after))| **after);
        let mut made = vec![];
        for (place, (item, after)) in order {
            let due_ns = begun_ns + after.as_nanos() as u64;
            context.pause(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())))?;
            let (at, began_ns) = (platform::wall_clock(), monotonic_ns());
            item.change(context)?;
            made.push((place, MadeChange { began_ns, ended_ns: monotonic_ns(), at }));
        }
        made.sort_by_key(|(place, _)| *place);
        Ok(made.into_iter().map(|(_, change)| change).collect())
    }

    /// Returns whether the server still has each change.
    pub fn confirm(&self, session: &FreshnessSession, context: &TimedFs<'_>) -> Result<Vec<bool>, RunError> {
        let items = self.items_of(session, context)?;
        items.items().map(|item| item.is_confirmed(context)).collect()
    }

    /// Compares the clock of the NAS with that of this machine.
    pub fn compare_clocks(
        &self,
        session: &FreshnessSession,
        context: &TimedFs<'_>,
    ) -> Result<ClockOffset, RunError> {
        nas_clock::compare_clocks(&context.open_folder(&self.folder, &session_name(session))?, context)
    }

    /// Returns when each change was made on the NAS, by its clock; `None` if the server does not have the change.
    pub fn stamps_ns(
        &self,
        session: &FreshnessSession,
        context: &TimedFs<'_>,
    ) -> Result<Vec<Option<i64>>, RunError> {
        let items = self.items_of(session, context)?;
        nas_clock::stamps_ns(&items.items().collect::<Vec<_>>(), context)
    }

    fn items_of(&self, session: &FreshnessSession, context: &TimedFs<'_>) -> Result<Watcher, RunError> {
        let folder = context.open_folder(&self.folder, &session_name(session))?;
        Watcher::open_items(session, folder, context)
    }

    /// Removes all files of a session. A session that does not exist is no error.
    pub fn remove(&self, session: &FreshnessSession, context: &TimedFs<'_>) -> Result<(), RunError> {
        // Not listed, because a listing may be stale.
        self.remove_folders(&session_name(session), (0..session.kinds.len()).map(item_folder), context)
    }

    /// Removes the sessions of workers that were killed.
    fn remove_leftovers(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        for name in context.names(&self.folder)? {
            if is_session_folder(name.to_bytes()) {
                let items = context.names(&context.open_folder(&self.folder, &name)?)?;
                let items = items.into_iter().filter(|name| is_item_folder(name.to_bytes()));
                self.remove_folders(&name, items, context)?;
            }
        }
        Ok(())
    }

    fn remove_folders(
        &self,
        name: &CStr,
        items: impl Iterator<Item = CString>,
        context: &TimedFs<'_>,
    ) -> Result<(), RunError> {
        let folder = match context.open_folder(&self.folder, name) {
            Err(error) if error.is_not_found() => return Ok(()),
            opened => opened?,
        };
        for item in items {
            match context.open_folder(&folder, &item) {
                Err(error) if error.is_not_found() => {}
                opened => remove_files(&opened?, context)?,
            }
            remove_empty(&folder, &item, context)?;
        }
        remove_empty(&self.folder, name, context)
    }
}

fn session_name(session: &FreshnessSession) -> CString {
    CString::new(session.folder_name()).expect("digits contain no NUL")
}

/// Removes the files of a change.
fn remove_files(folder: &Folder, context: &TimedFs<'_>) -> Result<(), RunError> {
    FILES.into_iter().try_for_each(|name| unlink_leftover(context, folder, name))
}

/// Removes an empty folder. A share may list a removed file for a moment longer.
fn remove_empty(folder: &Folder, name: &CStr, context: &TimedFs<'_>) -> Result<(), RunError> {
    let deadline_ns = monotonic_ns() + REMOVAL_TIMEOUT.as_nanos() as u64;
    loop {
        match context.remove_folder(folder, name) {
            Err(error) if error.is_not_empty() && monotonic_ns() < deadline_ns => {
                context.pause(REMOVAL_INTERVAL)?;
            }
            Err(error) if error.is_not_found() => return Ok(()),
            other => return other,
        }
    }
}
