//! Rules that every recording obeys, so that a replay need not check them.

use std::collections::HashSet;

use crate::{Account, Action, HandleNumber, InitialState, MAX_DEPTH, Node, NodeNumber, Recording};

/// Number of classes of [`PowerOfTwo`](crate::PowerOfTwo).
const CLASSES: usize = 65;
/// Largest number of kinds of unknown calls, and the longest name of one.
const MAX_UNKNOWN_CALLS: usize = 64;
const MAX_CALL_NAME: usize = 32;

/// Checks a recording; an error names the part that breaks a rule.
pub(super) fn check(recording: &Recording) -> Result<(), &'static str> {
    let means = [&recording.mean_pauses, &recording.mean_sizes];
    if means.iter().any(|means| means.len() > CLASSES) || !has_known_calls(&recording.account) {
        return Err("header");
    }
    if !is_tree(&recording.nodes) {
        return Err("tree");
    }
    let mut state = References { nodes: recording.nodes.len(), threads: 0, opened: 0, open: HashSet::new() };
    let mut operations = recording.operations.iter();
    let valid = operations.all(|operation| state.thread(operation.thread) && state.action(operation.action));
    if valid { Ok(()) } else { Err("list of operations") }
}

fn has_known_calls(account: &Account) -> bool {
    let is_name = |name: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        name.len() <= MAX_CALL_NAME && name.bytes().all(known)
    };
    let calls = &account.unknown_calls;
    calls.len() <= MAX_UNKNOWN_CALLS && calls.iter().all(|call| is_name(&call.name))
}

fn is_tree(nodes: &[Node]) -> bool {
    let is_root = |node: &Node| node.parent == NodeNumber(0) && node.initial == InitialState::Folder;
    let stands_after_parent = |(index, node): (usize, &Node)| (node.parent.0 as usize) < index;
    nodes.first().is_some_and(is_root)
        && nodes.iter().enumerate().skip(1).all(stands_after_parent)
        && !is_too_deep(nodes)
}

/// Tells whether a path has more than [`MAX_DEPTH`] names.
fn is_too_deep(nodes: &[Node]) -> bool {
    let mut depths: Vec<u8> = Vec::with_capacity(nodes.len());
    for node in nodes {
        // The first node contains itself, and is not in the list yet.
        let depth = depths.get(node.parent.0 as usize).map_or(0, |above| above + 1);
        if depth > MAX_DEPTH {
            return true;
        }
        depths.push(depth);
    }
    false
}

/// Nodes, threads and handles that operations may refer to at one moment of a recording.
struct References {
    nodes: usize,
    threads: u32,
    opened: u32,
    open: HashSet<HandleNumber>,
}

impl References {
    fn thread(&mut self, thread: u32) -> bool {
        self.threads = self.threads.max(thread.saturating_add(1).min(self.threads + 1));
        thread < self.threads
    }

    fn action(&mut self, action: Action) -> bool {
        match action {
            Action::Open { node, handle, .. } => self.has(node) && handle.is_none_or(|it| self.opens(it)),
            Action::Close { handle } => self.open.remove(&handle),
            _ => {
                let (nodes, handles) = action.operands();
                nodes.into_iter().flatten().all(|node| self.has(node))
                    && handles.into_iter().flatten().all(|handle| self.open.contains(&handle))
            }
        }
    }

    fn has(&self, node: NodeNumber) -> bool {
        (node.0 as usize) < self.nodes
    }

    fn opens(&mut self, handle: HandleNumber) -> bool {
        let is_next = handle.0 == self.opened;
        self.opened = self.opened.saturating_add(1);
        is_next && self.open.insert(handle)
    }
}
