//! Photos: real JPEG files of an exact size with incompressible content, generated from a seed as fast as a disk
//! writes.

mod exif;
mod scan;
mod segments;
mod sizes;

pub use sizes::{MAXIMUM_PHOTO_BYTES, MINIMUM_PHOTO_BYTES, photo_sizes};

use super::Content;
use super::content::difference;
use scan::{INTERVAL_BYTES, INTERVAL_MCUS, MCU_SIDE, Scan};
use segments::{COMMENT_HEAD, COMMENT_MAXIMUM, HEAD_BYTES, TABLES_BYTES, THUMBNAIL_INTERVALS};

/// Size of the chunks in bytes that [`Photo::write`] passes on. Only the last chunk may be smaller.
pub const CHUNK_BYTES: usize = 1024 * 1024;

/// Number of restart intervals that are generated at a time: 39 KiB, so that the template is applied while the
/// bytes are still in the cache.
const BATCH_INTERVALS: u64 = 32;
/// Upper half ("JPEG") of a photo's file number, so that its content differs from that of other files of the
/// corpus.
const PHOTO_FILES: u64 = 0x4A50_4547 << 32;
/// Offset of the thumbnail's random bytes in a photo's content stream, far enough from the others never to
/// overlap.
const THUMBNAIL_START: u64 = 1 << 40;
/// Offset of the comments' random bytes in a photo's content stream, far enough from the others never to overlap.
const COMMENT_START: u64 = 2 << 40;
/// Width in pixels of one restart interval.
const INTERVAL_WIDTH: u64 = MCU_SIDE * INTERVAL_MCUS as u64;

/// Photo: a baseline JPEG with JFIF, Exif, a thumbnail and restart markers that strict decoders accept.
///
/// The value contains no bytes of the file, only the parameters from which they are generated.
#[derive(Clone, Debug)]
pub struct Photo {
    index: u32,
    size: u64,
    width: u16,
    height: u16,
    scan: Scan,
}

impl Photo {
    /// Creates the photo with this number in the corpus generated from `seed`, of exactly `size` bytes.
    ///
    /// The size is clamped to the range from [`MINIMUM_PHOTO_BYTES`] to [`MAXIMUM_PHOTO_BYTES`].
    pub fn new(seed: u64, index: u32, size: u64) -> Self {
        let size = size.clamp(MINIMUM_PHOTO_BYTES, MAXIMUM_PHOTO_BYTES);
        let room = (size - HEAD_BYTES - COMMENT_HEAD - TABLES_BYTES) / INTERVAL_BYTES as u64;
        let (across, rows) = interval_grid(room);
        let content = Content::new(seed, PHOTO_FILES | u64::from(index));
        let pixels =
            |count: u64| u16::try_from(count).expect("the largest photo is far below 65536 pixels wide");
        Self {
            index,
            size,
            width: pixels(across * INTERVAL_WIDTH),
            height: pixels(rows * MCU_SIDE),
            scan: Scan { content, start: 0, intervals: across * rows },
        }
    }

    /// Passes the bytes of the file to `write` in order, in chunks of [`CHUNK_BYTES`]; the last chunk may be
    /// shorter. Uses one buffer of at most 1.1 MiB.
    ///
    /// # Errors
    ///
    /// The first error of `write`, after which the function returns.
    pub fn write<E>(&self, write: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut chunks = ChunkWriter::new(self.size, write);
        chunks.append(&segments::head(self.width, self.height, self.index, &self.thumbnail()))?;
        self.write_comments(&mut chunks)?;
        chunks.append(&segments::tables(self.width, self.height))?;
        self.write_scan(&mut chunks)?;
        chunks.finish()
    }

