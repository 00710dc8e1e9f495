//! Writes tables as CSV.

use std::io::{self, Write};

use super::sink::{Sink, json_list};
use crate::table::{Cell, Column};

pub(super) struct Csv<'a> {
    writer: csv::Writer<Box<dyn Write + Send + 'a>>,
}

impl<'a> Csv<'a> {
    pub(super) fn begin(columns: &[Column], to: Box<dyn Write + Send + 'a>) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(columns.iter().map(|column| column.name.as_ref())).map_err(io_error)?;
        Ok(Self { writer })
    }

    fn cell(&mut self, cell: &Cell<'_>) -> Result<(), csv::Error> {
        match cell {
            Cell::Null => self.writer.write_field(""),
            Cell::Text(text) | Cell::Json(text) => self.writer.write_field(text.as_ref()),
            Cell::Integer(number) => self.writer.write_field(number.to_string()),
            Cell::Real(number) if number.is_finite() => self.writer.write_field(number.to_string()),
            Cell::Real(_) => self.writer.write_field(""),
            Cell::Integers(numbers) => self.writer.write_field(json_list(numbers)),
        }
    }
}

impl Sink for Csv<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        let written = cells.iter().try_for_each(|cell| self.cell(cell));
        written.and_then(|()| self.writer.write_record(None::<&[u8]>)).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Returns the error of the file: the conversion of the library loses its kind, by which a closed pipe is known.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
