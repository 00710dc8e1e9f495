//! One change of a session: its files before, how it is made, and how it is seen.

use std::ffi::CStr;

use super::session::{NEW, OLD, View};
use crate::error::RunError;
use crate::platform::{Access, ListingFields};
use crate::timed_fs::{Folder, ListingBuffer, TimedFs};
use longhaul_model::ChangeKind;

/// Content before a change.
pub const CONTENT_BEFORE: &[u8] = b"before the change\n";
/// Content after a change, of the same length.
pub const CONTENT_AFTER: &[u8] = b"after  the change\n";

/// Bytes that are read of a file: more than any has.
const MAX_CONTENT: usize = 64;

/// Folder of a change.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Folder of the session.
    pub session: &'a Folder,
    /// Name of the change's folder in it.
    pub name: &'a CStr,
    /// The change's folder, which stays open: looking up a name in it does not ask the server about the folder.
    pub folder: &'a Folder,
    /// Kind of the change.
    pub kind: ChangeKind,
}

impl Item<'_> {
    /// Creates the files that exist before the change.
    pub fn prepare(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        match self.kind {
            ChangeKind::NewFile | ChangeKind::LookedUpName => Ok(()),
            ChangeKind::GrownFile
            | ChangeKind::ChangedContent
            | ChangeKind::Deletion
            | ChangeKind::Rename => self.create(OLD, context),
        }
    }

    /// Makes the change. When this returns, the server has it.
    pub fn change(&self, context: &TimedFs<'_>) -> Result<(), RunError> {
        match self.kind {
            ChangeKind::NewFile | ChangeKind::LookedUpName => self.create(NEW, context),
            ChangeKind::GrownFile => self.write(CONTENT_AFTER, CONTENT_BEFORE.len() as u64, context),
            ChangeKind::ChangedContent => self.write(CONTENT_AFTER, 0, context),
            ChangeKind::Deletion => context.unlink(self.folder, OLD),
            ChangeKind::Rename => context.rename(self.folder, OLD, NEW),
        }
    }

    fn create(&self, name: &CStr, context: &TimedFs<'_>) -> Result<(), RunError> {
        let file = context.create(self.folder, name)?;
        context.write_all(&file, CONTENT_BEFORE, 0)?;
        context.sync(&file)?;
        context.close(file)
    }

    fn write(&self, content: &[u8], offset: u64, context: &TimedFs<'_>) -> Result<(), RunError> {
        let file = context.open(self.folder, OLD, Access::Write)?;
        context.write_all(&file, content, offset)?;
        context.sync(&file)?;
        context.close(file)
    }

    /// Looks at the state once, as a program would.
    pub fn view(&self, context: &TimedFs<'_>) -> Result<View, RunError> {
        match self.kind {
            ChangeKind::NewFile => Ok(match self.listed(context)? {
                ListedFiles { has_new: false, .. } => View::Before,
                ListedFiles { has_new: true, .. } => View::After,
            }),
            ChangeKind::LookedUpName => self.has(NEW, context).map(View::after_if),
            ChangeKind::Deletion => self.has(OLD, context).map(|exists| View::after_if(!exists)),
            ChangeKind::GrownFile => self.view_size(context),
            ChangeKind::ChangedContent => self.view_content(context),
            ChangeKind::Rename => Ok(match self.listed(context)? {
                ListedFiles { has_old: true, has_new: false } => View::Before,
                ListedFiles { has_old: false, has_new: true } => View::After,
                ListedFiles { .. } => View::Other,
            }),
        }
    }

    /// Returns whether the server has the state after the change, by calls that no stale listing or remembered name
    /// deceives: the folder is listed, which refreshes names, and files are opened.
    pub fn is_confirmed(&self, context: &TimedFs<'_>) -> Result<bool, RunError> {
        self.listed(context)?;
        let grown = [CONTENT_BEFORE, CONTENT_AFTER].concat();
        let has_content = |name, expected: &[u8]| match self.read(name, context) {
            Err(error) if error.is_not_found() => Ok(false),
            content => Ok(content? == expected),
        };
        match self.kind {
            ChangeKind::NewFile | ChangeKind::LookedUpName => has_content(NEW, CONTENT_BEFORE),
            ChangeKind::GrownFile => has_content(OLD, &grown),
            ChangeKind::ChangedContent => has_content(OLD, CONTENT_AFTER),
            ChangeKind::Deletion => Ok(!has_content(OLD, CONTENT_BEFORE)?),
            ChangeKind::Rename => Ok(!has_content(OLD, CONTENT_BEFORE)? && has_content(NEW, CONTENT_BEFORE)?),
        }
    }

    fn has(&self, name: &CStr, context: &TimedFs<'_>) -> Result<bool, RunError> {
        Ok(context.lookup(self.folder, name)?.is_some())
    }

    fn view_size(&self, context: &TimedFs<'_>) -> Result<View, RunError> {
        let before = CONTENT_BEFORE.len() as u64;
        let after = before + CONTENT_AFTER.len() as u64;
        Ok(match context.lookup(self.folder, OLD)?.map(|file| file.size) {
            Some(size) if size == before => View::Before,
            Some(size) if size == after => View::After,
            _ => View::Other,
        })
    }

    fn view_content(&self, context: &TimedFs<'_>) -> Result<View, RunError> {
        Ok(match self.read(OLD, context)?.as_slice() {
            CONTENT_BEFORE => View::Before,
            CONTENT_AFTER => View::After,
            _ => View::Other,
        })
    }

    /// Reads a file through a new handle.
    fn read(&self, name: &CStr, context: &TimedFs<'_>) -> Result<Vec<u8>, RunError> {
        let file = context.open(self.folder, name, Access::Read)?;
        let mut content = vec![0; MAX_CONTENT];
        let length = context.read_full(&file, &mut content, 0);
        context.close(file)?;
        content.truncate(length?);
        Ok(content)
    }

    /// Lists the folder through a new handle.
    fn listed(&self, context: &TimedFs<'_>) -> Result<ListedFiles, RunError> {
        let folder = context.open_folder(self.session, self.name)?;
        let mut listed = ListedFiles { has_old: false, has_new: false };
        context.list(&folder, ListingFields::Names, &mut ListingBuffer::default(), |entry| {
            listed.has_old |= entry.name == OLD;
            listed.has_new |= entry.name == NEW;
            Ok::<(), RunError>(())
        })?;
        Ok(listed)
    }
}

/// Files in a listing.
struct ListedFiles {
    has_old: bool,
    has_new: bool,
}

impl View {
    /// Returns the state of a change that is seen completely or not at all.
    const fn after_if(is_visible: bool) -> Self {
        if is_visible { Self::After } else { Self::Before }
    }
}
