//! Scrubbing: events of a trace, with real names, become a recording without any.
//!
//! The initial state of the folder is derived as by TBBT (Zhu and others, FAST 2005): what is found without having been created
//! existed before, what is looked for and not found did not, and a file had at least what is read of it.

mod kinds;
mod means;
mod names;
mod times;
mod tree;

use std::collections::{HashMap, HashSet};
use std::fmt;

use longhaul_model::Protocol;

use crate::trace::Direction;
use crate::{
    Account, Action, ActionResult, Copying, CreateMode, FoundFile, HandleNumber, NodeNumber, Note, OpenMode,
    Operations, PowerOfTwo, RecordedOperation, Recording, Source, TraceAction, TraceEvent, TraceSink,
    UnknownCall,
};
use means::ClassMeans;
use names::Component;
use times::TraceClock;
use tree::{FileNumber, Sort, Tree};

/// An open file of the recorded folder.
#[derive(Clone, Copy)]
struct OpenFile {
    number: HandleNumber,
    file: FileNumber,
    /// End of the last transfer; `None` before the first one.
    end: Option<u64>,
    /// Number of names that were listed since it was opened.
    listed: u64,
}

/// An event that is left out, with the reason.
enum Omission {
    Outside,
    UnknownHandle,
    OverLimit,
    /// It moves something into the recorded folder, or out of it.
    Crosses,
}

/// Makes a recording of the events of a trace, one after the other, in the order in which they began.
pub struct Scrubber {
    folder: Vec<u8>,
    tree: Tree,
    clock: TraceClock,
    open: HashMap<u64, OpenFile>,
    open_outside: HashSet<u64>,
    opened: u32,
    operations: Operations,
    account: Account,
    unknown: HashMap<&'static str, u64>,
}

impl fmt::Debug for Scrubber {
    /// Shows counts only: what else it holds comes from names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scrubber").field("operations", &self.operations.len()).finish_non_exhaustive()
    }
}

impl Scrubber {
    /// Creates a scrubber. Only operations in `folder`, an absolute path, are kept.
    pub fn new(folder: &[u8]) -> Self {
        let end = folder.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        Self {
            folder: folder[..end].to_vec(),
            tree: Tree::new(),
            clock: TraceClock::default(),
            open: HashMap::new(),
            open_outside: HashSet::new(),
            opened: 0,
            operations: Operations::default(),
            account: Account::default(),
            unknown: HashMap::new(),
        }
    }

    /// Returns the recording. All names end here.
    pub fn finish(mut self, source: Source, recorded_on: Option<Protocol>) -> Recording {
        let mut sizes = ClassMeans::default();
        let mut calls: Vec<_> = self.unknown.iter().map(|(name, count)| (*count, *name)).collect();
        calls.sort_unstable_by_key(|(count, name)| (std::cmp::Reverse(*count), *name));
        let call = |(count, name): (u64, &str)| UnknownCall { name: name.to_owned(), count };
        self.account.unknown_calls = calls.into_iter().map(call).collect();
        Recording {
            source,
            recorded_on,
            nodes: self.tree.initial(&mut sizes),
            operations: self.operations,
            mean_pauses: self.clock.mean_pauses(),
            mean_sizes: sizes.means(),
            times: self.clock.recorded(),
            account: self.account,
        }
    }

    /// Returns the components of a path below the recorded folder.
    fn inside(&self, path: &[u8]) -> Option<Vec<Component>> {
        let rest = path.strip_prefix(self.folder.as_slice())?;
        (rest.is_empty() || rest.starts_with(b"/")).then(|| self.tree.names.components(rest))
    }

