//! Everything that is kept in a recording, in numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::{Operation, Protocol};
use serde::Serialize;

use crate::plan::LONGEST_PAUSE;
use crate::{Account, Action, ActionResult, FileKind, InitialState, Node, NodeNumber, Recording, Source};

/// Everything that is kept in a recording, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Origin of the trace.
    pub source: Source,
    /// Protocol of the mount on which it was recorded, if known.
    pub recorded_on: Option<Protocol>,
    /// The folder before the first operation.
    pub tree: TreeOverview,
    /// Operations by kind, the most frequent first.
    pub operations: Vec<OperationCount>,
    /// Number of threads.
    pub threads: u32,
    /// Number of operations whose paths were given from a folder that the program had open; `None` if there are none or the trace does
    /// not tell.
    pub from_open_folders: Option<u64>,
    /// Number of pauses of more than 2 seconds, which a replay shortens.
    pub long_pauses: u64,
    /// Sum of all pauses before operations, in seconds.
    pub pause_seconds: f64,
    /// Times on the mount where it was recorded, if the trace has them.
    pub times: Option<TimesOverview>,
    /// Account of the trace: used, left out, not understood.
    pub account: Account,
}

/// The folder before the first operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeOverview {
    /// Number of files that existed.
    pub files: u64,
    /// Number of folders that existed, the recorded one included.
    pub folders: u64,
    /// Number of symbolic links that existed.
    pub links: u64,
    /// Number of names that did not exist: created later, or only looked for.
    pub absent: u64,
    /// Number of folders between the recorded folder and the deepest name that existed.
    pub depth: u32,
    /// Largest number of names that existed in a folder.
    pub largest_folder: u64,
    /// Size of all files that existed, in bytes, to a factor of two each.
    pub bytes: u64,
    /// Names that existed, by the kind of file that their extension stands for.
    pub kinds: BTreeMap<FileKind, u64>,
}

/// Operations of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperationCount {
    /// Name of the kind.
    pub kind: &'static str,
    /// Number of operations.
    pub count: u64,
    /// Number of those that failed, among them names that were looked for and not found.
    pub failed: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
}

/// Times on the mount where a recording was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimesOverview {
    /// From the beginning of the first operation to the end of the last, in seconds.
    pub total_seconds: f64,
    /// Part of it in which at least one operation was in progress, in seconds.
    pub waiting_seconds: f64,
    /// Median and 95th percentile by kind of operation.
    pub by_operation: Vec<OperationTimes>,
}

/// Times of operations of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationTimes {
    /// Kind of operation.
    pub operation: Operation,
    /// Number of operations.
    pub count: u64,
    /// Median in seconds.
    pub p50_seconds: Option<f64>,
    /// 95th percentile in seconds.
    pub p95_seconds: Option<f64>,
}

impl Recording {
    /// Returns everything that is kept, in numbers.
    pub fn overview(&self) -> Overview {
        let mut kinds: BTreeMap<&'static str, OperationCount> = BTreeMap::new();
        let (mut threads, mut from_open_folders) = (0, 0);
        let (mut long_pauses, mut pauses) = (0, Duration::ZERO);
        for operation in self.operations.iter() {
            let (kind, bytes) = kind_and_bytes(&operation.action);
            let count = kinds.entry(kind).or_insert(OperationCount { kind, count: 0, failed: 0, bytes: 0 });
            count.count += 1;
            count.failed += u64::from(operation.result != ActionResult::Done);
            count.bytes = count.bytes.saturating_add(bytes);
            threads = threads.max(operation.thread.saturating_add(1));
            from_open_folders += u64::from(operation.depth_in_open_folder.is_some());
            let pause = self.mean_pauses.get(usize::from(operation.pause.number())).copied().unwrap_or(0);
            long_pauses += u64::from(Duration::from_nanos(pause) > LONGEST_PAUSE);
            pauses = pauses.saturating_add(Duration::from_nanos(pause));
        }
        let mut operations: Vec<OperationCount> = kinds.into_values().collect();
        operations.sort_by_key(|one| (std::cmp::Reverse(one.count), one.kind));
        Overview {
            source: self.source,
            recorded_on: self.recorded_on.clone(),
            tree: self.tree_overview(),
            operations,
            threads,
            from_open_folders: Some(from_open_folders).filter(|count| *count > 0),
            long_pauses,
            pause_seconds: pauses.as_secs_f64(),
            times: self.times.as_ref().map(TimesOverview::of),
            account: self.account.clone(),
        }
    }

    fn tree_overview(&self) -> TreeOverview {
        let count =
            |is: fn(&InitialState) -> bool| self.nodes.iter().filter(|node| is(&node.initial)).count() as u64;
        let mut kinds = BTreeMap::new();
        let mut entries: BTreeMap<NodeNumber, u64> = BTreeMap::new();
        for node in self.nodes.iter().skip(1).filter(|node| existed(node)) {
            *kinds.entry(node.kind).or_insert(0) += 1;
            *entries.entry(node.parent).or_insert(0) += 1;
        }
        TreeOverview {
            files: count(|state| matches!(state, InitialState::File(_))),
            folders: count(|state| matches!(state, InitialState::Folder)),
            links: count(|state| matches!(state, InitialState::Link)),
            absent: count(|state| matches!(state, InitialState::Absent)),
            depth: depth(&self.nodes),
            largest_folder: entries.into_values().max().unwrap_or(0),
            bytes: self.nodes.iter().map(|node| self.size(node)).fold(0, u64::saturating_add),
            kinds,
        }
    }

