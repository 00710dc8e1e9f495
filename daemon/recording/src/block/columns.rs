//! The columns of a block as bytes.

use longhaul_model::varint;

use crate::compression::{compress, decompress};

/// Largest number of bytes of a column before compression: 16,384 operations with three numbers of ten bytes at most.
const MAX_COLUMN_BYTES: u64 = 1 << 19;

/// Columns of a block, in their order in the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Kind,
    Thread,
    Pause,
    Node,
    Handle,
    Mode,
    Offset,
    Length,
}

/// Number of columns.
const COLUMNS: usize = 8;

/// Damage of a block: its bytes end early, or a number is not one that longhaul writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block of operations is damaged")]
pub(crate) struct DamagedBlock;

/// Columns that are being written.
#[derive(Default)]
pub(super) struct ColumnWriter([Vec<u8>; COLUMNS]);

impl ColumnWriter {
    /// Appends a number to a column.
    pub(super) fn put(&mut self, column: Column, value: u64) {
        varint::put(&mut self.0[column as usize], value);
    }

    /// Appends a number that is usually near zero, of either sign.
    pub(super) fn put_signed(&mut self, column: Column, value: i64) {
        self.put(column, varint::zigzag(value));
    }

    /// Returns the number of operations and all columns, each with its length.
    pub(super) fn finish(self, operations: usize) -> Vec<u8> {
        let mut bytes = vec![];
        varint::put(&mut bytes, operations as u64);
        for column in self.0 {
            let compressed = compress(&column);
            varint::put(&mut bytes, compressed.len() as u64);
            bytes.extend_from_slice(&compressed);
        }
        bytes
    }
}

/// Columns that are being read.
pub(super) struct ColumnReader {
    columns: [Vec<u8>; COLUMNS],
    positions: [usize; COLUMNS],
}

impl ColumnReader {
    /// Opens the columns after the number of operations; `bytes` must end with them.
    pub(super) fn open(bytes: &mut &[u8]) -> Result<Self, DamagedBlock> {
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        for column in &mut columns {
            let length = varint::take(bytes).ok_or(DamagedBlock)?;
            let length = usize::try_from(length).map_err(|_| DamagedBlock)?;
            let (compressed, rest) = bytes.split_at_checked(length).ok_or(DamagedBlock)?;
            *column = decompress(compressed, MAX_COLUMN_BYTES).ok_or(DamagedBlock)?;
            *bytes = rest;
        }
        Ok(Self { columns, positions: [0; COLUMNS] })
    }

    /// Takes the next number of a column.
    pub(super) fn take(&mut self, column: Column) -> Result<u64, DamagedBlock> {
        let (bytes, position) = (&self.columns[column as usize], &mut self.positions[column as usize]);
        let mut rest = bytes.get(*position..).unwrap_or_default();
        let value = varint::take(&mut rest).ok_or(DamagedBlock)?;
        *position = bytes.len() - rest.len();
        Ok(value)
    }

    /// Takes the next number of a column of numbers of either sign.
    pub(super) fn take_signed(&mut self, column: Column) -> Result<i64, DamagedBlock> {
        self.take(column).map(varint::unzigzag)
    }

    /// Takes the next number of a column that has 32 bits.
    pub(super) fn take_u32(&mut self, column: Column) -> Result<u32, DamagedBlock> {
        self.take(column)?.try_into().map_err(|_| DamagedBlock)
    }

    /// Takes the next number of a column that has eight bits.
    pub(super) fn take_u8(&mut self, column: Column) -> Result<u8, DamagedBlock> {
        self.take(column)?.try_into().map_err(|_| DamagedBlock)
    }

    /// Tells whether all columns were read to their end.
    pub(super) fn at_end(&self) -> bool {
        self.columns.iter().zip(self.positions).all(|(column, position)| column.len() == position)
    }
}
