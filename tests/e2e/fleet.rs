//! Tests of `longhaul export fleet`, and of the service that runs it once a day.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::{Place, machine, template};

/// Creates a test environment with two weeks of results.
fn two_weeks() -> Place {
    let place = Place::new();
    template::made_up_days(&place.database(), 14);
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
    let export = || place.longhaul("export fleet --begin --site berlin --to").arg(&fleet).expect(0);
    export().assert_stderr(&["written in"]);
    let files = data_files(&fleet);
    export().assert_stderr(&["nothing new: exported before: 2 weeks"]);
    assert_eq!(data_files(&fleet), files);
    let checked = place.longhaul("export fleet --check --to").arg(&fleet).expect(0);
    assert!(checked.out.contains(&format!("{} files", files.len())), "{checked}");
}

#[test]
fn truncated_file_of_a_fleet_is_moved_away() {
    let place = two_weeks();
    let fleet = place.folder("fleet");
    place.configure(&format!("[fleet]\nto = \"{}\"\nsite = \"oslo\"\n", fleet.display()));
    place.longhaul("export fleet --begin").expect(0);
    let files = data_files(&fleet);
    let whole = fs::read(&files[0]).unwrap();
    fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
    let refused = place.longhaul("export fleet --check --move-refused").expect(3);
    assert!(refused.out.contains("damaged or incomplete") && refused.out.contains("refused: 1"), "{refused}");
    place.longhaul("export fleet --check").expect(0);
}

#[test]
fn folder_without_a_collection_is_refused_until_one_is_begun() {
    let place = two_weeks();
    let fleet = place.folder("fleet");
    let export = |options: &str| place.longhaul(&format!("export fleet {options} --to")).arg(&fleet);
    export("").expect(1).assert_stderr(&["no collection was begun in", "mount it", "--begin"]);
    assert!(data_files(&fleet).is_empty());
    export("--begin").expect(0);
    export("").expect(0);
}

#[test]
fn folder_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let place = Place::for_unprivileged_user();
    template::made_up_days(&place.database(), 7);
    machine::chown_to_nobody(place.root());
    let fleet = place.folder("fleet");
    fs::set_permissions(&fleet, fs::Permissions::from_mode(0o000)).unwrap();
    let export = place.longhaul("export fleet --to").arg(&fleet).unprivileged().expect(1);
    export.assert_stderr(&["cannot list", fleet.to_str().unwrap(), "Permission denied", "read and write"]);
}

/// Returns the exports in the status of the service.
fn exports(status: &serde_json::Value, key: &str) -> Option<String> {
    let value = &status["fleet_export"][key];
    (!value.is_null()).then(|| value.to_string())
}

#[test]
fn service_exports_into_the_collection_by_itself() {
    let place = two_weeks();
    let (fleet, share) = (place.folder("fleet"), place.folder("a"));
    fs::create_dir(fleet.join("schema=1")).unwrap();
    let rarely = BUSY.replace("8640", "1");
    place.configure(&format!("{rarely}{}[fleet]\nto = \"{}\"\n", target("a", &share), fleet.display()));
    let daemon = Daemon::start(&place);
    daemon.wait_for("an export", |status| exports(status, "last_export_us").is_some());
    let files = data_files(&fleet);
    assert!(files.len() > 2, "{files:?}");
    place.longhaul("export fleet --check").expect(0);
    let output = place.longhaul("status").expect(0);
    assert!(output.out.contains(&format!("{}: the last 20", fleet.display())), "{output}");
    daemon.stop();
}

#[test]
fn service_says_why_it_cannot_export() {
    let place = two_weeks();
    let (fleet, share) = (place.folder("fleet"), place.folder("a"));
    let rarely = BUSY.replace("8640", "1");
    place.configure(&format!("{rarely}{}[fleet]\nto = \"{}\"\n", target("a", &share), fleet.display()));
    let daemon = Daemon::start(&place);
    let status = daemon.wait_for("a failed export", |status| exports(status, "last_failure").is_some());
    let failure = exports(&status, "last_failure").unwrap();
    assert!(failure.contains("no collection was begun in") && failure.contains("--begin"), "{failure}");
    assert_eq!(status["problems"], serde_json::json!([]), "a laptop may be away from the share for days");
    assert!(data_files(&fleet).is_empty());
    daemon.stop();
}

#[test]
fn wrong_options_of_a_fleet_export_say_what_to_do() {
    let place = Place::new();
    place.longhaul("export fleet").expect(2).assert_stderr(&["--to /Volumes/fleet", "[fleet]"]);
    for (given, name) in [
        ("/Volumes/fleet", "FILE"),
        ("--format csv", "--format"),
        ("--nas linux", "--nas"),
        ("--yes", "--yes"),
    ] {
        let refused = place.longhaul(&format!("export fleet {given} --to fleet")).expect(2);
        refused.assert_stderr(&[&format!("no {name}: it writes")]);
    }
    place
        .longhaul("export runs --format csv --check")
        .expect(2)
        .assert_stderr(&["only `export fleet` has --check"]);
    place.longhaul("export runs").expect(5).assert_stderr(&["no database"]);
    place.longhaul("export fleet --to gs://bucket").expect(1).assert_stderr(&["s3://bucket/fleet"]);
}
