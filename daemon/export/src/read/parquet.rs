//! Reads Parquet files in chunks of rows, all columns in parallel.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::assembler::{Assembler, Columns, MAX_ROW_BYTES};
use crate::Error;
use crate::table::Cell;

/// Number of rows that are held in memory at once.
const CHUNK_ROWS: usize = 2048;
/// Maximum uncompressed size of a column in one row group, in bytes. Columns written by longhaul are about a
/// hundred times smaller.
const MAX_COLUMN_BYTES: i64 = (MAX_ROW_BYTES << 4) as i64;
/// Maximum number of values of a column in one row group; one value may be repeated millions of times in a few bytes.
const MAX_COLUMN_VALUES: i64 = 1 << 24;
/// Maximum number of rows and values in the whole file. Some are not read, so that a footer can announce any number of them.
const MAX_VALUES: i64 = 1 << 28;
/// Maximum number of columns. Tables of longhaul have less than a hundred.
const MAX_COLUMNS: usize = 1000;
/// Maximum size of the texts of one chunk, in bytes; rows of longhaul's would have at most half of that.
const MAX_CHUNK_BYTES: usize = MAX_ROW_BYTES << 2;

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
    check_sizes(file.metadata())?;
    Ok(file)
}

/// Refuses a footer whose sizes no export of longhaul has, or contradict each other.
fn check_sizes(metadata: &ParquetMetaData) -> Result<()> {
    let mut values = 0i64;
    for group in metadata.row_groups() {
        let rows = group.num_rows();
        if !(0..=MAX_COLUMN_VALUES).contains(&rows) {
            return Err(too_large());
        }
        values += rows;
        for column in group.columns() {
            check_column(column, rows)?;
            values += column.num_values();
        }
        if values > MAX_VALUES {
            return Err(too_large());
        }
    }
    match metadata.file_metadata().schema_descr().num_columns() > MAX_COLUMNS {
        true => Err(too_large()),
        false => Ok(()),
    }
}

/// Refuses a column of a row group that is too large, or has not a value for each row; a list has at least one.
fn check_column(column: &ColumnChunkMetaData, rows: i64) -> Result<()> {
    let values = column.num_values();
    if column.uncompressed_size() > MAX_COLUMN_BYTES || values > MAX_COLUMN_VALUES {
        return Err(too_large());
    }
    let is_list = column.column_descr().max_rep_level() > 0;
    match values == rows || (is_list && values > rows) {
        true => Ok(()),
        false => Err(parquet_error("a column has another number of rows than its row group")),
    }
}

fn too_large() -> ParquetError {
    parquet_error("a column is larger than any that longhaul exports")
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
        let mut text_bytes = 0;
        for column in &mut self.columns {
            column.fill(rows, &mut text_bytes)?;
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

    fn fill(&mut self, rows: usize, text_bytes: &mut usize) -> Result<()> {
        let max_definition = self.max_definition;
        let all = Batches { rows, size: rows, max_definition };
        let whole = |number: i64| Ok(Cell::Integer(number));
        // The archive has no list columns. Lists, other types and text that is not UTF-8 become a list cell, which
        // no field of a record accepts, so that the row is skipped with a reason.
        self.read_cells = match &mut self.reader {
            _ if self.is_list => vec![Cell::Integers(vec![].into()); rows],
            ColumnReader::ByteArrayColumnReader(reader) => {
                // One by one: a delta encoding makes a text of any size from a few bytes.
                let each = Batches { size: 1, ..all };
                read_cells(reader, &each, |text| text_cell(&text, text_bytes))?
            }
            ColumnReader::Int64ColumnReader(reader) => read_cells(reader, &all, whole)?,
            ColumnReader::Int32ColumnReader(reader) => {
                read_cells(reader, &all, |number| whole(number.into()))?
            }
            ColumnReader::DoubleColumnReader(reader) => {
                read_cells(reader, &all, |number| Ok(Cell::Real(number)))?
            }
            ColumnReader::FloatColumnReader(reader) => {
                read_cells(reader, &all, |number| Ok(Cell::Real(number.into())))?
            }
            ColumnReader::BoolColumnReader(_)
            | ColumnReader::Int96ColumnReader(_)
            | ColumnReader::FixedLenByteArrayColumnReader(_) => vec![Cell::Integers(vec![].into()); rows],
        };
        Ok(())
    }
}

/// Returns a text as a cell, and counts its bytes. The same text may be the value of many rows.
fn text_cell(text: &ByteArray, text_bytes: &mut usize) -> Result<Cell<'static>> {
    *text_bytes = text_bytes.saturating_add(text.len());
    if text.len() > MAX_ROW_BYTES || *text_bytes > MAX_CHUNK_BYTES {
        return Err(too_large());
    }
    Ok(match std::str::from_utf8(text.data()) {
        Ok(text) => Cell::text(text.to_owned()),
        Err(_) => Cell::Integers(vec![].into()),
    })
}

