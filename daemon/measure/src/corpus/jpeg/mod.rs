//! Photos: real JPEG files of an exact size with incompressible content, made from a seed as fast as a disk writes.

mod exif;
mod scan;
mod segments;
mod sizes;

pub use sizes::photo_sizes;

use super::Content;
use super::content::difference;
use scan::{INTERVAL_BYTES, INTERVAL_MCUS, MCU_SIDE, Scan};
use segments::{COMMENT_HEAD, COMMENT_MAXIMUM, HEAD_BYTES, TABLES_BYTES, THUMBNAIL_INTERVALS};

/// The smallest photo in bytes: the Exif part with its thumbnail takes 13 KiB, the rest is the picture.
pub const MINIMUM_PHOTO_BYTES: u64 = 32 * 1024;
/// The largest photo in bytes: about 112 megapixels.
pub const MAXIMUM_PHOTO_BYTES: u64 = 64 * 1024 * 1024;
/// Most bytes that [`Photo::write`] hands out at once, and what every piece but the last has.
pub const CHUNK_BYTES: usize = 1024 * 1024;

/// Intervals that are made at a time: 39 KiB, so that the mask is laid over them while they are in the cache.
const BATCH_INTERVALS: u64 = 32;
/// Keeps the content of photos apart from that of other files of the corpus: "JPEG" in the upper half.
const PHOTO_FILES: u64 = 0x4A50_4547 << 32;
/// Where the random bits of the parts of a photo begin in its content: far enough apart never to meet.
const THUMBNAIL_START: u64 = 1 << 40;
const COMMENT_START: u64 = 2 << 40;
/// Width in pixels of one restart interval.
const INTERVAL_WIDTH: u64 = MCU_SIDE * INTERVAL_MCUS as u64;

/// One photo: a baseline JPEG with JFIF, Exif, a thumbnail and restart markers, that strict decoders accept.
///
/// It holds no bytes, only what they are made from.
#[derive(Clone, Debug)]
pub struct Photo {
    index: u32,
    size: u64,
    width: u16,
    height: u16,
    scan: Scan,
}

impl Photo {
    /// The photo with that number in the corpus made from `seed`, of exactly `size` bytes.
    ///
    /// A size outside of [`MINIMUM_PHOTO_BYTES`] to [`MAXIMUM_PHOTO_BYTES`] is brought to the nearer end.
    pub fn new(seed: u64, index: u32, size: u64) -> Self {
        let size = size.clamp(MINIMUM_PHOTO_BYTES, MAXIMUM_PHOTO_BYTES);
        let room = (size - HEAD_BYTES - COMMENT_HEAD - TABLES_BYTES) / INTERVAL_BYTES as u64;
        let (across, rows) = shape(room);
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

    /// Size of the file in bytes, after clamping.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Width of the picture in pixels.
    pub fn width(&self) -> u32 {
        self.width.into()
    }

    /// Height of the picture in pixels.
    pub fn height(&self) -> u32 {
        self.height.into()
    }

    /// Hands the file to `write` from its first to its last byte, in pieces of [`CHUNK_BYTES`] and a last one that may
    /// be shorter. Uses one buffer of at most 1.1 MiB.
    ///
    /// # Errors
    ///
    /// The first error of `write`, after which nothing more is made.
    pub fn write<E>(&self, write: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut pieces = Pieces::new(self.size, write);
        pieces.append(&segments::head(self.width, self.height, self.index, &self.thumbnail()))?;
        self.write_comments(&mut pieces)?;
        pieces.append(&segments::tables(self.width, self.height))?;
        self.write_scan(&mut pieces)?;
        pieces.finish()
    }

    /// The place of the first byte in which a whole file differs from this photo; `None` if it is this photo.
    ///
    /// A file that is too short differs at its end, one that is too long at this photo's end.
    pub fn matches(&self, bytes: &[u8]) -> Option<u64> {
        let mut rest = bytes;
        let compared = self.write(&mut |wanted| {
            let (found, after) = rest.split_at(wanted.len().min(rest.len()));
            let place = (bytes.len() - rest.len()) as u64;
            rest = after;
            match difference(found, &wanted[..found.len()]) {
                Some(index) => Err(place + index as u64),
                None if found.len() < wanted.len() => Err(bytes.len() as u64),
                None => Ok(()),
            }
        });
        compared.err().or((!rest.is_empty()).then_some(self.size))
    }

    fn thumbnail(&self) -> Scan {
        Scan { start: THUMBNAIL_START, intervals: THUMBNAIL_INTERVALS, ..self.scan.clone() }
    }

    /// Random comments bring the file to its size: what is left is less than a row of intervals, but at least one head.
    fn write_comments<W, E>(&self, pieces: &mut Pieces<W>) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        let mut place = COMMENT_START;
        let mut left = self.size - HEAD_BYTES - TABLES_BYTES - self.scan.bytes();
        while left > 0 {
            let segment = comment_bytes(left);
            pieces.append(&segments::comment_head(segment))?;
            pieces.extend((segment - COMMENT_HEAD) as usize, |text| self.scan.content.fill(place, text))?;
            place += segment;
            left -= segment;
        }
        Ok(())
    }

    fn write_scan<W, E>(&self, pieces: &mut Pieces<W>) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        let mut first = 0;
        while first < self.scan.intervals {
            let count = BATCH_INTERVALS.min(self.scan.intervals - first);
            pieces.extend(count as usize * INTERVAL_BYTES, |coded| self.scan.fill(first, coded))?;
            first += count;
        }
        Ok(())
    }
}

/// Intervals across and rows of a picture of about 4:3 that fits into `room` intervals: with 128 by 16 pixels each,
/// six times as many rows as there are intervals in a row.
fn shape(room: u64) -> (u64, u64) {
    let across = ((4 * room / 6).isqrt().div_ceil(2)).max(1);
    (across, room / across)
}

/// Bytes of the next comment: the largest, unless what is then left would be too little for another.
fn comment_bytes(left: u64) -> u64 {
    match left.checked_sub(COMMENT_MAXIMUM) {
        None | Some(0) => left,
        Some(rest) if rest < COMMENT_HEAD => COMMENT_MAXIMUM - COMMENT_HEAD,
        Some(_) => COMMENT_MAXIMUM,
    }
}

/// Cuts a file that is made in parts of any length into pieces of [`CHUNK_BYTES`].
struct Pieces<'a, W> {
    buffer: Vec<u8>,
    used: usize,
    write: &'a mut W,
}

impl<'a, W> Pieces<'a, W> {
    /// Room for a piece and the part that crosses its end, or for the whole file if that is less.
    fn new(size: u64, write: &'a mut W) -> Self {
        let room = size.min((CHUNK_BYTES + COMMENT_MAXIMUM as usize) as u64);
        Self { buffer: vec![0; room as usize], used: 0, write }
    }

    fn append<E>(&mut self, part: &[u8]) -> Result<(), E>
    where
        W: FnMut(&[u8]) -> Result<(), E>,
    {
        self.extend(part.len(), |room| room.copy_from_slice(part))
    }

    /// Adds a part of at most [`COMMENT_MAXIMUM`] bytes, made in place.
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
