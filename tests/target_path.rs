//! Folders that are no good place to measure: the one that holds the database, the home folder, the root of the disk.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::daemon::{BUSY, Daemon, target};
use support::{Place, TINY_TREES, assert_all_ok, find_arena};

const BESIDE_THE_DATABASE: &str = "is the folder of the database";
const HOME: &str = "is your home folder";
const ROOT: &str = "is the root of the system";

/// A home whose folder of the database is there.
fn place() -> Place {
    let place = Place::with_tiny_trees();
    fs::create_dir_all(place.data()).unwrap();
    place
}

fn init<'a>(place: &'a Place, path: &Path) -> support::Call<'a> {
    place.longhaul("init --yes --force").target("a", path)
}

#[test]
fn init_refuses_the_folder_of_the_database() {
    let place = place();
    let dotted = place.data().join("../longhaul/.");
    for path in [place.data(), dotted] {
        init(&place, &path).expect(2).complains_of(&["`a`", BESIDE_THE_DATABASE, "another folder"]);
    }
    init(&place, &place.data().join("inner")).expect(0);
}

#[test]
fn init_refuses_it_behind_a_link_too() {
    let place = place();
    let (real, link) = (place.folder("real"), place.path("link"));
    symlink(&real, &link).unwrap();
    let call = init(&place, &real).word("--database").word(link.join("results.sqlite"));
    call.expect(2).complains_of(&[BESIDE_THE_DATABASE]);
}

#[test]
fn init_warns_of_the_root_and_of_the_home_folder() {
    let place = place();
    let warning = |path: &Path| init(&place, path).expect(0).err;
    assert!(warning(Path::new("/")).contains(ROOT));
    let home = warning(&place.path("home"));
    assert!(home.contains(HOME) && home.contains("made for this"), "{home}");
    assert_eq!(warning(&place.folder("home/longhaul-baseline")), "");
}

#[test]
fn run_refuses_the_folder_of_the_database() {
    let place = place();
    let data = place.data();
    place.run(&["folder-index"], &[("a", &data)]).expect(2).complains_of(&["`a`", BESIDE_THE_DATABASE]);
    place.configure(&(TINY_TREES.to_owned() + &target("a", &data)));
    place.longhaul("run").expect(2).complains_of(&[BESIDE_THE_DATABASE]);
    place.longhaul("try").target("a", &data).expect(2).complains_of(&[BESIDE_THE_DATABASE]);
    place.longhaul("classic dd").target("a", &data).expect(2).complains_of(&[BESIDE_THE_DATABASE]);
    assert_eq!(find_arena(&data), None);
}

#[test]
fn run_warns_of_the_home_folder_and_measures_it() {
    let place = place();
    let home = place.path("home");
    let said = place.run(&["folder-index"], &[("a", &home)]).expect(0);
    said.complains_of(&["`a`", HOME]);
    assert_all_ok(&said.runs());
    assert!(find_arena(&home).is_some());
}

/// A configuration with all three.
fn configured() -> Place {
    let place = place();
    let targets = [("data", place.data()), ("home", place.path("home")), ("good", place.folder("good"))];
    let targets = targets.map(|(name, path)| target(name, &path)).concat();
    place.configure(&(BUSY.to_owned() + &targets));
    place
}

#[test]
fn the_doctor_names_them_without_a_service() {
    let place = configured();
    let said = place.longhaul("doctor").expect(3);
    assert!(said.out.lines().any(|line| line.starts_with("failed") && line.contains(BESIDE_THE_DATABASE)));
    assert!(said.out.lines().any(|line| line.starts_with("warning") && line.contains(HOME)), "{said}");
    assert!(!said.out.contains("target good"), "{said}");
}

#[test]
fn the_service_leaves_the_folder_of_its_database_alone() {
    let place = configured();
    let daemon = Daemon::start(&place);
    daemon.wait_for_rounds(1);
    let checks = place.longhaul("doctor --json").expect(3).value();
    let check = |what: &str| {
        let all = checks.as_array().unwrap();
        all.iter()
            .find(|check| check["what"] == what)
            .unwrap_or_else(|| panic!("no {what}: {checks}"))
            .clone()
    };
    assert_eq!(check("target data")["verdict"], "failed");
    assert!(check("target data")["found"].as_str().unwrap().contains(BESIDE_THE_DATABASE));
    assert_eq!(check("target home")["verdict"], "warning");
    assert!(check("target home")["found"].as_str().unwrap().contains(HOME));
    assert_eq!(check("target good")["verdict"], "ok");
    let status = place.longhaul("status").expect(3);
    assert!(status.out.contains(BESIDE_THE_DATABASE), "{status}");
    daemon.stop();
    assert_eq!(find_arena(&place.data()), None);
}
