use std::collections::BTreeSet;

use super::*;
use crate::error::RunError;
use crate::platform::{self, System};
use crate::recorder::Recorder;
use crate::sandbox::{CleanMode, Sandbox, SandboxLocation};
use crate::timed_fs::{StopSwitch, TimedFs};
use longhaul_model::{Mount, Target};

fn every_expectation(system: System) -> Vec<(&'static str, Expectation)> {
    let of_targets = target_checks().map(|check| (check.name, *check.expected.for_system(system)));
    let of_machine = machine_checks().map(|check| (check.name, *check.expected.for_system(system)));
    of_targets.chain(of_machine).collect()
}

#[test]
fn check_names_are_unique() {
    let calls: Vec<&str> = every_expectation(System::Linux).iter().map(|(call, _)| *call).collect();
    assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "{calls:?}");
    assert!(calls.len() > 30);
}

#[test]
fn every_expectation_has_a_source() {
    for system in [System::Linux, System::MacOs] {
        for (call, Expectation { text, source }) in every_expectation(system) {
            assert!(!text.is_empty() && !source.is_empty(), "{call}");
            assert!(!text.contains('|') && !source.contains('|'), "{call}: `|` separates table cells");
        }
    }
}

#[test]
fn macos_expectations_cite_sources_about_macos() {
    const SOURCES: [&str; 8] =
        ["xnu ", "SMBClient ", "NFS ", "Libc ", "man ", "PowerManagement ", "network_cmds ", "Apple "];
    for (call, Expectation { source, .. }) in every_expectation(System::MacOs) {
        assert!(SOURCES.iter().any(|known| source.contains(known)), "{call}: {source}");
    }
}

/// Runs every target check on a local folder, then passes the folder, the answers and the sandbox to `inspect`.
fn check_all(inspect: impl FnOnce(&std::path::Path, &[(String, CheckAnswer)], &Sandbox, &TimedFs<'_>)) {
    let place = tempfile::tempdir().unwrap();
    let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
    let context = TimedFs::new(&recorder, 0, &stop);
    let target = Target {
        name: "nas".parse().unwrap(),
        path: place.path().to_owned(),
        role: longhaul_model::Role::Share,
    };
    let location =
        SandboxLocation { target_path: &target.path, target: &target.name, machine: SELFCHECK_MACHINE_ID };
    let mounts = platform::mounts().unwrap();
    let mount = Mount::for_path(&mounts, place.path()).unwrap();
    let on = CheckedTarget { context: &context, target: &target, mount: Some((mount, &mount.protocol)) };
    let sandbox = Sandbox::open(&location, &context).unwrap();
    let mut answers = vec![];
    for check in target_checks() {
        let answer = match check.method {
            TargetCheckMethod::Open | TargetCheckMethod::Remove => continue,
            TargetCheckMethod::Mount(run) => run(&on),
            TargetCheckMethod::Files(run) => {
                let scratch = ScratchFolder::create(&sandbox, &context).unwrap();
                let answer = run(&on, &scratch).unwrap_or_else(|error| CheckAnswer::failed(&error));
                scratch.remove(&context).unwrap_or_else(|error| panic!("{}: {error}", check.name));
                answer
            }
        };
        answers.push((check.name.to_owned(), answer));
    }
    inspect(place.path(), &answers, &sandbox, &context);
}

#[test]
fn checks_of_a_local_folder_are_as_expected() {
    check_all(|place, answers, _, _| {
        for (call, answer) in answers {
            assert_ne!(answer.verdict, CheckOutcome::Differs, "{call}: {}", answer.text);
            assert!(!answer.text.contains('/'), "{call}: {}", answer.text);
        }
        let sandbox = place.join(".longhaul-selfcheck-nas");
        let mut left: Vec<_> =
            std::fs::read_dir(sandbox).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".metadata_never_index", "manifest.json", "sandbox.json"]);
    });
}

#[test]
fn only_leftovers_of_a_killed_check_are_removed() {
    check_all(|place, _, sandbox, context| {
        let folder = place.join(".longhaul-selfcheck-nas/selfcheck");
        std::fs::create_dir(&folder).unwrap();
        for name in ["time", "._time", "entry-7", "._marked-0", "moved"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        ScratchFolder::create(sandbox, context).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::write(folder.join("foreign.txt"), "mine").unwrap();
        let scratch = ScratchFolder::create(sandbox, context).unwrap();
        assert!(scratch.remove(context).is_err(), "a folder with a foreign file is not removed");
        let report = sandbox.clean(CleanMode::Remove, context, &owns).unwrap();
        assert_eq!((report.foreign.len(), report.sandbox_removed), (1, false));
        assert!(folder.join("foreign.txt").exists());
        std::fs::remove_file(folder.join("foreign.txt")).unwrap();
    });
}

#[test]
fn clean_recognizes_the_files_of_a_killed_check() {
    check_all(|place, _, sandbox, context| {
        let folder = place.join(".longhaul-selfcheck-nas/selfcheck");
        std::fs::create_dir(&folder).unwrap();
        for name in ["time", "._moved", "marked-3", "over-new"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let report = sandbox.clean(CleanMode::Remove, context, &owns).unwrap();
        assert!(report.sandbox_removed, "{report:?}");
        assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
    });
}

#[test]
fn refusal_text_contains_no_path_and_no_names() {
    let text =
        |reason: &str| error_text(&RunError::refused("/home/anna/nas".as_ref(), reason, "Do something"));
    assert_eq!(text("there is no such folder"), "refused: there is no such folder");
    assert_eq!(
        text("the sandbox belongs to the target `annas`"),
        "refused: the sandbox belongs to the target …"
    );
    assert_eq!(
        text("the sandbox belongs to another machine (8f3a)"),
        "refused: the sandbox belongs to another machine"
    );
    assert_eq!(
        text("it is mounted read-only (mkdir: EROFS)"),
        "refused: it is mounted read-only (mkdir: EROFS)"
    );
}
