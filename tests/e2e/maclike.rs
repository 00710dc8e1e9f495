//! Tests of every workload and preset, the probe and cleaning on a FUSE file system that behaves like a Mac's mounts.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::fuse::Quirk;
use crate::fuse::maclike::MacLike;
use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::probing::{Sampling, plan_every};
use crate::support::{Place, assert_all_ok, assert_failure, machine, mounts, sandbox, tree};
use longhaul_corpus::tree::Tree;
use longhaul_measure::platform::{self, ByteRange, LockAction};
use longhaul_measure::workloads::Workload;
use longhaul_model::ProbeKind;
use longhaul_presets::{AS_ORIGINAL_SUFFIX, presets};
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;
use serde_json::Value;

/// Number of files in all trees of folder-index; a run walks a quarter of them.
const TREE_FILES: u64 = 400;
/// Number of slices of each task's files, which take turns.
const SLICES: u64 = longhaul_corpus::slices::DEFAULT_SLICES;

/// Test environment with a mounted file system. Field order: the file system is dropped, and unmounted, first.
struct Share {
    mac: MacLike,
    place: Place,
}

impl Share {
    /// Mounts the file system in the test's own mount namespace. `None` if the test ran in another process.
    fn mounted(test: impl Fn(), quirks: &[Quirk]) -> Option<Self> {
        if !mounts::in_own_mounts(test) {
            return None;
        }
        let place = Place::new();
        place.configure(&format!("[folder-index]\nfiles = {TREE_FILES}\n"));
        let mac = MacLike::mount(&place.folder("nas"), quirks);
        Some(Self { mac, place })
    }

    fn at(&self) -> PathBuf {
        self.place.path("nas")
    }

    /// Runs some workloads once, or all if `names` is empty.
    fn run(&self, names: &[&str], code: i32) -> Vec<Value> {
        self.place.run(names, &[("nas", &self.at())]).expect(code).runs()
    }

    /// Sets if the simulated privacy settings refuse access.
    fn set_private(&self, is_private: bool) {
        self.mac.privacy.is_private.store(is_private, Ordering::Relaxed);
    }

    fn clean(&self) {
        self.place.longhaul("targets clean nas --yes").expect(0);
        assert_eq!(names(&self.at()), BTreeSet::new(), "nothing is left on the target");
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

fn set_note(file: &File) -> Result<(), Errno> {
    fsetxattr(file.as_fd(), "user.note", b"kept", XattrFlags::empty())
}

fn preset_names() -> Vec<&'static str> {
    presets().iter().map(Workload::name).filter(|name| !name.ends_with(AS_ORIGINAL_SUFFIX)).collect()
}

fn fact<'a>(runs: &'a [Value], task: &str, name: &str) -> &'a str {
    let run = runs.iter().find(|run| run["workload"] == task).unwrap();
    run["facts"][name].as_str().unwrap_or_else(|| panic!("no {name}: {run}"))
}

#[test]
fn extended_attribute_is_kept_in_an_appledouble_file() {
    let Some(share) = Share::mounted(extended_attribute_is_kept_in_an_appledouble_file, &[]) else {
        return;
    };
    let at = share.at();
    let file = File::create(at.join("a")).unwrap();
    set_note(&file).unwrap();
    assert_eq!(fs::metadata(at.join("._a")).unwrap().len(), 4096);
    fs::rename(at.join("a"), at.join("b")).unwrap();
    assert_eq!(names(&at), ["._b", "b"].map(str::to_owned).into());
    let mut value = [0; 8];
    assert_eq!(fgetxattr(file.as_fd(), "user.note", &mut value), Ok(4));
    assert_eq!(
        set_note(&File::open(at.join("._b")).unwrap()),
        Err(Errno::PERM),
        "an AppleDouble file has no attributes itself"
    );
    fs::remove_file(at.join("._b")).unwrap();
    assert_eq!(fgetxattr(file.as_fd(), "user.note", &mut value), Err(Errno::NODATA));
    set_note(&file).unwrap();
    fs::remove_file(at.join("b")).unwrap();
    assert_eq!(names(&at), BTreeSet::new());
    file.write_all_at(b"still there", 0).unwrap();
    assert_eq!((file.metadata().unwrap().len(), file.metadata().unwrap().nlink()), (11, 0));
    platform::lock_range(file.as_fd(), LockAction::Take, ByteRange { begin: 0, length: 10 }).unwrap();
}

