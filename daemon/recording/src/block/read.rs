//! Columns to operations: the mirror image of the writer.

use std::collections::HashMap;
use std::num::NonZeroU8;

use strum::VariantArray;

use super::BLOCK_LENGTH;
use super::columns::{Column, ColumnReader, DamagedBlock};
use super::write::{IN_OPEN_FOLDER, RESULTS};
use crate::{
    Access, Action, ActionResult, Copying, CreateMode, HandleNumber, NodeNumber, OpenMode, PowerOfTwo,
    RecordedOperation,
};

/// Returns the operations of a block.
///
/// # Errors
///
/// [`DamagedBlock`] for any bytes that `encode` does not make.
pub(crate) fn decode(mut bytes: &[u8]) -> Result<Vec<RecordedOperation>, DamagedBlock> {
    let count = longhaul_model::varint::take(&mut bytes).ok_or(DamagedBlock)?;
    if count > BLOCK_LENGTH as u64 {
        return Err(DamagedBlock);
    }
    let columns = ColumnReader::open(&mut bytes)?;
    let mut reader = BlockReader { columns, node: 0, next_handle: 0, ends: HashMap::new() };
    let operations = (0..count).map(|_| reader.operation()).collect::<Result<Vec<_>, _>>()?;
    if bytes.is_empty() && reader.columns.at_end() { Ok(operations) } else { Err(DamagedBlock) }
}

/// Columns, and the values from which the next ones differ.
struct BlockReader {
    columns: ColumnReader,
    node: u32,
    next_handle: u32,
    ends: HashMap<u32, u64>,
}

impl BlockReader {
    fn operation(&mut self) -> Result<RecordedOperation, DamagedBlock> {
        let kind = self.columns.take(Column::Kind)?;
        let thread = self.columns.take_u32(Column::Thread)?;
        let pause = self.class(Column::Pause)?;
        let (result, kind) = (ActionResult::VARIANTS[(kind % RESULTS) as usize], kind / RESULTS);
        let (kind, depth_in_open_folder) = match kind.checked_sub(IN_OPEN_FOLDER) {
            Some(kind) => (kind, Some(self.depth()?)),
            None => (kind, None),
        };
        let action = self.action(kind)?;
        Ok(RecordedOperation { thread, pause, action, result, depth_in_open_folder })
    }

    fn depth(&mut self) -> Result<NonZeroU8, DamagedBlock> {
        NonZeroU8::new(self.columns.take_u8(Column::Mode)?).ok_or(DamagedBlock)
    }

    fn action(&mut self, kind: u64) -> Result<Action, DamagedBlock> {
        Ok(match kind {
            0 => self.open()?,
            1 => Action::Close { handle: self.handle()? },
            2 => Action::List { handle: self.handle()? },
            3 => self.read()?,
            4 => self.write()?,
            5 => Action::Sync { handle: self.handle()? },
            6 => Action::Attributes { node: self.node()? },
            22 => Action::AttributesButAccessTime { node: self.node()? },
            7 => Action::HandleAttributes { handle: self.handle()? },
            23 => Action::SetHandleAttributes { handle: self.handle()? },
            8 => Action::SetAttributes { node: self.node()? },
            9 => Action::SetLength { node: self.node()?, length: self.columns.take(Column::Length)? },
            10 => Action::ReadExtendedAttribute { node: self.node()? },
            11 => Action::WriteExtendedAttribute { node: self.node()?, length: self.class(Column::Length)? },
            12 => Action::Lock { handle: self.handle()? },
            13 => Action::Rename { from: self.node()?, to: self.node()? },
            14 => Action::HardLink { from: self.node()?, to: self.node()? },
            15 => Action::SymbolicLink { node: self.node()? },
            16 => Action::ReadLink { node: self.node()? },
            17 => Action::Remove { node: self.node()? },
            18 => Action::CreateFolder { node: self.node()? },
            19 => Action::RemoveFolder { node: self.node()? },
            20 => Action::FreeSpace { node: self.node()? },
            21 => self.copy()?,
            _ => return Err(DamagedBlock),
        })
    }

    fn open(&mut self) -> Result<Action, DamagedBlock> {
        let node = self.node()?;
        let bits = self.columns.take_u8(Column::Mode)?;
        let mode = mode_of_number(bits)?;
        let handle = if bits & 1 == 1 { Some(self.new_handle()?) } else { None };
        Ok(Action::Open { node, mode, handle })
    }

    fn new_handle(&mut self) -> Result<HandleNumber, DamagedBlock> {
        let difference = self.columns.take_signed(Column::Handle)?;
        let handle = number_near(self.next_handle, difference)?;
        self.next_handle = handle.wrapping_add(1);
        Ok(HandleNumber(handle))
    }

    fn read(&mut self) -> Result<Action, DamagedBlock> {
        let handle = self.handle()?;
        let offset_difference = self.columns.take_signed(Column::Offset)?;
        let length = self.columns.take(Column::Length)?;
        let read = length.wrapping_sub(self.columns.take_signed(Column::Length)? as u64);
        Ok(Action::Read { handle, offset: self.offset(handle, offset_difference, read), length, read })
    }

    fn write(&mut self) -> Result<Action, DamagedBlock> {
        let handle = self.handle()?;
        let offset_difference = self.columns.take_signed(Column::Offset)?;
        let length = self.columns.take(Column::Length)?;
        Ok(Action::Write { handle, offset: self.offset(handle, offset_difference, length), length })
    }

    fn copy(&mut self) -> Result<Action, DamagedBlock> {
        let (from, read_difference) = (self.handle()?, self.columns.take_signed(Column::Offset)?);
        let (to, write_difference) = (self.handle()?, self.columns.take_signed(Column::Offset)?);
        let length = self.columns.take(Column::Length)?;
        let read_at = self.offset(from, read_difference, length);
        let write_at = self.offset(to, write_difference, length);
        Ok(Action::Copy(Copying { from, to, read_at, write_at, length }))
    }

    fn offset(&mut self, handle: HandleNumber, difference: i64, moved: u64) -> u64 {
        let end = self.ends.entry(handle.0).or_insert(0);
        let offset = end.wrapping_add(difference as u64);
        *end = offset.wrapping_add(moved);
        offset
    }

    fn node(&mut self) -> Result<NodeNumber, DamagedBlock> {
        let difference = self.columns.take_signed(Column::Node)?;
        self.node = number_near(self.node, difference)?;
        Ok(NodeNumber(self.node))
    }

    fn handle(&mut self) -> Result<HandleNumber, DamagedBlock> {
        let difference = self.columns.take_signed(Column::Handle)?;
        number_near(self.next_handle, difference.checked_neg().ok_or(DamagedBlock)?).map(HandleNumber)
    }

    fn class(&mut self, column: Column) -> Result<PowerOfTwo, DamagedBlock> {
        PowerOfTwo::from_number(self.columns.take_u8(column)?).ok_or(DamagedBlock)
    }
}

fn number_near(base: u32, difference: i64) -> Result<u32, DamagedBlock> {
    let number = i64::from(base).checked_add(difference).ok_or(DamagedBlock)?;
    u32::try_from(number).map_err(|_| DamagedBlock)
}

fn mode_of_number(bits: u8) -> Result<OpenMode, DamagedBlock> {
    let access = *Access::VARIANTS.get(usize::from(bits >> 5)).ok_or(DamagedBlock)?;
    let create = *CreateMode::VARIANTS.get(usize::from(bits >> 3 & 3)).ok_or(DamagedBlock)?;
    Ok(OpenMode { access, create, truncate: bits & 4 != 0, folder: bits & 2 != 0 })
}
