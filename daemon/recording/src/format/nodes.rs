//! The tree as compressed columns: parents, kinds, initial states.

use longhaul_model::varint;
use strum::VariantArray;

use crate::compression::{compress, decompress};
use crate::{FileKind, InitialState, Node, NodeNumber, PowerOfTwo};

/// Largest number of nodes in a recording. The operations on further names are left out.
pub const MAX_NODES: u64 = 2_000_000;
/// Largest number of bytes of a node before compression: the parent takes five at most, kind and state one each.
pub(super) const MAX_NODE_BYTES: u64 = 7;

/// Number of the first state that is a file; its class is added.
const FIRST_FILE: u8 = 3;

/// Returns the stored form of a tree.
pub(super) fn encode(nodes: &[Node]) -> Vec<u8> {
    let mut columns = vec![];
    let mut previous = 0;
    for node in nodes {
        varint::put(&mut columns, varint::zigzag(i64::from(node.parent.0) - previous));
        previous = i64::from(node.parent.0);
    }
    columns.extend(nodes.iter().map(|node| node.kind as u8));
    columns.extend(nodes.iter().map(|node| state_number(node.initial)));
    let mut bytes = vec![];
    varint::put(&mut bytes, nodes.len() as u64);
    bytes.extend(compress(&columns));
    bytes
}

/// Reads the stored form; `None` if it is damaged.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<Node>> {
    let count = varint::take(&mut bytes).filter(|count| *count <= MAX_NODES)?;
    let columns = decompress(bytes, count * MAX_NODE_BYTES)?;
    let mut rest = columns.as_slice();
    let mut previous = 0i64;
    let parents: Vec<NodeNumber> = (0..count)
        .map(|_| {
            previous = previous.checked_add(varint::unzigzag(varint::take(&mut rest)?))?;
            u32::try_from(previous).ok().map(NodeNumber)
        })
        .collect::<Option<_>>()?;
    let (kinds, states) = rest.split_at_checked(parents.len())?;
    if states.len() != parents.len() {
        return None;
    }
    let node = |(parent, (kind, state)): (NodeNumber, (&u8, &u8))| {
        let kind = *FileKind::VARIANTS.get(usize::from(*kind))?;
        Some(Node { parent, kind, initial: state_of_number(*state)? })
    };
    parents.into_iter().zip(kinds.iter().zip(states)).map(node).collect()
}

fn state_number(state: InitialState) -> u8 {
    match state {
        InitialState::Absent => 0,
        InitialState::Folder => 1,
        InitialState::Link => 2,
        InitialState::File(size) => FIRST_FILE + size.number(),
    }
}

fn state_of_number(number: u8) -> Option<InitialState> {
    Some(match number {
        0 => InitialState::Absent,
        1 => InitialState::Folder,
        2 => InitialState::Link,
        size => InitialState::File(PowerOfTwo::from_number(size - FIRST_FILE)?),
    })
}
