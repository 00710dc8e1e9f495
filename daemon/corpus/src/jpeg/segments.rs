//! The marker segments of a photo (T.81 annex B), and their lengths, which are the same for all photos.

use super::exif;
use super::scan::{AC_CODES, DC_CODES, INTERVAL_BYTES, INTERVAL_MCUS, MCU_SIDE, Scan};

/// Width of the embedded thumbnail in pixels. Width and height are chosen so that the thumbnail consists of a
/// whole number of restart intervals.
pub(super) const THUMBNAIL_WIDTH: u16 = 160;
/// Height of the embedded thumbnail in pixels; see [`THUMBNAIL_WIDTH`].
pub(super) const THUMBNAIL_HEIGHT: u16 = 128;
/// Number of restart intervals of the thumbnail.
pub(super) const THUMBNAIL_INTERVALS: u64 =
    THUMBNAIL_WIDTH as u64 * THUMBNAIL_HEIGHT as u64 / (MCU_SIDE * MCU_SIDE * INTERVAL_MCUS as u64);
/// Size of a comment segment without text, in bytes: marker and length (T.81 B.2.4.5).
pub(super) const COMMENT_HEAD: u64 = 4;
/// Maximum size of a comment segment in bytes. The length field counts itself and the text, but not the marker.
pub(super) const COMMENT_MAXIMUM: u64 = 2 + 0xFFFF;
/// Size of the first part of a photo in bytes: start of image, JFIF segment and Exif segment.
pub(super) const HEAD_BYTES: u64 = SOI.len() as u64 + 18 + 4 + 6 + EXIF_BYTES;
/// Size of the segments from the quantization table to the scan header, in bytes.
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
/// Body of the JFIF segment: version 1.02, no unit, square pixels, no JFIF thumbnail (JFIF 1.02, APP0 marker
/// segment).
const JFIF: [u8; 14] = *b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0";
/// Identifier of the Exif segment (Exif 2.32 4.5.4, APP1 identifier).
const EXIF: [u8; 6] = *b"Exif\0\0";

/// Returns the first [`HEAD_BYTES`] bytes of a photo: start of image, JFIF segment, and Exif segment with a
/// thumbnail whose pixels come from `scan`.
pub(super) fn head(width: u16, height: u16, index: u32, scan: &Scan) -> Vec<u8> {
    let facts = exif::ExifFields { width, height, index, thumbnail_bytes: THUMBNAIL_BYTES as u32 };
    let mut exif = EXIF.to_vec();
    exif.extend(exif::exif_block(&facts));
    exif.extend(thumbnail(scan));
    let mut head = SOI.to_vec();
    push_segment(&mut head, APP0, &JFIF);
    push_segment(&mut head, APP1, &exif);
    head
}

/// Returns the thumbnail as a complete JPEG file. It has no APPn and COM segments, as Exif 2.32 4.6.4
/// (JPEGInterchangeFormatLength) requires.
fn thumbnail(scan: &Scan) -> Vec<u8> {
    let mut bytes = SOI.to_vec();
    bytes.extend(tables(THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT));
    let start = bytes.len();
    bytes.resize(start + scan.bytes() as usize, 0);
    scan.fill(0, &mut bytes[start..]);
    bytes
}

/// Returns the [`TABLES_BYTES`] bytes that a decoder needs before the scan: tables, frame header and scan header.
pub(super) fn tables(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(TABLES_BYTES as usize);
    push_segment(&mut bytes, QUANTISATION, &[[0].as_slice(), &[1; 64]].concat());
    push_segment(&mut bytes, BASELINE_FRAME, &frame(width, height));
    push_segment(&mut bytes, HUFFMAN, &[[0x00].as_slice(), &DC_CODES, &[0x10], &AC_CODES].concat());
    push_segment(&mut bytes, RESTART_INTERVAL, &INTERVAL_MCUS.to_be_bytes());
    // Three components, all with tables 0 and 0; spectral selection 0 to 63, no approximation (T.81 B.2.3).
    push_segment(&mut bytes, SCAN, &[3, 1, 0x00, 2, 0x00, 3, 0x00, 0, 63, 0]);
    bytes
}

/// Returns the frame header: 8 bits, three components, 4:2:0, one quantization table (T.81 B.2.2).
fn frame(width: u16, height: u16) -> [u8; 15] {
    let ([top, upper], [left, lower]) = (height.to_be_bytes(), width.to_be_bytes());
    [8, top, upper, left, lower, 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]
}

/// Returns the first four bytes (marker and length) of a comment segment with a total size of `bytes` bytes.
pub(super) fn comment_head(bytes: u64) -> [u8; COMMENT_HEAD as usize] {
    let length = u16::try_from(bytes - 2).expect("a comment is at most COMMENT_MAXIMUM bytes");
    let [high, low] = length.to_be_bytes();
    [0xFF, COMMENT, high, low]
}

/// Appends a segment: marker, length (which includes its own two bytes), body (T.81 B.1.1.4).
fn push_segment(bytes: &mut Vec<u8>, marker: u8, body: &[u8]) {
    let length = u16::try_from(body.len() + 2).expect("every segment here is below 64 KiB");
    bytes.extend([0xFF, marker]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;

    #[test]
    fn length_constants_match_the_written_bytes() {
        let scan = Scan { content: Content::new(1, 1), start: 0, intervals: THUMBNAIL_INTERVALS };
        assert_eq!(tables(64, 64).len() as u64, TABLES_BYTES);
        assert_eq!(thumbnail(&scan).len() as u64, THUMBNAIL_BYTES);
        assert_eq!(head(64, 64, 0, &scan).len() as u64, HEAD_BYTES);
        const { assert!(HEAD_BYTES < 0x1_0000, "the part before the comments fits into the first 64 KiB") };
    }
}
