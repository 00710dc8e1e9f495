//! From bytes to a history. Whatever cannot be taken as it is, is counted with its reason or refused, never passed over.

mod assemble;
mod csv;
#[cfg(feature = "parquet")]
mod fence;
mod json;
mod left_out;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod settle;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use longhaul_measure::summary::History;

use crate::Error;
use crate::archive::LAYOUT;
use assemble::Assembler;
pub use left_out::{LeftOut, Noun};

/// What a row may have at most, in bytes: ours have a thousandth.
const ROW_BYTES: usize = 16 << 20;
/// The first bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// What Excel puts before text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An archive that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// What it holds, in the order of numbers, whatever the order of its rows.
    pub history: History,
    /// What in it was left out, and why.
    pub left_out: Vec<LeftOut>,
}

/// Reads what [`runs`](crate::runs) wrote, in whichever format; the format is seen from the content, not from the name.
///
/// # Errors
///
/// [`Error::Read`], [`Error::Foreign`], [`Error::Newer`], [`Error::Damaged`], [`Error::Contradiction`],
/// [`Error::WithoutParquet`].
pub fn read_history(path: &Path) -> Result<Imported, Error> {
    let unread = |source| Error::Read { path: path.to_owned(), source };
    let mut input = BufReader::with_capacity(ROW_BYTES >> 8, File::open(path).map_err(unread)?);
    if input.fill_buf().map_err(unread)?.starts_with(PARQUET) {
        return read_parquet(File::open(path).map_err(unread)?, path);
    }
    read_text(input, path)
}

/// As [`read_history`], from memory; `path` is what messages call it.
///
/// # Errors
///
/// As there.
pub fn read_bytes(bytes: &[u8], path: &Path) -> Result<Imported, Error> {
    match bytes.starts_with(PARQUET) {
        #[cfg(feature = "parquet")]
        true => read_parquet(bytes::Bytes::copy_from_slice(bytes), path),
        #[cfg(not(feature = "parquet"))]
        true => Err(Error::WithoutParquet),
        false => read_text(bytes, path),
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(
    input: impl ::parquet::file::reader::ChunkReader + 'static,
    path: &Path,
) -> Result<Imported, Error> {
    // Version 60 of the library panics on some footers that were changed, for example on negative lengths.
    let read = || {
        let mut assembler = Assembler::new(path, "row");
        parquet::read(input, &mut assembler)?;
        assembler.finish()
    };
    fence::fenced(read).unwrap_or_else(|| {
        let detail = "its footer contradicts itself".to_owned();
        Err(Error::Damaged { path: path.to_owned(), detail })
    })
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(_: File, _: &Path) -> Result<Imported, Error> {
    Err(Error::WithoutParquet)
}

fn read_text(mut input: impl BufRead, path: &Path) -> Result<Imported, Error> {
    let unread = |source| Error::Read { path: path.to_owned(), source };
    if input.fill_buf().map_err(unread)?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    let begin = input.fill_buf().map_err(unread)?.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
    let mut assembler = Assembler::new(path, "line");
    match begin {
        None => return Err(Error::Foreign { path: path.to_owned(), why: "it is empty".to_owned() }),
        Some(b'{') => json::read(input, &mut assembler)?,
        Some(_) => csv::read(input, &mut assembler)?,
    }
    assembler.finish()
}

/// Where the columns of a file go: to the place of a column that is known, or to nowhere, by name.
struct Columns(Vec<Result<usize, String>>);

impl Columns {
    fn named<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self(names.map(|name| LAYOUT.place(name).ok_or_else(|| name.to_owned())).collect())
    }
}
