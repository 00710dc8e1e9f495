//! Writes tables as JSON Lines.

use std::io::{self, Write};

use super::sink::{Sink, json_list};
use crate::table::{Cell, Column};

pub(super) struct Json<'a> {
    writer: Box<dyn Write + Send + 'a>,
    /// Column names as JSON strings, each followed by a colon.
    keys: Vec<String>,
}

impl<'a> Json<'a> {
    pub(super) fn begin(columns: &[Column], to: Box<dyn Write + Send + 'a>) -> Self {
        let key = |column: &Column| format!("{}:", serde_json::Value::from(column.name.as_ref()));
        Self { writer: to, keys: columns.iter().map(key).collect() }
    }
}

impl Sink for Json<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let mut separator = "{";
        for (key, cell) in self.keys.iter().zip(cells) {
            if matches!(cell, Cell::Null) || matches!(cell, Cell::Real(number) if !number.is_finite()) {
                continue;
            }
            write!(self.writer, "{separator}{key}")?;
            value(&mut self.writer, cell)?;
            separator = ",";
        }
        self.writer.write_all(if separator == "{" { b"{}\n" } else { b"}\n" })
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.flush()
    }
}

fn value(to: &mut impl Write, cell: &Cell<'_>) -> io::Result<()> {
    match cell {
        Cell::Null => to.write_all(b"null"),
        Cell::Text(text) => Ok(serde_json::to_writer(to, text)?),
        Cell::Json(text) => to.write_all(text.as_bytes()),
        Cell::Integer(number) => write!(to, "{number}"),
        Cell::Real(number) => Ok(serde_json::to_writer(to, number)?),
        Cell::Integers(numbers) => to.write_all(json_list(numbers).as_bytes()),
    }
}
