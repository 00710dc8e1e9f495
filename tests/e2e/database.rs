//! Tests of a database that is locked, damaged, too new, on a full disk or not writable: no stored run is lost.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::support::daemon::{self, BUSY, Daemon};
use crate::support::mounts::{self, Memory};
use crate::support::{Place, assert_all_ok, machine};
use longhaul_service::database_lock::DatabaseLock;
use rustix::process::Signal;

const INDEX: &[&str] = &["folder-index"];
/// Byte offset of `user_version` in the first page of a SQLite file (file format, section 1.3).
const USER_VERSION_AT: usize = 60;

/// Creates a test environment with one stored run, and returns it with its target.
fn measured() -> (Place, PathBuf) {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    assert_all_ok(&place.run(INDEX, &[("nas", &target)]).expect(0).runs());
    (place, target)
}

/// Checks that every command that needs the database fails with these parts in its error message.
fn assert_refused(place: &Place, parts: &[&str]) {
    let target = place.folder("nas");
    for command in ["runs --summary", "runs", "runs 1", "targets clean nas --yes"] {
        place.longhaul(command).expect(1).assert_stderr(parts);
    }
    place.run(INDEX, &[("nas", &target)]).expect(1).assert_stderr(parts);
    place.longhaul("try").expect(1).assert_stderr(parts);
}

#[test]
fn second_measurement_with_one_database_is_refused() {
    let (place, target) = measured();
    let mut first = place.run(INDEX, &[("nas", &target)]).arg("--rounds").arg("100000").start();
    first.wait_for("a run", |output| !output.runs().is_empty());
    let lock = place.database().with_extension("lock");
    let parts = [
        "another longhaul (longhaul, process ",
        "is measuring with this database",
        lock.to_str().unwrap(),
        "longhaul service stop",
    ];
    place.run(INDEX, &[("nas", &target)]).expect(1).assert_stderr(&parts);
    place.longhaul("targets clean nas --yes").expect(1).assert_stderr(&parts);
    place.longhaul("runs").expect(0);
    first.signal(Signal::INT);
    first.finish(0);
    assert_all_ok(&place.run(INDEX, &[("nas", &target)]).expect(0).runs());
}

/// A service of an older version could not read tables that a newer command has changed.
#[test]
fn locked_database_is_not_opened() {
    let place = Place::with_tiny_trees();
    let _service = DatabaseLock::acquire(&place.database(), &[]).unwrap();
    let target = place.folder("nas");
    place.run(INDEX, &[("nas", &target)]).expect(1).assert_stderr(&["another longhaul"]);
    assert!(!place.database().exists());
}

#[test]
fn damaged_database_is_reported_and_not_changed() {
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
fn database_of_a_newer_version_is_not_changed() {
    let (place, _) = measured();
    let mut bytes = fs::read(place.database()).unwrap();
    bytes[USER_VERSION_AT..USER_VERSION_AT + 4].copy_from_slice(&999u32.to_be_bytes());
    fs::write(place.database(), &bytes).unwrap();
    assert_refused(&place, &[place.database().to_str().unwrap(), "newer longhaul", "999", "update longhaul"]);
    assert_eq!(fs::read(place.database()).unwrap(), bytes);
}

#[test]
fn database_without_write_permission_is_reported() {
    let place = Place::for_unprivileged_user();
    let target = place.folder("nas");
    machine::chown_to_nobody(&target);
    let closed = place.folder("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let database = closed.join("longhaul.sqlite");
    let call = place.run(INDEX, &[("nas", &target)]).arg("--database").arg(&database).unprivileged();
    call.expect(1).assert_stderr(&[
        database.to_str().unwrap(),
        "cannot lock the database",
        "Permission denied",
        "can read and write",
        "--database PATH",
    ]);
}

/// Creates a test environment whose database is on its own tmpfs of this size in KiB. The tmpfs must be dropped
/// first.
fn with_disk(kibibytes: u32) -> (Place, Memory, PathBuf) {
    let place = Place::with_tiny_trees();
    let disk = place.folder("disk");
    let memory = Memory::mount(&disk, kibibytes);
    (place, memory, disk.join("longhaul.sqlite"))
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn new_database_on_a_full_disk_is_reported() {
    mounts::only_in_own_mounts!(new_database_on_a_full_disk_is_reported);
    let (place, memory, database) = with_disk(64);
    memory.fill();
    let target = place.folder("nas");
    let output = place.run(INDEX, &[("nas", &target)]).arg("--database").arg(&database).expect(1);
    output.assert_stderr(&[database.to_str().unwrap(), "full", "free space"]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn full_disk_ends_the_run_and_stores_all_printed_runs() {
    mounts::only_in_own_mounts!(full_disk_ends_the_run_and_stores_all_printed_runs);
    let (place, memory, database) = with_disk(8 * 1024);
    let target = place.folder("nas");
    let run = |rounds: &str| {
        let call = place.run(INDEX, &[("nas", &target)]).arg("--rounds").arg(rounds);
        call.arg("--database").arg(&database)
    };
    let mut running = run("100000").start();
    running.wait_for("three runs", |output| output.runs().len() >= 3);
    let ballast = memory.fill();
    let output = running.finish(1);
    output.assert_stderr(&[database.to_str().unwrap(), "is full", "free space"]);
    fs::remove_file(ballast).unwrap();
    let listed = place.longhaul("runs --json --last 0 --database").arg(&database).expect(0).runs();
    assert_eq!(listed, output.runs(), "exactly the printed runs are stored");
    assert_all_ok(&run("1").expect(0).runs());
}

#[test]
fn empty_database_file_is_initialized() {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    fs::create_dir_all(place.data()).unwrap();
    fs::write(place.database(), "").unwrap();
    assert_all_ok(&place.run(INDEX, &[("nas", &target)]).expect(0).runs());
    assert!(Path::new(&place.database()).metadata().unwrap().len() > 0);
}

/// A program that closes a database as the last one removes its log; only locks tell it that the service has the file open.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn service_keeps_its_lock_on_the_database() {
    let place = Place::new();
    place.configure(&(BUSY.to_owned() + &daemon::target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    daemon.round();
    let file = fs::metadata(place.database()).unwrap().ino();
    let (pid, file) = (format!(" {} ", daemon.pid()), format!(":{file} "));
    let locks = fs::read_to_string("/proc/locks").unwrap();
    assert!(locks.lines().any(|lock| lock.contains(&pid) && lock.contains(&file)), "{file}: {locks}");
}