    fn apply(&mut self, event: &TraceEvent<'_>) -> Result<Action, Omission> {
        let done = event.result == ActionResult::Done;
        match event.action {
            TraceAction::Open { path, mode, handle } => self.open(path, mode, handle, event.result),
            TraceAction::Close { handle } => self.close(handle),
            TraceAction::List { handle, entries } => self.list(handle, entries),
            TraceAction::Read { handle, offset, length, read } => {
                let open = self.handle(handle)?;
                let offset = offset.or(open.end).unwrap_or(0);
                // A read of nothing is behind the end of the file.
                if done && read > 0 {
                    self.transfer(handle, offset.saturating_add(read), Direction::Read);
                }
                Ok(Action::Read { handle: open.number, offset, length, read })
            }
            TraceAction::Write { handle, offset, length } => {
                let open = self.handle(handle)?;
                let offset = offset.or(open.end).unwrap_or_else(|| self.tree.size(open.file));
                if done {
                    self.transfer(handle, offset.saturating_add(length), Direction::Write);
                }
                Ok(Action::Write { handle: open.number, offset, length })
            }
            TraceAction::Copy { .. } => self.copy(event),
            TraceAction::Sync { handle } => Ok(Action::Sync { handle: self.handle(handle)?.number }),
            TraceAction::Lock { handle } => Ok(Action::Lock { handle: self.handle(handle)?.number }),
            TraceAction::SetHandleAttributes { handle } => {
                Ok(Action::SetHandleAttributes { handle: self.handle(handle)?.number })
            }
            TraceAction::HandleAttributes { handle, found } => {
                let open = self.handle(handle)?;
                self.found(open.file, found);
                Ok(Action::HandleAttributes { handle: open.number })
            }
            TraceAction::Rename { from, to } => self.rename(from, to, event.result),
            TraceAction::HardLink { from, to } => self.hard_link(from, to, event.result),
            _ => self.path_action(event),
        }
    }

    /// Handles a copy as a read and a write. If only one of the two files is in the recorded folder, only that one counts.
    fn copy(&mut self, event: &TraceEvent<'_>) -> Result<Action, Omission> {
        let TraceAction::Copy { from, to, read_at, write_at, length } = event.action else {
            return Err(Omission::UnknownHandle);
        };
        let read = TraceAction::Read { handle: from, offset: read_at, length, read: length };
        let write = TraceAction::Write { handle: to, offset: write_at, length };
        let read = self.apply(&TraceEvent { action: read, ..event.clone() });
        let write = self.apply(&TraceEvent { action: write, ..event.clone() });
        match (read, write) {
            (
                Ok(Action::Read { handle: from, offset: read_at, .. }),
                Ok(Action::Write { handle: to, offset: write_at, .. }),
            ) => Ok(Action::Copy(Copying { from, to, read_at, write_at, length })),
            (Ok(one), _) | (_, Ok(one)) if event.result == ActionResult::Done => Ok(one),
            (Err(omission), _) | (_, Err(omission)) => Err(omission),
            (Ok(_), Ok(_)) => Err(Omission::UnknownHandle),
        }
    }

    /// Handles the actions on one path.
    fn path_action(&mut self, event: &TraceEvent<'_>) -> Result<Action, Omission> {
        let path = single_path(&event.action).ok_or(Omission::UnknownHandle)?;
        let path = self.inside(path).ok_or(Omission::Outside)?;
        let node = self.tree.node(&path).ok_or(Omission::OverLimit)?;
        match event.result {
            ActionResult::Done => self.path_done(&event.action, &path),
            ActionResult::NotFound => self.tree.absent(&path),
            ActionResult::Exists => drop(self.tree.find(&path, Sort::Unknown)),
            ActionResult::Failed => {}
        }
        Ok(action_on(&event.action, node))
    }

    fn path_done(&mut self, action: &TraceAction<'_>, path: &[Component]) {
        match *action {
            TraceAction::SymbolicLink { .. } => drop(self.tree.create(path, Sort::Link)),
            TraceAction::CreateFolder { .. } => drop(self.tree.create(path, Sort::Folder)),
            TraceAction::Remove { .. } => drop(self.tree.remove(path, Sort::Unknown)),
            TraceAction::RemoveFolder { .. } => drop(self.tree.remove(path, Sort::Folder)),
            TraceAction::ReadLink { .. } => drop(self.tree.find(path, Sort::Link)),
            TraceAction::SetLength { length, .. } => {
                if let Some(file) = self.tree.find(path, Sort::File) {
                    self.tree.set_length(file, length);
                }
            }
            TraceAction::Attributes { found, .. } | TraceAction::AttributesButAccessTime { found, .. } => {
                let sort = if found == Some(FoundFile::Link) { Sort::Link } else { Sort::Unknown };
                if let Some(file) = self.tree.find(path, sort) {
                    self.found(file, found);
                }
            }
            _ => drop(self.tree.find(path, Sort::Unknown)),
        }
    }

    fn found(&mut self, file: FileNumber, found: Option<FoundFile>) {
        match found {
            Some(FoundFile::File(size)) => {
                self.tree.set_sort(file, Sort::File);
                self.tree.seen_size(file, size);
            }
            Some(FoundFile::Folder) => self.tree.set_sort(file, Sort::Folder),
            Some(FoundFile::Link) => self.tree.set_sort(file, Sort::Link),
            None => {}
        }
    }

