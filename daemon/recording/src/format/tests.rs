use std::time::Duration;

use longhaul_model::{Histogram, Operation, Protocol};
use proptest::prelude::*;

use super::{FormatError, MAGIC, checksum};
use crate::{
    Access, Account, Action, ActionResult, CreateMode, FileKind, HandleNumber, InitialState, MAX_DEPTH, Node,
    NodeNumber, OpenMode, PowerOfTwo, RecordedOperation, RecordedTimes, Recording, Source, UnknownCall,
};

fn node(parent: u32, kind: FileKind, initial: InitialState) -> Node {
    Node { parent: NodeNumber(parent), kind, initial }
}

fn operation(action: Action) -> RecordedOperation {
    RecordedOperation {
        thread: 0,
        pause: PowerOfTwo::of(120),
        action,
        result: ActionResult::Done,
        depth_in_open_folder: None,
    }
}

fn example() -> Recording {
    let mode =
        OpenMode { access: Access::ReadWrite, create: CreateMode::IfAbsent, truncate: true, folder: false };
    let handle = HandleNumber(0);
    let operations = vec![
        operation(Action::Attributes { node: NodeNumber(2) }),
        operation(Action::Open { node: NodeNumber(2), mode, handle: Some(handle) }),
        operation(Action::Read { handle, offset: 0, length: 65536, read: 5000 }),
        operation(Action::Write { handle, offset: 5000, length: 12 }),
        operation(Action::Close { handle }),
    ];
    let mut opens = Histogram::new();
    opens.record(1_500_000);
    Recording {
        source: Source::Strace,
        recorded_on: Some(Protocol::Nfs(Some("4.2".into()))),
        nodes: vec![
            node(0, FileKind::Other, InitialState::Folder),
            node(0, FileKind::Other, InitialState::Absent),
            node(0, FileKind::Image, InitialState::File(PowerOfTwo::of(5000))),
            node(0, FileKind::Other, InitialState::Link),
        ],
        operations: operations.into_iter().collect(),
        mean_pauses: vec![0, 900, 1800],
        mean_sizes: vec![0; 13],
        times: Some(RecordedTimes {
            total: Duration::from_millis(31),
            waiting: Duration::from_millis(7),
            by_operation: [(Operation::Open, opens)].into(),
        }),
        account: Account {
            lines: 9,
            used: 5,
            unknown_calls: vec![UnknownCall { name: "mmap".into(), count: 2 }],
            ..Account::default()
        },
    }
}

#[test]
fn recording_reads_back() {
    let recording = example();
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
}

#[test]
fn recording_of_the_first_version_reads_back() {
    let recording = example();
    let mut bytes = recording.to_bytes();
    bytes[MAGIC.len()] = 1;
    assert_eq!(Recording::from_bytes(&bytes), Ok(recording));
}

#[test]
fn every_flipped_byte_and_every_cut_is_an_error() {
    let bytes = example().to_bytes();
    for index in 0..bytes.len() {
        assert!(Recording::from_bytes(&bytes[..index]).is_err(), "cut at {index}");
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x41;
        assert!(Recording::from_bytes(&damaged).is_err(), "flipped at {index}");
    }
}

#[test]
fn damage_is_named() {
    let bytes = example().to_bytes();
    let mut newer = bytes.clone();
    newer[MAGIC.len()] = 4;
    assert_eq!(Recording::from_bytes(b"PK"), Err(FormatError::NotARecording));
    assert_eq!(Recording::from_bytes(&newer), Err(FormatError::Version(4)));
    assert_eq!(Recording::from_bytes(&bytes[..bytes.len() - 1]), Err(FormatError::Checksum));
}

#[test]
fn broken_references_are_refused() {
    let close = operation(Action::Close { handle: HandleNumber(0) });
    let unknown_node = operation(Action::Remove { node: NodeNumber(4) });
    for wrong in [close, unknown_node] {
        let mut recording = example();
        recording.operations.push(wrong);
        let read = Recording::from_bytes(&recording.to_bytes());
        assert_eq!(read, Err(FormatError::Invalid("list of operations")));
    }
}

#[test]
fn parents_stand_before_their_children() {
    let mut recording = example();
    recording.nodes[1].parent = NodeNumber(2);
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Err(FormatError::Invalid("tree")));
}

#[test]
fn tree_that_no_cleaning_would_remove_is_refused() {
    let read = |depth: u32| {
        let above = std::iter::once(0).chain(0..depth);
        let nodes = above.map(|parent| node(parent, FileKind::Other, InitialState::Folder)).collect();
        Recording::from_bytes(&Recording { nodes, ..example() }.to_bytes()).map(drop)
    };
    let deepest = u32::from(MAX_DEPTH);
    assert_eq!([read(deepest), read(deepest + 1)], [Ok(()), Err(FormatError::Invalid("tree"))]);
}

#[test]
fn text_is_no_name_of_an_unknown_call() {
    let mut recording = example();
    recording.account.unknown_calls[0].name = "Tax return 2025.pdf".into();
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Err(FormatError::Invalid("header")));
}

proptest! {
    #[test]
    fn damage_behind_a_right_checksum_never_panics(
        position in 0usize..2000,
        bytes in proptest::collection::vec(any::<u8>(), 1..8),
    ) {
        let mut file = example().to_bytes();
        let start = MAGIC.len() + 5;
        let position = start + position % (file.len() - start);
        file.splice(position..(position + 1), bytes);
        let sum = checksum(&file[start..]).to_le_bytes();
        file[start - 4..start].copy_from_slice(&sum);
        let _ = Recording::from_bytes(&file);
    }
}
