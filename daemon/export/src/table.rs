//! A table as all formats see it: named columns of a kind, and rows of cells.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::Offset;

/// What the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Real,
    /// Any JSON value; as text where a format has nothing for it.
    Json,
    /// A list of whole numbers; as JSON text where a format has no lists.
    Integers,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    /// What it holds and in which unit, for the person who opens the file.
    pub(crate) about: Cow<'static, str>,
}

impl Column {
    /// A column from its line in a table.
    pub(crate) fn of(line: &(&'static str, Kind, &'static str)) -> Self {
        let (name, kind, about) = *line;
        Self { name: name.into(), kind, about: about.into() }
    }
}

/// One cell. Where the kind of its column is another, it is written as not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Cell<'a> {
    /// Not known.
    #[default]
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    /// Not known unless it is finite.
    Real(f64),
    /// Compact JSON.
    Json(Cow<'a, str>),
    Integers(Cow<'a, [i64]>),
}

impl<'a> Cell<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A count; what is beyond 63 bits is written as the largest number that all formats have.
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

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

/// A moment as RFC 3339 writes it, with the offset of local time there and then; not known where that has no words.
pub(crate) fn moment(at_us: i64, utc_offset_seconds: i32) -> Cell<'static> {
    let shown = || {
        let offset = Offset::from_seconds(utc_offset_seconds).ok()?;
        Some(Timestamp::from_microsecond(at_us).ok()?.display_with_offset(offset).to_string())
    };
    shown().map_or(Cell::Null, Cell::text)
}
