//! CSV.

use std::cell::Cell as Shared;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{ByteRecord, ReaderBuilder};

use super::assemble::Assembler;
use super::{Columns, ROW_BYTES};
use crate::Error;
use crate::table::Cell;

/// Reads every row. One that the file ends in the middle of is left out: of a number, nobody sees whether it is whole.
pub(super) fn read(input: impl BufRead, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let watch = Rc::new(Watch::default());
    let input = Watched { input, watch: Rc::clone(&watch) };
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut next = |record: &mut ByteRecord| {
        watch.since_row.set(0);
        reader.read_byte_record(record)
    };
    let mut header = ByteRecord::new();
    next(&mut header).map_err(|error| unread(error, assembler))?;
    let columns = columns(&header, assembler)?;
    let (mut row, mut ahead) = (ByteRecord::new(), ByteRecord::new());
    let mut is_row = next(&mut row).map_err(|error| unread(error, assembler))?;
    while is_row {
        let is_ahead = next(&mut ahead).map_err(|error| unread(error, assembler))?;
        let at = row.position().map_or(0, csv::Position::line);
        match is_ahead || watch.last.get() == b'\n' {
            true if row == header => assembler.leave_out("that repeat the names of the columns", at),
            true => take(&columns, &row, at, assembler)?,
            false => assembler.leave_out("that the file ends in the middle of", at),
        }
        std::mem::swap(&mut row, &mut ahead);
        is_row = is_ahead;
    }
    Ok(())
}

fn columns(header: &ByteRecord, assembler: &Assembler<'_>) -> Result<Columns, Error> {
    let names = header.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>();
    match names {
        Ok(names) if names.contains(&"record") => Ok(Columns::named(names.into_iter())),
        Ok(_) | Err(_) => Err(assembler.foreign("its first row names no column `record`")),
    }
}

fn take(columns: &Columns, row: &ByteRecord, at: u64, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    match row.len().cmp(&columns.0.len()) {
        std::cmp::Ordering::Less => assembler.leave_out("with fewer fields than there are columns", at),
        std::cmp::Ordering::Greater => assembler.leave_out("with more fields than there are columns", at),
        std::cmp::Ordering::Equal => match row.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>()
        {
            Ok(fields) => return known(columns, &fields, at, assembler),
            Err(_) => assembler.leave_out("with text that is not UTF-8", at),
        },
    }
    Ok(())
}

fn known(columns: &Columns, fields: &[&str], at: u64, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut cells = assembler.cells();
    for (column, field) in columns.0.iter().zip(fields).filter(|(_, field)| !field.is_empty()) {
        match column {
            Ok(place) => cells[*place] = Cell::text(*field),
            Err(name) => assembler.leave_out_value(name, at),
        }
    }
    assembler.take(at, &cells)
}

fn unread(error: csv::Error, assembler: &Assembler<'_>) -> Error {
    let line = error.position().map(csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::FileTooLarge => assembler.too_large(),
        csv::ErrorKind::Io(source) => assembler.unread(source),
        other => assembler.damaged(&format!("line {}: {other:?}", line.unwrap_or(0))),
    }
}

/// What is known of the bytes that were handed on.
#[derive(Default)]
struct Watch {
    since_row: Shared<usize>,
    last: Shared<u8>,
}

/// Hands bytes on, but no more for one row than a row may have.
struct Watched<R> {
    input: R,
    watch: Rc<Watch>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watch.since_row.get() > ROW_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = self.input.read(buffer)?;
        self.watch.since_row.set(self.watch.since_row.get() + count);
        if let Some(last) = buffer[..count].last() {
            self.watch.last.set(*last);
        }
        Ok(count)
    }
}
