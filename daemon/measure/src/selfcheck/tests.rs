use std::collections::BTreeSet;

use super::*;
use crate::arena::{Arena, Claim, Mode};
use crate::context::StopSwitch;
use crate::recorder::Recorder;

fn every_expectation(system: System) -> Vec<(&'static str, Expectation)> {
    let of_targets = target_checks().map(|check| (check.call, *check.expected.on(system)));
    let of_machine = machine_checks().map(|check| (check.call, *check.expected.on(system)));
    of_targets.chain(of_machine).collect()
}

#[test]
fn no_call_has_two_rows() {
    let calls: Vec<&str> = every_expectation(System::Linux).iter().map(|(call, _)| *call).collect();
    assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "{calls:?}");
    assert!(calls.len() > 30);
}

#[test]
fn every_expectation_has_a_source() {
    for system in [System::Linux, System::MacOs] {
        for (call, Expectation { text, source }) in every_expectation(system) {
            assert!(!text.is_empty() && !source.is_empty(), "{call}");
            assert!(!text.contains('|') && !source.contains('|'), "{call}: a sign of the table");
        }
    }
}

#[test]
fn every_expectation_of_a_mac_cites_apple() {
    const SOURCES: [&str; 8] =
        ["xnu ", "SMBClient ", "NFS ", "Libc ", "man ", "PowerManagement ", "network_cmds ", "Apple "];
    for (call, Expectation { source, .. }) in every_expectation(System::MacOs) {
        assert!(SOURCES.iter().any(|known| source.contains(known)), "{call}: {source}");
    }
}

/// Makes every check that needs files on a folder of this machine, and gives the sandbox to a last look.
fn check_all(look: impl FnOnce(&std::path::Path, &[(String, Answer)], &Arena, &Context<'_>)) {
    let place = tempfile::tempdir().unwrap();
    let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
    let context = Context::new(&recorder, 0, &stop);
    let target = Target {
        name: "nas".parse().unwrap(),
        path: place.path().to_owned(),
        role: crate::model::Role::Share,
    };
    let claim = Claim { target_path: &target.path, target: &target.name, machine: MACHINE };
    let mounts = platform::mounts().unwrap();
    let mount = Mount::of_path(&mounts, place.path()).unwrap();
    let on = CheckedTarget { context: &context, target: &target, reached: Some((mount, &mount.protocol)) };
    let arena = Arena::open(&claim, &context).unwrap();
    let mut answers = vec![];
    for check in target_checks() {
        let answer = match check.ask {
            Ask::Open | Ask::Remove => continue,
            Ask::Mount(ask) => ask(&on),
            Ask::Files(ask) => {
                let scratch = Scratch::make(&arena, &context).unwrap();
                let answer = ask(&on, &scratch).unwrap_or_else(|error| Answer::failed(&error));
                scratch.remove(&context).unwrap_or_else(|error| panic!("{}: {error}", check.call));
                answer
            }
        };
        answers.push((check.call.to_owned(), answer));
    }
    look(place.path(), &answers, &arena, &context);
}

#[test]
fn a_local_folder_answers_every_call_as_expected() {
    check_all(|place, answers, _, _| {
        for (call, answer) in answers {
            assert_ne!(answer.verdict, Verdict::Differs, "{call}: {}", answer.text);
            assert!(!answer.text.contains('/'), "{call}: {}", answer.text);
        }
        let sandbox = place.join(".longhaul-selfcheck-nas");
        let mut left: Vec<_> =
            std::fs::read_dir(sandbox).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".metadata_never_index", "arena.json", "manifest.json"]);
    });
}

#[test]
fn what_a_killed_check_left_is_removed_and_nothing_else() {
    check_all(|place, _, arena, context| {
        let folder = place.join(".longhaul-selfcheck-nas/selfcheck");
        std::fs::create_dir(&folder).unwrap();
        for name in ["time", "._time", "entry-7", "a:b", "Case"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        Scratch::make(arena, context).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::write(folder.join("diary.txt"), "mine").unwrap();
        let scratch = Scratch::make(arena, context).unwrap();
        assert!(scratch.remove(context).is_err(), "a folder with a foreign file stays");
        let report = arena.clean(Mode::Remove, context, &owns).unwrap();
        assert_eq!((report.foreign.len(), report.arena_removed), (1, false));
        assert!(folder.join("diary.txt").exists());
        std::fs::remove_file(folder.join("diary.txt")).unwrap();
    });
}

#[test]
fn clean_recognizes_the_files_of_a_killed_check() {
    check_all(|place, _, arena, context| {
        let folder = place.join(".longhaul-selfcheck-nas/selfcheck");
        std::fs::create_dir(&folder).unwrap();
        for name in ["time", "._moved", "marked-3", &"n".repeat(255), "caf\u{e9}"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let report = arena.clean(Mode::Remove, context, &owns).unwrap();
        assert!(report.arena_removed, "{report:?}");
        assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
    });
}

#[test]
fn a_refusal_is_told_without_its_path_and_names() {
    let told =
        |reason: &str| error_text(&RunError::refused("/home/anna/nas".as_ref(), reason, "Do something"));
    assert_eq!(told("there is no such folder"), "refused: there is no such folder");
    assert_eq!(told("the arena belongs to the target `annas`"), "refused: the arena belongs to the target …");
    assert_eq!(
        told("the arena belongs to another machine (8f3a)"),
        "refused: the arena belongs to another machine"
    );
    assert_eq!(
        told("it is mounted read-only (mkdir: EROFS)"),
        "refused: it is mounted read-only (mkdir: EROFS)"
    );
}
