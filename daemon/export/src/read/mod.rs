//! Imports an archive. Rows and values that cannot be used are counted with their reason, or the file is
//! refused; nothing is skipped silently.

mod assembler;
mod csv;
mod json;
mod numbered_rows;
#[cfg(feature = "parquet")]
mod panic_guard;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod skipped;
mod validation;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::Error;
use crate::table::Cell;
pub use assembler::ImportedArchive;
use assembler::{Assembler, MAX_ROW_BYTES};
pub use skipped::{Skipped, SkippedUnit};

/// First bytes of every Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";
/// Byte order mark (UTF-8) that Excel writes at the start of a text file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads an archive written by [`runs`](crate::runs) in any of the three formats. The format is detected from
/// the content, not from the file name.
///
/// # Errors
///
/// [`Error::Read`], [`Error::NotAnArchive`], [`Error::UnsupportedSchema`], [`Error::Damaged`], [`Error::ConflictingRows`],
/// [`Error::ParquetDisabled`].
pub fn read_history(path: &Path) -> Result<ImportedArchive, Error> {
    let read_error = |source| Error::Read { path: path.to_owned(), source };
    let mut input = BufReader::with_capacity(MAX_ROW_BYTES >> 8, File::open(path).map_err(read_error)?);
    if input.fill_buf().map_err(read_error)?.starts_with(PARQUET_MAGIC) {
        return read_parquet(File::open(path).map_err(read_error)?, path);
    }
    read_text(input, path)
}

/// Calls `visit` with the names of the columns and the cells of each row of a Parquet file, with no cells if there is no row,
/// and returns the number of rows. The error says why the file cannot be read. Lists of integers are decoded, but not passed.
#[cfg(feature = "parquet")]
pub(crate) fn scan_parquet(
    bytes: &[u8],
    visit: impl FnMut(&[String], &[Cell<'static>]),
) -> Result<u64, String> {
    let input = bytes::Bytes::copy_from_slice(bytes);
    let scan = || {
        parquet::check_lists(input.clone())?;
        parquet::for_each_row(input, visit)
    };
    let scanned = panic_guard::catch_panic(scan).ok_or("its footer is inconsistent")?;
    scanned.map_err(|error| error.to_string())
}

/// Returns an error: this program was built without Parquet.
#[cfg(not(feature = "parquet"))]
pub(crate) fn scan_parquet(_: &[u8], _: impl FnMut(&[String], &[Cell<'static>])) -> Result<u64, String> {
    Err(Error::ParquetDisabled.to_string())
}

/// Reads an archive from memory, like [`read_history`]; `path` is used only in error messages.
pub fn read_bytes(bytes: &[u8], path: &Path) -> Result<ImportedArchive, Error> {
    match bytes.starts_with(PARQUET_MAGIC) {
        #[cfg(feature = "parquet")]
        true => read_parquet(bytes::Bytes::copy_from_slice(bytes), path),
        #[cfg(not(feature = "parquet"))]
        true => Err(Error::ParquetDisabled),
        false => read_text(bytes, path),
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(
    input: impl ::parquet::file::reader::ChunkReader + 'static,
    path: &Path,
) -> Result<ImportedArchive, Error> {
    // Version 60 of the parquet crate panics on some damaged footers, for example on negative lengths.
    let read = || {
        let mut assembler = Assembler::new(path, "row");
        parquet::read(input, &mut assembler)?;
        assembler.finish()
    };
    panic_guard::catch_panic(read).unwrap_or_else(|| {
        let detail = "its footer is inconsistent".to_owned();
        Err(Error::Damaged { path: path.to_owned(), detail })
    })
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(_: File, _: &Path) -> Result<ImportedArchive, Error> {
    Err(Error::ParquetDisabled)
}

fn read_text(mut input: impl BufRead, path: &Path) -> Result<ImportedArchive, Error> {
    let read_error = |source| Error::Read { path: path.to_owned(), source };
    if input.fill_buf().map_err(read_error)?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    let first_byte =
        input.fill_buf().map_err(read_error)?.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
    let mut assembler = Assembler::new(path, "line");
    match first_byte {
        None => {
            return Err(Error::NotAnArchive { path: path.to_owned(), why: "the file is empty".to_owned() });
        }
        Some(b'{') => json::read(input, &mut assembler)?,
        Some(_) => csv::read(input, &mut assembler)?,
    }
    assembler.finish()
}
