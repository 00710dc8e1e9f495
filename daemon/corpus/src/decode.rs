//! Decodes photos as a viewer does: the thumbnail from the start of the file, then all pixels.
//!
//! The functions are pure, and no input makes them panic.

use exif::{In, Reader, Tag};
use std::hint::black_box;
use std::ops::Range;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Maximum number of pixels that are decoded, at three bytes of memory each. It is slightly more than the largest
/// photo of the corpus has.
const MAXIMUM_PIXELS: usize = 128 << 20;
/// Maximum width and height in pixels.
const MAXIMUM_SIDE: usize = 32_768;
const SOI: [u8; 2] = [0xFF, 0xD8];
const APP1: u8 = 0xE1;
const SCAN: u8 = 0xDA;
const EXIF: &[u8] = b"Exif\0\0";

/// Error of decoding a photo or its thumbnail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes do not start like a JPEG file.
    #[error("not a JPEG file")]
    NotJpeg,
    /// A segment is invalid, or ends after the last byte.
    #[error("the JPEG segment at byte {0} is broken or incomplete")]
    BrokenSegment(usize),
    /// The file has no Exif segment before the picture.
    #[error("no Exif segment before the picture")]
    NoExif,
    /// The Exif segment cannot be read.
    #[error("the Exif segment cannot be read: {0}")]
    Exif(#[from] exif::Error),
    /// The Exif segment has no thumbnail, or a thumbnail that ends outside of the segment.
    #[error("no thumbnail in the Exif segment")]
    NoThumbnail,
    /// The picture is larger than any picture of the corpus; decoding it would take too much memory.
    #[error("the picture of {width} x {height} pixels is larger than any picture of the corpus")]
    TooLarge {
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// The picture cannot be decoded; contains the decoder's message.
    #[error("the picture cannot be decoded: {0}")]
    Decode(String),
}

/// Returns the range of the embedded thumbnail, which is itself a JPEG file, in `head`: at least the first 64 KiB
/// of a JPEG file.
///
/// # Errors
///
/// [`DecodeError`] if `head` is not the start of a JPEG file, or does not contain a whole Exif segment with a
/// thumbnail.
pub fn thumbnail(head: &[u8]) -> Result<Range<usize>, DecodeError> {
    let block = exif_block(head)?;
    let exif = Reader::new().read_raw(head[block.clone()].to_vec())?;
    let number = |tag| exif.get_field(tag, In::THUMBNAIL)?.value.get_uint(0);
    let offset = number(Tag::JPEGInterchangeFormat).ok_or(DecodeError::NoThumbnail)? as usize;
    let length = number(Tag::JPEGInterchangeFormatLength).ok_or(DecodeError::NoThumbnail)? as usize;
    let range = block.start.saturating_add(offset)..block.start.saturating_add(offset).saturating_add(length);
    if length == 0 || range.end > block.end { Err(DecodeError::NoThumbnail) } else { Ok(range) }
}

/// Decodes a whole JPEG file in strict mode, and returns its width and height in pixels. Uses three bytes of memory per pixel.
///
/// # Errors
///
/// [`DecodeError::TooLarge`] before any memory is allocated; [`DecodeError::Decode`] if the strict decoder refuses
/// the file.
pub fn decode(bytes: &[u8]) -> Result<(usize, usize), DecodeError> {
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().map_err(|error| DecodeError::Decode(error.to_string()))?;
    let (width, height) = decoder.dimensions().ok_or(DecodeError::NotJpeg)?;
    if width.saturating_mul(height) > MAXIMUM_PIXELS {
        return Err(DecodeError::TooLarge { width, height });
    }
    let pixels = decoder.decode().map_err(|error| DecodeError::Decode(error.to_string()))?;
    // No caller uses the pixels. The compiler must not leave out their computation, which is timed.
    black_box(&pixels);
    Ok((width, height))
}

fn options() -> DecoderOptions {
    DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(MAXIMUM_SIDE)
        .set_max_height(MAXIMUM_SIDE)
        .jpeg_set_out_colorspace(ColorSpace::RGB)
}

/// Returns the range of the TIFF block of the Exif segment.
fn exif_block(head: &[u8]) -> Result<Range<usize>, DecodeError> {
    // The Exif reader could find the segment itself, but it does not report offsets and copies every segment on
    // the way.
    if !head.starts_with(&SOI) {
        return Err(DecodeError::NotJpeg);
    }
    let mut at = SOI.len();
    loop {
        let (marker, body) = segment(head, at).ok_or(DecodeError::BrokenSegment(at))?;
        match marker {
            APP1 if head[body.clone()].starts_with(EXIF) => return Ok(body.start + EXIF.len()..body.end),
            SCAN => return Err(DecodeError::NoExif),
            _ => at = body.end,
        }
    }
}

/// Returns the marker and the body range of the segment at an offset (T.81 B.1.1.4); `None` if there is no whole
/// segment.
fn segment(head: &[u8], at: usize) -> Option<(u8, Range<usize>)> {
    let [0xFF, marker, high, low] = *head.get(at..)?.first_chunk::<4>()? else { return None };
    let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
    (end >= at + 4 && end <= head.len()).then_some((marker, at + 4..end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Photo;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn photo() -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = Photo::new(1, 1, 0).write(&mut |piece| -> Result<(), Infallible> {
            bytes.extend_from_slice(piece);
            Ok(())
        });
        bytes
    }

    #[test]
    fn each_kind_of_invalid_photo_has_its_own_error() {
        assert!(matches!(thumbnail(b"GIF89a"), Err(DecodeError::NotJpeg)));
        assert!(matches!(thumbnail(&photo()[..4096]), Err(DecodeError::BrokenSegment(20))));
        let bare = [&SOI[..], &[0xFF, SCAN, 0, 2]].concat();
        assert!(matches!(thumbnail(&bare), Err(DecodeError::NoExif)));
        assert!(matches!(decode(b""), Err(DecodeError::Decode(_))));
    }

    #[test]
    fn picture_with_hostile_dimensions_is_refused() {
        let mut bytes = photo();
        let frame =
            bytes.windows(4).rposition(|window| window == [0xFF, 0xC0, 0, 17]).expect("a frame header");
        bytes[frame + 5..frame + 9].copy_from_slice(&[0x80, 0, 0x80, 0]);
        assert!(matches!(decode(&bytes), Err(DecodeError::TooLarge { width: 32768, height: 32768 })));
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = (thumbnail(&bytes), decode(&bytes));
            let headed = [&SOI[..], &bytes].concat();
            let _ = (thumbnail(&headed), decode(&headed));
        }

        #[test]
        fn decoding_a_damaged_photo_does_not_panic(
            changes in prop::collection::vec((0usize..1600, any::<u8>()), 1..6), cut: prop::sample::Index,
        ) {
            let mut bytes = photo();
            for (offset, value) in changes {
                bytes[offset] = value;
            }
            let _ = (thumbnail(&bytes), decode(&bytes));
            let cut = cut.index(bytes.len());
            let _ = (thumbnail(&bytes[..cut]), decode(&bytes[..cut]));
        }
    }
}
