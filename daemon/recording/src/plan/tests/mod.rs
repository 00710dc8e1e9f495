//! Any order of the steps that respects the waits gives the recorded answers and the recorded tree.

mod simulated;

use std::collections::HashMap;
use std::num::NonZeroU8;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    Access, Account, Action, ActionResult, Copying, CreateMode, FileKind, HandleNumber, InitialState, Node,
    NodeNumber, OpenMode, PowerOfTwo, RecordedOperation, Source,
};
use simulated::replay;

const LIMITS: Limits = Limits { threads: 8, pause: Duration::from_secs(2) };

fn recording(nodes: Vec<Node>, operations: Vec<RecordedOperation>) -> Recording {
    Recording {
        source: Source::Strace,
        recorded_on: None,
        nodes,
        operations: operations.into_iter().collect(),
        mean_pauses: vec![],
        mean_sizes: vec![],
        times: None,
        account: Account::default(),
    }
}

fn node(parent: u32, initial: InitialState) -> Node {
    Node { parent: NodeNumber(parent), kind: FileKind::Other, initial }
}

fn operation(thread: u32, action: Action) -> RecordedOperation {
    RecordedOperation {
        thread,
        pause: PowerOfTwo::default(),
        action,
        result: ActionResult::Done,
        depth_in_open_folder: None,
    }
}

/// An operation that asks for the attributes of the folder after a pause in nanoseconds.
fn look(thread: u32, pause: u64) -> RecordedOperation {
    let attributes = Action::Attributes { node: NodeNumber(0) };
    RecordedOperation { pause: PowerOfTwo::of(pause), ..operation(thread, attributes) }
}

fn open(node: u32, access: Access, handle: u32) -> Action {
    let is_there = matches!(access, Access::Read | Access::PathOnly);
    let create = if is_there { CreateMode::Never } else { CreateMode::IfAbsent };
    let mode = OpenMode { access, create, truncate: false, folder: false };
    Action::Open { node: NodeNumber(node), mode, handle: Some(HandleNumber(handle)) }
}

/// Operations on a small tree: two folders with four names each. Most are possible; the plan leaves out the others.
fn operations() -> impl Strategy<Value = Vec<RecordedOperation>> {
    let action = (0u32..15, 1u32..11, 1u32..11, 0u32..6).prop_map(|(kind, name, other, handle)| {
        let (name, other, handle) = (NodeNumber(name), NodeNumber(other), HandleNumber(handle));
        match kind {
            0 => open(name.0, Access::Read, handle.0),
            1 | 2 => open(name.0, Access::ReadWrite, handle.0),
            3 => Action::Close { handle },
            4 => Action::Read { handle, offset: 0, length: 9, read: 9 },
            5 => Action::Write { handle, offset: u64::from(other.0), length: 9 },
            6 => Action::Attributes { node: name },
            7 => Action::CreateFolder { node: name },
            8 => Action::Remove { node: name },
            9 => Action::RemoveFolder { node: name },
            10 => Action::Rename { from: name, to: other },
            11 => Action::Copy(Copying {
                from: handle,
                to: HandleNumber(other.0 % 6),
                read_at: 0,
                write_at: u64::from(name.0),
                length: 9,
            }),
            12 => open(name.0, Access::PathOnly, handle.0),
            13 => Action::HandleAttributes { handle },
            _ => Action::List { handle },
        }
    });
    let operation =
        (0u32..4, action, any::<bool>(), 0u8..3).prop_map(|(thread, action, is_missing, depth)| {
            let result = match action {
                Action::Attributes { .. } | Action::Remove { .. } if is_missing => ActionResult::NotFound,
                Action::Rename { .. } if is_missing => ActionResult::Exists,
                Action::Copy(_) if is_missing => ActionResult::Failed,
                _ => ActionResult::Done,
            };
            RecordedOperation {
                result,
                depth_in_open_folder: NonZeroU8::new(depth),
                ..operation(thread, action)
            }
        });
    prop::collection::vec(operation, 1..120)
}

