//! Every task and preset, the probe and the cleaning on a file system that does what a Mac's mounts do.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

#[path = "maclike/mod.rs"]
mod filesystem;
mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use filesystem::{MacLike, Quirk};
use longhaul_measure::corpus::tree::Tree;
use longhaul_measure::model::ProbeKind;
use longhaul_measure::platform::{self, RangeLock};
use longhaul_measure::workloads::Workload;
use longhaul_measure::workloads::classic::{AS_ORIGINAL, classics};
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;
use serde_json::Value;
use support::daemon::{BUSY, Daemon, target};
use support::probing::{Sampling, plan_every};
use support::{Place, arena, assert_all_ok, assert_failure, machine, mounts, tree};

/// Files of all trees of folder-index; a run walks a quarter of them.
const TREE_FILES: u64 = 400;

/// A home, and in it a mounted file system. The file system goes first: nothing of it is open any more then.
struct Share {
    mac: MacLike,
    place: Place,
}

impl Share {
    /// One for a test that runs in mounts of its own; `None` if there is nothing to do here.
    fn mounted(test: &str, quirks: &[Quirk]) -> Option<Self> {
        if let Some(why) = MacLike::impossible() {
            machine::skip(test, why);
            return None;
        }
        if !mounts::are_our_own(test) {
            return None;
        }
        let place = Place::with_programs_in("bin");
        place.configure(&format!("[folder-index]\nfiles = {TREE_FILES}\n"));
        let mounted = MacLike::mount(&place.folder("nas"), quirks);
        let mac = mounted.map_err(|why| machine::skip(test, &why)).ok()?;
        Some(Self { mac, place })
    }

    fn at(&self) -> PathBuf {
        self.place.path("nas")
    }

    /// Runs some tasks, or all, once.
    fn run(&self, names: &[&str], code: i32) -> Vec<Value> {
        self.place.run(names, &[("nas", &self.at())]).expect(code).runs()
    }

    /// From now on the privacy settings refuse, or do not.
    fn set_private(&self, is_private: bool) {
        self.mac.is_private.store(is_private, Ordering::Relaxed);
    }

    fn clean(&self) {
        self.place.longhaul("clean nas --yes").expect(0);
        assert_eq!(names(&self.at()), BTreeSet::new(), "nothing is left");
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

fn set_note(file: &File) -> Result<(), Errno> {
    fsetxattr(file.as_fd(), "user.note", b"kept", XattrFlags::empty())
}

fn presets() -> Vec<&'static str> {
    classics().iter().map(Workload::name).filter(|name| !name.ends_with(AS_ORIGINAL)).collect()
}

fn fact<'a>(runs: &'a [Value], task: &str, name: &str) -> &'a str {
    let run = runs.iter().find(|run| run["workload"] == task).unwrap();
    run["facts"][name].as_str().unwrap_or_else(|| panic!("no {name}: {run}"))
}

#[test]
fn an_attribute_becomes_a_file_that_follows_its_own() {
    let Some(share) = Share::mounted("an_attribute_becomes_a_file_that_follows_its_own", &[]) else { return };
    let at = share.at();
    let file = File::create(at.join("a")).unwrap();
    set_note(&file).unwrap();
    assert_eq!(fs::metadata(at.join("._a")).unwrap().len(), 4096);
    fs::rename(at.join("a"), at.join("b")).unwrap();
    assert_eq!(names(&at), ["._b", "b"].map(str::to_owned).into());
    let mut value = [0; 8];
    assert_eq!(fgetxattr(file.as_fd(), "user.note", &mut value), Ok(4));
    assert_eq!(set_note(&File::open(at.join("._b")).unwrap()), Err(Errno::PERM), "a twin has none");
    fs::remove_file(at.join("._b")).unwrap();
    assert_eq!(fgetxattr(file.as_fd(), "user.note", &mut value), Err(Errno::NODATA));
    set_note(&file).unwrap();
    fs::remove_file(at.join("b")).unwrap();
    assert_eq!(names(&at), BTreeSet::new());
    file.write_all_at(b"still there", 0).unwrap();
    assert_eq!((file.metadata().unwrap().len(), file.metadata().unwrap().nlink()), (11, 0));
    platform::lock_range(file.as_fd(), RangeLock::Take, (0, 10)).unwrap();
}

