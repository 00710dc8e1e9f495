//! Exports to a folder, and checks of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use longhaul_fleet::{
    BucketEnvironment, Collection, Error, ExportSettings, MissingCollection, RefusedFiles, WeeksToWrite,
    check, export,
};
use longhaul_model::Timestamp;
use longhaul_model::time::{DAY, HOUR};

use crate::support::{MONDAY, Machine, files, settings};

struct Fleet {
    folder: tempfile::TempDir,
}

impl Fleet {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn collection(&self) -> Collection {
        let address = self.path().to_str().unwrap();
        Collection::open(address, None, MissingCollection::Begin, BucketEnvironment::All).unwrap()
    }

    fn data_files(&self, table: &str) -> Vec<PathBuf> {
        let wanted = format!("table={table}");
        let paths = files(self.path()).into_iter().map(|(path, _)| path);
        paths
            .filter(|path| {
                path.to_str().unwrap().contains(&wanted) && !path.to_str().unwrap().contains("week=0000")
            })
            .collect()
    }

    fn refused(&self) -> Vec<(String, String)> {
        let report = check(&self.collection(), RefusedFiles::Keep, MONDAY + 30 * DAY).unwrap();
        report.refused.into_iter().map(|refused| (refused.path, refused.reason)).collect()
    }
}

#[test]
fn repeated_export_writes_nothing_and_changes_nothing() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 1, 8]), Fleet::new());
    let first = export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let written = files(fleet.path());
    let second = export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    // Two weeks with rounds, runs, readings and operations.
    assert_eq!((first.files, first.weeks, second.files), (8, 2, 0));
    assert_eq!(files(fleet.path()), written);
    let all = ExportSettings { weeks: WeeksToWrite::All, ..settings(20) };
    assert_eq!(export(&machine.reader(), &fleet.collection(), &all).unwrap().files, 8);
    assert_eq!(files(fleet.path()), written, "the same records always give the same bytes");
}

#[test]
fn source_stays_the_same_after_another_recording_is_chosen() {
    let (machine, fleet) = (Machine::with_rounds_on(&[]), Fleet::new());
    machine.add_replay(MONDAY, "photos");
    let first = export(&machine.reader(), &fleet.collection(), &settings(1)).unwrap();
    machine.add_replay(MONDAY + DAY, "mail");
    let second = export(&machine.reader(), &fleet.collection(), &settings(2)).unwrap();
    assert_eq!(second.source, first.source);
}

#[test]
fn new_round_replaces_only_its_own_week() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 8]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(9)).unwrap();
    machine.add_round(MONDAY + 9 * DAY);
    let report = export(&machine.reader(), &fleet.collection(), &settings(10)).unwrap();
    assert_eq!(report.files, 4, "rounds, runs, readings and operations of one week");
    assert_eq!(fleet.data_files("runs").len(), 2);
    assert_eq!(fleet.refused(), []);
}

#[test]
fn new_site_reaches_finished_weeks() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 8]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let moved = ExportSettings { site: "munich".to_owned(), ..settings(20) };
    assert_eq!(export(&machine.reader(), &fleet.collection(), &moved).unwrap().files, 8, "all of both weeks");
    assert_eq!(export(&machine.reader(), &fleet.collection(), &moved).unwrap().files, 0);
}

#[test]
fn samples_that_the_database_no_longer_has_stay_exported() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
    machine.add_probe(MONDAY + DAY);
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let samples = || fs::read(&fleet.data_files("samples")[0]).unwrap();
    let exported = samples();
    machine.add_probe(MONDAY + 450 * DAY);
    let moved = ExportSettings { site: "munich".to_owned(), ..settings(460) };
    assert_eq!(export(&machine.reader(), &fleet.collection(), &moved).unwrap().files, 4, "all but samples");
    assert_eq!(samples(), exported);
}

#[test]
fn lost_manifest_leads_to_the_same_files() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 8]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let written = files(fleet.path());
    fs::remove_dir_all(fleet.path().join("manifests")).unwrap();
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    assert_eq!(files(fleet.path()), written);
}

