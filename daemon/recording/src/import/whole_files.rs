//! Operations for logs that show files, not calls: a file is read or written as a whole.

use crate::trace::Direction;
use crate::{Access, ActionResult, CallTime, CreateMode, OpenMode, TraceAction, TraceEvent, TraceSink};

/// Length of each read and write.
const PIECE: u64 = 1 << 20;
/// Largest part of a file that is read or written, in bytes.
const MAX_BYTES: u64 = 1 << 36;

/// Largest number of open files that an importer keeps. A log without the ends of openings would fill the memory; when it is
/// reached, all are closed.
pub(super) const MAX_OPEN: usize = 1 << 16;

/// Mode of a plain opening.
pub(super) const fn open_mode(access: Access) -> OpenMode {
    OpenMode { access, create: CreateMode::Never, truncate: false, folder: false }
}

impl CallTime {
    /// Emits an operation that was done.
    pub(super) fn emit(self, sink: &mut dyn TraceSink, action: TraceAction<'_>) {
        self.emit_result(sink, action, ActionResult::Done);
    }

    /// Emits an operation.
    pub(super) fn emit_result(self, sink: &mut dyn TraceSink, action: TraceAction<'_>, result: ActionResult) {
        sink.event(&TraceEvent { time: self, action, result, depth_in_open_folder: None });
    }

    /// Emits the end of openings.
    pub(super) fn close_all(self, sink: &mut dyn TraceSink, mut handles: Vec<u64>) {
        handles.sort_unstable();
        handles.into_iter().for_each(|handle| self.emit(sink, TraceAction::Close { handle }));
    }

    /// Emits the transfers of a whole file.
    pub(super) fn transfer(self, sink: &mut dyn TraceSink, file: WholeFile) {
        let WholeFile { handle, direction, size } = file;
        let size = size.min(MAX_BYTES);
        for start in (0..size).step_by(PIECE as usize) {
            let length = PIECE.min(size - start);
            let offset = Some(start);
            let action = match direction {
                Direction::Read => TraceAction::Read { handle, offset, length, read: length },
                Direction::Write => TraceAction::Write { handle, offset, length },
            };
            self.emit(sink, action);
        }
    }
}

/// An open file that is transferred from its beginning to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeFile {
    pub(super) handle: u64,
    pub(super) direction: Direction,
    pub(super) size: u64,
}