#[test]
fn orphaned_appledouble_files_are_removed_with_folder() {
    let Some(share) = Share::mounted(orphaned_appledouble_files_are_removed_with_folder, &[]) else {
        return;
    };
    let folder = share.place.folder("nas/folder");
    fs::write(folder.join("._gone"), "attributes").unwrap();
    fs::write(folder.join("there"), "x").unwrap();
    assert!(fs::remove_dir(&folder).is_err(), "the folder contains a file");
    fs::remove_file(folder.join("there")).unwrap();
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn each_quirk_has_its_effect() {
    use Quirk::{CaseInsensitive, DecomposedNames, NoLocks, NoRenameOverOpen, ProvenanceTwins, TimeStep};
    let quirks = [TimeStep(2), NoLocks, NoRenameOverOpen, ProvenanceTwins, CaseInsensitive, DecomposedNames];
    let Some(share) = Share::mounted(each_quirk_has_its_effect, &quirks) else { return };
    let at = share.at();
    let file = File::create(at.join("Ä")).unwrap();
    assert_eq!(names(&at), ["._A\u{308}", "A\u{308}"].map(str::to_owned).into());
    assert_eq!(fs::metadata(at.join("a\u{308}")).unwrap().ino(), file.metadata().unwrap().ino());
    let facts = file.metadata().unwrap();
    assert_eq!((facts.mtime() % 2, facts.mtime_nsec()), (0, 0));
    let refused =
        platform::lock_range(file.as_fd(), LockAction::Take, ByteRange { begin: 0, length: 10 }).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::OPNOTSUPP.raw_os_error()));
    File::create(at.join("b")).unwrap();
    let refused = fs::rename(at.join("b"), at.join("ä")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::BUSY.raw_os_error()));
    drop(file);
    // FUSE sends the release request of the last close asynchronously.
    machine::wait_until("the file to be closed", || fs::rename(at.join("b"), at.join("ä")).is_ok());
}

#[test]
fn every_workload_is_ok_with_appledouble_files() {
    let Some(share) = Share::mounted(every_workload_is_ok_with_appledouble_files, &[]) else { return };
    let runs = share.run(&[], 0);
    assert_all_ok(&runs);
    let tree = Tree { seed: 0, files: TREE_FILES / 4 };
    let twins = (0..tree.files).filter(|number| tree.has_finder_info(*number)).count();
    assert_eq!(fact(&runs, "folder-index", "apple-double-files"), twins.to_string());
    assert_ne!(fact(&runs, "incremental-backup", "apple-double-files"), "0");
    assert_all_ok(&share.run(&["folder-index"], 0));
    // In about one of 13 runs none of the 40 verified files has an attribute; such a run has no `extended-attributes`
    // fact.
    let attributes = (0..8).find_map(|_| {
        let again = share.run(&["incremental-backup"], 0);
        assert_all_ok(&again);
        again[0]["facts"]["extended-attributes"].as_str().map(str::to_owned)
    });
    assert_eq!(attributes.as_deref(), Some("kept"));
    share.clean();
}

#[test]
fn every_workload_is_ok_on_a_mac_like_smb_share() {
    let quirks = [Quirk::NoLocks, Quirk::DecomposedNames, Quirk::CaseInsensitive, Quirk::NoRenameOverOpen];
    let Some(share) = Share::mounted(every_workload_is_ok_on_a_mac_like_smb_share, &quirks) else { return };
    assert_all_ok(&share.run(&[], 0));
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/profiles/lantest.toml");
    share.place.longhaul("preset --scale quick --runs 1").arg(profile).target("nas", &share.at()).expect(3);
    let run = share.place.stored_runs().pop().unwrap();
    assert_failure(&run, "unavailable", &["lock", "cannot be measured here"]);
    share.clean();
}

