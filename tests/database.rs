//! A database that is locked, damaged, too new, without room or without rights: nothing that was stored is lost.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use support::mounts::{self, Memory};
use support::{Place, assert_all_ok, machine};

const INDEX: &[&str] = &["folder-index"];
/// Where SQLite keeps `user_version` in the first page of a file (file format, section 1.3).
const USER_VERSION_AT: usize = 60;

/// A place with one run in its database.
fn measured() -> (Place, PathBuf) {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    assert_all_ok(&place.run(INDEX, &[("nas", &target)]).expect(0).runs());
    (place, target)
}

/// Every command that needs the database ends with this complaint.
fn assert_refused(place: &Place, parts: &[&str]) {
    let target = place.folder("nas");
    for command in ["summary", "runs", "show 1", "clean nas --yes"] {
        place.longhaul(command).expect(1).complains_of(parts);
    }
    place.run(INDEX, &[("nas", &target)]).expect(1).complains_of(parts);
    place.longhaul("try").expect(1).complains_of(parts);
}

#[test]
fn two_measurements_at_once_are_refused() {
    let (place, target) = measured();
    let mut first = place.run(INDEX, &[("nas", &target)]).word("--rounds").word("100000").start();
    first.wait_for("a run", |said| !said.runs().is_empty());
    let lock = place.database().with_extension("lock");
    let parts = [
        "another longhaul (longhaul, process ",
        "is measuring with this database",
        lock.to_str().unwrap(),
        "Wait for it",
    ];
    place.run(INDEX, &[("nas", &target)]).expect(1).complains_of(&parts);
    place.longhaul("clean nas --yes").expect(1).complains_of(&parts);
    place.longhaul("runs").expect(0);
    first.signal(Signal::INT);
    first.finish(0);
    assert_all_ok(&place.run(INDEX, &[("nas", &target)]).expect(0).runs());
}

#[test]
fn a_damaged_database_is_named_and_left_as_it_is() {
    let (place, _) = measured();
    let garbage = vec![b'x'; 8192];
    fs::write(place.database(), &garbage).unwrap();
    assert_refused(
        &place,
        &[place.database().to_str().unwrap(), "damaged or not a database", "move it aside", ".recover"],
    );
    assert_eq!(fs::read(place.database()).unwrap(), garbage);
}

#[test]
fn a_database_of_a_newer_longhaul_is_left_as_it_is() {
    let (place, _) = measured();
    let mut bytes = fs::read(place.database()).unwrap();
    bytes[USER_VERSION_AT..USER_VERSION_AT + 4].copy_from_slice(&999u32.to_be_bytes());
    fs::write(place.database(), &bytes).unwrap();
    assert_refused(&place, &[place.database().to_str().unwrap(), "newer longhaul", "999", "update longhaul"]);
    assert_eq!(fs::read(place.database()).unwrap(), bytes);
}

#[test]
fn a_database_that_may_not_be_written_is_named() {
    if let Some(why) = machine::without_nobody() {
        return machine::skip("a_database_that_may_not_be_written_is_named", why);
    }
    let place = Place::of_nobody();
    let target = place.folder("nas");
    machine::give_to_nobody(&target);
    let closed = place.folder("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let database = closed.join("longhaul.sqlite");
    let call = place.run(INDEX, &[("nas", &target)]).word("--database").word(&database).without_rights();
    call.expect(1).complains_of(&[
        database.to_str().unwrap(),
        "no access",
        "may read and write",
        "--database PATH",
    ]);
}

/// A place whose database is alone on a disk of this size. The disk is dropped, and unmounted, before the place.
fn with_disk(kibibytes: u32) -> (Place, Memory, PathBuf) {
    let place = Place::with_tiny_trees();
    let disk = place.folder("disk");
    let memory = Memory::mount(&disk, kibibytes);
    (place, memory, disk.join("longhaul.sqlite"))
}

#[test]
fn a_database_without_room_to_begin_says_so() {
    if !mounts::are_our_own("a_database_without_room_to_begin_says_so") {
        return;
    }
    let (place, memory, database) = with_disk(64);
    memory.fill();
    let target = place.folder("nas");
    let said = place.run(INDEX, &[("nas", &target)]).word("--database").word(&database).expect(1);
    said.complains_of(&[database.to_str().unwrap(), "full", "make room"]);
}

#[test]
fn a_run_that_a_full_disk_refuses_is_handed_to_the_person() {
    if !mounts::are_our_own("a_run_that_a_full_disk_refuses_is_handed_to_the_person") {
        return;
    }
    let (place, memory, database) = with_disk(8 * 1024);
    let target = place.folder("nas");
    let run = |rounds: &str| {
        let call = place.run(INDEX, &[("nas", &target)]).word("--rounds").word(rounds);
        call.word("--database").word(&database)
    };
    let mut running = run("100000").start();
    running.wait_for("three runs", |said| said.runs().len() >= 3);
    let ballast = memory.fill();
    let said = running.finish(1);
    said.complains_of(&[database.to_str().unwrap(), "is full", "make room"]);
    fs::remove_file(ballast).unwrap();
    let listed = place.longhaul("runs --json --last 0 --database").word(&database).expect(0).runs();
    assert_eq!(listed, said.runs(), "what was printed is stored, and nothing else");
    assert_all_ok(&run("1").expect(0).runs());
}

#[test]
fn a_database_that_is_there_but_empty_is_begun() {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    fs::create_dir_all(place.data()).unwrap();
    fs::write(place.database(), "").unwrap();
    assert_all_ok(&place.run(INDEX, &[("nas", &target)]).expect(0).runs());
    assert!(Path::new(&place.database()).metadata().unwrap().len() > 0);
}