/// Gives each opening a handle of its own, as recordings have it.
fn with_own_handles(mut operations: Vec<RecordedOperation>) -> Vec<RecordedOperation> {
    let (mut newest, mut next) = (HashMap::new(), 0);
    for operation in &mut operations {
        match &mut operation.action {
            Action::Open { handle: Some(handle), .. } => {
                newest.insert(*handle, next);
                *handle = HandleNumber(next);
                next += 1;
            }
            Action::Close { handle }
            | Action::Read { handle, .. }
            | Action::Write { handle, .. }
            | Action::HandleAttributes { handle }
            | Action::List { handle } => {
                *handle = HandleNumber(newest.get(handle).copied().unwrap_or(u32::MAX));
            }
            Action::Copy(copy) => {
                for handle in [&mut copy.from, &mut copy.to] {
                    *handle = HandleNumber(newest.get(handle).copied().unwrap_or(u32::MAX));
                }
            }
            _ => {}
        }
    }
    operations
}

fn tree() -> Vec<Node> {
    let (folder, file) = (InitialState::Folder, InitialState::File(PowerOfTwo::of(5)));
    let mut nodes = vec![node(0, folder), node(0, folder), node(0, InitialState::Absent)];
    nodes.extend((0..4).map(|number| node(1, if number < 2 { file } else { InitialState::Absent })));
    nodes.extend((0..4).map(|_| node(2, InitialState::Absent)));
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_allowed_order_gives_the_recorded_tree(operations in operations(), seed: u64) {
        let operations = with_own_handles(operations);
        let plan = ReplayPlan::compile(&recording(tree(), operations.clone()), LIMITS);
        let one = Limits { threads: 1, ..LIMITS };
        let sequential = replay(&ReplayPlan::compile(&recording(tree(), operations), one), 0);
        let any = replay(&plan, seed);
        prop_assert_eq!(&any.names, &sequential.names);
        prop_assert_eq!(&any.writes, &sequential.writes);
        prop_assert!(any.open.is_empty(), "nothing stays open");
        let mut seen: [Vec<usize>; 2] = [&any, &sequential].map(|world| world.seen.values().copied().collect());
        seen.iter_mut().for_each(|seen| seen.sort_unstable());
        prop_assert_eq!(&seen[0], &seen[1], "reads see what was written before");
    }
}

#[test]
fn paths_are_given_from_a_folder_while_it_is_open() {
    let (folder, absent) = (InitialState::Folder, InitialState::Absent);
    let file = InitialState::File(PowerOfTwo::of(5));
    let nodes = vec![node(0, folder), node(0, folder), node(1, folder), node(2, file), node(1, absent)];
    let look = |name| Action::Attributes { node: NodeNumber(name) };
    let steps = [
        (open(1, Access::Read, 0), 1, None),
        (look(2), 1, Some(Slot(0))),
        (look(3), 2, Some(Slot(0))),
        (look(3), 1, None),
        (look(1), 1, None),
        (look(3), 0, None),
        (Action::Rename { from: NodeNumber(2), to: NodeNumber(4) }, 1, Some(Slot(0))),
        (look(4), 1, None),
    ];
    let given = steps.map(|(action, depth, _)| RecordedOperation {
        depth_in_open_folder: NonZeroU8::new(depth),
        ..operation(0, action)
    });
    let plan = ReplayPlan::compile(&recording(nodes, given.to_vec()), LIMITS);
    let folders: Vec<Option<Slot>> = plan.lanes[0].steps().map(|step| step.folder).collect();
    assert_eq!(folders[..steps.len()], steps.map(|(_, _, folder)| folder));
}

#[test]
fn file_whose_times_are_set_after_it_was_renamed_is_known_to_change() {
    let file = InitialState::File(PowerOfTwo::of(5));
    let nodes = vec![node(0, InitialState::Folder), node(0, file), node(0, InitialState::Absent)];
    let rename = Action::Rename { from: NodeNumber(1), to: NodeNumber(2) };
    let set = Action::SetHandleAttributes { handle: HandleNumber(0) };
    let changes = |actions: &[Action]| {
        let operations = actions.iter().map(|action| operation(0, *action)).collect();
        ReplayPlan::compile(&recording(nodes.clone(), operations), LIMITS).nodes[1].file_changes
    };
    assert!(!changes(&[open(1, Access::Read, 0), rename]));
    assert!(changes(&[open(1, Access::Read, 0), rename, set]));
}

