//! Whatever a trace holds, it becomes a recording that is valid and reads back.

use longhaul_recording::{Recording, Scrubber, Source, import, importer};
use proptest::prelude::*;

const SOURCES: [Source; 6] =
    [Source::Strace, Source::FsUsage, Source::Eslogger, Source::SambaAudit, Source::Synology, Source::Qnap];

const FIXTURES: [&[u8]; 6] = [
    include_bytes!("../fixtures/strace/shell.txt"),
    include_bytes!("../fixtures/fs_usage.txt"),
    include_bytes!("../fixtures/eslogger.jsonl"),
    include_bytes!("../fixtures/samba-full-audit.log"),
    include_bytes!("../fixtures/synology.log"),
    include_bytes!("../fixtures/qnap.csv"),
];

fn check(source: Source, trace: &[u8]) {
    let folder = b"/srv";
    let mut importer = importer(source, folder).expect("it is a trace of text");
    let mut scrubber = Scrubber::new(folder);
    import(importer.as_mut(), &mut &*trace, &mut scrubber).expect("reading memory");
    let recording = scrubber.finish(source, None);
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
}

/// A change of a trace: takes a line away, moves it, cuts it, or puts bytes into it.
#[derive(Debug, Clone)]
enum Change {
    Remove(usize),
    Move(usize, usize),
    Cut(usize, usize),
    Insert(usize, usize, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..20);
    let number = || 0..10_000usize;
    prop_oneof![
        number().prop_map(Change::Remove),
        (number(), number()).prop_map(|(from, to)| Change::Move(from, to)),
        (number(), number()).prop_map(|(line, length)| Change::Cut(line, length)),
        (number(), number(), bytes).prop_map(|(line, at, bytes)| Change::Insert(line, at, bytes)),
    ]
}

fn changed(trace: &[u8], changes: Vec<Change>) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = trace.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for change in changes {
        let count = lines.len();
        match change {
            Change::Remove(line) if count > 1 => drop(lines.remove(line % count)),
            Change::Remove(_) => {}
            Change::Move(from, to) => lines.swap(from % count, to % count),
            Change::Cut(line, length) => {
                let line = &mut lines[line % count];
                line.truncate(length % (line.len() + 1));
            }
            Change::Insert(line, at, bytes) => {
                let line = &mut lines[line % count];
                let at = at % (line.len() + 1);
                line.splice(at..at, bytes);
            }
        }
    }
    lines.join(&b'\n')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_and_shuffled_traces_become_recordings(
        changes in proptest::collection::vec(change(), 0..80),
        source in 0..SOURCES.len(),
    ) {
        check(SOURCES[source], &changed(FIXTURES[source], changes));
    }

    #[test]
    fn any_bytes_become_a_recording(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        SOURCES.iter().for_each(|source| check(*source, &bytes));
    }

    #[test]
    fn trace_of_another_kind_becomes_a_recording(source in 0..SOURCES.len(), trace in 0..FIXTURES.len()) {
        check(SOURCES[source], FIXTURES[trace]);
    }
}
