//! The plans of operations that were refused, or that failed for an unknown reason.

use super::action::{FileNumber, Opening, PlannedAction, Slot};
use super::tree_state::{NameState, TreeState};
use crate::{Access, Action, ActionResult, CreateMode, NodeNumber, RecordedOperation};

/// Work of one step, as planned.
pub struct Planned {
    pub action: PlannedAction,
    pub expected: ActionResult,
}

/// Plans an operation that was refused because a name exists or does not.
pub fn refused(tree: &TreeState<'_>, operation: &RecordedOperation) -> Option<Planned> {
    use PlannedAction as P;
    if operation.result == ActionResult::Exists {
        return name_in_use(tree, operation.action);
    }
    let (node, action) = match operation.action {
        Action::AttributesButAccessTime { node } => (node, P::AttributesButAccessTime { node }),
        Action::Attributes { node } | Action::ReadLink { node } | Action::SetAttributes { node } => {
            (node, P::Attributes { node })
        }
        Action::ReadExtendedAttribute { node } => return Some(missing_attribute(tree, node)),
        Action::Remove { node } => (node, P::Remove { node }),
        Action::RemoveFolder { node } => (node, P::RemoveFolder { node }),
        Action::Rename { from, .. } | Action::HardLink { from, .. } => (from, P::Attributes { node: from }),
        Action::Open { node, mode, .. } if mode.create == CreateMode::Never => (node, absent_opening(node)),
        Action::Open { node, .. } | Action::CreateFolder { node } => (node, P::Attributes { node }),
        _ => return None,
    };
    let is_absent = tree.state(node) == NameState::Absent;
    is_absent.then_some(Planned { action, expected: ActionResult::NotFound })
}

/// Plans an operation that was refused because its name was in use.
fn name_in_use(tree: &TreeState<'_>, action: Action) -> Option<Planned> {
    use PlannedAction as P;
    let is_there = |node: NodeNumber| node.0 > 0 && tree.state(node) != NameState::Absent;
    let (node, action, expected) = match action {
        Action::CreateFolder { node } => (node, P::CreateFolder { node }, ActionResult::Exists),
        // `mv` first asks not to replace anything. Where the first name is gone, the answer would be another one.
        Action::Rename { from, to } if is_there(from) => {
            (to, P::RenameToNew { from, to }, ActionResult::Exists)
        }
        Action::Open { node, .. } | Action::SymbolicLink { node } | Action::HardLink { to: node, .. } => {
            (node, P::Attributes { node }, ActionResult::Done)
        }
        _ => return None,
    };
    is_there(node).then_some(Planned { action, expected })
}

/// Plans a read of an extended attribute that does not exist; the name may exist.
pub fn missing_attribute(tree: &TreeState<'_>, node: NodeNumber) -> Planned {
    let is_there = tree.state(node) != NameState::Absent;
    let expected = if is_there { ActionResult::Done } else { ActionResult::NotFound };
    Planned { action: PlannedAction::ExtendedAttribute { node }, expected }
}

fn absent_opening(node: NodeNumber) -> PlannedAction {
    PlannedAction::OpenFile(Opening {
        node,
        slot: Slot(0),
        file: FileNumber(0),
        access: Access::Read,
        creates: false,
        truncates: false,
    })
}

/// Plans a question for attributes instead of an operation that failed for an unknown reason: it changed nothing, but asked
/// the server.
pub fn instead(tree: &TreeState<'_>, action: Action) -> Option<Planned> {
    if matches!(action, Action::Copy(_)) {
        return None;
    }
    let ([node, _], [handle, _]) = action.operands();
    if let Some(handle) = handle {
        let slot = tree.handle(handle)?.slot;
        let action = PlannedAction::SlotAttributes { slot };
        return Some(Planned { action, expected: ActionResult::Done });
    }
    let node = node?;
    let is_absent = tree.state(node) == NameState::Absent;
    let expected = if is_absent { ActionResult::NotFound } else { ActionResult::Done };
    Some(Planned { action: PlannedAction::Attributes { node }, expected })
}
