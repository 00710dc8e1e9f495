//! From rows to bytes.

mod csv;
mod json;
#[cfg(feature = "parquet")]
mod parquet;

use std::io::{self, BufWriter, Write};

use crate::Error;
use crate::table::{Cell, Column};

/// Bytes between two write calls.
const BUFFER_BYTES: usize = 256 << 10;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values as RFC 4180 has them, the names of the columns first; what is not known is empty.
    Csv,
    /// JSON Lines: one object per row, without what is not known.
    Json,
    /// Apache Parquet, compressed with zstd.
    Parquet,
}

/// Where a table goes.
pub struct Output {
    /// How it is written.
    pub format: Format,
    /// What takes it.
    pub to: Box<dyn Write + Send>,
    /// What that is called in messages.
    pub name: String,
}

/// Takes rows, each with a cell for every column.
pub(crate) trait Sink {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()>;
    /// Nothing is complete before this.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Output {
    /// Writes a table, the rows of which `fill` gives, and gives their number.
    pub(crate) fn write(
        self,
        columns: &[Column],
        fill: impl FnOnce(&mut dyn Sink) -> io::Result<()>,
    ) -> Result<u64, Error> {
        let Self { format, to, name } = self;
        let to = Box::new(BufWriter::with_capacity(BUFFER_BYTES, to));
        let attempt = || {
            let mut counted = Counted { sink: sink(format, columns, to)?, rows: 0 };
            fill(&mut counted)?;
            let rows = counted.rows;
            Box::new(counted).finish().map(|()| rows)
        };
        attempt().map_err(|source| refused(source, name))
    }
}

fn refused(source: io::Error, to: String) -> Error {
    match source.kind() {
        io::ErrorKind::Unsupported if cfg!(not(feature = "parquet")) => Error::WithoutParquet,
        _ => Error::Write { to, source },
    }
}

fn sink(format: Format, columns: &[Column], to: Box<dyn Write + Send>) -> io::Result<Box<dyn Sink>> {
    Ok(match format {
        Format::Csv => Box::new(csv::Csv::begin(columns, to)?),
        Format::Json => Box::new(json::Json::begin(columns, to)),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(parquet::Parquet::begin(columns, to)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => return Err(io::ErrorKind::Unsupported.into()),
    })
}

struct Counted {
    sink: Box<dyn Sink>,
    rows: u64,
}

impl Sink for Counted {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        self.rows += 1;
        self.sink.row(cells)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.sink.finish()
    }
}

/// A list as JSON text.
fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}
