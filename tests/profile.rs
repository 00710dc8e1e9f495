//! Profiles of one's own: checked, run under their name, by slices in rounds, and never blamed on the target.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;

use longhaul_measure::model::Scale;
use longhaul_measure::profile::Profile;
use longhaul_measure::worker::Assignment;
use longhaul_measure::workloads::classic::Manner;
use longhaul_measure::workloads::{OwnProfile, Portion, Settings};
use support::probing::{Sampling, plan_every};
use support::{Place, arena, tree};

#[test]
fn a_profile_of_ones_own_is_checked_and_run_under_its_name() {
    let place = Place::new();
    let (target, file) = (place.folder("nas"), place.path("my-notes.toml"));
    let text = "summary = \"notes that are read and written again\"\n[files.notes]\ncount = 20\nsize = \"4 KiB\"\n\
        [[phase]]\nname = \"edit\"\n[[phase.work]]\nfiles = \"notes\"\nthreads = 4\nsteps = [\n\
        { do = \"open\" }, { do = \"read\", amount = \"file\" }, { do = \"write\", amount = \"file\" }, { do = \"sync\" }, { do = \"close\" },\n]\n\
        [[figure]]\nname = \"notes\"\nunit = \"/sec\"\nphase = \"edit\"\nof = \"rate\"\n";
    fs::write(&file, text).unwrap();
    let checked = place.longhaul("profile check").word(&file).expect(0).out;
    assert!(checked.contains("is well formed") && checked.contains("phases: edit"), "{checked}");
    let call = place.longhaul("classic").word(&file).word("--runs").word("2").word("--json");
    let said = call.target("nas", &target).expect(0).value();
    assert_eq!((said["classic"].as_str(), said["runs"].as_u64()), (Some("my-notes"), Some(2)));
    let operations = said["phases"][0]["operations"].as_array().unwrap();
    let syncs = operations.iter().find(|found| found["operation"] == "sync").unwrap();
    assert_eq!((&said["phases"][0]["phase"], &syncs["count"]), (&"edit".into(), &40.into()));
    assert!(place.stored_runs().iter().all(|run| run["workload"] == "my-notes"));
}

/// Four phases in which one thread overwrites films while others read the same ones: no file system promises that what such a
/// read returns is of before or of after.
#[test]
fn what_is_read_while_somebody_writes_it_is_not_called_damaged() {
    let place = Place::new();
    let (target, file) = (place.folder("nas"), place.path("films.toml"));
    let work = |threads: u8, what: &str| {
        format!(
            "[[phase.work]]\nfiles = \"films\"\nshare = \"all\"\nthreads = {threads}\ntimes = 300\n\
             steps = [{{ do = \"{what}\", amount = \"file\", block = \"256 KiB\" }}]\n"
        )
    };
    let phase = |name: &str| format!("[[phase]]\nname = \"{name}\"\n{}{}", work(1, "write"), work(3, "read"));
    let phases = ["one", "two", "three", "four"].map(phase).concat();
    let films = "summary = \"films\"\n[files.films]\ncount = 300\nsize = \"256 KiB\"\n";
    fs::write(&file, format!("{films}{phases}")).unwrap();
    let call = place.longhaul("classic").word(&file).word("--runs").word("8").word("--json");
    let said = call.target("nas", &target).expect(0).value();
    assert_eq!((&said["runs"], &said["failed"]), (&8.into(), &0.into()), "{said}");
}

/// Read by every run, and made from nothing by every run.
const HEAVY: &str = "summary = \"a film and its notes\"\nslices = 3\n[files.kept]\ncount = 6\nsize = \"64 KiB\"\n\
    [files.made]\ncount = 1\nsize = \"48 KiB\"\npresent = 0\n\
    [[phase]]\nname = \"read\"\n[[phase.work]]\nfiles = \"kept\"\nsteps = [{ do = \"read\", amount = \"file\" }]\n\
    [[phase]]\nname = \"write\"\n[[phase.work]]\nfiles = \"made\"\n\
    steps = [{ do = \"create\" }, { do = \"write\", amount = \"file\" }, { do = \"close\" }]\n";

/// A run of it: the bytes that its phases moved, and which slice it was.
fn heavy(worker: &mut Sampling, rotation: u64, classics: Portion) -> (Vec<u64>, Option<String>) {
    let own = OwnProfile::new("heavy", Profile::parse(HEAVY).unwrap(), Manner::Honest).unwrap();
    let settings = Settings { own: Some(Box::new(own)), classics, ..Settings::default() };
    let assignment = Assignment {
        workload: "heavy".to_owned(),
        scale: Scale::Standard,
        settings,
        rotation,
        seed: rotation,
    };
    let mut finished = worker.carry_out(&assignment);
    assert!(finished.report.failed.is_none(), "{:?}", finished.report.failed);
    let moved = finished.phases.iter().map(|phase| phase.bytes_read + phase.bytes_written);
    (moved.collect(), finished.report.facts.remove("slice"))
}

#[test]
fn in_rounds_a_heavy_profile_is_done_slice_by_slice_and_each_is_kept() {
    let place = Place::new();
    let target = place.folder("nas");
    let mut worker = Sampling::on(&target, &place.folder("local"), plan_every(60_000));
    let kept = || {
        let files = tree::identities(&arena(&target).join("classics")).into_iter();
        files.filter(|(path, _)| path.components().any(|part| part.as_os_str() == "kept")).collect::<Vec<_>>()
    };
    let mut after_a_turn = vec![];
    for rotation in 0..6 {
        let (moved, slice) = heavy(&mut worker, rotation, Portion::Slice);
        assert_eq!(moved, [2 * 65_536, 16_384], "a third of each");
        assert_eq!(slice, Some(format!("{} of 3", rotation % 3 + 1)));
        if rotation == 2 {
            after_a_turn = kept();
        }
    }
    assert_eq!(kept(), after_a_turn, "the second turn finds what the first one made");
    let contents = tree::contents(&arena(&target).join("classics"));
    let distinct: BTreeSet<&Vec<u8>> = contents.values().map(|(bytes, _)| bytes).collect();
    assert_eq!((contents.len(), distinct.len()), (6, 6), "no two files are alike");
    assert_eq!(heavy(&mut worker, 0, Portion::Whole), (vec![6 * 65_536, 49_152], None));
    worker.clean();
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn what_is_wrong_with_a_profile_is_said_with_its_file_and_line() {
    let place = Place::new();
    let file = place.path("my-notes.toml");
    fs::write(&file, "summary = \"x\"\nphases = 3\n").unwrap();
    place.longhaul("profile check").word(&file).expect(2).complains_of(&["my-notes.toml:2:", "phases"]);
    fs::write(place.path("dd.toml"), place.longhaul("profile print dd").expect(0).out).unwrap();
    let call = place.longhaul("classic").word(place.path("dd.toml")).target("nas", &place.folder("nas"));
    call.expect(2).complains_of(&["`dd` is the name of a task already"]);
    place
        .longhaul("classic no-such-tool")
        .target("nas", &place.folder("nas"))
        .expect(2)
        .complains_of(&["classic list"]);
    place.longhaul("classic dd").expect(2).complains_of(&["--target"]);
}
