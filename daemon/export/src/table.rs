//! The table model that all file formats share: named, typed columns and rows of cells.

use std::borrow::Cow;

use jiff::tz::Offset;
use longhaul_model::Timestamp;

/// The type of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Real,
    /// Any JSON value; written as text in formats without a JSON type.
    Json,
    /// A list of integers; written as JSON text in formats without lists.
    Integers,
}

/// Definition of a column: name, kind and description.
pub(crate) type Definition = (&'static str, Kind, &'static str);

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    /// Content and unit of the column, for the user who opens the file.
    pub(crate) description: Cow<'static, str>,
}

impl Column {
    /// Returns the columns with these definitions.
    pub(crate) fn all(definitions: &[Definition]) -> Vec<Self> {
        let columns = definitions.iter().map(|(name, kind, description)| Self {
            name: (*name).into(),
            kind: *kind,
            description: (*description).into(),
        });
        columns.collect()
    }
}

/// One cell. A cell whose type differs from the kind of its column is written as [`Cell::Null`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Cell<'a> {
    /// Unknown value: an empty field in CSV, a missing key in JSON, null in Parquet.
    #[default]
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    /// A floating-point number. NaN and infinity are written as [`Cell::Null`].
    Real(f64),
    /// JSON text without unnecessary white space.
    Json(Cow<'a, str>),
    Integers(Cow<'a, [i64]>),
}

impl<'a> Cell<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a cell with a count. A count beyond 63 bits becomes `i64::MAX`, the largest integer that all
    /// formats support.
    pub(crate) fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(known: Option<T>) -> Self {
        known.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::text(text)
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<Timestamp> for Cell<'_> {
    fn from(at: Timestamp) -> Self {
        Self::Integer(at.as_us())
    }
}

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

/// Returns a time as RFC 3339 text with the given offset of local time, or
/// [`Cell::Null`] if it cannot be expressed.
pub(crate) fn timestamp_cell(at: Timestamp, utc_offset_seconds: i32) -> Cell<'static> {
    let shown = || {
        let offset = Offset::from_seconds(utc_offset_seconds).ok()?;
        Some(jiff::Timestamp::from_microsecond(at.as_us()).ok()?.display_with_offset(offset).to_string())
    };
    shown().map_or(Cell::Null, Cell::text)
}
