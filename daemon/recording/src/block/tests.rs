use std::num::NonZeroU8;

use proptest::prelude::*;

use super::{BLOCK_LENGTH, decode, encode};
use crate::{
    Access, Action, ActionResult, Copying, CreateMode, HandleNumber, NodeNumber, OpenMode, Operations,
    PowerOfTwo, RecordedOperation,
};

fn action() -> impl Strategy<Value = Action> {
    let node = || any::<u32>().prop_map(NodeNumber);
    let handle = || any::<u32>().prop_map(HandleNumber);
    let length = || prop_oneof![0..1_000_000u64, any::<u64>()];
    let class = (0..=64u8).prop_map(|number| PowerOfTwo::from_number(number).unwrap());
    let pair = || (node(), node());
    prop_oneof![
        (node(), mode(), proptest::option::of(handle())).prop_map(|(node, mode, handle)| Action::Open {
            node,
            mode,
            handle
        }),
        handle().prop_map(|handle| Action::Close { handle }),
        handle().prop_map(|handle| Action::List { handle }),
        handle().prop_map(|handle| Action::Sync { handle }),
        handle().prop_map(|handle| Action::HandleAttributes { handle }),
        handle().prop_map(|handle| Action::SetHandleAttributes { handle }),
        handle().prop_map(|handle| Action::Lock { handle }),
        (handle(), length(), length(), length()).prop_map(|(handle, offset, length, read)| Action::Read {
            handle,
            offset,
            length,
            read
        }),
        (handle(), length(), length()).prop_map(|(handle, offset, length)| Action::Write {
            handle,
            offset,
            length
        }),
        (handle(), handle(), length(), length(), length()).prop_map(
            |(from, to, read_at, write_at, length)| {
                Action::Copy(Copying { from, to, read_at, write_at, length })
            }
        ),
        (node(), length()).prop_map(|(node, length)| Action::SetLength { node, length }),
        (node(), class).prop_map(|(node, length)| Action::WriteExtendedAttribute { node, length }),
        pair().prop_map(|(from, to)| Action::Rename { from, to }),
        pair().prop_map(|(from, to)| Action::HardLink { from, to }),
        (node(), 0..10usize).prop_map(|(node, kind)| of_node(node, kind)),
    ]
}

fn of_node(node: NodeNumber, kind: usize) -> Action {
    match kind {
        0 => Action::Attributes { node },
        1 => Action::SetAttributes { node },
        2 => Action::ReadExtendedAttribute { node },
        3 => Action::SymbolicLink { node },
        4 => Action::ReadLink { node },
        5 => Action::Remove { node },
        6 => Action::CreateFolder { node },
        7 => Action::RemoveFolder { node },
        8 => Action::AttributesButAccessTime { node },
        _ => Action::FreeSpace { node },
    }
}

fn mode() -> impl Strategy<Value = OpenMode> {
    let access =
        prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::ReadWrite), Just(Access::PathOnly)];
    let create =
        prop_oneof![Just(CreateMode::Never), Just(CreateMode::IfAbsent), Just(CreateMode::Exclusive)];
    (access, create, any::<bool>(), any::<bool>()).prop_map(|(access, create, truncate, folder)| OpenMode {
        access,
        create,
        truncate,
        folder,
    })
}

fn operation() -> impl Strategy<Value = RecordedOperation> {
    let result = prop_oneof![
        Just(ActionResult::Done),
        Just(ActionResult::NotFound),
        Just(ActionResult::Exists),
        Just(ActionResult::Failed)
    ];
    let parts = (any::<u32>(), 0..=64u8, action(), result, any::<u8>());
    parts.prop_map(|(thread, pause, action, result, depth)| {
        let pause = PowerOfTwo::from_number(pause).unwrap();
        RecordedOperation { thread, pause, action, result, depth_in_open_folder: NonZeroU8::new(depth) }
    })
}

proptest! {
    #[test]
    fn block_of_any_operations_reads_back(operations in proptest::collection::vec(operation(), 0..200)) {
        prop_assert_eq!(decode(&encode(&operations)).unwrap(), operations);
    }

    #[test]
    fn any_bytes_end_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
    }
}

#[test]
fn stored_numbers_do_not_change() {
    use crate::operation::ActionKind::{FreeSpace, Lock, SetHandleAttributes};
    use {Access::*, ActionResult::*, CreateMode::*};
    assert_eq!([Lock, FreeSpace, SetHandleAttributes].map(|kind| kind as u64), [12, 20, 23]);
    assert_eq!([Done, NotFound, Exists, Failed].map(|result| result as u64), [0, 1, 2, 3]);
    assert_eq!([Read, Write, ReadWrite, PathOnly].map(|access| access as u64), [0, 1, 2, 3]);
    assert_eq!([Never, IfAbsent, Exclusive].map(|create| create as u64), [0, 1, 2]);
}

#[test]
fn truncated_block_is_damaged() {
    let action = Action::Attributes { node: NodeNumber(7) };
    let operation = RecordedOperation {
        thread: 0,
        pause: PowerOfTwo::of(5),
        action,
        result: ActionResult::Done,
        depth_in_open_folder: NonZeroU8::new(1),
    };
    let bytes = encode(&[operation; 50]);
    assert!((0..bytes.len()).all(|length| decode(&bytes[..length]).is_err()));
}

#[test]
fn operations_of_several_blocks_keep_their_order() {
    let of = |node| RecordedOperation {
        thread: node % 3,
        pause: PowerOfTwo::of(u64::from(node)),
        action: Action::Attributes { node: NodeNumber(node) },
        result: ActionResult::NotFound,
        depth_in_open_folder: NonZeroU8::new((node % 3) as u8),
    };
    let count = 2 * BLOCK_LENGTH as u32 + 5;
    let operations: Operations = (0..count).map(of).collect();
    assert_eq!(operations.len(), count as usize);
    assert!(operations.iter().eq((0..count).map(of)));
}