#[test]
fn cloned_machine_does_not_replace_the_original() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
    let clone = Machine::new();
    fs::copy(machine.database(), clone.database()).unwrap();
    machine.add_round(MONDAY + DAY);
    clone.add_round(MONDAY + DAY + HOUR);
    export(&machine.reader(), &fleet.collection(), &settings(5)).unwrap();
    let written = files(fleet.path());
    let refused = export(&clone.reader(), &fleet.collection(), &settings(5)).unwrap_err();
    assert!(matches!(refused, Error::SameMachineId { .. }), "{refused}");
    assert_eq!(files(fleet.path()), written);
}

#[test]
fn moved_database_enters_the_fleet_only_once() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 1]), Fleet::new());
    let first = export(&machine.reader(), &fleet.collection(), &settings(2)).unwrap();
    let machine = machine.moved_to("b");
    let nothing = export(&machine.reader(), &fleet.collection(), &settings(3)).unwrap_err();
    assert!(matches!(nothing, Error::Empty), "{nothing}");
    machine.add_round(MONDAY + 3 * DAY);
    let moved = export(&machine.reader(), &fleet.collection(), &settings(4)).unwrap();
    assert_ne!(moved.source, first.source);
    assert_eq!((first.weeks, moved.weeks, moved.files), (1, 1, 4));
    let one_round =
        export(&Machine::with_rounds_on(&[3]).reader(), &fleet.collection(), &settings(4)).unwrap();
    assert_eq!(moved.rows, one_round.rows, "one of three rounds, not all of them again");
    let machine = machine.moved_to("a");
    machine.add_round(MONDAY + 4 * DAY);
    let returned = export(&machine.reader(), &fleet.collection(), &settings(5)).unwrap();
    assert_eq!(returned.rows, moved.rows);
    assert!(returned.source != first.source, "its first rounds are not replaced");
    assert_eq!(returned.source.split('-').next(), first.source.split('-').next());
}

#[test]
fn moved_database_is_divided_by_number_and_not_by_time() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
    machine.add_event(MONDAY + HOUR);
    // The move has the present time: as if the clock was set back by years afterwards.
    let machine = machine.moved_to("b");
    machine.add_round(MONDAY + 3 * DAY);
    machine.add_event(MONDAY + 3 * DAY);
    machine.add_freshness(2, MONDAY + 3 * DAY);
    let moved = export(&machine.reader(), &fleet.collection(), &settings(4)).unwrap();
    assert_eq!(["events", "freshness"].map(|table| fleet.data_files(table).len()), [1, 1]);
    let one_round =
        export(&Machine::with_rounds_on(&[3]).reader(), &fleet.collection(), &settings(4)).unwrap();
    assert_eq!(moved.rows, one_round.rows + 2, "the earlier event is that of another computer");
}

#[test]
fn records_of_a_wrong_clock_are_left_out_with_the_reason() {
    let machine = Machine::with_rounds_on(&[0]);
    machine.add_round(Timestamp::from_us(60_000_000));
    machine.add_round(Timestamp::from_us(4_102_444_800_000_000));
    let fleet = Fleet::new();
    let report = export(&machine.reader(), &fleet.collection(), &settings(5)).unwrap();
    let left_out: Vec<usize> = report.left_out.iter().map(|left_out| left_out.records).collect();
    assert_eq!((report.weeks, left_out), (1, vec![2, 4]), "two rounds and their four runs");
}

#[test]
fn private_paths_are_not_exported() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(5)).unwrap();
    for (path, content) in files(fleet.path()) {
        assert!(!content.windows(6).any(|part| part == b"secret"), "{}", path.display());
    }
}

#[test]
fn check_refuses_damaged_newer_and_copied_files_and_counts_the_others() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 8, 15]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let runs = fleet.data_files("runs");
    let whole = fs::read(&runs[0]).unwrap();
    fs::write(&runs[0], &whole[..whole.len() - 10]).unwrap();
    let newer = PathBuf::from(runs[1].to_str().unwrap().replace("schema=1", "schema=2"));
    fs::create_dir_all(newer.parent().unwrap()).unwrap();
    fs::copy(&runs[1], newer).unwrap();
    let copied = runs[1].parent().unwrap().with_file_name("machine=copy").join("data.parquet");
    fs::create_dir_all(copied.parent().unwrap()).unwrap();
    fs::copy(&runs[1], copied).unwrap();
    let reasons: Vec<String> = fleet.refused().into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    for wanted in ["damaged or incomplete", "newer longhaul (schema 2", "copied from the folder of machine"] {
        assert!(reasons.iter().any(|reason| reason.contains(wanted)), "{wanted}: {reasons:?}");
    }
    let moved = check(&fleet.collection(), RefusedFiles::Move, MONDAY + 30 * DAY).unwrap();
    assert_eq!((moved.files, moved.refused.len()), (11, 3));
    assert_eq!(fleet.refused(), [], "refused files are out of the way");
}