#[test]
fn paths_are_not_given_from_a_folder_that_was_removed() {
    let nodes =
        vec![node(0, InitialState::Folder), node(0, InitialState::Folder), node(1, InitialState::Absent)];
    let actions = [
        open(1, Access::Read, 0),
        Action::RemoveFolder { node: NodeNumber(1) },
        Action::CreateFolder { node: NodeNumber(1) },
        Action::CreateFolder { node: NodeNumber(2) },
    ];
    let given = actions
        .map(|action| RecordedOperation { depth_in_open_folder: NonZeroU8::new(1), ..operation(0, action) });
    let plan = ReplayPlan::compile(&recording(nodes, given.to_vec()), LIMITS);
    let folders: Vec<Option<Slot>> = plan.lanes[0].steps().map(|step| step.folder).collect();
    assert_eq!((folders.len(), &folders[..4]), (5, &[None; 4][..]));
}

#[test]
fn independent_threads_wait_only_at_their_beginning() {
    let file = InitialState::File(PowerOfTwo::of(5));
    let nodes = vec![node(0, InitialState::Folder), node(0, file), node(0, file)];
    let reads =
        |thread, handle| Action::Read { handle: HandleNumber(handle), offset: thread, length: 1, read: 1 };
    let mut operations = vec![operation(0, open(1, Access::Read, 0)), operation(1, open(2, Access::Read, 1))];
    operations.extend((0..50).flat_map(|_| [operation(0, reads(0, 0)), operation(1, reads(1, 1))]));
    let plan = ReplayPlan::compile(&recording(nodes, operations), LIMITS);
    let waits: Vec<usize> = plan.lanes.iter().map(ReplayThread::wait_count).collect();
    // The last wait closes the file that the other thread left open.
    assert_eq!(waits, [1, 1]);
}

#[test]
fn threads_beyond_the_limit_share_replay_threads() {
    let nodes = vec![node(0, InitialState::Folder)];
    let operations = (0..3).flat_map(|_| (0..40).map(|thread| look(thread, 0))).collect();
    let plan = ReplayPlan::compile(&recording(nodes, operations), LIMITS);
    assert_eq!((plan.lanes.len(), plan.step_count()), (8, 120));
}

#[test]
fn a_thread_that_waited_for_another_goes_on_at_once() {
    let nodes = vec![node(0, InitialState::Folder)];
    let operations = [0, 1, 1, 0, 0].map(|thread| look(thread, 1000)).to_vec();
    let plan = ReplayPlan::compile(&recording(nodes, operations), LIMITS);
    let parent: Vec<_> = plan.lanes[0].steps().collect();
    assert_eq!((parent[1].pause, parent[1].waits), (0, &[Wait { lane: 1, steps: 2 }][..]));
    assert_eq!(parent[2].pause, PowerOfTwo::of(1000).number());
}

#[test]
fn a_pause_after_the_end_of_another_thread_is_kept() {
    let nodes = vec![node(0, InitialState::Folder)];
    let second = 1_000_000;
    let pauses = |others: u64| {
        let operations =
            [(0, 0), (1, 1), (1, others), (0, second)].map(|(thread, pause)| look(thread, pause)).to_vec();
        let mut recording = recording(nodes.clone(), operations);
        recording.mean_pauses =
            (0..21).map(|class| PowerOfTwo::from_number(class).unwrap().floor() * 1500).collect();
        let plan = ReplayPlan::compile(&recording, LIMITS);
        let step = plan.lanes[0].steps().nth(1).unwrap();
        assert_eq!((step.pauses_last, step.waits), (true, &[Wait { lane: 1, steps: 2 }][..]));
        step.pause
    };
    let class = PowerOfTwo::of(second).number();
    assert_eq!(pauses(1000), class, "the other thread explains a thousandth");
    assert_eq!(pauses(second / 4), class, "three quarters of a mean are in its class");
    assert_eq!(pauses(second), 0, "it only waited");
}