    /// Returns the offset of the first byte in which a whole file differs from this photo; `None` if they are
    /// equal.
    ///
    /// A file that is too short differs at its own end; a file that is too long differs at the photo's end.
    pub fn first_difference(&self, bytes: &[u8]) -> Option<u64> {
        let mut rest = bytes;
        let compared = self.write(&mut |expected| {
            let (found, after) = rest.split_at(expected.len().min(rest.len()));
            let offset = (bytes.len() - rest.len()) as u64;
            rest = after;
            match difference(found, &expected[..found.len()]) {
                Some(index) => Err(offset + index as u64),
                None if found.len() < expected.len() => Err(bytes.len() as u64),
                None => Ok(()),
            }
        });
        compared.err().or((!rest.is_empty()).then_some(self.size))
    }

    fn thumbnail(&self) -> Scan {
        Scan { start: THUMBNAIL_START, intervals: THUMBNAIL_INTERVALS, ..self.scan.clone() }
    }

    /// Writes comment segments with random text that bring the file to its exact size. They fill the bytes that
    /// the scan leaves over: less than a row of intervals, but at least the head of one comment.
    fn write_comments<W, E>(&self, chunks: &mut ChunkWriter<W>) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        let mut position = COMMENT_START;
        let mut left = self.size - HEAD_BYTES - TABLES_BYTES - self.scan.bytes();
        while left > 0 {
            let segment = comment_bytes(left);
            chunks.append(&segments::comment_head(segment))?;
            chunks
                .extend((segment - COMMENT_HEAD) as usize, |text| self.scan.content.fill(position, text))?;
            position += segment;
            left -= segment;
        }
        Ok(())
    }

    fn write_scan<W, E>(&self, chunks: &mut ChunkWriter<W>) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        let mut first = 0;
        while first < self.scan.intervals {
            let count = BATCH_INTERVALS.min(self.scan.intervals - first);
            chunks.extend(count as usize * INTERVAL_BYTES, |coded| self.scan.fill(first, coded))?;
            first += count;
        }
        Ok(())
    }
}

/// Returns the intervals per row and the number of rows of a picture of about 4:3 with at most `room` intervals.
/// An interval has 128 by 16 pixels, so there are six times as many rows as intervals in a row.
fn interval_grid(room: u64) -> (u64, u64) {
    let across = ((4 * room / 6).isqrt().div_ceil(2)).max(1);
    (across, room / across)
}

/// Returns the size of the next comment segment in bytes: the maximum, unless the remaining bytes would then be
/// too few for another comment.
fn comment_bytes(left: u64) -> u64 {
    match left.checked_sub(COMMENT_MAXIMUM) {
        None | Some(0) => left,
        Some(rest) if rest < COMMENT_HEAD => COMMENT_MAXIMUM - COMMENT_HEAD,
        Some(_) => COMMENT_MAXIMUM,
    }
}

/// Collects parts of any length and passes them on in chunks of [`CHUNK_BYTES`].
struct ChunkWriter<'a, W> {
    buffer: Vec<u8>,
    used: usize,
    write: &'a mut W,
}

impl<'a, W> ChunkWriter<'a, W> {
    /// Creates a writer for a file of `size` bytes.
    fn new(size: u64, write: &'a mut W) -> Self {
        // Room for one chunk and a part that extends beyond its end, or for the whole file if that is smaller.
        let room = size.min((CHUNK_BYTES + COMMENT_MAXIMUM as usize) as u64);
        Self { buffer: vec![0; room as usize], used: 0, write }
    }

    fn append<E>(&mut self, part: &[u8]) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        self.extend(part.len(), |room| room.copy_from_slice(part))
    }

    /// Adds a part of at most [`COMMENT_MAXIMUM`] bytes. `make` fills the part directly in the buffer.
    fn extend<E>(&mut self, length: usize, make: impl FnOnce(&mut [u8])) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        make(&mut self.buffer[self.used..self.used + length]);
        self.used += length;
        if self.used < CHUNK_BYTES {
            return Ok(());
        }
        (self.write)(&self.buffer[..CHUNK_BYTES])?;
        self.buffer.copy_within(CHUNK_BYTES..self.used, 0);
        self.used -= CHUNK_BYTES;
        Ok(())
    }

    fn finish<E>(self) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        if self.used == 0 { Ok(()) } else { (self.write)(&self.buffer[..self.used]) }
    }
}

#[cfg(test)]
mod tests;
