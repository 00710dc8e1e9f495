//! Walking a tree depth first, in constant memory per level.

use std::ffi::{CStr, CString};

use super::attributes_and_finder_info;
use crate::context::{Context, Folder, Listing};
use crate::error::RunError;
use crate::platform::{Attributes, EntryKind, Wanted};

/// What is asked about each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Its name and kind.
    Names,
    /// Its attributes.
    Attributes,
    /// Its attributes and its Finder info.
    FinderInfo,
}

/// What a walk visits, and what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope<'a> {
    /// What is asked about each entry.
    pub depth: Depth,
    /// A folder at the top that is left out.
    pub without: Option<&'a CStr>,
}

impl Scope<'_> {
    /// Everything.
    pub const fn all(depth: Depth) -> Self {
        Self { depth, without: None }
    }
}

/// A folder that was listed, and the folders in it that were not yet.
struct Level {
    folder: Folder,
    pending: Vec<CString>,
}

/// Visits every entry below `root`, with the folder it is in. Only the folders still to be listed on the way down are
/// held in memory.
pub fn walk(
    context: &Context<'_>,
    root: &Folder,
    scope: Scope<'_>,
    mut visit: impl FnMut(&Folder, &CStr, &Attributes),
) -> Result<(), RunError> {
    let Scope { depth, without } = scope;
    let mut listing = Listing::default();
    let top = context.open_folder(root, c".")?;
    let mut pending = list(context, &top, depth, &mut listing, &mut visit)?;
    pending.retain(|name| Some(name.as_c_str()) != without);
    let mut levels = vec![Level { folder: top, pending }];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.pending.pop() else {
            levels.pop();
            continue;
        };
        let folder = context.open_folder(&level.folder, &name)?;
        let pending = list(context, &folder, depth, &mut listing, &mut visit)?;
        levels.push(Level { folder, pending });
    }
    Ok(())
}

/// Visits the entries of one folder and returns the names of the folders among them.
fn list(
    context: &Context<'_>,
    folder: &Folder,
    depth: Depth,
    listing: &mut Listing,
    visit: &mut impl FnMut(&Folder, &CStr, &Attributes),
) -> Result<Vec<CString>, RunError> {
    let wanted = match depth {
        Depth::Names => Wanted::Names,
        Depth::Attributes | Depth::FinderInfo => Wanted::FinderAttributes,
    };
    let mut pending = vec![];
    context.list(folder, wanted, listing, |entry| {
        let attributes = match (entry.attributes, depth) {
            (Some(attributes), _) => attributes,
            (None, Depth::FinderInfo) => attributes_and_finder_info(context, folder, entry.name)?,
            (None, Depth::Attributes) => context.getattr(folder, entry.name)?,
            (None, Depth::Names) => kind_only(context, folder, entry.name, entry.kind)?,
        };
        if attributes.kind == EntryKind::Folder {
            pending.push(entry.name.to_owned());
        }
        visit(folder, entry.name, &attributes);
        Ok::<_, RunError>(())
    })?;
    Ok(pending)
}

/// The kind of an entry, asked for only where the listing did not say.
fn kind_only(
    context: &Context<'_>,
    folder: &Folder,
    name: &CStr,
    kind: EntryKind,
) -> Result<Attributes, RunError> {
    match kind {
        EntryKind::Unknown => context.getattr(folder, name),
        kind => Ok(Attributes { kind, size: 0, modified_ns: 0, mode: 0 }),
    }
}

/// Opens folder after folder; `None` if there is none to open.
pub fn descend(context: &Context<'_>, root: &Folder, names: &[CString]) -> Result<Option<Folder>, RunError> {
    names.iter().try_fold(None, |at: Option<Folder>, name| {
        context.open_folder(at.as_ref().unwrap_or(root), name).map(Some)
    })
}

/// Makes folder in folder, where they are missing, and opens the last; `None` if there is none to make.
pub fn make(context: &Context<'_>, root: &Folder, names: &[CString]) -> Result<Option<Folder>, RunError> {
    names.iter().try_fold(None, |at: Option<Folder>, name| {
        context.make_folder(at.as_ref().unwrap_or(root), name).map(Some)
    })
}