    fn open(
        &mut self,
        path: &[u8],
        mode: OpenMode,
        handle: Option<u64>,
        result: ActionResult,
    ) -> Result<Action, Omission> {
        let Some(path) = self.inside(path) else {
            self.open_outside.extend(handle);
            return Err(Omission::Outside);
        };
        let node = self.tree.node(&path).ok_or(Omission::OverLimit)?;
        match result {
            ActionResult::NotFound => self.tree.absent(&path),
            ActionResult::Exists => drop(self.tree.find(&path, Sort::Unknown)),
            ActionResult::Done | ActionResult::Failed => {}
        }
        let handle = match (result, handle) {
            (ActionResult::Done, Some(handle)) => Some(self.opened(&path, mode, handle)?),
            _ => None,
        };
        Ok(Action::Open { node, mode, handle })
    }

    fn opened(&mut self, path: &[Component], mode: OpenMode, handle: u64) -> Result<HandleNumber, Omission> {
        let sort = if mode.folder { Sort::Folder } else { Sort::Unknown };
        let file = match mode.create {
            CreateMode::Never => self.tree.find(path, sort),
            CreateMode::IfAbsent => self.tree.open_or_create(path),
            CreateMode::Exclusive => Some(self.tree.create(path, Sort::File)),
        };
        let file = file.ok_or(Omission::OverLimit)?;
        if mode.truncate {
            self.tree.set_length(file, 0);
        }
        let number = HandleNumber(self.opened);
        self.opened += 1;
        self.open.insert(handle, OpenFile { number, file, end: None, listed: 0 });
        Ok(number)
    }

    fn close(&mut self, handle: u64) -> Result<Action, Omission> {
        if self.open_outside.remove(&handle) {
            return Err(Omission::Outside);
        }
        let open = self.open.remove(&handle).ok_or(Omission::UnknownHandle)?;
        Ok(Action::Close { handle: open.number })
    }

    fn list(&mut self, handle: u64, entries: Option<u64>) -> Result<Action, Omission> {
        let OpenFile { number, file, .. } = self.handle(handle)?;
        if let Some(open) = self.open.get_mut(&handle) {
            // The end of a listing is an empty batch; a program may list again afterwards.
            open.listed =
                if entries == Some(0) { 0 } else { open.listed.saturating_add(entries.unwrap_or(0)) };
            self.tree.listed(file, open.listed);
        }
        Ok(Action::List { handle: number })
    }

    fn transfer(&mut self, handle: u64, end: u64, direction: Direction) {
        let Some(open) = self.open.get_mut(&handle) else { return };
        open.end = Some(end);
        match direction {
            Direction::Read => self.tree.seen_size(open.file, end),
            Direction::Write => self.tree.written(open.file, end),
        }
    }

    fn handle(&self, handle: u64) -> Result<OpenFile, Omission> {
        match self.open.get(&handle) {
            Some(open) => Ok(*open),
            None if self.open_outside.contains(&handle) => Err(Omission::Outside),
            None => Err(Omission::UnknownHandle),
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8], result: ActionResult) -> Result<Action, Omission> {
        let done = result == ActionResult::Done;
        match (self.inside(from), self.inside(to)) {
            (None, None) => Err(Omission::Outside),
            (Some(from), Some(to)) => {
                let numbers = self.pair(&from, &to)?;
                if done && let Some(file) = self.tree.remove(&from, Sort::Unknown) {
                    self.tree.put(&to, file);
                }
                Ok(Action::Rename { from: numbers.from, to: numbers.to })
            }
            (Some(from), None) => {
                let _ = done.then(|| self.tree.remove(&from, Sort::Unknown));
                Err(Omission::Crosses)
            }
            (None, Some(to)) => {
                let _ = done.then(|| self.tree.create(&to, Sort::Unknown));
                Err(Omission::Crosses)
            }
        }
    }

    fn hard_link(&mut self, from: &[u8], to: &[u8], result: ActionResult) -> Result<Action, Omission> {
        let (from, to) = match (self.inside(from), self.inside(to)) {
            (None, None) => return Err(Omission::Outside),
            (Some(from), Some(to)) => (from, to),
            _ => return Err(Omission::Crosses),
        };
        let numbers = self.pair(&from, &to)?;
        if result == ActionResult::Done
            && let Some(file) = self.tree.find(&from, Sort::Unknown)
        {
            self.tree.put(&to, file);
        }
        Ok(Action::HardLink { from: numbers.from, to: numbers.to })
    }