#[test]
fn twins_that_are_left_alone_go_with_their_folder() {
    let Some(share) = Share::mounted("twins_that_are_left_alone_go_with_their_folder", &[]) else { return };
    let folder = share.place.folder("nas/folder");
    fs::write(folder.join("._gone"), "attributes").unwrap();
    fs::write(folder.join("there"), "x").unwrap();
    assert!(fs::remove_dir(&folder).is_err(), "a file is in it");
    fs::remove_file(folder.join("there")).unwrap();
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn each_quirk_shows() {
    use Quirk::{CaseInsensitive, DecomposedNames, NoLocks, NoRenameOverOpen, ProvenanceTwins, TimeStep};
    let quirks = [TimeStep(2), NoLocks, NoRenameOverOpen, ProvenanceTwins, CaseInsensitive, DecomposedNames];
    let Some(share) = Share::mounted("each_quirk_shows", &quirks) else { return };
    let at = share.at();
    let file = File::create(at.join("Ä")).unwrap();
    assert_eq!(names(&at), ["._A\u{308}", "A\u{308}"].map(str::to_owned).into());
    assert_eq!(fs::metadata(at.join("a\u{308}")).unwrap().ino(), file.metadata().unwrap().ino());
    let facts = file.metadata().unwrap();
    assert_eq!((facts.mtime() % 2, facts.mtime_nsec()), (0, 0));
    let refused = platform::lock_range(file.as_fd(), RangeLock::Take, (0, 10)).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
    File::create(at.join("b")).unwrap();
    let refused = fs::rename(at.join("b"), at.join("ä")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::BUSY.raw_os_error()));
    drop(file);
    // The kernel tells the file system of the last close a moment later.
    machine::wait_until("the file to be closed", || fs::rename(at.join("b"), at.join("ä")).is_ok());
}

#[test]
fn every_task_is_ok_where_attributes_become_files() {
    let Some(share) = Share::mounted("every_task_is_ok_where_attributes_become_files", &[]) else { return };
    let runs = share.run(&[], 0);
    assert_all_ok(&runs);
    let tree = Tree { seed: 0, files: TREE_FILES / 4 };
    let twins = (0..tree.files).filter(|number| tree.has_finder_info(*number)).count();
    assert_eq!(fact(&runs, "folder-index", "apple-double-files"), twins.to_string());
    assert_ne!(fact(&runs, "incremental-backup", "apple-double-files"), "0");
    let again = share.run(&["folder-index", "incremental-backup"], 0);
    assert_all_ok(&again);
    // Of 40 files that are read back none may have an attribute (about once in 13 runs): then there is no such fact.
    let told = runs.iter().chain(&again).filter_map(|run| run["facts"]["extended-attributes"].as_str());
    assert!(told.into_iter().all(|told| told == "kept"), "an attribute was lost");
    share.clean();
}

#[test]
fn every_task_is_ok_on_a_mac_like_smb_share() {
    let quirks = [Quirk::NoLocks, Quirk::DecomposedNames, Quirk::CaseInsensitive, Quirk::NoRenameOverOpen];
    let Some(share) = Share::mounted("every_task_is_ok_on_a_mac_like_smb_share", &quirks) else { return };
    assert_all_ok(&share.run(&[], 0));
    // Of dbench-mix, which draws its calls, a quick run may have no lock.
    let run = &share.run(&["lantest"], 3)[0];
    assert_failure(run, "unavailable", &["lock", "cannot be measured here"]);
    share.clean();
}

#[test]
fn a_file_that_is_open_elsewhere_is_an_error_until_it_is_closed() {
    const TEST: &str = "a_file_that_is_open_elsewhere_is_an_error_until_it_is_closed";
    let Some(share) = Share::mounted(TEST, &[Quirk::NoRenameOverOpen]) else { return };
    assert_all_ok(&share.run(&["incremental-backup"], 0));
    let backup = arena(&share.at()).join("incremental-backup");
    let open: Vec<File> =
        tree::files(&backup).iter().map(|path| File::open(backup.join(path)).unwrap()).collect();
    let runs = share.run(&["incremental-backup"], 3);
    assert_failure(&runs[0], "error", &["rename", "close what has it open"]);
    drop(open);
    assert_all_ok(&share.run(&["incremental-backup"], 0));
}

#[test]
fn every_task_is_ok_where_times_are_coarse() {
    let quirks = [Quirk::TimeStep(2), Quirk::CaseInsensitive];
    let Some(share) = Share::mounted("every_task_is_ok_where_times_are_coarse", &quirks) else { return };
    let runs = share.run(&[], 0);
    assert_all_ok(&runs);
    assert_eq!(fact(&runs, "incremental-backup", "modification-times"), "kept");
    share.clean();
}