#[test]
fn the_rest_of_a_pause_gets_a_class_of_its_own() {
    let nodes = vec![node(0, InitialState::Folder)];
    let operations = [(0, 0), (1, 1), (1, 200_000), (0, 650_000)].map(|(thread, pause)| look(thread, pause));
    let mut recording = recording(nodes, operations.to_vec());
    recording.mean_pauses = vec![0; 21];
    let (child, parent) = (PowerOfTwo::of(200_000).number(), PowerOfTwo::of(650_000).number());
    recording.mean_pauses[usize::from(child)] = 200_000_000;
    recording.mean_pauses[usize::from(parent)] = 650_000_000;
    let plan = ReplayPlan::compile(&recording, LIMITS);
    let step = plan.lanes[0].steps().nth(1).unwrap();
    assert_eq!(plan.pauses[usize::from(step.pause)], 450_000_000, "not the whole pause again");
}

#[test]
fn each_thread_begins_its_pause_after_the_operation_before() {
    let nodes = vec![node(0, InitialState::Folder)];
    // The second and third thread share a replay thread.
    let operations = [0, 1, 0, 2, 2, 0].map(|thread| look(thread, 1000)).to_vec();
    let plan = ReplayPlan::compile(&recording(nodes, operations), LIMITS);
    let begins = |lane: usize| plan.lanes[lane].steps().map(|step| step.pauses_last).collect::<Vec<_>>();
    assert_eq!((plan.lanes.len(), begins(1)), (2, vec![true, true, false]));
}

#[test]
fn read_of_nothing_shows_the_end_only_after_what_was_read() {
    let nodes = vec![node(0, InitialState::Folder), node(0, InitialState::File(PowerOfTwo::of(5)))];
    let read = |offset, read| Action::Read { handle: HandleNumber(0), offset, length: 4096, read };
    let bytes = |reads: &[Action]| {
        let actions = [&[open(1, Access::Read, 0)], reads].concat();
        let operations = actions.into_iter().map(|action| operation(0, action)).collect();
        ReplayPlan::compile(&recording(nodes.clone(), operations), LIMITS).corpus_bytes()
    };
    assert_eq!(bytes(&[read(3 << 40, 0)]), PowerOfTwo::of(5).floor());
    assert_eq!(bytes(&[read(0, 4096), read(4096, 0), read(u64::MAX, 0)]), 4096);
}

#[test]
fn replay_takes_at_least_the_shortened_pauses_of_a_thread() {
    let nodes = vec![node(0, InitialState::Folder)];
    // The threads overlap: one after the other, they would be replayed by one thread.
    let operations =
        [(0, 4), (1, 4), (0, 1 << 40), (0, 4), (1, 4)].map(|(thread, pause)| look(thread, pause));
    let mut recording = recording(nodes, operations.to_vec());
    recording.mean_pauses =
        (0..=64).map(|class| if class > 10 { 3_600_000_000_000 } else { 500_000_000 }).collect();
    let plan = ReplayPlan::compile(&recording, LIMITS);
    let short = Duration::from_millis(500);
    assert_eq!(plan.pause_time(), short * 2 + LONGEST_PAUSE, "not the other thread, and not the whole hour");
}

#[test]
fn size_is_exact_where_a_file_was_read_to_its_end() {
    let file = InitialState::File(PowerOfTwo::of(5000));
    let nodes = vec![node(0, InitialState::Folder), node(0, file)];
    let read = |offset, read| Action::Read { handle: HandleNumber(0), offset, length: 4096, read };
    let operations = [open(1, Access::Read, 0), read(0, 4096), read(4096, 900)];
    let operations = operations.map(|action| operation(0, action)).to_vec();
    let plan = ReplayPlan::compile(&recording(nodes, operations), LIMITS);
    assert_eq!(plan.corpus_bytes(), 4996);
}

#[test]
fn read_of_new_content_does_not_shorten_the_file_before() {
    let nodes = vec![node(0, InitialState::Folder), node(0, InitialState::File(PowerOfTwo::of(9)))];
    let read = |read| Action::Read { handle: HandleNumber(0), offset: 0, length: 4096, read };
    let write = Action::SetLength { node: NodeNumber(1), length: 5 };
    let operations =
        [open(1, Access::Read, 0), read(4096), write, read(5)].map(|action| operation(0, action));
    let plan = ReplayPlan::compile(&recording(nodes, operations.to_vec()), LIMITS);
    assert_eq!(plan.corpus_bytes(), 4096);
}

