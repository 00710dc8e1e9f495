//! Compression of the columns of a recording, with a limit for what comes out.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Level of compression. Higher levels take twice the time for a few percent.
const LEVEL: Compression = Compression::new(5);

/// Returns the bytes in the DEFLATE format.
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(vec![], LEVEL);
    // Writing to a vector does not fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// Returns the uncompressed bytes; `None` if the input is damaged or holds more than `limit` bytes.
pub(crate) fn decompress(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut content = vec![];
    DeflateDecoder::new(bytes).take(limit + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= limit).then_some(content)
}
