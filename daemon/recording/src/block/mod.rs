//! Blocks of operations: one compressed column of small numbers for each property.
//!
//! Numbers are stored as differences from what is usual, so that most of them are zero: a transfer begins where the last one of
//! its handle ended, a read returns what was asked for, the next opening has the next number.

mod columns;
mod read;
mod write;

pub(crate) use read::decode;
pub(crate) use write::encode;

/// Number of operations in a full block.
pub(crate) const BLOCK_LENGTH: usize = 1 << 14;

#[cfg(test)]
mod tests;
