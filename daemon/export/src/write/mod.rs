//! Writes tables in the three file formats.

mod csv;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod sink;

use std::io::{self, BufWriter, Write};

use crate::Error;
use crate::table::{Cell, Column};
pub(crate) use sink::Sink;

/// Size of the write buffer, in bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// File format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180) with a header line; unknown values are empty fields.
    Csv,
    /// JSON Lines: one object per row, without the keys of unknown values.
    Json,
    /// Apache Parquet, compressed with gzip.
    Parquet,
}

impl Format {
    /// Returns an error if this program was built without the format, so that no file is replaced in vain.
    ///
    /// # Errors
    ///
    /// [`Error::ParquetDisabled`].
    pub fn require(self) -> Result<(), Error> {
        match self {
            Self::Parquet if cfg!(not(feature = "parquet")) => Err(Error::ParquetDisabled),
            Self::Parquet | Self::Csv | Self::Json => Ok(()),
        }
    }
}

/// Destination of a table.
pub struct Output<'a> {
    /// File format.
    pub format: Format,
    /// Destination of the bytes.
    pub writer: Box<dyn Write + Send + 'a>,
    /// Name of the destination in error messages.
    pub name: String,
}

impl Output<'_> {
    /// Writes the rows that `fill` passes to the sink, and returns their number.
    pub(crate) fn write(
        self,
        columns: &[Column],
        fill: impl FnOnce(&mut dyn Sink) -> io::Result<()>,
    ) -> Result<u64, Error> {
        let Self { format, writer: to, name } = self;
        let to = Box::new(BufWriter::with_capacity(BUFFER_BYTES, to));
        let attempt = || {
            let mut counted = CountingSink { open_sink: open_sink(format, columns, to)?, rows: 0 };
            fill(&mut counted)?;
            let rows = counted.rows;
            Box::new(counted).finish().map(|()| rows)
        };
        attempt().map_err(|source| write_error(source, name))
    }
}

fn write_error(source: io::Error, to: String) -> Error {
    match source.kind() {
        io::ErrorKind::Unsupported if cfg!(not(feature = "parquet")) => Error::ParquetDisabled,
        _ => Error::Write { to, source },
    }
}

fn open_sink<'a>(
    format: Format,
    columns: &[Column],
    to: Box<dyn Write + Send + 'a>,
) -> io::Result<Box<dyn Sink + 'a>> {
    Ok(match format {
        Format::Csv => Box::new(csv::Csv::begin(columns, to)?),
        Format::Json => Box::new(json::Json::begin(columns, to)),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(parquet::Parquet::begin(columns, to)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => return Err(io::ErrorKind::Unsupported.into()),
    })
}

struct CountingSink<'a> {
    open_sink: Box<dyn Sink + 'a>,
    rows: u64,
}

impl Sink for CountingSink<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.rows += 1;
        self.open_sink.row(cells)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.open_sink.finish()
    }
}
