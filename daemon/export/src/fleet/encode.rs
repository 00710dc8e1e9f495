//! Encodes a table as a Parquet file in memory.

use crate::Error;
use crate::table::{Column, Definition};
use crate::write::{Format, Output, Sink};

/// A table of one week as the bytes of a Parquet file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Number of rows.
    pub rows: u64,
}

/// Encodes the rows that `fill` passes to the sink.
pub(super) fn encode(
    definitions: &[Definition],
    fill: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>,
) -> Result<TableFile, Error> {
    let mut bytes = Vec::<u8>::new();
    let output = Output { format: Format::Parquet, writer: Box::new(&mut bytes), name: "memory".to_owned() };
    let rows = output.write(&Column::all(definitions), fill)?;
    Ok(TableFile { bytes, rows })
}
