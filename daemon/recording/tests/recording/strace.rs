//! A real trace of a shell session, imported and scrubbed.

use longhaul_recording::{
    FileKind, InitialState, Node, NodeNumber, PowerOfTwo, Recording, Scrubber, Source, StraceImporter, import,
};

/// `strace -f -ttt -T -y -e trace=%file,%desc,%process sh -c ...` (strace 6.1): cat, wc, ls, cp, mv, rm, mkdir, rmdir, ln and
/// find in /srv/share/photos, which had a photo of 5,000 bytes and, above it, a text of 6.
const SESSION: &[u8] = include_bytes!("../fixtures/strace/shell.txt");

fn imported(trace: &[u8]) -> Recording {
    let mut scrubber = Scrubber::new(b"/srv/share");
    import(&mut StraceImporter::new(None), &mut &*trace, &mut scrubber).expect("reading memory");
    scrubber.finish(Source::Strace, None)
}

/// Removes what `-y` and `-T` add: paths of descriptors and durations.
fn without_annotations(trace: &str) -> String {
    let mut text = String::new();
    let mut rest = trace;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let is_mark = rest[start..].starts_with("<unfinished") || rest[start..].starts_with("<... ");
        let end = rest[start..].find('>').map_or(rest.len(), |end| start + end + 1);
        text.push_str(if is_mark { &rest[start..end] } else { "" });
        rest = &rest[end..];
    }
    text + rest
}

#[test]
fn every_call_of_a_session_is_accounted_for() {
    let account = imported(SESSION).account;
    assert_eq!((account.lines, account.used, account.outside), (742, 65, 407));
    assert_eq!((account.damaged, account.unknown_handles, account.time_went_back), (0, 0, 0));
    assert_eq!(account.unknown_calls, []);
}

#[test]
fn tree_before_the_session_is_derived() {
    let recording = imported(SESSION);
    let node = |parent, kind, initial| Node { parent: NodeNumber(parent), kind, initial };
    let file = |size| InitialState::File(PowerOfTwo::of(size));
    let photos = node(0, FileKind::Other, InitialState::Folder);
    let text = node(0, FileKind::Document, file(6));
    let image = node(1, FileKind::Image, file(5000));
    let existing: Vec<&Node> =
        recording.nodes.iter().filter(|it| it.initial != InitialState::Absent).collect();
    assert_eq!(existing[1..], [&photos, &image, &text]);
    assert_eq!(recording.nodes.len() - existing.len(), 4, "copy.txt, moved.txt, d, link");
}

#[test]
fn session_without_paths_of_descriptors_gives_the_same_operations() {
    let plain = without_annotations(std::str::from_utf8(SESSION).expect("strace writes ASCII"));
    let mut scrubber = Scrubber::new(b"/srv/share");
    let mut importer = StraceImporter::new(Some(b"/srv/share"));
    import(&mut importer, &mut plain.as_bytes(), &mut scrubber).expect("reading memory");
    let recording = scrubber.finish(Source::Strace, None);
    let actions = |recording: &Recording| recording.operations.iter().map(|it| it.action).collect::<Vec<_>>();
    assert_eq!(actions(&recording), actions(&imported(SESSION)));
}

#[test]
fn recording_of_a_session_is_stored_and_read_back() {
    let recording = imported(SESSION);
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
}