    fn pair(&mut self, from: &[Component], to: &[Component]) -> Result<PairOfNodes, Omission> {
        let from = self.tree.node(from).ok_or(Omission::OverLimit)?;
        Ok(PairOfNodes { from, to: self.tree.node(to).ok_or(Omission::OverLimit)? })
    }

    fn leave_out(&mut self, reason: Omission) {
        match reason {
            Omission::Outside => self.account.outside += 1,
            Omission::UnknownHandle => self.account.unknown_handles += 1,
            Omission::OverLimit => self.account.over_limit += 1,
            Omission::Crosses => *self.unknown.entry("move_across_the_folder").or_default() += 1,
        }
    }
}

struct PairOfNodes {
    from: NodeNumber,
    to: NodeNumber,
}

impl TraceSink for Scrubber {
    fn event(&mut self, event: &TraceEvent<'_>) {
        if self.operations.is_full() {
            return self.leave_out(Omission::OverLimit);
        }
        match self.apply(event) {
            Err(reason) => {
                self.clock.pass_over(event.time);
                self.leave_out(reason);
            }
            Ok(action) => {
                let operation = RecordedOperation {
                    thread: 0,
                    pause: PowerOfTwo::default(),
                    action,
                    result: event.result,
                    depth_in_open_folder: event.depth_in_open_folder,
                };
                let placed = self.clock.add(event.time, operation.kind());
                self.account.time_went_back += u64::from(placed.went_back);
                self.account.used += 1;
                self.operations.push(RecordedOperation {
                    thread: placed.thread,
                    pause: placed.pause,
                    ..operation
                });
            }
        }
    }

    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::Line => self.account.lines += 1,
            Note::Damaged => self.account.damaged += 1,
            Note::UnknownHandle => self.account.unknown_handles += 1,
            Note::AddedOpening { path } => {
                self.account.added_openings += u64::from(self.inside(path).is_some());
            }
            Note::UnknownCall { name, path } => match path.map(|path| self.inside(path).is_some()) {
                Some(false) => self.account.outside += 1,
                _ => *self.unknown.entry(name).or_default() += 1,
            },
        }
    }
}

fn single_path<'trace>(action: &TraceAction<'trace>) -> Option<&'trace [u8]> {
    match *action {
        TraceAction::Attributes { path, .. }
        | TraceAction::AttributesButAccessTime { path, .. }
        | TraceAction::SetAttributes { path }
        | TraceAction::SetLength { path, .. }
        | TraceAction::ReadExtendedAttribute { path }
        | TraceAction::WriteExtendedAttribute { path, .. }
        | TraceAction::SymbolicLink { path }
        | TraceAction::ReadLink { path }
        | TraceAction::Remove { path }
        | TraceAction::CreateFolder { path }
        | TraceAction::RemoveFolder { path }
        | TraceAction::FreeSpace { path } => Some(path),
        _ => None,
    }
}

fn action_on(action: &TraceAction<'_>, node: NodeNumber) -> Action {
    match *action {
        TraceAction::AttributesButAccessTime { .. } => Action::AttributesButAccessTime { node },
        TraceAction::SetAttributes { .. } => Action::SetAttributes { node },
        TraceAction::SetLength { length, .. } => Action::SetLength { node, length },
        TraceAction::ReadExtendedAttribute { .. } => Action::ReadExtendedAttribute { node },
        TraceAction::WriteExtendedAttribute { length, .. } => {
            Action::WriteExtendedAttribute { node, length: PowerOfTwo::of(length) }
        }
        TraceAction::SymbolicLink { .. } => Action::SymbolicLink { node },
        TraceAction::ReadLink { .. } => Action::ReadLink { node },
        TraceAction::Remove { .. } => Action::Remove { node },
        TraceAction::CreateFolder { .. } => Action::CreateFolder { node },
        TraceAction::RemoveFolder { .. } => Action::RemoveFolder { node },
        TraceAction::FreeSpace { .. } => Action::FreeSpace { node },
        // `single_path` has let no other action through.
        _ => Action::Attributes { node },
    }
}

#[cfg(test)]
mod tests;
