//! Writes tables as Parquet, compressed with gzip, without the Arrow libraries. Rows are buffered and written
//! one row group at a time, column by column.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, GzipLevel, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::sink::Sink;
use crate::table::{Cell, Column, Kind};

/// Number of rows per row group: enough for good compression, few enough for any reader to hold in memory.
const ROW_GROUP_ROWS: usize = 32_768;

/// The buffered cells of one column of the next row group, in Parquet's representation: the known values, plus
/// a definition level and a repetition level per cell.
struct PendingColumn {
    values: Values,
    definitions: Vec<i16>,
    /// Repetition levels: 0 for the start of a row, 1 for a further element of a list.
    repetitions: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Real(Vec<f64>),
    Integers(Vec<i64>),
}

pub(super) struct Parquet<'a> {
    writer: SerializedFileWriter<Box<dyn Write + Send + 'a>>,
    columns: Vec<PendingColumn>,
    rows: usize,
}

impl<'a> Parquet<'a> {
    pub(super) fn begin(columns: &[Column], to: Box<dyn Write + Send + 'a>) -> io::Result<Self> {
        let fields = columns.iter().map(column_type).collect::<Result<Vec<_>, _>>().map_err(io_error)?;
        let schema = Type::group_type_builder("longhaul").with_fields(fields).build().map_err(io_error)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::default()))
            .set_created_by(concat!("longhaul ", env!("CARGO_PKG_VERSION")).to_owned());
        let properties = Arc::new(properties.build());
        let writer = SerializedFileWriter::new(to, Arc::new(schema), properties).map_err(io_error)?;
        Ok(Self { writer, columns: columns.iter().map(PendingColumn::new).collect(), rows: 0 })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let mut group = self.writer.next_row_group().map_err(io_error)?;
        for pending in &mut self.columns {
            let mut column = group.next_column().map_err(io_error)?.expect("the schema has all columns");
            pending.write(column.untyped()).map_err(io_error)?;
            column.close().map_err(io_error)?;
        }
        group.close().map(|_| ()).map_err(io_error)
    }
}

impl Sink for Parquet<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (pending, cell) in self.columns.iter_mut().zip(cells) {
            pending.push(cell);
        }
        self.rows += 1;
        if self.rows == ROW_GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()?;
        self.writer.close().map(|_| ()).map_err(io_error)
    }
}

impl PendingColumn {
    fn new(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Text | Kind::Json => Values::Text(vec![]),
            Kind::Integer => Values::Integer(vec![]),
            Kind::Real => Values::Real(vec![]),
            Kind::Integers => Values::Integers(vec![]),
        };
        Self { values, definitions: vec![], repetitions: vec![] }
    }

    fn push(&mut self, cell: &Cell<'_>) {
        let is_known = match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(text) | Cell::Json(text)) => {
                values.push(text.as_bytes().to_vec().into());
                true
            }
            (Values::Integer(values), Cell::Integer(number)) => {
                values.push(*number);
                true
            }
            (Values::Real(values), Cell::Real(number)) if number.is_finite() => {
                values.push(*number);
                true
            }
            (Values::Integers(values), Cell::Integers(numbers)) => {
                values.extend_from_slice(numbers);
                return self.define_list(numbers.len());
            }
            (Values::Text(_) | Values::Integer(_) | Values::Real(_) | Values::Integers(_), _) => false,
        };
        self.definitions.push(i16::from(is_known));
        self.repetitions.push(0);
    }

    /// Adds the levels of a list. Definition levels: 0 for no list, 1 for an empty list, 2 for an element.
    fn define_list(&mut self, length: usize) {
        let levels = length.max(1);
        self.definitions.extend(std::iter::repeat_n(if length == 0 { 1 } else { 2 }, levels));
        self.repetitions.extend((0..levels).map(|element| i16::from(element > 0)));
    }

    fn write(&mut self, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let definitions = Some(&self.definitions[..]);
        match (&mut self.values, column) {
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(column)) => {
                column.write_batch(values, definitions, None)?;
                values.clear();
            }
            (Values::Integer(values), ColumnWriter::Int64ColumnWriter(column)) => {
                column.write_batch(values, definitions, None)?;
                values.clear();
            }
            (Values::Real(values), ColumnWriter::DoubleColumnWriter(column)) => {
                column.write_batch(values, definitions, None)?;
                values.clear();
            }
            (Values::Integers(values), ColumnWriter::Int64ColumnWriter(column)) => {
                column.write_batch(values, definitions, Some(&self.repetitions))?;
                values.clear();
            }
            _ => {
                return Err(ParquetError::General(
                    "a column has a different type than its schema".to_owned(),
                ));
            }
        }
        self.definitions.clear();
        self.repetitions.clear();
        Ok(())
    }
}

fn column_type(column: &Column) -> Result<TypePtr, ParquetError> {
    let primitive =
        |name, physical, repetition| Type::primitive_type_builder(name, physical).with_repetition(repetition);
    let optional = |physical| primitive(&column.name, physical, Repetition::OPTIONAL);
    let built = match column.kind {
        Kind::Text => optional(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::String)).build(),
        Kind::Json => optional(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::Json)).build(),
        Kind::Integer => optional(Physical::INT64).build(),
        Kind::Real => optional(Physical::DOUBLE).build(),
        Kind::Integers => {
            let element = primitive("element", Physical::INT64, Repetition::REQUIRED).build()?;
            list_type(&column.name, Arc::new(element))
        }
    };
    built.map(Arc::new)
}

/// Returns the type of a list column: the three nested levels that Parquet prescribes for lists.
fn list_type(name: &str, element: TypePtr) -> Result<Type, ParquetError> {
    let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
    let list = list.with_fields(vec![element]).build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(ConvertedType::LIST)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(list)])
        .build()
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}