#[test]
fn check_refuses_records_from_the_future() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0, 8]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let report = check(&fleet.collection(), RefusedFiles::Keep, MONDAY + 5 * DAY).unwrap();
    let reasons: Vec<&str> = report.refused.iter().map(|refused| refused.reason.as_str()).collect();
    assert_eq!(reasons.len(), 3, "rounds, runs and operations of the second week: {reasons:?}");
    assert!(reasons.iter().all(|reason| reason.contains("in the future")), "{reasons:?}");
}

#[test]
fn check_leaves_files_of_others_alone() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let others = ["README.md", "other/app.db"].map(|path| fleet.path().join(path));
    fs::create_dir(fleet.path().join("other")).unwrap();
    others.iter().for_each(|path| fs::write(path, "not of longhaul").unwrap());
    let report = check(&fleet.collection(), RefusedFiles::Move, MONDAY + 30 * DAY).unwrap();
    assert_eq!((report.refused, report.foreign), (vec![], 2));
    assert!(others.iter().all(|path| path.exists()));
}

#[test]
fn check_neither_follows_nor_moves_links() {
    let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
    export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let kept = elsewhere.path().join("keep.txt");
    fs::write(&kept, "not of longhaul").unwrap();
    symlink(elsewhere.path(), fleet.path().join("schema=1/x")).unwrap();
    symlink(&kept, fleet.path().join("schema=1/y")).unwrap();
    symlink(elsewhere.path(), fleet.path().join("other")).unwrap();
    let report = check(&fleet.collection(), RefusedFiles::Move, MONDAY + 30 * DAY).unwrap();
    let refused: Vec<&str> = report.refused.iter().map(|refused| refused.path.as_str()).collect();
    assert_eq!((refused, report.foreign), (vec!["schema=1/x", "schema=1/y"], 1));
    assert!(report.refused.iter().all(|refused| refused.reason.contains("a symbolic link")));
    assert_eq!(fs::read_to_string(kept).unwrap(), "not of longhaul");
    assert!(!fleet.path().join("refused").exists());
}

#[test]
fn refused_file_replaces_no_other_and_leaves_no_folder() {
    let (fleet, elsewhere) = (Fleet::new(), tempfile::tempdir().unwrap());
    let stray = fleet.path().join("schema=1/stray");
    let refuse = |content: &str| {
        fs::create_dir_all(stray.parent().unwrap()).unwrap();
        fs::write(&stray, content).unwrap();
        check(&fleet.collection(), RefusedFiles::Move, MONDAY + 30 * DAY).unwrap().refused
    };
    refuse("first");
    refuse("second");
    let moved = |name: &str| fs::read_to_string(fleet.path().join("refused/schema=1").join(name)).unwrap();
    assert_eq!((moved("stray"), moved("stray.1")), ("first".to_owned(), "second".to_owned()));
    fs::remove_dir_all(fleet.path().join("refused")).unwrap();
    symlink(elsewhere.path(), fleet.path().join("refused")).unwrap();
    let refused = refuse("third");
    assert!(refused[0].reason.contains("the folder refused in"), "{}", refused[0].reason);
    assert_eq!(fs::read_to_string(&stray).unwrap(), "third");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn export_does_not_write_through_linked_folders() {
    for linked in ["schema=1", "manifests"] {
        let (machine, fleet) = (Machine::with_rounds_on(&[0]), Fleet::new());
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), fleet.path().join(linked)).unwrap();
        let error = export(&machine.reader(), &fleet.collection(), &settings(20)).unwrap_err();
        assert!(matches!(&error, Error::LinkedFolder { folder, .. } if folder == linked), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
