//! Reads Parquet files in chunks of rows, all columns in parallel.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::assembler::{Assembler, MAX_ROW_BYTES};
use super::columns::Columns;
use crate::Error;
use crate::table::Cell;

/// Number of rows that are held in memory at once.
const CHUNK_ROWS: usize = 2048;
/// Maximum uncompressed size of a column in one row group, in bytes. Columns written by longhaul are about a
/// hundred times smaller.
const MAX_COLUMN_BYTES: i64 = (MAX_ROW_BYTES << 4) as i64;
/// Maximum number of values of a column in one row group; one value may be repeated millions of times in a few bytes.
const MAX_COLUMN_VALUES: i64 = 1 << 24;

pub(super) fn read(input: impl ChunkReader + 'static, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let damaged =
        |error: &ParquetError, assembler: &Assembler<'_>| assembler.damaged_error(&error.to_string());
    let file = open(input).map_err(|error| damaged(&error, assembler))?;
    let columns = columns(file.metadata(), assembler)?;
    let mut at = 1;
    for group in 0..file.num_row_groups() {
        let opened = file.get_row_group(group).and_then(|group| RowGroupCursor::open(&*group));
        let mut group = opened.map_err(|error| damaged(&error, assembler))?;
        while let Some(rows) = group.next_chunk().map_err(|error| damaged(&error, assembler))? {
            for row in 0..rows {
                add_row(&columns, group.take_row(row), at, assembler)?;
                at += 1;
            }
        }
    }
    Ok(())
}

/// Opens a file whose columns have plausible sizes, according to its footer.
fn open<R: ChunkReader + 'static>(input: R) -> Result<SerializedFileReader<R>> {
    let file = SerializedFileReader::new(input)?;
    let columns = file.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
    let is_larger = |column: &ColumnChunkMetaData| {
        column.uncompressed_size() > MAX_COLUMN_BYTES || column.num_values() > MAX_COLUMN_VALUES
    };
    match columns.into_iter().any(is_larger) {
        true => Err(parquet_error("a column is larger than any that longhaul exports")),
        false => Ok(file),
    }
}

/// Calls `visit` with the names of the columns and the cells of each row. Lists are passed as empty lists.
pub(super) fn for_each_row(
    input: impl ChunkReader + 'static,
    mut visit: impl FnMut(&[String], &[Cell<'static>]),
) -> Result<u64> {
    let file = open(input)?;
    let schema = file.metadata().file_metadata().schema_descr();
    let name = |path: &[String]| path.first().cloned().unwrap_or_default();
    let names: Vec<String> = schema.columns().iter().map(|column| name(column.path().parts())).collect();
    let mut count = 0;
    for group in 0..file.num_row_groups() {
        let mut group = RowGroupCursor::open(&*file.get_row_group(group)?)?;
        while let Some(rows) = group.next_chunk()? {
            (0..rows).for_each(|row| visit(&names, &group.take_row(row).collect::<Vec<_>>()));
            count += rows as u64;
        }
    }
    if count == 0 {
        visit(&names, &[]);
    }
    Ok(count)
}

/// Decodes every list of integers, and returns an error if a number in one is negative or cannot be read.
pub(super) fn check_lists(input: impl ChunkReader + 'static) -> Result<()> {
    let file = open(input)?;
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group)?;
        for index in 0..group.num_columns() {
            let column = group.metadata().column(index);
            if let (true, ColumnReader::Int64ColumnReader(mut reader)) =
                (column.column_descr().max_rep_level() > 0, group.get_column_reader(index)?)
            {
                check_list(&mut reader, column.column_path().parts()[0] == "bucket_count")?;
            }
        }
    }
    Ok(())
}

fn check_list(reader: &mut ColumnReaderImpl<parquet::data_type::Int64Type>, are_counts: bool) -> Result<()> {
    loop {
        let (mut values, mut definitions, mut repetitions) = (vec![], vec![], vec![]);
        let (rows, ..) =
            reader.read_records(CHUNK_ROWS, Some(&mut definitions), Some(&mut repetitions), &mut values)?;
        if are_counts && values.iter().any(|count| *count < 0) {
            return Err(parquet_error("a count in a histogram is negative"));
        }
        if rows == 0 {
            return Ok(());
        }
    }
}

fn columns(metadata: &ParquetMetaData, assembler: &Assembler<'_>) -> Result<Columns, Error> {
    let schema = metadata.file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    if !names.iter().any(|name| name == "record") {
        return Err(assembler.not_an_archive("the file has no column `record`"));
    }
    Ok(Columns::from_names(names.iter().map(String::as_str)))
}

