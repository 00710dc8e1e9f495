//! Tests of the export and import file formats.

mod broken;
mod checks;
mod histories;
mod private;
mod round_trip;

use std::path::Path;

use longhaul_model::History;

use crate::{Error, Format, ImportedArchive, Output, Window, read_bytes};

const FORMATS: &[Format] =
    if cfg!(feature = "parquet") { &[Format::Csv, Format::Json, Format::Parquet] } else { &TEXTS };
const TEXTS: [Format; 2] = [Format::Csv, Format::Json];

/// Returns the bytes that `write` writes.
fn bytes_of(format: Format, write: impl FnOnce(Output<'_>) -> Result<u64, Error>) -> Vec<u8> {
    let mut bytes = Vec::<u8>::new();
    write(Output { format, writer: Box::new(&mut bytes), name: "memory".into() }).unwrap();
    bytes
}

fn archive(history: &History, format: Format) -> Vec<u8> {
    bytes_of(format, |output| crate::runs(history.clone(), &Window::default(), output))
}

fn read(bytes: &[u8]) -> Result<ImportedArchive, Error> {
    read_bytes(bytes, Path::new("export"))
}

/// Splits a text into its first `heads` lines and the remaining lines.
fn lines(bytes: &[u8], heads: usize) -> (Vec<String>, Vec<String>) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let mut head: Vec<String> = text.split_inclusive('\n').map(ToOwned::to_owned).collect();
    let rows = head.split_off(heads);
    (head, rows)
}
