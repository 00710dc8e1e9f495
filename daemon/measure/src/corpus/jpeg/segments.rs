//! The marker segments of a photo (T.81 annex B), and their lengths, which are the same for every photo.

use super::exif;
use super::scan::{AC_CODES, DC_CODES, INTERVAL_BYTES, INTERVAL_MCUS, MCU_SIDE, Scan};

/// Pixels of the embedded thumbnail: a whole number of restart intervals.
pub(super) const THUMBNAIL_WIDTH: u16 = 160;
/// See [`THUMBNAIL_WIDTH`].
pub(super) const THUMBNAIL_HEIGHT: u16 = 128;
/// Restart intervals of the thumbnail.
pub(super) const THUMBNAIL_INTERVALS: u64 =
    THUMBNAIL_WIDTH as u64 * THUMBNAIL_HEIGHT as u64 / (MCU_SIDE * MCU_SIDE * INTERVAL_MCUS as u64);
/// Bytes of a comment segment that has no text: marker and length (T.81 B.2.4.5).
pub(super) const COMMENT_HEAD: u64 = 4;
/// Most bytes of a comment segment: its length field counts itself and the text.
pub(super) const COMMENT_MAXIMUM: u64 = 2 + 0xFFFF;
/// Bytes of a photo's start: start of image, JFIF and Exif segments.
pub(super) const HEAD_BYTES: u64 = SOI.len() as u64 + 18 + 4 + 6 + EXIF_BYTES;
/// Bytes from the quantisation table to the scan header.
pub(super) const TABLES_BYTES: u64 = 69 + 19 + 4 + 18 + 22 + 6 + 14;

const EXIF_BYTES: u64 = exif::THUMBNAIL_OFFSET as u64 + THUMBNAIL_BYTES;
const THUMBNAIL_BYTES: u64 = SOI.len() as u64 + TABLES_BYTES + THUMBNAIL_INTERVALS * INTERVAL_BYTES as u64;
const SOI: [u8; 2] = [0xFF, 0xD8];
const APP0: u8 = 0xE0;
const APP1: u8 = 0xE1;
const COMMENT: u8 = 0xFE;
const QUANTISATION: u8 = 0xDB;
const BASELINE_FRAME: u8 = 0xC0;
const HUFFMAN: u8 = 0xC4;
const RESTART_INTERVAL: u8 = 0xDD;
const SCAN: u8 = 0xDA;
/// JFIF 1.02, no unit, square pixels, no thumbnail of its own (JFIF 1.02, APP0 marker segment).
const JFIF: [u8; 14] = *b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0";
/// Exif 2.32 4.5.4 (APP1 identifier).
const EXIF: [u8; 6] = *b"Exif\0\0";

/// Start of image, JFIF and Exif with the thumbnail that `scan` makes: [`HEAD_BYTES`].
pub(super) fn head(width: u16, height: u16, index: u32, scan: &Scan) -> Vec<u8> {
    let facts = exif::Facts { width, height, index, thumbnail_bytes: THUMBNAIL_BYTES as u32 };
    let mut exif = EXIF.to_vec();
    exif.extend(exif::block(&facts));
    exif.extend(thumbnail(scan));
    let mut head = SOI.to_vec();
    push(&mut head, APP0, &JFIF);
    push(&mut head, APP1, &exif);
    head
}

/// A complete JPEG of its own, without APPn and COM as Exif 2.32 4.6.4 (JPEGInterchangeFormatLength) asks.
fn thumbnail(scan: &Scan) -> Vec<u8> {
    let mut made = SOI.to_vec();
    made.extend(tables(THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT));
    let start = made.len();
    made.resize(start + scan.bytes() as usize, 0);
    scan.fill(0, &mut made[start..]);
    made
}

/// All that a decoder needs before the scan: [`TABLES_BYTES`].
pub(super) fn tables(width: u16, height: u16) -> Vec<u8> {
    let mut made = Vec::with_capacity(TABLES_BYTES as usize);
    push(&mut made, QUANTISATION, &[[0].as_slice(), &[1; 64]].concat());
    push(&mut made, BASELINE_FRAME, &frame(width, height));
    push(&mut made, HUFFMAN, &[[0x00].as_slice(), &DC_CODES, &[0x10], &AC_CODES].concat());
    push(&mut made, RESTART_INTERVAL, &INTERVAL_MCUS.to_be_bytes());
    // Three components, all with tables 0 and 0; spectral selection 0 to 63, no approximation (T.81 B.2.3).
    push(&mut made, SCAN, &[3, 1, 0x00, 2, 0x00, 3, 0x00, 0, 63, 0]);
    made
}

/// 8 bits, three components, 4:2:0, one quantisation table (T.81 B.2.2).
fn frame(width: u16, height: u16) -> [u8; 15] {
    let ([top, upper], [left, lower]) = (height.to_be_bytes(), width.to_be_bytes());
    [8, top, upper, left, lower, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]
}

/// The first four bytes of a comment segment that takes `bytes` in all.
pub(super) fn comment_head(bytes: u64) -> [u8; COMMENT_HEAD as usize] {
    let length = u16::try_from(bytes - 2).expect("a comment is at most COMMENT_MAXIMUM bytes");
    let [high, low] = length.to_be_bytes();
    [0xFF, COMMENT, high, low]
}

/// Appends a segment: marker, length with the two length bytes, body (T.81 B.1.1.4).
fn push(made: &mut Vec<u8>, marker: u8, body: &[u8]) {
    let length = u16::try_from(body.len() + 2).expect("every segment here is below 64 KiB");
    made.extend([0xFF, marker]);
    made.extend(length.to_be_bytes());
    made.extend(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Content;

    #[test]
    fn the_lengths_are_what_is_written() {
        let scan = Scan { content: Content::new(1, 1), start: 0, intervals: THUMBNAIL_INTERVALS };
        assert_eq!(tables(64, 64).len() as u64, TABLES_BYTES);
        assert_eq!(thumbnail(&scan).len() as u64, THUMBNAIL_BYTES);
        assert_eq!(head(64, 64, 0, &scan).len() as u64, HEAD_BYTES);
        const { assert!(HEAD_BYTES < 0x1_0000, "all that comes before the comments is in the first 64 KiB") };
    }
}
