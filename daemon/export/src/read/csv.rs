//! Reads CSV files.

use std::cell::Cell as Shared;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder};

use super::assembler::{Assembler, Columns, MAX_ROW_BYTES};
use crate::Error;
use crate::table::Cell;

/// Reads every row. A last row without a line break is skipped, because its last number may be cut off.
pub(super) fn read(input: impl BufRead, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let progress = Rc::new(ReadProgress::default());
    let input = RowLimitReader { input, progress: Rc::clone(&progress) };
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut next = |record: &mut ByteRecord| {
        progress.row_bytes.set(0);
        reader.read_byte_record(record)
    };
    let mut header = ByteRecord::new();
    next(&mut header).map_err(|error| read_error(error, assembler))?;
    let columns = columns(&header, assembler)?;
    let (mut row, mut ahead) = (ByteRecord::new(), ByteRecord::new());
    // Reads one row ahead: a row is known to be complete when another row follows or the file ends with a line
    // break.
    let mut is_row = next(&mut row).map_err(|error| read_error(error, assembler))?;
    while is_row {
        let is_ahead = next(&mut ahead).map_err(|error| read_error(error, assembler))?;
        let at = row.position().map_or(0, csv::Position::line);
        match is_ahead || progress.last_byte.get() == b'\n' {
            true if row == header => assembler.skip_row("with column names instead of values", at),
            true => add_row(&columns, &row, at, assembler)?,
            false => assembler.skip_row("cut off at the end of the file", at),
        }
        std::mem::swap(&mut row, &mut ahead);
        is_row = is_ahead;
    }
    Ok(())
}

fn columns(header: &ByteRecord, assembler: &Assembler<'_>) -> Result<Columns, Error> {
    let names = header.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>();
    match names {
        Ok(names) if names.contains(&"record") => Ok(Columns::from_names(names.into_iter())),
        Ok(_) | Err(_) => Err(assembler.not_an_archive("its first row names no column `record`")),
    }
}

fn add_row(columns: &Columns, row: &ByteRecord, at: u64, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    match row.len().cmp(&columns.0.len()) {
        std::cmp::Ordering::Less => assembler.skip_row("with fewer fields than there are columns", at),
        std::cmp::Ordering::Greater => assembler.skip_row("with more fields than there are columns", at),
        std::cmp::Ordering::Equal => match row.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>()
        {
            Ok(fields) => return add_known_columns(columns, &fields, at, assembler),
            Err(_) => assembler.skip_row("with text that is not UTF-8", at),
        },
    }
    Ok(())
}

fn add_known_columns(
    columns: &Columns,
    fields: &[&str],
    at: u64,
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let mut cells = assembler.empty_row();
    for (column, field) in columns.0.iter().zip(fields).filter(|(_, field)| !field.is_empty()) {
        match column {
            Ok(index) => cells[*index] = Cell::text(*field),
            Err(name) => assembler.skip_value(name, at),
        }
    }
    assembler.add_row(at, &cells)
}

fn read_error(error: csv::Error, assembler: &Assembler<'_>) -> Error {
    let line = error.position().map(csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::FileTooLarge => {
            assembler.row_too_long()
        }
        csv::ErrorKind::Io(source) => assembler.read_error(source),
        other => assembler.damaged_error(&format!("line {}: {other:?}", line.unwrap_or(0))),
    }
}

/// Shared between the CSV reader and its input: the bytes read for the current row, and the last byte read.
#[derive(Default)]
struct ReadProgress {
    row_bytes: Shared<usize>,
    last_byte: Shared<u8>,
}

/// Passes bytes through, but fails if a row becomes longer than [`MAX_ROW_BYTES`].
struct RowLimitReader<R> {
    input: R,
    progress: Rc<ReadProgress>,
}

impl<R: Read> Read for RowLimitReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.row_bytes.get() > MAX_ROW_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = self.input.read(buffer)?;
        self.progress.row_bytes.set(self.progress.row_bytes.get() + count);
        if let Some(last) = buffer[..count].last() {
            self.progress.last_byte.set(*last);
        }
        Ok(count)
    }
}
