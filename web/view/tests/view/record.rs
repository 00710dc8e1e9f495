//! Tests what the screens say about recordings.

use std::collections::BTreeMap;

use longhaul_model::{Operation, Protocol};
use longhaul_recording::{
    Account, FileKind, OperationCount, OperationTimes, Overview, Source, TimesOverview, TreeOverview,
    UnknownCall,
};
use longhaul_view::render::markdown;
use longhaul_view::screens::record::{self, ListedRecording};

fn overview() -> Overview {
    let count = |kind, count, failed, bytes| OperationCount { kind, count, failed, bytes };
    Overview {
        source: Source::Strace,
        recorded_on: Some(Protocol::Nfs(Some("4.2".to_owned()))),
        tree: TreeOverview {
            files: 155,
            folders: 3,
            links: 1,
            absent: 160,
            depth: 4,
            largest_folder: 155,
            bytes: 310_000_000,
            kinds: BTreeMap::from([(FileKind::Image, 310), (FileKind::Other, 9)]),
        },
        operations: vec![count("read", 12_400, 0, 310_000_000), count("read attributes", 640, 155, 0)],
        threads: 4,
        from_open_folders: Some(480),
        long_pauses: 2,
        pause_seconds: 61.5,
        times: Some(TimesOverview {
            total_seconds: 75.2,
            waiting_seconds: 13.7,
            by_operation: vec![OperationTimes {
                operation: Operation::Read,
                count: 12_400,
                p50_seconds: Some(0.0011),
                p95_seconds: None,
            }],
        }),
        account: Account {
            lines: 20_000,
            used: 13_040,
            outside: 7_000,
            unknown_calls: vec![UnknownCall { name: "copy_file_range".to_owned(), count: 412 }],
            ..Account::default()
        },
    }
}

#[test]
fn everything_that_is_kept_is_shown() {
    insta::assert_snapshot!(markdown::render(&record::show("day-1", &overview())));
}

#[test]
fn list_names_what_is_replayed_and_what_is_damaged() {
    let one = |name: &str, overview| ListedRecording {
        name: name.to_owned(),
        is_replayed: name == "day-1",
        bytes: Some(26_388),
        overview,
    };
    let all = [one("day-1", Ok(overview())), one("day-2", Err("its checksum is wrong".to_owned()))];
    insta::assert_snapshot!(markdown::render(&record::list(&all)));
    let none = markdown::render(&record::list(&[]));
    assert!(none.contains("longhaul record -- PROGRAM"), "{none}");
}

#[test]
fn account_never_rounds_up_to_all() {
    let account = Account { used: 99_999, damaged: 1, ..Account::default() };
    assert_eq!(record::account(&account), "99.9 % of operations understood; 1 line not understood.");
    assert_eq!(record::account(&Account::default()), "No operation in the folder was found.");
}