#[test]
fn rename_over_an_open_file_is_an_error_until_closed() {
    let Some(share) =
        Share::mounted(rename_over_an_open_file_is_an_error_until_closed, &[Quirk::NoRenameOverOpen])
    else {
        return;
    };
    assert_all_ok(&share.run(&["incremental-backup"], 0));
    let backup = sandbox(&share.at()).join("incremental-backup");
    let open: Vec<File> =
        tree::files(&backup).iter().map(|path| File::open(backup.join(path)).unwrap()).collect();
    let runs = share.run(&["incremental-backup"], 3);
    assert_failure(&runs[0], "error", &["rename", "close the programs that have it open"]);
    drop(open);
    assert_all_ok(&share.run(&["incremental-backup"], 0));
}

#[test]
fn every_workload_is_ok_with_coarse_timestamps() {
    let quirks = [Quirk::TimeStep(2), Quirk::CaseInsensitive];
    let Some(share) = Share::mounted(every_workload_is_ok_with_coarse_timestamps, &quirks) else { return };
    let runs = share.run(&[], 0);
    assert_all_ok(&runs);
    assert_eq!(fact(&runs, "incremental-backup", "modification-times"), "kept");
    share.clean();
}

#[test]
fn every_workload_is_ok_with_provenance_attributes() {
    let quirks = [Quirk::TimeStep(1), Quirk::ProvenanceTwins];
    let Some(share) = Share::mounted(every_workload_is_ok_with_provenance_attributes, &quirks) else {
        return;
    };
    assert_all_ok(&share.run(&[], 0));
    let output = share.place.longhaul("service uninstall --purge --yes").expect(0);
    assert!(output.out.contains("Everything except longhaul's programs was removed"), "{output}");
    assert_eq!(names(&share.at()), BTreeSet::new());
}

#[test]
fn every_preset_is_ok_with_provenance_attributes() {
    let quirks = [Quirk::ProvenanceTwins];
    let Some(share) = Share::mounted(every_preset_is_ok_with_provenance_attributes, &quirks) else {
        return;
    };
    let runs = share.run(&preset_names(), 0);
    assert_all_ok(&runs);
    assert_eq!(runs.len(), preset_names().len());
    share.clean();
}

/// Parts of the message about EPERM: privacy settings refuse on a Mac only, on Linux a server or the file system does.
/// `timed_fs/privacy.rs` tests the message on a Mac.
const SERVER_MESSAGE_PARTS: [&str; 3] =
    ["Operation not permitted", "The server or the file system refused it", "another `sec=` option"];

#[test]
fn privacy_refusal_is_unavailable_until_allowed() {
    let Some(share) = Share::mounted(privacy_refusal_is_unavailable_until_allowed, &[]) else {
        return;
    };
    assert_all_ok(&share.run(&["folder-index"], 0));
    share.set_private(true);
    let runs = share.run(&["folder-index", "dd"], 3);
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert_failure(run, "unavailable", &SERVER_MESSAGE_PARTS);
        assert_eq!(run["failure"]["error"], "EPERM");
    }
    share.set_private(false);
    assert_all_ok(&share.run(&["folder-index"], 0));
}

#[test]
fn eperm_on_a_new_target_is_a_refusal_of_the_server() {
    let Some(share) = Share::mounted(eperm_on_a_new_target_is_a_refusal_of_the_server, &[]) else { return };
    share.set_private(true);
    assert_failure(&share.run(&["folder-index"], 3)[0], "error", &SERVER_MESSAGE_PARTS);
}

#[test]
fn eperm_of_a_folder_is_a_refusal_of_the_server() {
    let Some(share) = Share::mounted(eperm_of_a_folder_is_a_refusal_of_the_server, &[]) else { return };
    share.mac.privacy.hides_folders.store(true, Ordering::Relaxed);
    assert_failure(&share.run(&["folder-index"], 3)[0], "unavailable", &SERVER_MESSAGE_PARTS);
    share.mac.privacy.hides_folders.store(false, Ordering::Relaxed);
    assert_all_ok(&share.run(&["folder-index"], 0));
}

