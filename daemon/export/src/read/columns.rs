//! The columns of an imported file.

use crate::archive::LAYOUT;

/// The columns of a file in file order: the index in [`LAYOUT`] of a known column, or the name of an unknown
/// one.
pub(super) struct Columns(pub(super) Vec<Result<usize, String>>);

impl Columns {
    pub(super) fn from_names<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self(names.map(|name| LAYOUT.column_index(name).ok_or_else(|| name.to_owned())).collect())
    }
}
