//! A recording: what is kept of a trace.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::{Histogram, Operation, Protocol};
use serde::{Deserialize, Serialize};

use crate::{Node, Operations};

/// A recording: the shape of a folder and the operations on it, without names and contents. Its serde form is the header of the
/// stored file, which has the tree and the operations as columns of their own: see [`Recording::to_bytes`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Origin of the trace.
    pub source: Source,
    /// Protocol of the mount on which it was recorded; `None` if unknown (imported traces).
    pub recorded_on: Option<Protocol>,
    /// The tree. The first node is the recorded folder.
    #[serde(skip)]
    pub nodes: Vec<Node>,
    /// The operations, in the order in which they began.
    #[serde(skip)]
    pub operations: Operations,
    /// Mean of all pauses of one class, in nanoseconds, by the number of the class, so that pauses add up to the recorded
    /// time although each is kept only to a factor of two.
    pub mean_pauses: Vec<u64>,
    /// Mean of the sizes of all files of one class, in bytes, by the number of the class.
    pub mean_sizes: Vec<u64>,
    /// Times on the mount where it was recorded; `None` if the trace has no durations.
    pub times: Option<RecordedTimes>,
    /// Count of what was used of the trace, and of what was not.
    pub account: Account,
}

/// Origin of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// strace of a program.
    Strace,
    /// A pass-through file system in front of a share.
    PassThrough,
    /// `fs_usage -w -f filesys` of macOS.
    FsUsage,
    /// `eslogger` of macOS, JSON.
    Eslogger,
    /// `vfs_full_audit` of Samba.
    SambaAudit,
    /// Transfer log of a Synology NAS.
    Synology,
    /// Connection log of a QNAP NAS.
    Qnap,
}

/// Times of a recording on the mount where it was made. Predictions are compared with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedTimes {
    /// From the beginning of the first operation to the end of the last.
    pub total: Duration,
    /// Part of it in which at least one operation was in progress.
    pub waiting: Duration,
    /// Durations by kind of operation.
    pub by_operation: BTreeMap<Operation, Histogram>,
}

/// Count of what was used of a trace, and of what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// Number of lines or records that were read.
    pub lines: u64,
    /// Number of operations that were understood and lie in the recorded folder.
    pub used: u64,
    /// Number of operations outside the recorded folder.
    pub outside: u64,
    /// Number of openings that the trace does not have and that were added, because a program had the file open before the
    /// trace began.
    #[serde(default)]
    pub added_openings: u64,
    /// Number of operations that were left out because the recording was full, or had too many names
    /// ([`MAX_NODES`](crate::MAX_NODES)), or because their path had ([`MAX_DEPTH`](crate::MAX_DEPTH)).
    #[serde(default)]
    pub over_limit: u64,
    /// Number of operations that were left out because the trace does not show the opening or the path of their file.
    pub unknown_handles: u64,
    /// Number of lines that were not understood: truncated or damaged.
    pub damaged: u64,
    /// Number of events whose time is before that of an earlier event of the same thread.
    pub time_went_back: u64,
    /// File operations of unknown kind, the most frequent first.
    pub unknown_calls: Vec<UnknownCall>,
}

/// File operations of one kind that longhaul does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCall {
    /// Name of the call, such as `copy_file_range`: only names that the importer knows to be system calls; all others are
    /// counted as `other`, so that a damaged trace stores no text.
    pub name: String,
    /// Number of calls.
    pub count: u64,
}

impl Account {
    /// Returns the share of file operations in the recorded folder that were understood, from 0 to 1; `None` without any.
    pub fn understood(&self) -> Option<f64> {
        let unknown = self.unknown_calls.iter().map(|call| call.count);
        let others = [self.used, self.unknown_handles, self.damaged, self.over_limit];
        let all = unknown.chain(others).fold(0, u64::saturating_add);
        (all > 0).then(|| self.used as f64 / all as f64)
    }
}
