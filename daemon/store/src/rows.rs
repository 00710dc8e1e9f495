//! Reads rows of query results. A value that this version does not know is an error that names the row and the
//! value, never a panic.

use std::path::PathBuf;

use rusqlite::types::FromSql;
use rusqlite::{Connection, Params, Row, RowIndex};
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::path_value::path_from_value;
use longhaul_model::Timestamp;

/// A row of a query result, with the table and the number that error messages name.
#[derive(Clone, Copy)]
pub(crate) struct TableRow<'a> {
    row: &'a Row<'a>,
    table: &'static str,
    /// Number of the row.
    pub(crate) number: i64,
}

impl<'a> TableRow<'a> {
    pub(crate) const fn new(row: &'a Row<'a>, table: &'static str, number: i64) -> Self {
        Self { row, table, number }
    }

    /// Wraps a row whose number is in its column `number`.
    pub(crate) fn numbered(row: &'a Row<'a>, table: &'static str) -> Result<Self, Fault> {
        Ok(Self::new(row, table, row.get("number")?))
    }

    /// Returns the error for a value that this version does not know.
    pub(crate) fn unknown(&self, column: &'static str, value: impl ToString) -> Fault {
        Fault::InvalidValue { table: self.table, row: self.number, column, value: value.to_string() }
    }

    /// Returns the number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.row.as_ref().column_count()
    }

    pub(crate) fn get<T: FromSql>(&self, column: impl RowIndex) -> Result<T, Fault> {
        Ok(self.row.get(column)?)
    }

    /// Reads a column with an unsigned number, which SQLite stores as a signed one.
    pub(crate) fn unsigned(&self, column: impl RowIndex) -> Result<u64, Fault> {
        Ok(self.get::<i64>(column)?.cast_unsigned())
    }

    /// Reads a column like [`Self::unsigned`], but allows NULL. `None`: NULL.
    pub(crate) fn optional_unsigned(&self, column: impl RowIndex) -> Result<Option<u64>, Fault> {
        Ok(self.get::<Option<i64>>(column)?.map(i64::cast_unsigned))
    }

    /// Reads a column with a time.
    pub(crate) fn time(&self, column: impl RowIndex) -> Result<Timestamp, Fault> {
        Ok(Timestamp::from_us(self.get(column)?))
    }

    /// Reads a column with a time, but allows NULL. `None`: NULL.
    pub(crate) fn optional_time(&self, column: impl RowIndex) -> Result<Option<Timestamp>, Fault> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_us))
    }

    /// Reads a column of text without a copy. `None`: NULL.
    pub(crate) fn text(&self, column: impl RowIndex) -> Result<Option<&'a str>, Fault> {
        Ok(self.row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?)
    }

    /// Reads a column of bytes without a copy. `None`: NULL.
    pub(crate) fn bytes(&self, column: impl RowIndex) -> Result<Option<&'a [u8]>, Fault> {
        Ok(self.row.get_ref(column)?.as_blob_or_null().map_err(rusqlite::Error::from)?)
    }

    /// Reads a JSON column.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, Fault> {
        let text: String = self.get(column)?;
        serde_json::from_str(&text).map_err(|_| self.unknown(column, text))
    }

    /// Reads a JSON column that may be NULL. `None`: NULL.
    pub(crate) fn optional_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(column)? else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|_| self.unknown(column, text))
    }

    /// Reads a text column whose values `from_name` knows, such as the names of an enum.
    pub(crate) fn parsed<T>(
        &self,
        column: &'static str,
        from_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Fault> {
        self.parsed_at(column, column, from_name)
    }

    /// Reads a text column like [`Self::parsed`], but by the index of the column; its name is used only in error
    /// messages.
    pub(crate) fn parsed_at<T>(
        &self,
        index: impl RowIndex,
        column: &'static str,
        from_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Fault> {
        let name = self.row.get_ref(index)?.as_str().map_err(rusqlite::Error::from)?;
        from_name(name).ok_or_else(|| self.unknown(column, name))
    }

    /// Reads a text column like [`Self::parsed`], but allows NULL. `None`: NULL.
    pub(crate) fn optional_parsed<T>(
        &self,
        column: &'static str,
        from_name: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(name) = self.text(column)? else { return Ok(None) };
        from_name(name).map(Some).ok_or_else(|| self.unknown(column, name))
    }

    /// Reads a column that holds a path.
    pub(crate) fn path(&self, column: &'static str) -> Result<PathBuf, Fault> {
        let value = self.row.get_ref(column)?;
        path_from_value(value).ok_or_else(|| self.unknown(column, format!("{value:?}")))
    }
}

/// Returns all rows that `query` finds, each converted by `read`.
pub(crate) fn query_all<T>(
    cx: &Connection,
    query: &str,
    values: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = cx.prepare_cached(query)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}
