//! Tests of unsuitable target paths: the folder of the database, the home folder and the root folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::{Place, TINY_TREES, assert_all_ok, find_sandbox};

const DATABASE_FOLDER: &str = "is the folder of the database";
const HOME: &str = "is your home folder";
const ROOT: &str = "is the root of the system";

/// Creates a test environment in which the data folder exists.
fn place() -> Place {
    let place = Place::with_tiny_trees();
    fs::create_dir_all(place.data()).unwrap();
    place
}

fn init<'a>(place: &'a Place, path: &Path) -> crate::support::Call<'a> {
    place.longhaul("init --yes --force").target("a", path)
}

#[test]
fn init_refuses_the_folder_of_the_database() {
    let place = place();
    let dotted = place.data().join("../longhaul/.");
    for path in [place.data(), dotted] {
        init(&place, &path).expect(2).assert_stderr(&["`a`", DATABASE_FOLDER, "another folder"]);
    }
    init(&place, &place.data().join("inner")).expect(0);
}

#[test]
fn init_refuses_the_database_folder_behind_a_link() {
    let place = place();
    let (real, link) = (place.folder("real"), place.path("link"));
    symlink(&real, &link).unwrap();
    let call = init(&place, &real).arg("--database").arg(link.join("results.sqlite"));
    call.expect(2).assert_stderr(&[DATABASE_FOLDER]);
}

#[test]
fn init_warns_of_the_root_and_of_the_home_folder() {
    let place = place();
    let warning = |path: &Path| init(&place, path).expect(0).err;
    assert!(warning(Path::new("/")).contains(ROOT));
    let home = warning(&place.path("home"));
    assert!(home.contains(HOME) && home.contains("create a folder in it"), "{home}");
    let folder = warning(&place.folder("home/longhaul-baseline"));
    assert!(!folder.contains(HOME) && folder.contains("never compared"), "{folder}");
}

#[test]
fn run_refuses_the_folder_of_the_database() {
    let place = place();
    let data = place.data();
    place.run(&["folder-index"], &[("a", &data)]).expect(2).assert_stderr(&["`a`", DATABASE_FOLDER]);
    place.configure(&(TINY_TREES.to_owned() + &target("a", &data)));
    place.longhaul("run").expect(2).assert_stderr(&[DATABASE_FOLDER]);
    place.longhaul("try").target("a", &data).expect(2).assert_stderr(&[DATABASE_FOLDER]);
    place.longhaul("preset dd").target("a", &data).expect(2).assert_stderr(&[DATABASE_FOLDER]);
    assert_eq!(find_sandbox(&data), None);
}

#[test]
fn run_warns_of_the_home_folder_and_measures_it() {
    let place = place();
    let home = place.path("home");
    let output = place.run(&["folder-index"], &[("a", &home)]).expect(0);
    output.assert_stderr(&["`a`", HOME]);
    assert_all_ok(&output.runs());
    assert!(find_sandbox(&home).is_some());
}

/// Creates a test environment with three targets: the data folder, the home folder and a suitable folder.
fn configured() -> Place {
    let place = place();
    let targets = [("data", place.data()), ("home", place.path("home")), ("good", place.folder("good"))];
    let targets = targets.map(|(name, path)| target(name, &path)).concat();
    place.configure(&(BUSY.to_owned() + &targets));
    place
}

#[test]
fn doctor_names_bad_target_paths_without_a_service() {
    let place = configured();
    let output = place.longhaul("doctor").expect(3);
    assert!(
        output
            .out
            .lines()
            .any(|line| line.trim_start().starts_with("failed") && line.contains(DATABASE_FOLDER))
    );
    assert!(
        output.out.lines().any(|line| line.trim_start().starts_with("warning") && line.contains(HOME)),
        "{output}"
    );
    assert!(!output.out.contains("target good"), "{output}");
}

#[test]
fn service_does_not_measure_its_database_folder() {
    let place = configured();
    let daemon = Daemon::start(&place);
    daemon.round();
    let checks = place.longhaul("doctor --json").expect(3).value();
    let check = |what: &str| {
        let all = checks.as_array().unwrap();
        all.iter()
            .find(|check| check["name"] == what)
            .unwrap_or_else(|| panic!("no {what}: {checks}"))
            .clone()
    };
    assert_eq!(check("target data")["status"], "failed");
    assert!(check("target data")["message"].as_str().unwrap().contains(DATABASE_FOLDER));
    assert_eq!(check("target home")["status"], "warning");
    assert!(check("target home")["message"].as_str().unwrap().contains(HOME));
    assert_eq!(check("target good")["status"], "ok");
    let status = place.longhaul("status").expect(3);
    assert!(status.out.contains(DATABASE_FOLDER), "{status}");
    daemon.stop();
    assert_eq!(find_sandbox(&place.data()), None);
}
