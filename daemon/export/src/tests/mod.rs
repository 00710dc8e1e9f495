//! Tests of the export and import file formats.

mod broken;
mod checks;
mod histories;
mod private;
mod round_trip;

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use longhaul_model::History;

use crate::{Error, Format, ImportedArchive, Output, Window, read_bytes};

const FORMATS: &[Format] =
    if cfg!(feature = "parquet") { &[Format::Csv, Format::Json, Format::Parquet] } else { &TEXTS };
const TEXTS: [Format; 2] = [Format::Csv, Format::Json];

/// A file in memory, for use as the writer of an output.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the bytes that `write` writes.
fn bytes_of(format: Format, write: impl FnOnce(Output) -> Result<u64, Error>) -> Vec<u8> {
    let memory = Memory::default();
    write(Output { format, writer: Box::new(memory.clone()), name: "memory".into() }).unwrap();
    Arc::try_unwrap(memory.0).unwrap().into_inner().unwrap()
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
