//! Tests of custom profiles: they are checked, run under their name, and run slice by slice in rounds.

use std::collections::BTreeSet;
use std::fs;

use crate::support::probing::{Sampling, plan_every};
use crate::support::{Place, sandbox, tree};
use longhaul_measure::worker::Assignment;
use longhaul_measure::workloads::{Settings, SliceSelection};
use longhaul_model::Scale;
use longhaul_presets::profile::Profile;
use longhaul_presets::{ContentMode, Preset};

#[test]
fn custom_profile_is_checked_and_run_under_its_name() {
    let place = Place::new();
    let (target, file) = (place.folder("nas"), place.path("my-notes.toml"));
    let text = "summary = \"notes that are read and written again\"\n[files.notes]\ncount = 20\nsize = \"4 KiB\"\n\
        [[phase]]\nname = \"edit\"\n[[phase.work]]\nfiles = \"notes\"\nthreads = 4\nsteps = [\n\
        { do = \"open\" }, { do = \"read\", amount = \"file\" }, { do = \"write\", amount = \"file\" }, { do = \"sync\" }, { do = \"close\" },\n]\n\
        [[figure]]\nname = \"notes\"\nunit = \"/sec\"\nphase = \"edit\"\nsource = \"rate\"\n";
    fs::write(&file, text).unwrap();
    let checked = place.longhaul("preset check").arg(&file).expect(0).out;
    assert!(checked.contains("is valid") && checked.contains("Phases: edit"), "{checked}");
    let call = place.longhaul("preset").arg(&file).arg("--runs").arg("2").arg("--json");
    let output = call.target("nas", &target).expect(0).value();
    assert_eq!((output["preset"].as_str(), output["runs"].as_u64()), (Some("my-notes"), Some(2)));
    let operations = output["phases"][0]["operations"].as_array().unwrap();
    let syncs = operations.iter().find(|found| found["operation"] == "sync").unwrap();
    assert_eq!((&output["phases"][0]["phase"], &syncs["count"]), (&"edit".into(), &40.into()));
    assert!(place.stored_runs().iter().all(|run| run["workload"] == "my-notes"));
}

/// Runs four phases in which one thread overwrites files while others read them. No file system guarantees that such
/// a read returns only old or only new bytes, so a mixture must not count as damage.
#[test]
fn reads_during_concurrent_writes_are_not_damage() {
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
    let call = place.longhaul("preset").arg(&file).arg("--runs").arg("8").arg("--json");
    let output = call.target("nas", &target).expect(0).value();
    assert_eq!((&output["runs"], &output["failed"]), (&8.into(), &0.into()), "{output}");
}

/// Profile with one set of files that every run reads, and one that every run creates.
const HEAVY: &str = "summary = \"a film and its notes\"\nslices = 3\n[files.kept]\ncount = 6\nsize = \"64 KiB\"\n\
    [files.made]\ncount = 1\nsize = \"48 KiB\"\npresent = 0\n\
    [[phase]]\nname = \"read\"\n[[phase.work]]\nfiles = \"kept\"\nsteps = [{ do = \"read\", amount = \"file\" }]\n\
    [[phase]]\nname = \"write\"\n[[phase.work]]\nfiles = \"made\"\n\
    steps = [{ do = \"create\" }, { do = \"write\", amount = \"file\" }, { do = \"close\" }]\n";

/// Runs the profile. Returns the bytes that each phase moved, and the slice.
fn heavy(worker: &mut Sampling, rotation: u64, presets: SliceSelection) -> (Vec<u64>, Option<String>) {
    let profile =
        Preset::custom("heavy", Profile::parse(HEAVY).unwrap(), ContentMode::Incompressible).unwrap();
    let settings =
        Settings { custom_profile: Some(profile.to_value()), preset_slices: presets, ..Settings::default() };
    let assignment = Assignment {
        workload: "heavy".to_owned(),
        scale: Scale::Standard,
        settings,
        rotation,
        seed: rotation,
    };
    let mut finished = worker.carry_out(&assignment);
    assert!(finished.report.failure.is_none(), "{:?}", finished.report.failure);
    let moved = finished.phases.iter().map(|phase| phase.bytes_read + phase.bytes_written);
    (moved.collect(), finished.report.facts.remove("slice"))
}

#[test]
fn heavy_profile_runs_one_slice_per_round() {
    let place = Place::new();
    let target = place.folder("nas");
    let mut worker = Sampling::on(&target, &place.folder("local"), plan_every(60_000));
    let stored_files = || {
        let files = tree::identities(&sandbox(&target).join("presets")).into_iter();
        files.filter(|(path, _)| path.components().any(|part| part.as_os_str() == "kept")).collect::<Vec<_>>()
    };
    let mut after_first_rotation = vec![];
    for rotation in 0..6 {
        let (moved, slice) = heavy(&mut worker, rotation, SliceSelection::One);
        assert_eq!(moved, [2 * 65_536, 16_384], "a third of each set");
        assert_eq!(slice, Some(format!("{} of 3", rotation % 3 + 1)));
        if rotation == 2 {
            after_first_rotation = stored_files();
        }
    }
    assert_eq!(stored_files(), after_first_rotation, "the second rotation reuses the files of the first");
    let contents = tree::contents(&sandbox(&target).join("presets"));
    let distinct: BTreeSet<&Vec<u8>> = contents.values().map(|(bytes, _)| bytes).collect();
    assert_eq!((contents.len(), distinct.len()), (6, 6), "no two files are alike");
    assert_eq!(heavy(&mut worker, 0, SliceSelection::All), (vec![6 * 65_536, 49_152], None));
    worker.clean();
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn profile_error_names_file_and_line() {
    let place = Place::new();
    let file = place.path("my-notes.toml");
    fs::write(&file, "summary = \"x\"\nphases = 3\n").unwrap();
    place.longhaul("preset check").arg(&file).expect(2).assert_stderr(&["my-notes.toml:2:", "phases"]);
    fs::write(place.path("dd.toml"), place.longhaul("preset print dd").expect(0).out).unwrap();
    let call = place.longhaul("preset").arg(place.path("dd.toml")).target("nas", &place.folder("nas"));
    call.expect(2).assert_stderr(&["`dd` is already the name of a task"]);
    place
        .longhaul("preset no-such-tool")
        .target("nas", &place.folder("nas"))
        .expect(2)
        .assert_stderr(&["preset list"]);
    place.longhaul("preset dd").expect(2).assert_stderr(&["--target"]);
}