#[test]
fn folder_does_not_get_an_earlier_name_back() {
    let (folder, absent) = (InitialState::Folder, InitialState::Absent);
    let file = InitialState::File(PowerOfTwo::of(5));
    let nodes = vec![node(0, folder), node(0, folder), node(1, file), node(0, absent), node(0, folder)];
    let rename = |from, to| operation(0, Action::Rename { from: NodeNumber(from), to: NodeNumber(to) });
    let create = operation(0, open(2, Access::Write, 0));
    let left_out = |operations: &[RecordedOperation]| {
        let plan = ReplayPlan::compile(&recording(nodes.clone(), operations.to_vec()), LIMITS);
        replay(&plan, 0);
        plan.left_out
    };
    assert_eq!(left_out(&[rename(1, 3), rename(3, 1), create]), 2);
    assert_eq!(left_out(&[rename(1, 3), rename(4, 1), create]), 0, "another folder may take the name");
}

#[test]
fn rename_that_makes_a_path_too_deep_is_left_out() {
    let (folder, absent) = (InitialState::Folder, InitialState::Absent);
    // Two chains of 125 folders: 1 to 125, and 126 to 250.
    let above = (0..125).chain([0]).chain(126..250);
    let chains = above.map(|parent| node(parent, folder));
    let others = [(250, folder), (251, absent), (250, absent), (0, folder), (254, absent)];
    let others = others.map(|(parent, initial)| node(parent, initial));
    let nodes: Vec<Node> = std::iter::once(node(0, folder)).chain(chains).chain(others).collect();
    let rename = |from, to| operation(0, Action::Rename { from: NodeNumber(from), to: NodeNumber(to) });
    let left_out = |operations: &[RecordedOperation]| {
        ReplayPlan::compile(&recording(nodes.clone(), operations.to_vec()), LIMITS).left_out
    };
    assert_eq!([left_out(&[rename(1, 253)]), left_out(&[rename(1, 252)])], [0, 1], "250 and 251 names");
    let moved_again = [left_out(&[rename(126, 255)]), left_out(&[rename(1, 253), rename(126, 255)])];
    assert_eq!(moved_again, [0, 1], "the first chain is in the second one");
}

#[test]
fn file_with_a_second_name_is_not_opened_for_writing() {
    let file = InitialState::File(PowerOfTwo::of(5));
    let nodes = vec![node(0, InitialState::Folder), node(0, file), node(0, InitialState::Absent)];
    let link = Action::HardLink { from: NodeNumber(1), to: NodeNumber(2) };
    let set = |name| Action::SetLength { node: NodeNumber(name), length: 1 };
    let actions =
        [link, open(1, Access::Read, 0), open(1, Access::ReadWrite, 1), open(2, Access::Write, 2), set(2)];
    let operations = actions.map(|action| operation(0, action)).to_vec();
    assert_eq!(ReplayPlan::compile(&recording(nodes, operations), LIMITS).left_out, 3);
}

#[test]
fn refused_rename_is_replayed_where_both_names_exist() {
    let file = InitialState::File(PowerOfTwo::of(5));
    let nodes =
        vec![node(0, InitialState::Folder), node(0, file), node(0, file), node(0, InitialState::Absent)];
    let refused = |from, to| RecordedOperation {
        result: ActionResult::Exists,
        ..operation(0, Action::Rename { from: NodeNumber(from), to: NodeNumber(to) })
    };
    let plan =
        ReplayPlan::compile(&recording(nodes, vec![refused(1, 2), refused(1, 3), refused(3, 2)]), LIMITS);
    let steps: Vec<_> = plan.lanes[0].steps().map(|step| (step.action, step.expected)).collect();
    let (from, to) = (NodeNumber(1), NodeNumber(2));
    assert_eq!(steps, [(PlannedAction::RenameToNew { from, to }, ActionResult::Exists)]);
}
