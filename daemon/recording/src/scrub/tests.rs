use std::time::Duration;

use super::Scrubber;
use crate::block::BLOCK_LENGTH;
use crate::{
    Access, Action, ActionResult, CallTime, CreateMode, FileKind, FoundFile, InitialState, MAX_DEPTH,
    OpenMode, Operations, PowerOfTwo, Recording, Source, TraceAction, TraceEvent, TraceSink,
};

const READ: OpenMode =
    OpenMode { access: Access::Read, create: CreateMode::Never, truncate: false, folder: false };
const CREATE: OpenMode = OpenMode { access: Access::Write, create: CreateMode::IfAbsent, ..READ };

/// Feeds events a millisecond apart, each of which takes a tenth of it.
fn scrub(events: &[(TraceAction<'_>, ActionResult)]) -> Recording {
    let mut scrubber = Scrubber::new(b"/share/");
    for (index, (action, result)) in events.iter().enumerate() {
        let began = Duration::from_millis(index as u64);
        let took = Some(Duration::from_micros(100));
        let time = CallTime { took, ..CallTime::beginning(7, began) };
        let (action, result) = (action.clone(), *result);
        scrubber.event(&TraceEvent { time, action, result, depth_in_open_folder: None });
    }
    scrubber.finish(Source::Strace, None)
}

fn done(action: TraceAction<'_>) -> (TraceAction<'_>, ActionResult) {
    (action, ActionResult::Done)
}

fn missing(action: TraceAction<'_>) -> (TraceAction<'_>, ActionResult) {
    (action, ActionResult::NotFound)
}

fn states(recording: &Recording) -> Vec<InitialState> {
    recording.nodes.iter().map(|node| node.initial).collect()
}

fn file(size: u64) -> InitialState {
    InitialState::File(PowerOfTwo::of(size))
}

#[test]
fn found_file_and_its_folders_existed_before() {
    let found = Some(FoundFile::File(3000));
    let recording = scrub(&[done(TraceAction::Attributes { path: b"/share/a/b.jpg", found })]);
    assert_eq!(states(&recording), [InitialState::Folder, InitialState::Folder, file(3000)]);
    assert_eq!(recording.nodes[2].kind, FileKind::Image);
    assert_eq!(recording.mean_sizes[12], 3000);
}

#[test]
fn name_looked_for_and_created_later_was_absent() {
    let recording = scrub(&[
        missing(TraceAction::Attributes { path: b"/share/new", found: None }),
        done(TraceAction::Open { path: b"/share/new", mode: CREATE, handle: Some(1) }),
        done(TraceAction::Write { handle: 1, offset: Some(0), length: 10 }),
        done(TraceAction::Close { handle: 1 }),
        done(TraceAction::Attributes { path: b"/share/new", found: Some(FoundFile::File(10)) }),
    ]);
    assert_eq!(states(&recording), [InitialState::Folder, InitialState::Absent]);
}

#[test]
fn content_that_nothing_wrote_existed_before() {
    let mode = OpenMode { access: Access::ReadWrite, ..CREATE };
    let recording = scrub(&[
        done(TraceAction::Open { path: b"/share/x.db", mode, handle: Some(1) }),
        done(TraceAction::Read { handle: 1, offset: Some(0), length: 4096, read: 4096 }),
        done(TraceAction::Write { handle: 1, offset: Some(90_000), length: 4096 }),
        done(TraceAction::HandleAttributes { handle: 1, found: Some(FoundFile::File(94_096)) }),
    ]);
    assert_eq!(states(&recording), [InitialState::Folder, file(4096)]);
}

#[test]
fn file_found_in_a_renamed_folder_was_in_the_old_one() {
    let found = Some(FoundFile::File(5));
    let recording = scrub(&[
        done(TraceAction::Rename { from: b"/share/old", to: b"/share/new" }),
        done(TraceAction::Attributes { path: b"/share/new/x", found }),
    ]);
    let of = |state| recording.nodes.iter().filter(|node| node.initial == state).count();
    assert_eq!(of(file(5)), 1);
    let old_file = recording.nodes.iter().find(|node| node.initial == file(5)).unwrap();
    assert_eq!(recording.nodes[old_file.parent.0 as usize].initial, InitialState::Folder);
    assert_eq!(of(InitialState::Absent), 2, "the new names of the folder and of the file");
}

#[test]
fn names_of_a_listing_are_files_without_operations() {
    let mode = OpenMode { folder: true, ..READ };
    let recording = scrub(&[
        done(TraceAction::Open { path: b"/share", mode, handle: Some(1) }),
        done(TraceAction::List { handle: 1, entries: Some(3) }),
        done(TraceAction::List { handle: 1, entries: Some(0) }),
        done(TraceAction::Attributes { path: b"/share/a", found: Some(FoundFile::Folder) }),
    ]);
    let folder = InitialState::Folder;
    assert_eq!(states(&recording), [folder, folder, file(0), file(0)]);
}

#[test]
fn a_read_behind_the_end_makes_no_file_longer() {
    let recording = scrub(&[
        done(TraceAction::Open { path: b"/share/x", mode: READ, handle: Some(1) }),
        done(TraceAction::Read { handle: 1, offset: Some(3 << 40), length: 4096, read: 0 }),
        done(TraceAction::Open { path: b"/share/new", mode: CREATE, handle: Some(2) }),
        done(TraceAction::Read { handle: 2, offset: Some(24), length: 16, read: 0 }),
    ]);
    assert_eq!(states(&recording), [InitialState::Folder, file(0), InitialState::Absent]);
}

#[test]
fn names_that_were_created_before_a_listing_are_not_added_by_it() {
    let mode = OpenMode { folder: true, ..READ };
    let created = [b"/share/a", b"/share/b", b"/share/c"].map(|path| {
        let handle = u64::from(path[7]);
        [
            done(TraceAction::Open { path, mode: CREATE, handle: Some(handle) }),
            done(TraceAction::Write { handle, offset: Some(0), length: 10 }),
        ]
    });
    let list = [
        done(TraceAction::Remove { path: b"/share/c" }),
        done(TraceAction::Open { path: b"/share", mode, handle: Some(1) }),
        done(TraceAction::List { handle: 1, entries: Some(3) }),
    ];
    let recording = scrub(&[created.as_flattened(), &list].concat());
    let (folder, absent) = (InitialState::Folder, InitialState::Absent);
    assert_eq!(
        states(&recording),
        [folder, absent, absent, absent, file(0)],
        "one of the three was there before"
    );
}

/// A folder with ten files, some of which were renamed, replaced, removed or linked before it is listed.
#[test]
fn listing_after_changes_shows_how_many_names_there_were() {
    let path = |name: &str| -> &'static [u8] { format!("/share/{name}").leak().as_bytes() };
    let found =
        |name: &str| done(TraceAction::Attributes { path: path(name), found: Some(FoundFile::File(5)) });
    let replaced = |name: &str, handle| {
        let temporary = path(&format!("{name}.tmp"));
        vec![
            found(name),
            done(TraceAction::Open { path: temporary, mode: CREATE, handle: Some(handle) }),
            done(TraceAction::Rename { from: temporary, to: path(name) }),
        ]
    };
    let removed = |name: &str| vec![done(TraceAction::Remove { path: path(name) })];
    let linked =
        |name: &str| vec![done(TraceAction::HardLink { from: path(name), to: path(&format!("{name}2")) })];
    let moved =
        |name: &str| vec![done(TraceAction::Rename { from: path(name), to: path(&format!("sub/{name}")) })];
    let folder = vec![done(TraceAction::CreateFolder { path: path("sub") })];
    for (changes, names) in [
        (vec![replaced("a", 2), replaced("b", 3)], 10),
        (vec![removed("a"), removed("b")], 8),
        (vec![linked("a"), linked("b")], 12),
        (vec![folder, moved("a"), moved("b")], 9),
    ] {
        let mode = OpenMode { folder: true, ..READ };
        let list = [
            done(TraceAction::Open { path: b"/share", mode, handle: Some(1) }),
            done(TraceAction::List { handle: 1, entries: Some(names) }),
        ];
        let recording = scrub(&[changes.concat(), list.to_vec()].concat());
        let files = states(&recording).iter().filter(|state| matches!(state, InitialState::File(_))).count();
        assert_eq!(files, 10, "{names} names at the end");
    }
}

#[test]
fn question_for_the_target_of_a_link_does_not_hide_what_was_there() {
    let nothing = missing(TraceAction::Attributes { path: b"/share/a", found: None });
    let link = [
        done(TraceAction::SymbolicLink { path: b"/share/a" }),
        nothing.clone(),
        done(TraceAction::ReadLink { path: b"/share/a" }),
    ];
    assert_eq!(states(&scrub(&link)), [InitialState::Folder, InitialState::Absent]);
    let replaced = [
        done(TraceAction::Attributes { path: b"/share/a", found: Some(FoundFile::File(9)) }),
        done(TraceAction::Remove { path: b"/share/a" }),
    ];
    assert_eq!(states(&scrub(&[&replaced[..], &link].concat())), [InitialState::Folder, file(9)]);
}

#[test]
fn link_without_its_target_existed_before() {
    let recording = scrub(&[
        missing(TraceAction::Attributes { path: b"/share/link", found: None }),
        done(TraceAction::ReadLink { path: b"/share/link" }),
    ]);
    assert_eq!(states(&recording), [InitialState::Folder, InitialState::Link]);
}

#[test]
fn file_whose_rename_fails_may_be_there() {
    let recording = scrub(&[
        missing(TraceAction::Rename { from: b"/share/a", to: b"/share/none/a" }),
        done(TraceAction::Attributes { path: b"/share/a", found: Some(FoundFile::File(9)) }),
    ]);
    assert_eq!(states(&recording)[1], file(9));
}

#[test]
fn paths_outside_are_counted_and_not_kept() {
    let recording = scrub(&[
        done(TraceAction::Open { path: b"/shared/x", mode: READ, handle: Some(1) }),
        done(TraceAction::Read { handle: 1, offset: None, length: 5, read: 5 }),
        done(TraceAction::Close { handle: 1 }),
        done(TraceAction::Close { handle: 9 }),
    ]);
    assert_eq!((recording.account.outside, recording.account.unknown_handles), (3, 1));
    assert!(recording.operations.is_empty() && recording.nodes.len() == 1);
}

#[test]
fn transfers_without_offset_follow_each_other() {
    let recording = scrub(&[
        done(TraceAction::Open { path: b"/share/x", mode: READ, handle: Some(1) }),
        done(TraceAction::Read { handle: 1, offset: None, length: 10, read: 10 }),
        done(TraceAction::Read { handle: 1, offset: None, length: 10, read: 4 }),
    ]);
    let offset = |action| if let Action::Read { offset, .. } = action { Some(offset) } else { None };
    let offsets: Vec<u64> = recording.operations.iter().filter_map(|op| offset(op.action)).collect();
    assert_eq!(offsets, [0, 10]);
}

/// Question for the free space with beginning and duration in milliseconds.
fn asked_for_space(thread: u64, times: [u64; 2]) -> TraceEvent<'static> {
    let [began, took] = times.map(Duration::from_millis);
    TraceEvent {
        time: CallTime { took: Some(took), ..CallTime::beginning(thread, began) },
        action: TraceAction::FreeSpace { path: b"/share" },
        result: ActionResult::Done,
        depth_in_open_folder: None,
    }
}

#[test]
fn waiting_is_the_union_of_all_operations() {
    let mut scrubber = Scrubber::new(b"/share");
    for (thread, began, took) in [(1, 0, 50), (2, 20, 50), (1, 100, 10)] {
        scrubber.event(&asked_for_space(thread, [began, took]));
    }
    let recording = scrubber.finish(Source::Strace, None);
    let times = recording.times.unwrap();
    assert_eq!((times.total, times.waiting), (Duration::from_millis(110), Duration::from_millis(80)));
}

#[test]
fn pauses_add_up_to_the_recorded_time() {
    let path = b"/share/x";
    let recording = scrub(&[done(TraceAction::ReadLink { path }), done(TraceAction::ReadLink { path })]);
    let pause = recording.operations.iter().nth(1).unwrap().pause;
    assert_eq!(recording.mean_pauses[usize::from(pause.number())], 900_000);
}

#[test]
fn first_pause_of_a_thread_follows_the_operation_before() {
    let mut scrubber = Scrubber::new(b"/share");
    for (thread, began, took) in [(1, 0, 50), (2, 20, 50), (3, 100, 10)] {
        scrubber.event(&asked_for_space(thread, [began, took]));
    }
    let recording = scrubber.finish(Source::Strace, None);
    let pauses: Vec<PowerOfTwo> = recording.operations.iter().map(|operation| operation.pause).collect();
    assert_eq!(pauses, [0, 0, 30_000].map(PowerOfTwo::of));
}

#[test]
fn operations_that_do_not_fit_into_a_file_are_left_out() {
    let mut scrubber = Scrubber { operations: Operations::nearly_full(), ..Scrubber::new(b"/share") };
    (0..BLOCK_LENGTH).for_each(|_| scrubber.event(&asked_for_space(1, [0, 1])));
    scrubber.event(&asked_for_space(1, [2, 1]));
    let account = scrubber.finish(Source::Strace, None).account;
    assert_eq!((account.used, account.over_limit), (BLOCK_LENGTH as u64, 1));
}

#[test]
fn operations_on_names_that_are_too_deep_are_left_out() {
    let path = |names: u8| format!("/share{}", "/d".repeat(names.into()));
    let (deepest, deeper) = (path(MAX_DEPTH), path(MAX_DEPTH + 1));
    let list = |path, handle| {
        let mode = OpenMode { folder: true, ..READ };
        [
            done(TraceAction::Open { path, mode, handle: Some(handle) }),
            done(TraceAction::List { handle, entries: Some(2) }),
        ]
    };
    let look = done(TraceAction::Attributes { path: deeper.as_bytes(), found: Some(FoundFile::Folder) });
    let recording = scrub(&[&list(deepest.as_bytes(), 1)[..], &list(b"/share/e", 2), &[look]].concat());
    assert_eq!((recording.account.used, recording.account.over_limit), (4, 1));
    let names = usize::from(MAX_DEPTH) + 1 + 2;
    assert_eq!(recording.nodes.len(), 1 + names, "the names that are listed in `e`, and not the deeper ones");
}

#[test]
fn debug_output_shows_no_name() {
    let mut scrubber = Scrubber::new(b"/share");
    let action = TraceAction::ReadLink { path: b"/share/secret" };
    let event = TraceEvent {
        time: CallTime::beginning(1, Duration::ZERO),
        action,
        result: ActionResult::Done,
        depth_in_open_folder: None,
    };
    scrubber.event(&event);
    assert_eq!(format!("{scrubber:?}"), "Scrubber { operations: 1, .. }");
}