    /// Returns about the size of a file before the first operation.
    fn size(&self, node: &Node) -> u64 {
        let InitialState::File(class) = node.initial else { return 0 };
        self.mean_sizes.get(usize::from(class.number())).copied().unwrap_or_else(|| class.floor())
    }
}

fn existed(node: &Node) -> bool {
    node.initial != InitialState::Absent
}

/// Parents stand before their children.
fn depth(nodes: &[Node]) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
    for (number, node) in nodes.iter().enumerate() {
        let above = depths.get(node.parent.0 as usize).copied().unwrap_or(0);
        depths.push(if number == 0 { 0 } else { above + 1 });
    }
    let existing = nodes.iter().zip(depths).filter(|(node, _)| existed(node));
    existing.map(|(_, depth)| depth).max().unwrap_or(0)
}

impl TimesOverview {
    fn of(times: &crate::RecordedTimes) -> Self {
        let by_operation = times.by_operation.iter().map(|(operation, histogram)| OperationTimes {
            operation: *operation,
            count: histogram.count(),
            p50_seconds: histogram.quantile_ns(0.5).map(|ns| ns / 1e9),
            p95_seconds: histogram.quantile_ns(0.95).map(|ns| ns / 1e9),
        });
        Self {
            total_seconds: times.total.as_secs_f64(),
            waiting_seconds: times.waiting.as_secs_f64(),
            by_operation: by_operation.collect(),
        }
    }
}

fn kind_and_bytes(action: &Action) -> (&'static str, u64) {
    match *action {
        Action::Open { .. } => ("open", 0),
        Action::Close { .. } => ("close", 0),
        Action::List { .. } => ("list names", 0),
        Action::Read { read, .. } => ("read", read),
        Action::Write { length, .. } => ("write", length),
        Action::Copy(copy) => ("copy to another file", copy.length),
        Action::Sync { .. } => ("write to stable storage", 0),
        Action::Attributes { .. } | Action::AttributesButAccessTime { .. } => ("read attributes", 0),
        Action::HandleAttributes { .. } => ("read attributes of an open file", 0),
        Action::SetAttributes { .. } | Action::SetHandleAttributes { .. } => ("set attributes", 0),
        Action::SetLength { .. } => ("set the length", 0),
        Action::ReadExtendedAttribute { .. } => ("read extended attributes", 0),
        Action::WriteExtendedAttribute { length, .. } => ("write extended attributes", length.floor()),
        Action::Lock { .. } => ("lock", 0),
        Action::Rename { .. } => ("rename", 0),
        Action::HardLink { .. } => ("make a hard link", 0),
        Action::SymbolicLink { .. } => ("make a symbolic link", 0),
        Action::ReadLink { .. } => ("read a symbolic link", 0),
        Action::Remove { .. } => ("remove a file", 0),
        Action::CreateFolder { .. } => ("create a folder", 0),
        Action::RemoveFolder { .. } => ("remove a folder", 0),
        Action::FreeSpace { .. } => ("ask for free space", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, CallTime, CreateMode, OpenMode, Scrubber, TraceAction, TraceEvent, TraceSink};

    fn recording() -> Recording {
        let mut scrubber = Scrubber::new(b"/nas");
        let mode =
            OpenMode { access: Access::Read, create: CreateMode::Never, truncate: false, folder: false };
        let actions = [
            TraceAction::Open { path: b"/nas/a/photo.jpg", mode, handle: Some(1) },
            TraceAction::Read { handle: 1, offset: Some(0), length: 5000, read: 5000 },
            TraceAction::Close { handle: 1 },
        ];
        record(&mut scrubber, &actions, ActionResult::Done);
        scrubber.finish(Source::Strace, None)
    }

    fn record(scrubber: &mut Scrubber, actions: &[TraceAction<'_>], result: ActionResult) {
        for (number, action) in actions.iter().cloned().enumerate() {
            let began = Duration::from_secs(4 * number as u64);
            let took = Some(Duration::from_millis(10));
            let time = CallTime { took, ..CallTime::beginning(1, began) };
            let depth_in_open_folder = None;
            scrubber.event(&TraceEvent { time, action, result, depth_in_open_folder });
        }
    }

    #[test]
    fn names_that_did_not_exist_count_as_absent_only() {
        let mut scrubber = Scrubber::new(b"/nas");
        let look = |path: &'static [u8]| TraceAction::Attributes { path, found: None };
        record(&mut scrubber, &[look(b"/nas/a/b.jpg"), look(b"/nas/c.jpg")], ActionResult::NotFound);
        record(&mut scrubber, &[look(b"/nas/d.mov")], ActionResult::Done);
        let tree = scrubber.finish(Source::Strace, None).overview().tree;
        assert_eq!((tree.absent, tree.files, tree.largest_folder, tree.depth), (3, 1, 1, 1), "{tree:?}");
        assert_eq!(tree.kinds, BTreeMap::from([(FileKind::Video, 1)]));
    }

    #[test]
    fn overview_counts_the_tree_and_the_operations() {
        let overview = recording().overview();
        let tree = &overview.tree;
        assert_eq!((tree.files, tree.folders, tree.depth), (1, 2, 2), "{tree:?}");
        assert_eq!((tree.largest_folder, tree.kinds[&FileKind::Image]), (1, 1));
        assert!(tree.bytes >= 5000, "{}", tree.bytes);
        let read = overview.operations.iter().find(|one| one.kind == "read").unwrap();
        assert_eq!((read.count, read.failed, read.bytes), (1, 0, 5000));
        assert_eq!((overview.threads, overview.long_pauses), (1, 2));
        assert!((overview.pause_seconds - 7.98).abs() < 0.1, "{}", overview.pause_seconds);
    }
}
