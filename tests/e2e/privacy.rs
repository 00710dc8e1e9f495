//! Other users of the machine can read nothing that longhaul writes on the local disk.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Place;
use crate::support::daemon::{BUSY, Daemon, log, target};

/// Returns a command that runs a program with a umask that takes nothing away.
fn open_to_all(program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", program]);
    command
}

/// Returns everything below a folder that other users may access, with the folder. Below a private folder nothing is
/// looked at, because no other user gets there.
fn open_paths(folder: &Path) -> Vec<PathBuf> {
    let mode = folder.symlink_metadata().unwrap().permissions().mode();
    let mut open = if mode & 0o077 == 0 { vec![] } else { vec![folder.to_owned()] };
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && entry.file_name() != "local" {
            open.extend(open_paths(&entry.path()));
        } else if !kind.is_symlink() && entry.metadata().unwrap().permissions().mode() & 0o077 != 0 {
            open.push(entry.path());
        }
    }
    open
}

#[test]
fn files_of_a_life_cycle_are_private_despite_the_umask() {
    let place = Place::new();
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    let service = place.at_home(open_to_all(env!("CARGO_BIN_EXE_longhauld")));
    let mut daemon = Daemon::spawn_as(&place, service);
    daemon.wait_until_ready();
    daemon.round();
    let folders = [place.path("home/data/longhaul"), place.path("home/state/longhaul")];
    assert_eq!(folders.iter().flat_map(|folder| open_paths(folder)).collect::<Vec<_>>(), [] as [PathBuf; 0]);
    daemon.stop();
    let mut run = place.at_home(open_to_all(env!("CARGO_BIN_EXE_longhaul")));
    run.args(["run", "--workload", "folder-index", "--workload", "incremental-backup", "--scale", "quick"]);
    assert!(
        run.arg("--target").arg(format!("b={}", place.folder("b").display())).status().unwrap().success()
    );
    assert_eq!(folders.iter().flat_map(|folder| open_paths(folder)).collect::<Vec<_>>(), [] as [PathBuf; 0]);
    assert!(folders[0].join("local").is_dir(), "the local folder of the backup was looked at");
}

#[test]
fn files_of_an_earlier_version_become_private_once() {
    let place = Place::new();
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    Daemon::start(&place).stop();
    let folder = place.path("home/data/longhaul");
    let database = folder.join("longhaul.sqlite");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&database, Permissions::from_mode(0o644)).unwrap();
    let told =
        || std::fs::read_to_string(log(&place)).unwrap().matches("other users could read this").count();
    Daemon::start(&place).stop();
    assert_eq!(open_paths(&folder), [] as [PathBuf; 0]);
    assert_eq!(told(), 2, "the folder and the database");
    Daemon::start(&place).stop();
    assert_eq!(told(), 2, "said once");
}