#[test]
fn blocked_target_is_skipped_until_access_is_allowed() {
    let Some(share) = Share::mounted(blocked_target_is_skipped_until_access_is_allowed, &[]) else {
        return;
    };
    let config = BUSY.replace("[\"folder-index\"]", "[\"folder-index\", \"dd\"]").replace("8640", "24");
    share.place.configure(&(config + "[sampling]\nprobe-when = \"never\"\n" + &target("nas", &share.at())));
    let daemon = Daemon::start(&share.place);
    let state = || daemon.status()["targets"][0]["state"]["name"].clone();
    daemon.round();
    assert_eq!(state(), "waiting");
    share.set_private(true);
    daemon.round();
    assert_eq!(state(), "blocked");
    let first = share.mac.privacy.refused.swap(0, Ordering::Relaxed);
    daemon.round();
    let second = share.mac.privacy.refused.swap(0, Ordering::Relaxed);
    assert!(
        0 < second && second < first,
        "{second} opens instead of {first}: the second round only checks access"
    );
    for command in ["status", "doctor"] {
        let output = share.place.longhaul(command).expect(3);
        assert!(SERVER_MESSAGE_PARTS.iter().all(|part| output.out.contains(part)), "{output}");
    }
    share.set_private(false);
    daemon.round();
    assert_eq!(state(), "waiting");
    daemon.stop();
}

#[test]
fn probe_works_with_provenance_attributes() {
    let Some(share) = Share::mounted(probe_works_with_provenance_attributes, &[Quirk::ProvenanceTwins])
    else {
        return;
    };
    let mut sampling = Sampling::on(&share.at(), &share.place.folder("local"), plan_every(20));
    sampling.start();
    let answered = |sampling: &mut Sampling, kind| {
        let slots = sampling.recorded().slots();
        slots.iter().filter(|slot| slot.kind == kind && slot.error.is_none()).count()
    };
    machine::wait_until("answers of every kind", || {
        ProbeKind::ALL.into_iter().all(|kind| answered(&mut sampling, kind) > 10)
    });
    assert_eq!(
        sampling.recorded().changes(),
        [],
        "the probe's own files are not reported as a user's change"
    );
    let cleaned = sampling.clean();
    assert!(cleaned.sandbox_removed && cleaned.foreign.is_empty(), "{cleaned:?}");
    assert_eq!(names(&share.at()), BTreeSet::new());
}

/// Writes the names of all files and folders below a folder in capitals.
fn capitalize(folder: &Path) {
    let capital = |letter: char| letter.to_uppercase().next().filter(|_| letter.to_uppercase().len() == 1);
    for name in names(folder) {
        let (old, passing) = (folder.join(&name), folder.join("passing"));
        if old.is_dir() {
            capitalize(&old);
        }
        let new: String = name.chars().map(|letter| capital(letter).unwrap_or(letter)).collect();
        // Through a third name: Linux does nothing if both names mean the same file.
        fs::rename(&old, &passing).unwrap();
        fs::rename(&passing, folder.join(new)).unwrap();
    }
}

#[test]
fn names_that_changed_case_cost_no_run() {
    let Some(share) = Share::mounted(names_that_changed_case_cost_no_run, &[Quirk::CaseInsensitive]) else {
        return;
    };
    // The other tasks list nothing.
    let round = || share.run(&["folder-index", "incremental-backup"], 0);
    (0..SLICES).for_each(|_| assert_all_ok(&round()));
    capitalize(&sandbox(&share.at()));
    for _ in 0..SLICES {
        let runs = round();
        assert_all_ok(&runs);
        let changed: u64 = fact(&runs, "incremental-backup", "changed-files").parse().unwrap();
        assert!(changed < 100, "{changed} files of 600 were copied again");
    }
}
