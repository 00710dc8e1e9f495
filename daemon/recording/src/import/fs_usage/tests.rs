//! Tests of the importer of `fs_usage`.

use super::*;
use crate::import::import;
use crate::import::testing::Written;

/// Lines as `format_print` writes them.
const SESSION: &[u8] = include_bytes!("../../../tests/fixtures/fs_usage.txt");

#[test]
fn session_becomes_events_in_the_order_of_their_beginning() {
    let mut written = Written::default();
    import(&mut FsUsageImporter::default(), &mut &*SESSION, &mut written).unwrap();
    let expected: Vec<&str> = include_str!("../../../tests/fixtures/fs_usage.events").lines().collect();
    assert_eq!(written.events, expected);
    assert_eq!(written.notes, ["unknown rename /Volumes/nas/Photos/._IMG 1.jpg", "UnknownHandle", "Damaged"]);
}

#[test]
fn lines_of_a_real_mac_are_understood() {
    // Captured on macOS 15.3.1 (yottayoshida/sideeye, spike/fsusage/captures-laptop/P3-deep.cap.txt and P3-weird.cap.txt, and lines
    // quoted in its reader), some lines of each.
    let captured = include_bytes!("../../../tests/fixtures/fs_usage-15.3.txt");
    let mut written = Written::default();
    let mut importer = FsUsageImporter::default();
    importer.folders.insert(b"probe".to_vec(), b"/private/tmp".to_vec());
    import(&mut importer, &mut &captured[..], &mut written).unwrap();
    let paths = written.events.iter().filter(|event| event.starts_with('/'));
    let paths: Vec<&str> = paths.map(|event| event.split(" {").next().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "/private/tmp/se286f1.hgzdkh/P3-deep/go Attributes",
            "/private/tmp/se286f1.hgzdkh/wei rd-ステート/state/sentinel-start Open",
            "/Users/i.yoshida/w/state/.sideeye-fsusage-open Attributes",
            "/System/Volumes/Preboot/Cryptexes/OS/System/Library/Frameworks/CoreServices.framework Attributes",
        ]
    );
    // Opening and writing the file with the cut path, and standard output.
    assert_eq!(written.notes, ["UnknownHandle"; 3]);
}

#[test]
fn call_on_a_closed_descriptor_is_no_operation() {
    let line = b"10:15:30.000100  fgetxattr         F=-1 [  9]   0.000010   app.7\n";
    let mut written = Written::default();
    let mut importer = FsUsageImporter::default();
    importer.folders.insert(b"app".to_vec(), b"/V".to_vec());
    import(&mut importer, &mut &line[..], &mut written).unwrap();
    assert_eq!(written.events, [""; 0]);
    assert_eq!(written.notes, ["UnknownHandle"]);
}

#[test]
fn question_for_a_lock_is_no_lock() {
    let lines = "10:15:30.009000  open              F=9        (RW____________)  /V/x.db    0.000800   app.7\n\
                 10:15:30.010300  fcntl             F=9   <GETLK>                              0.000200   app.7\n\
                 10:15:30.010600  fcntl             F=9   <SETLK>                              0.000200   app.7\n";
    let mut written = Written::default();
    import(&mut FsUsageImporter::default(), &mut lines.as_bytes(), &mut written).unwrap();
    assert_eq!(written.events[1..], ["Lock { handle: 1 } Done"]);
    assert_eq!(written.notes, [""; 0]);
}

#[test]
fn parts_of_a_line_are_split() {
    let text = b"23:59:59.999999  pread             F=5     B=0x1000     O=0x00002000           /V/a b 0.5.txt     0.000123 W Google Chrome He.4711";
    let line = parse(text).unwrap();
    assert_eq!((line.name, line.path), (&b"pread"[..], &b"/V/a b 0.5.txt"[..]));
    assert_eq!((line.descriptor, line.bytes, line.offset), (Some(5), Some(0x1000), Some(0x2000)));
    assert_eq!((line.command, line.thread), (&b"Google Chrome He"[..], 4711));
    assert_eq!(line.took, Duration::from_micros(123));
}

#[test]
fn openings_without_an_end_are_closed_at_the_limit() {
    let open = |number: usize| {
        format!("10:15:30.009000  open              F={number}  (R_____________)  /V/x    0.000800   app.7\n")
    };
    let lines: String = (3..MAX_OPEN + 4).map(open).collect();
    let mut written = Written::default();
    import(&mut FsUsageImporter::default(), &mut lines.as_bytes(), &mut written).unwrap();
    assert_eq!(written.events.iter().filter(|event| event.starts_with("Close")).count(), MAX_OPEN);
}