#[test]
fn every_task_is_ok_where_every_file_has_a_twin() {
    let quirks = [Quirk::TimeStep(1), Quirk::ProvenanceTwins];
    let Some(share) = Share::mounted("every_task_is_ok_where_every_file_has_a_twin", &quirks) else { return };
    assert_all_ok(&share.run(&[], 0));
    let said = share.place.longhaul("uninstall --purge --yes").expect(0);
    assert!(said.out.contains("Nothing of longhaul is left"), "{said}");
    assert_eq!(names(&share.at()), BTreeSet::new());
}

#[test]
fn every_preset_is_ok_where_every_file_has_a_twin() {
    let quirks = [Quirk::ProvenanceTwins];
    let Some(share) = Share::mounted("every_preset_is_ok_where_every_file_has_a_twin", &quirks) else {
        return;
    };
    let runs = share.run(&presets(), 0);
    assert_all_ok(&runs);
    assert_eq!(runs.len(), presets().len());
    share.clean();
}

/// Parts of what is said of a privacy refusal.
const WAY_OUT: [&str; 4] = ["blocked by privacy", "EPERM", "Full Disk Access", "remove it with -"];

#[test]
fn a_privacy_refusal_is_unavailable_until_it_is_gone() {
    let Some(share) = Share::mounted("a_privacy_refusal_is_unavailable_until_it_is_gone", &[]) else {
        return;
    };
    assert_all_ok(&share.run(&["folder-index"], 0));
    share.set_private(true);
    let runs = share.run(&["folder-index", "dd"], 3);
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert_failure(run, "unavailable", &WAY_OUT);
        assert_eq!(run["failure"]["error"], "EPERM");
    }
    share.set_private(false);
    assert_all_ok(&share.run(&["folder-index"], 0));
}

#[test]
fn a_privacy_refusal_is_known_on_a_new_target() {
    let Some(share) = Share::mounted("a_privacy_refusal_is_known_on_a_new_target", &[]) else { return };
    share.set_private(true);
    assert_failure(&share.run(&["folder-index"], 3)[0], "unavailable", &WAY_OUT);
}

#[test]
fn a_refused_target_rests_until_the_service_may_open_it() {
    let Some(share) = Share::mounted("a_refused_target_rests_until_the_service_may_open_it", &[]) else {
        return;
    };
    let config = BUSY.replace("[\"folder-index\"]", "[\"folder-index\", \"dd\"]").replace("8640", "24");
    share.place.configure(&(config + "[sampling]\ntouch = \"never\"\n" + &target("nas", &share.at())));
    let daemon = Daemon::start(&share.place);
    let state = || daemon.status()["targets"][0]["state"]["name"].clone();
    daemon.round();
    assert_eq!(state(), "waiting");
    share.set_private(true);
    daemon.round();
    assert_eq!(state(), "blocked");
    let first = share.mac.refused.swap(0, Ordering::Relaxed);
    daemon.round();
    let second = share.mac.refused.swap(0, Ordering::Relaxed);
    assert!(0 < second && second < first, "{second} opens instead of {first}: it is only asked again");
    for command in ["status", "doctor"] {
        let said = share.place.longhaul(command).expect(3);
        assert!(WAY_OUT.iter().all(|part| said.out.contains(part)), "{said}");
    }
    share.set_private(false);
    daemon.round();
    assert_eq!(state(), "waiting");
    daemon.stop();
}

#[test]
fn the_probe_asks_everything_where_every_file_has_a_twin() {
    const TEST: &str = "the_probe_asks_everything_where_every_file_has_a_twin";
    let Some(share) = Share::mounted(TEST, &[Quirk::ProvenanceTwins]) else { return };
    let mut sampling = Sampling::on(&share.at(), &share.place.folder("local"), plan_every(20));
    sampling.start();
    let answered = |sampling: &mut Sampling, kind| {
        let slots = sampling.heard().slots();
        slots.iter().filter(|slot| slot.kind == kind && slot.error.is_none()).count()
    };
    machine::wait_until("answers of every kind", || {
        ProbeKind::ALL.into_iter().all(|kind| answered(&mut sampling, kind) > 10)
    });
    assert_eq!(sampling.heard().changes(), [0; 0], "its own folder is no user's change");
    let cleaned = sampling.clean();
    assert!(cleaned.arena_removed && cleaned.foreign.is_empty(), "{cleaned:?}");
    assert_eq!(names(&share.at()), BTreeSet::new());
}
