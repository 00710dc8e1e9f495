//! Files that cannot be those of another machine are refused with the reason, and the others still merge.

use longhaul_analysis::summary::Week;
use longhaul_model::{Role, RoundStatus};

use super::machines::{named, share};
use crate::{MAX_FILE_BYTES, RoundDesign, SharedFile, SharedResults, SharedRound, merge, read};

fn reason(bytes: &[u8]) -> String {
    read(bytes, Some("2026-W10".parse::<Week>().unwrap())).unwrap_err().to_string()
}

/// Returns a file with one text replaced by another.
fn replaced(from: &str, to: &str) -> Vec<u8> {
    let text = share(1, 0.0).to_json();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn each_bad_file_is_refused_with_its_reason() {
    let text = share(1, 0.0).to_json();
    let week = share(1, 0.0).first_week.to_string();
    let cases: [(Vec<u8>, &str); 16] = [
        (replaced("\"schema\":1", "\"schema\":2"), "update longhaul"),
        (text.as_bytes()[..text.len() / 2].to_vec(), "its end is missing"),
        (vec![], "its end is missing"),
        (b"\x1f\x8b\x08bomb".to_vec(), "compressed"),
        (b"PK\x03\x04bomb".to_vec(), "compressed"),
        (vec![b' '; MAX_FILE_BYTES + 1], "larger than 64 MB"),
        (b"{\"format\":\"longhaul runs\"}".to_vec(), "its `format` is not"),
        (b"hello".to_vec(), "not JSON"),
        (replaced("\"threshold\":1.1", "\"threshold\":NaN"), "not JSON"),
        (replaced("\"threshold\":1.1", "\"threshold\":1e999"), "number out of range"),
        (replaced("\"seconds\":", "\"seconds\":-"), "negative time"),
        (replaced(&week, "1970-W01"), "before longhaul existed"),
        (replaced(&week, "2100-W01"), "in the future"),
        (replaced("\"threshold\":1.1", "\"threshold\":1.1,\"owner\":\"anna\""), "damaged"),
        (replaced("\"day\":0", "\"day\":73000"), "ten years"),
        (replaced("\"targets\":[0,1]}", "\"targets\":[]}"), "a plan has no target"),
    ];
    for (bytes, expected) in cases {
        let found = reason(&bytes);
        assert!(found.contains(expected), "{found} instead of {expected}");
    }
}

/// Returns why a file is refused that this changes.
fn reason_after(change: fn(&mut SharedResults)) -> String {
    let mut changed = share(1, 0.0);
    change(&mut changed);
    read(changed.to_json().as_bytes(), None).unwrap_err().to_string()
}

#[test]
fn file_that_would_take_hours_to_check_is_refused() {
    let many_targets = reason_after(|share| share.targets.resize(33, Role::Share));
    assert!(many_targets.contains("more than 32 targets"), "{many_targets}");
    let large_plan = reason_after(|share| {
        share.plans.push(RoundDesign { tasks: vec!["folder-index".to_owned(); 100], targets: vec![0; 32] });
        let round = SharedRound { plan: share.plans.len() - 1, runs: vec![], ..share.rounds[0].clone() };
        let void = SharedRound { status: RoundStatus::Void, ..round };
        share.rounds.extend(std::iter::repeat_n(void, 2_000));
    });
    assert!(large_plan.contains("more than 5 million runs"), "{large_plan}");
}

#[test]
fn others_still_merge_and_repeats_change_nothing() {
    let broken = || SharedFile { name: "broken".to_owned(), content: Err("its end is missing".to_owned()) };
    let files =
        || vec![named("a", share(1, 0.1)), broken(), named("b", share(2, 0.1)), named("c", share(3, 0.1))];
    let once = merge(files());
    assert_eq!((once.machines, once.refused.len()), (3, 1));
    let twice = merge([files(), files()].concat());
    assert_eq!((twice.machines, &twice.pairs), (3, &once.pairs));
    assert_eq!(twice.refused.len(), 1 + 1 + 3, "each repeated file is named");
    let mut reversed = files();
    reversed.reverse();
    assert_eq!(merge(reversed).pairs, once.pairs, "the order of the files changes nothing");
}

#[test]
fn older_file_of_a_machine_is_replaced_by_the_newer_one() {
    let mut newer = share(4, 0.1);
    let mut older = newer.clone();
    older.rounds.pop();
    // After a repair of its database a machine has fewer rounds than before.
    newer.rounds.drain(..20);
    for files in [[older.clone(), newer.clone()], [newer.clone(), older]] {
        let merged = merge(files.into_iter().map(|share| named("file", share)).collect());
        assert_eq!(merged.machines, 1);
        assert_eq!(merged.pairs[0].each[0].days, newer.figures[0].days);
        assert!(merged.refused[0].reason.starts_with("it is an older file"), "{:?}", merged.refused);
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let text = share(5, 0.0).to_json().into_bytes();
    for place in (0..text.len()).step_by(text.len() / 300) {
        let mut damaged = text.clone();
        damaged[place] = damaged[place].wrapping_add(7);
        // A changed digit can still be a possible value; then the checks must not panic either.
        if let Ok(share) = read(&damaged, None) {
            crate::check(&share);
        }
    }
}
