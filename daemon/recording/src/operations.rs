//! The operations of a recording, packed: ten million of them take tens of megabytes, not hundreds.

use std::fmt;

use crate::RecordedOperation;
use crate::block::{self, BLOCK_LENGTH};

/// Largest number of operations in a recording. A trace with more is cut there, and a file that claims more is refused.
pub const MAX_OPERATIONS: u64 = 16_000_000;
/// Size of the full blocks from which on a recording takes no more operations, in bytes.
pub(crate) const MAX_STORED_BYTES: u64 = 48 << 20;

/// Operations in the order in which they began. All but the last few thousand are kept compressed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Operations {
    /// Compressed blocks of [`BLOCK_LENGTH`] operations each, as [`block::encode`] makes them.
    blocks: Vec<Vec<u8>>,
    /// Size of all blocks in bytes.
    stored_bytes: u64,
    /// The operations after the last full block.
    tail: Vec<RecordedOperation>,
}

impl Operations {
    /// Appends an operation.
    pub fn push(&mut self, operation: RecordedOperation) {
        self.tail.push(operation);
        if self.tail.len() == BLOCK_LENGTH {
            self.push_block(block::encode(&self.tail));
            self.tail.clear();
        }
    }

    fn push_block(&mut self, bytes: Vec<u8>) {
        self.stored_bytes += bytes.len() as u64;
        self.blocks.push(bytes);
    }

    /// Tells whether no more operations fit into the file of a recording: in number, or in bytes beside the names.
    pub fn is_full(&self) -> bool {
        self.len() as u64 >= MAX_OPERATIONS || self.stored_bytes >= MAX_STORED_BYTES
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK_LENGTH + self.tail.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the operations in order, one block in memory at a time.
    pub fn iter(&self) -> impl Iterator<Item = RecordedOperation> + '_ {
        // A block is only made by `encode` or kept after it was decoded, so decoding cannot fail here.
        let full = self.blocks.iter().flat_map(|bytes| block::decode(bytes).unwrap_or_default());
        full.chain(self.tail.iter().copied())
    }

    /// Returns the stored form: one block of bytes after the other.
    pub(crate) fn stored_blocks(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        let tail = (!self.tail.is_empty()).then(|| block::encode(&self.tail));
        self.blocks.iter().cloned().chain(tail)
    }

    /// Appends a stored block whose operations were decoded from it. All blocks but the last one are full.
    pub(crate) fn push_stored(&mut self, bytes: Vec<u8>, operations: Vec<RecordedOperation>) {
        if operations.len() == BLOCK_LENGTH {
            self.push_block(bytes);
        } else {
            self.tail = operations;
        }
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<RecordedOperation> for Operations {
    fn from_iter<I: IntoIterator<Item = RecordedOperation>>(operations: I) -> Self {
        let mut packed = Self::default();
        operations.into_iter().for_each(|operation| packed.push(operation));
        packed
    }
}

#[cfg(test)]
impl Operations {
    /// Returns operations that take a block less than they may.
    pub(crate) fn nearly_full() -> Self {
        Self { stored_bytes: MAX_STORED_BYTES - 1, ..Self::default() }
    }
}
