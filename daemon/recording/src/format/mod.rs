//! The stored file of a recording.
//!
//! ```text
//! "longhaul recording\n", version (1 byte), CRC-32 of all that follows (4 bytes, little-endian)
//! header     length, then JSON: source, times, means, account
//! tree       length, then the compressed columns of all nodes
//! operations blocks of 16,384 operations, each with its length, to the end of the file
//! ```
//!
//! All lengths are LEB128 numbers. Nothing is allocated by a length that the file claims, and what is read is valid: parents
//! stand before children, no path is too deep, nodes exist, handles are open when they are used.

mod nodes;
mod validity;

use flate2::Crc;
use longhaul_model::varint;

use crate::operations::MAX_STORED_BYTES;
use crate::{MAX_OPERATIONS, Operations, Recording, block};

pub use nodes::MAX_NODES;

/// Largest size of the file of a recording, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
// A full list of operations leaves room for all names, and for the header and the last block, which take less than 2 MiB.
const _: () = assert!(MAX_STORED_BYTES + MAX_NODES * nodes::MAX_NODE_BYTES + (2 << 20) <= MAX_FILE_BYTES);
/// First bytes of the file.
const MAGIC: &[u8] = b"longhaul recording\n";
/// Version of the format. Older files are read, too: those of version 1 do not tell which names were given in open folders, and no
/// version before 3 which openings were only places in the tree.
const VERSION: u8 = 3;
const OLDEST_VERSION: u8 = 1;

/// Bytes that are no recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file does not begin as recordings do.
    #[error("it is not a longhaul recording")]
    NotARecording,
    /// The file was written by another version of longhaul.
    #[error(
        "it has version {0} of the format and this longhaul reads versions 1 to 3: update longhaul, or record again"
    )]
    Version(u8),
    /// The content does not match the checksum.
    #[error("it is damaged or cut short (its checksum differs): record again, or copy the file again")]
    Checksum,
    /// The checksum is right, but a part is not one that longhaul writes.
    #[error("its {0} is not one that longhaul writes: record again")]
    Invalid(&'static str),
}

/// Returns a number that stands for the content of a stored recording, so that two recordings are told apart.
pub fn content_id(bytes: &[u8]) -> u64 {
    u64::from(checksum(bytes)) << 32 | bytes.len() as u64 & 0xffff_ffff
}

impl Recording {
    /// Returns the stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = vec![];
        // The header has no map with keys that are not text, and no number that JSON lacks: it cannot fail.
        put_part(&mut body, &serde_json::to_vec(self).unwrap_or_default());
        put_part(&mut body, &nodes::encode(&self.nodes));
        self.operations.stored_blocks().for_each(|block| put_part(&mut body, &block));
        let mut bytes = [MAGIC, &[VERSION], &checksum(&body).to_le_bytes()].concat();
        bytes.append(&mut body);
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    ///
    /// [`FormatError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut body = checked_body(bytes)?;
        let header = take_header(&mut body)?;
        let nodes = take_part(&mut body).and_then(nodes::decode).ok_or(FormatError::Invalid("tree"))?;
        let operations = take_operations(body).ok_or(FormatError::Invalid("list of operations"))?;
        let recording = Self { nodes, operations, ..header };
        validity::check(&recording).map_err(FormatError::Invalid)?;
        Ok(recording)
    }
}

fn checked_body(bytes: &[u8]) -> Result<&[u8], FormatError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(FormatError::NotARecording)?;
    let (&version, rest) = rest.split_first().ok_or(FormatError::Checksum)?;
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(FormatError::Version(version));
    }
    let (&stored, body) = rest.split_first_chunk().ok_or(FormatError::Checksum)?;
    if checksum(body) == u32::from_le_bytes(stored) { Ok(body) } else { Err(FormatError::Checksum) }
}

/// Returns the header: a recording without nodes and operations.
fn take_header(body: &mut &[u8]) -> Result<Recording, FormatError> {
    let json = take_part(body).ok_or(FormatError::Invalid("header"))?;
    serde_json::from_slice(json).map_err(|_| FormatError::Invalid("header"))
}

fn take_operations(mut body: &[u8]) -> Option<Operations> {
    let mut operations = Operations::default();
    while !body.is_empty() {
        let bytes = take_part(&mut body)?;
        let decoded = block::decode(bytes).ok()?;
        // Blocks before the last one are full, and none is empty.
        let is_last = body.is_empty();
        if decoded.is_empty() || (!is_last && decoded.len() < block::BLOCK_LENGTH) {
            return None;
        }
        operations.push_stored(bytes.to_vec(), decoded);
        if operations.len() as u64 > MAX_OPERATIONS {
            return None;
        }
    }
    Some(operations)
}

fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    varint::put(out, part.len() as u64);
    out.extend_from_slice(part);
}

fn take_part<'bytes>(body: &mut &'bytes [u8]) -> Option<&'bytes [u8]> {
    let length = usize::try_from(varint::take(body)?).ok()?;
    let (part, rest) = body.split_at_checked(length)?;
    *body = rest;
    Some(part)
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests;
