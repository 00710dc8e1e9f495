//! Parquet: a stretch of rows at a time, all columns side by side.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::assemble::Assembler;
use super::{Columns, ROW_BYTES};
use crate::Error;
use crate::table::Cell;

/// Rows that are held in memory at once.
const STRETCH: usize = 2048;
/// Bytes of a column in a row group, unpacked: ours have a hundredth.
const COLUMN_BYTES: i64 = (ROW_BYTES << 4) as i64;

pub(super) fn read(input: impl ChunkReader + 'static, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let damaged = |error: &ParquetError, assembler: &Assembler<'_>| assembler.damaged(&error.to_string());
    let file = SerializedFileReader::new(input).map_err(|error| damaged(&error, assembler))?;
    let columns = columns(file.metadata(), assembler)?;
    let mut at = 1;
    for group in 0..file.num_row_groups() {
        let opened = file.get_row_group(group).and_then(|group| Group::open(&*group));
        let mut group = opened.map_err(|error| damaged(&error, assembler))?;
        while let Some(rows) = group.next().map_err(|error| damaged(&error, assembler))? {
            for row in 0..rows {
                take(&columns, &mut group.columns, (row, at), assembler)?;
                at += 1;
            }
        }
    }
    Ok(())
}

fn columns(metadata: &ParquetMetaData, assembler: &Assembler<'_>) -> Result<Columns, Error> {
    let schema = metadata.file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    if !names.iter().any(|name| name == "record") {
        return Err(assembler.foreign("it has no column `record`"));
    }
    Ok(Columns::named(names.iter().map(String::as_str)))
}

fn take(
    columns: &Columns,
    stretches: &mut [Stretch],
    place: (usize, u64),
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let (row, at) = place;
    let mut cells = assembler.cells();
    for (column, stretch) in columns.0.iter().zip(stretches) {
        let cell = std::mem::take(&mut stretch.cells[row]);
        match column {
            Ok(place) => cells[*place] = cell,
            Err(name) if cell != Cell::Null => assembler.leave_out_value(name, at),
            Err(_) => {}
        }
    }
    assembler.take(at, &cells)
}

/// A row group that is being read.
struct Group {
    columns: Vec<Stretch>,
    rows_left: usize,
}

/// One column of it, and the cells of the stretch that is looked at.
struct Stretch {
    reader: ColumnReader,
    most_defined: i16,
    is_list: bool,
    cells: Vec<Cell<'static>>,
}

impl Group {
    fn open(group: &dyn RowGroupReader) -> Result<Self> {
        let metadata = group.metadata();
        let columns = (0..group.num_columns()).map(|place| Stretch::open(group, metadata, place));
        let rows_left =
            usize::try_from(metadata.num_rows()).map_err(|_| general("a negative number of rows"))?;
        Ok(Self { columns: columns.collect::<Result<_>>()?, rows_left })
    }

    /// The number of rows in the next stretch; `None` at the end.
    fn next(&mut self) -> Result<Option<usize>> {
        let rows = self.rows_left.min(STRETCH);
        self.rows_left -= rows;
        for column in &mut self.columns {
            column.fill(rows)?;
        }
        Ok((rows > 0).then_some(rows))
    }
}

impl Stretch {
    fn open(group: &dyn RowGroupReader, metadata: &RowGroupMetaData, place: usize) -> Result<Self> {
        let column = metadata.column(place);
        if column.uncompressed_size() > COLUMN_BYTES {
            return Err(general("a column of a size that no export has"));
        }
        let descriptor = column.column_descr();
        Ok(Self {
            reader: group.get_column_reader(place)?,
            most_defined: descriptor.max_def_level(),
            is_list: descriptor.max_rep_level() > 0,
            cells: vec![],
        })
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        let most_defined = self.most_defined;
        let whole = |number: i64| Cell::Integer(number);
        self.cells = match &mut self.reader {
            _ if self.is_list => vec![Cell::Integers(vec![].into()); rows],
            ColumnReader::ByteArrayColumnReader(reader) => {
                let text = |bytes: ByteArray| match std::str::from_utf8(bytes.data()) {
                    Ok(text) => Cell::text(text.to_owned()),
                    Err(_) => Cell::Integers(vec![].into()),
                };
                cells(reader, (rows, most_defined), text)?
            }
            ColumnReader::Int64ColumnReader(reader) => cells(reader, (rows, most_defined), whole)?,
            ColumnReader::Int32ColumnReader(reader) => {
                cells(reader, (rows, most_defined), |number| whole(number.into()))?
            }
            ColumnReader::DoubleColumnReader(reader) => cells(reader, (rows, most_defined), Cell::Real)?,
            ColumnReader::FloatColumnReader(reader) => {
                cells(reader, (rows, most_defined), |number| Cell::Real(number.into()))?
            }
            ColumnReader::BoolColumnReader(_)
            | ColumnReader::Int96ColumnReader(_)
            | ColumnReader::FixedLenByteArrayColumnReader(_) => vec![Cell::Integers(vec![].into()); rows],
        };
        Ok(())
    }
}

/// So many cells of a column, known or not.
fn cells<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    shape: (usize, i16),
    cell: impl Fn(T::T) -> Cell<'static>,
) -> Result<Vec<Cell<'static>>> {
    let (rows, most_defined) = shape;
    let (mut values, mut definitions) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    while definitions.len() < rows {
        let left = rows - definitions.len();
        let before = values.len();
        let (read, _, _) = reader.read_records(left, Some(&mut definitions), None, &mut values)?;
        if most_defined == 0 {
            definitions.resize(definitions.len() + values.len() - before, 0);
        }
        if read == 0 {
            return Err(general("a column ends before the others"));
        }
    }
    let mut values = values.into_iter();
    let cells = definitions.into_iter().map(|defined| match defined == most_defined {
        true => values.next().map(&cell).ok_or_else(|| general("a column with fewer values than it says")),
        false => Ok(Cell::Null),
    });
    cells.collect()
}

fn general(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