/// Rows to read, in batches of this size.
struct Batches {
    rows: usize,
    size: usize,
    /// Definition level of a value. A cell with a smaller one is null.
    max_definition: i16,
}

/// Reads the cells of a column.
fn read_cells<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    batches: &Batches,
    mut cell: impl FnMut(T::T) -> Result<Cell<'static>>,
) -> Result<Vec<Cell<'static>>> {
    let Batches { rows, size, max_definition } = *batches;
    let (mut values, mut definitions) = (Vec::with_capacity(size), Vec::with_capacity(size));
    let mut cells = Vec::with_capacity(rows);
    while cells.len() < rows {
        let wanted = size.min(rows - cells.len());
        let (read, _, _) = reader.read_records(wanted, Some(&mut definitions), None, &mut values)?;
        if read == 0 {
            return Err(parquet_error("a column ends before the others"));
        }
        if max_definition == 0 {
            definitions.resize(values.len(), 0);
        }
        let mut known = values.drain(..);
        for defined in definitions.drain(..) {
            cells.push(match defined == max_definition {
                true => cell(known.next().ok_or_else(missing_value)?)?,
                false => Cell::Null,
            });
        }
    }
    Ok(cells)
}

fn missing_value() -> ParquetError {
    parquet_error("a column has fewer values than its levels announce")
}

fn parquet_error(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use parquet::data_type::{BoolType, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Writes a file with one column.
    fn file<T: DataType>(schema: &str, values: &[T::T]) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut bytes = vec![];
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        bytes
    }

    fn rows(bytes: Vec<u8>) -> std::result::Result<u64, String> {
        for_each_row(Bytes::from(bytes), |_, _| {}).map_err(|error| error.to_string())
    }

    /// Returns a number as the footer has it: a ZigZag varint.
    fn varint(number: i64) -> Vec<u8> {
        let mut left = (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned();
        let mut bytes = vec![];
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    }

    /// Replaces the number of rows of the only row group: the last place at which the footer has that number.
    fn with_rows(bytes: &[u8], rows: i64, replaced: i64) -> Vec<u8> {
        let (rest, end) = bytes.split_at(bytes.len() - 8);
        let length = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
        let (data, footer) = rest.split_at(rest.len() - length);
        let (old, new) = (varint(rows), varint(replaced));
        let at = footer.windows(old.len()).rposition(|part| part == old).unwrap();
        let footer = [&footer[..at], &new, &footer[at + old.len()..]].concat();
        [data, &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
    }

    #[test]
    fn text_that_many_rows_share_counts_for_each_of_them() {
        let text = ByteArray::from("a".repeat(900 << 10).into_bytes());
        let shared = |rows: usize| {
            file::<ByteArrayType>("message m { required binary note (UTF8); }", &vec![text.clone(); rows])
        };
        // More rows would take as much longer to write: 2,048 of them would become 1.8 GB.
        let (few, many) = (shared(20), shared(80));
        assert!(many.len() < 4 << 20, "small on the disk");
        assert_eq!(rows(few), Ok(20));
        assert!(rows(many).unwrap_err().contains("larger than any that longhaul exports"));
    }

    #[test]
    fn number_of_rows_in_a_footer_is_not_believed() {
        let bytes = file::<BoolType>("message m { required boolean flag; }", &[true; 12_345]);
        assert_eq!(rows(bytes.clone()), Ok(12_345));
        for (wrong, reason) in
            [(i64::MAX, "larger than any"), (-1, ""), (12_346, "another number of rows than its row group")]
        {
            let error = rows(with_rows(&bytes, 12_345, wrong)).unwrap_err();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }
}