fn add_row(
    columns: &Columns,
    row: impl Iterator<Item = Cell<'static>>,
    at: u64,
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let mut cells = assembler.empty_row();
    for (column, cell) in columns.0.iter().zip(row) {
        match column {
            Ok(index) => cells[*index] = cell,
            Err(name) if cell != Cell::Null => assembler.skip_value(name, at),
            Err(_) => {}
        }
    }
    assembler.add_row(at, &cells)
}

/// The read position in one row group.
struct RowGroupCursor {
    columns: Vec<ColumnCursor>,
    rows_left: usize,
}

/// The read position in one column of a row group, with the cells of the current chunk.
struct ColumnCursor {
    reader: ColumnReader,
    max_definition: i16,
    is_list: bool,
    read_cells: Vec<Cell<'static>>,
}

impl RowGroupCursor {
    fn open(group: &dyn RowGroupReader) -> Result<Self> {
        let metadata = group.metadata();
        let columns = (0..group.num_columns()).map(|index| ColumnCursor::open(group, metadata, index));
        let rows_left =
            usize::try_from(metadata.num_rows()).map_err(|_| parquet_error("a negative number of rows"))?;
        Ok(Self { columns: columns.collect::<Result<_>>()?, rows_left })
    }

    /// Reads the next chunk and returns its number of rows. `None`: end of the row group.
    fn next_chunk(&mut self) -> Result<Option<usize>> {
        let rows = self.rows_left.min(CHUNK_ROWS);
        self.rows_left -= rows;
        for column in &mut self.columns {
            column.fill(rows)?;
        }
        Ok((rows > 0).then_some(rows))
    }

    /// Takes the cells of a row out of the current chunk.
    fn take_row(&mut self, row: usize) -> impl Iterator<Item = Cell<'static>> {
        self.columns.iter_mut().map(move |column| std::mem::take(&mut column.read_cells[row]))
    }
}

impl ColumnCursor {
    fn open(group: &dyn RowGroupReader, metadata: &RowGroupMetaData, index: usize) -> Result<Self> {
        let column = metadata.column(index);
        let descriptor = column.column_descr();
        Ok(Self {
            reader: group.get_column_reader(index)?,
            max_definition: descriptor.max_def_level(),
            is_list: descriptor.max_rep_level() > 0,
            read_cells: vec![],
        })
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        let max_level = self.max_definition;
        let whole = |number: i64| Cell::Integer(number);
        // The archive has no list columns. Lists, other types and text that is not UTF-8 become a list cell, which
        // no field of a record accepts, so that the row is skipped with a reason.
        self.read_cells = match &mut self.reader {
            _ if self.is_list => vec![Cell::Integers(vec![].into()); rows],
            ColumnReader::ByteArrayColumnReader(reader) => {
                let text = |bytes: ByteArray| match std::str::from_utf8(bytes.data()) {
                    Ok(text) => Cell::text(text.to_owned()),
                    Err(_) => Cell::Integers(vec![].into()),
                };
                read_cells(reader, rows, max_level, text)?
            }
            ColumnReader::Int64ColumnReader(reader) => read_cells(reader, rows, max_level, whole)?,
            ColumnReader::Int32ColumnReader(reader) => {
                read_cells(reader, rows, max_level, |number| whole(number.into()))?
            }
            ColumnReader::DoubleColumnReader(reader) => read_cells(reader, rows, max_level, Cell::Real)?,
            ColumnReader::FloatColumnReader(reader) => {
                read_cells(reader, rows, max_level, |number| Cell::Real(number.into()))?
            }
            ColumnReader::BoolColumnReader(_)
            | ColumnReader::Int96ColumnReader(_)
            | ColumnReader::FixedLenByteArrayColumnReader(_) => vec![Cell::Integers(vec![].into()); rows],
        };
        Ok(())
    }
}

/// Reads `rows` cells of a column. A cell with less than the maximum definition level is null.
fn read_cells<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    max_level: i16,
    cell: impl Fn(T::T) -> Cell<'static>,
) -> Result<Vec<Cell<'static>>> {
    let (mut values, mut definitions) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    while definitions.len() < rows {
        let left = rows - definitions.len();
        let before = values.len();
        let (read, _, _) = reader.read_records(left, Some(&mut definitions), None, &mut values)?;
        if max_level == 0 {
            definitions.resize(definitions.len() + values.len() - before, 0);
        }
        if read == 0 {
            return Err(parquet_error("a column ends before the others"));
        }
    }
    let mut values = values.into_iter();
    let cells = definitions.into_iter().map(|defined| match defined == max_level {
        true => values
            .next()
            .map(&cell)
            .ok_or_else(|| parquet_error("a column has fewer values than its levels announce")),
        false => Ok(Cell::Null),
    });
    cells.collect()
}

fn parquet_error(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
