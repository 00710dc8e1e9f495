//! Walks a tree depth first, keeping only the names of folders that are still to be listed in memory.

use std::ffi::{CStr, CString};

use crate::error::RunError;
use crate::platform::{Attributes, EntryKind, FINDER_INFO, FINDER_INFO_BYTES, ListingFields};
use crate::timed_fs::{Folder, ListingBuffer, TimedFs};
use longhaul_corpus::apple_double::owner_name;

/// The amount of information to read about each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryDetail {
    /// Name and kind.
    Names,
    /// Name and attributes.
    Attributes,
    /// Name, attributes and Finder info.
    FinderInfo,
}

/// The options of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkOptions<'a> {
    /// Information to read about each entry.
    pub detail: EntryDetail,
    /// Name of a top-level folder to skip, if any, in small letters or capitals: a NAS may change them.
    pub skipped_folder: Option<&'a CStr>,
}

impl WalkOptions<'_> {
    /// Returns options that walk the whole tree.
    pub const fn whole_tree(detail: EntryDetail) -> Self {
        Self { detail, skipped_folder: None }
    }
}

/// A folder that was listed, with the names of its subfolders that were not listed yet.
struct OpenLevel {
    folder: Folder,
    pending: Vec<CString>,
}

/// Calls `visit` for every entry below `root`, with the folder that contains the entry.
///
/// Memory use is proportional to the number of folders still to be listed, not to the number of files.
pub fn walk(
    context: &TimedFs<'_>,
    root: &Folder,
    options: WalkOptions<'_>,
    mut visit: impl FnMut(&Folder, &CStr, &Attributes),
) -> Result<(), RunError> {
    let WalkOptions { detail, skipped_folder } = options;
    let mut lister = Lister { context, detail, buffer: ListingBuffer::default() };
    let top = context.open_folder(root, c".")?;
    let mut pending = lister.list(&top, &mut visit)?;
    let is_skipped = |name: &CString| {
        skipped_folder.is_some_and(|skipped| name.to_bytes().eq_ignore_ascii_case(skipped.to_bytes()))
    };
    pending.retain(|name| !is_skipped(name));
    let mut levels = vec![OpenLevel { folder: top, pending }];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.pending.pop() else {
            levels.pop();
            continue;
        };
        let folder = context.open_folder(&level.folder, &name)?;
        let pending = lister.list(&folder, &mut visit)?;
        levels.push(OpenLevel { folder, pending });
    }
    Ok(())
}

/// Lists folders one after another into the same buffer.
struct Lister<'a, 'run> {
    context: &'a TimedFs<'run>,
    detail: EntryDetail,
    buffer: ListingBuffer,
}

impl Lister<'_, '_> {
    /// Calls `visit` for the entries of one folder and returns the names of its subfolders.
    fn list(
        &mut self,
        folder: &Folder,
        visit: &mut impl FnMut(&Folder, &CStr, &Attributes),
    ) -> Result<Vec<CString>, RunError> {
        let Self { context, detail, buffer } = self;
        let wanted = match detail {
            EntryDetail::Names => ListingFields::Names,
            EntryDetail::Attributes | EntryDetail::FinderInfo => ListingFields::FinderAttributes,
        };
        let mut pending = vec![];
        context.list(folder, wanted, buffer, |entry| {
            // On macOS, the listing includes the attributes. On Linux, each entry needs a call of its own.
            let attributes = match (entry.attributes, *detail) {
                (Some(attributes), _) => attributes,
                (None, EntryDetail::FinderInfo) => attributes_and_finder_info(context, folder, entry.name)?,
                (None, EntryDetail::Attributes) => context.getattr(folder, entry.name)?,
                (None, EntryDetail::Names) => attributes_with_kind(context, folder, entry.name, entry.kind)?,
            };
            if attributes.kind == EntryKind::Folder {
                pending.push(entry.name.to_owned());
            }
            visit(folder, entry.name, &attributes);
            Ok::<_, RunError>(())
        })?;
        Ok(pending)
    }
}

/// Returns attributes with only the kind of an entry. Makes a call only if the listing did not include the kind.
fn attributes_with_kind(
    context: &TimedFs<'_>,
    folder: &Folder,
    name: &CStr,
    kind: EntryKind,
) -> Result<Attributes, RunError> {
    match kind {
        EntryKind::Unknown => context.getattr(folder, name),
        kind => Ok(Attributes { kind, size: 0, modified_ns: 0, mode: 0 }),
    }
}

/// Opens a folder by the names that lead to it from `root`; `None` if there are no names.
pub fn open_path(
    context: &TimedFs<'_>,
    root: &Folder,
    names: &[CString],
) -> Result<Option<Folder>, RunError> {
    names.iter().try_fold(None, |parent: Option<Folder>, name| {
        context.open_folder(parent.as_ref().unwrap_or(root), name).map(Some)
    })
}

/// Creates the missing folders along a path from `root` and opens the last one; `None` if there are no names.
pub fn make_path(
    context: &TimedFs<'_>,
    root: &Folder,
    names: &[CString],
) -> Result<Option<Folder>, RunError> {
    names.iter().try_fold(None, |parent: Option<Folder>, name| {
        context.create_and_open_folder(parent.as_ref().unwrap_or(root), name).map(Some)
    })
}

/// Reads the attributes and the Finder info of a name, and returns the attributes.
///
/// AppleDouble files have no Finder info: macOS answers EPERM for them (xnu bsd/vfs/vfs_xattr.c:2105 `open_xattrfile`).
pub fn attributes_and_finder_info(
    context: &TimedFs<'_>,
    folder: &Folder,
    name: &CStr,
) -> Result<Attributes, RunError> {
    let attributes = context.getattr(folder, name)?;
    if owner_name(name.to_bytes()).is_none() {
        context.getxattr_at(folder, name, FINDER_INFO, &mut [0u8; FINDER_INFO_BYTES])?;
    }
    Ok(attributes)
}
