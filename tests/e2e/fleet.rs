//! Tests of `longhaul export fleet`.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_demo::synthetic_history;

use crate::support::Place;

/// Creates a test environment with two weeks of results.
fn two_weeks() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.data()).unwrap();
    synthetic_history::fill_database(&place.database(), (synthetic_history::BEGIN, 2)).unwrap();
    place
}

/// Returns the files named `data.parquet` below a folder that belong to a machine.
fn data_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("week=0000-W00") {
            found.extend(data_files(&entry));
        } else if entry.ends_with("data.parquet") {
            found.push(entry);
        }
    }
    found.sort();
    found
}

#[test]
fn repeated_fleet_export_writes_nothing_and_passes_its_check() {
    let place = two_weeks();
    let fleet = place.folder("fleet");
    let export = || place.longhaul("export fleet --site berlin --to").arg(&fleet).expect(0);
    export().assert_stderr(&["rows written in"]);
    let files = data_files(&fleet);
    export().assert_stderr(&["nothing new: 2 weeks"]);
    assert_eq!(data_files(&fleet), files);
    let checked = place.longhaul("export fleet --check --to").arg(&fleet).expect(0);
    assert!(checked.out.contains(&format!("{} files", files.len())), "{checked}");
}

#[test]
fn truncated_file_of_a_fleet_is_moved_away() {
    let place = two_weeks();
    let fleet = place.folder("fleet");
    place.configure(&format!("[fleet]\nto = \"{}\"\nsite = \"oslo\"\n", fleet.display()));
    place.longhaul("export fleet").expect(0);
    let files = data_files(&fleet);
    let whole = fs::read(&files[0]).unwrap();
    fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
    let refused = place.longhaul("export fleet --check --move-refused").expect(3);
    assert!(refused.out.contains("damaged or incomplete") && refused.out.contains("1 refused"), "{refused}");
    place.longhaul("export fleet --check").expect(0);
}

#[test]
fn wrong_options_of_a_fleet_export_say_what_to_do() {
    let place = Place::new();
    place.longhaul("export fleet").expect(2).assert_stderr(&["--to /Volumes/fleet", "[fleet]"]);
    place.longhaul("export fleet --format csv --to fleet").expect(2).assert_stderr(&["no --format"]);
    place
        .longhaul("export runs --format csv --check")
        .expect(2)
        .assert_stderr(&["only `export fleet` has --check"]);
    place.longhaul("export runs").expect(2).assert_stderr(&["--format csv"]);
    place.longhaul("export fleet --to gs://bucket").expect(1).assert_stderr(&["s3://bucket/fleet"]);
}
