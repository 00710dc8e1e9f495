//! Recordings: file operations of a person's own programs, without names and contents, for replay on every target.
//!
//! Nothing here touches a file system: traces come in as text, recordings as bytes, and plans go out as values.
//!
//! ```text
//! trace (text of strace, fs_usage, ...) -> import -> TraceEvent -> scrub -> Recording -> bytes of a file
//!                                                                           Recording -> ReplayPlan
//! ```

mod block;
mod compression;
mod format;
mod import;
mod operation;
mod operations;
mod overview;
pub mod plan;
mod recording;
mod scrub;
mod trace;
mod tree;

pub use format::{FormatError, MAX_FILE_BYTES, MAX_NODES, content_id};
pub use import::{
    EsloggerImporter, EventOrder, FsUsageImporter, Importer, NasLogImporter, SambaAuditImporter,
    StraceImporter, detect, import, importer,
};
pub use operation::{
    Access, Action, ActionResult, Copying, CreateMode, HandleNumber, NodeNumber, OpenMode, RecordedOperation,
};
pub use operations::{MAX_OPERATIONS, Operations};
pub use overview::{OperationCount, OperationTimes, Overview, TimesOverview, TreeOverview};
pub use plan::ReplayPlan;
pub use recording::{Account, RecordedTimes, Recording, Source, UnknownCall};
pub use scrub::Scrubber;
pub use trace::{CallTime, FoundFile, Note, TraceAction, TraceEvent, TraceSink};
pub use tree::{FileKind, InitialState, MAX_DEPTH, Node, PowerOfTwo};
