//! Tests of presets and example profiles: they are listed, run on real file systems, verified and cleaned up.

use std::fs;
use std::path::Path;

use crate::support::mounts::{self, Memory};
use crate::support::{Place, assert_all_ok, sandbox, schema, tree};
use longhaul_measure::workloads::Workload;
use longhaul_model::Scale;
use longhaul_presets::profile::Profile;
use longhaul_presets::{AS_ORIGINAL_SUFFIX, preset, presets};
use serde_json::Value;

/// Returns the names of all presets, without the variants that write zeros.
fn names() -> Vec<&'static str> {
    presets().iter().map(Workload::name).filter(|name| !name.ends_with(AS_ORIGINAL_SUFFIX)).collect()
}

/// Folder of example profiles, which are not presets.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/profiles");

/// Returns the names of all example profiles.
fn examples() -> Vec<String> {
    let files =
        fs::read_dir(EXAMPLES).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect()
}

/// Runs a preset or an example profile once at the quick scale, and returns the JSON output.
fn run(place: &Place, name: &str, target: &Path) -> Value {
    let file = format!("{EXAMPLES}/{name}.toml");
    let name = if Path::new(&file).exists() { &file } else { name };
    place.longhaul("preset --scale quick --runs 1 --json").arg(name).target("nas", target).expect(0).value()
}

fn figure<'a>(output: &'a Value, name: &str) -> &'a Value {
    let figures = output["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name}: {output}"))
}

/// Returns the number of calls of one operation in a phase.
fn count(output: &Value, phase: &str, operation: &str) -> u64 {
    let phases = output["phases"].as_array().unwrap();
    let phase =
        phases.iter().find(|found| found["phase"] == phase).unwrap_or_else(|| panic!("no {phase}: {output}"));
    let operations = phase["operations"].as_array().unwrap();
    operations
        .iter()
        .find(|found| found["operation"] == operation)
        .map_or(0, |found| found["count"].as_u64().unwrap())
}

#[test]
fn preset_list_contains_every_preset() {
    let output = Place::new().longhaul("preset list").expect(0).out;
    for name in names() {
        assert!(output.lines().any(|line| line.trim_start().starts_with(name)), "{name}:\n{output}");
    }
}

/// Runs all presets in a round, as a configuration does. Each run must be ok, complete, and have every figure.
#[test]
fn every_preset_runs_in_a_round_with_all_figures() {
    let place = Place::new();
    let target = place.folder("nas");
    let output = place.run(&names(), &[("nas", &target)]).expect(0);
    schema::check_output(&output.lines());
    assert_all_ok(&output.runs());
    assert_eq!(output.runs().len(), names().len());
    for run in output.runs() {
        check_run(&run);
    }
    place.longhaul("targets clean nas --yes").expect(0);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "nothing is left on the target");
}

#[test]
fn every_example_profile_runs_with_all_figures() {
    let place = Place::new();
    let target = place.folder("nas");
    let names = examples();
    assert_eq!(names.len(), 7, "{names:?}");
    names.iter().for_each(|name| drop(run(&place, name, &target)));
    let runs = place.stored_runs();
    assert_all_ok(&runs);
    assert_eq!(runs.len(), names.len());
    runs.iter().for_each(check_run);
    place.longhaul("targets clean nas --yes").expect(0);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "nothing is left on the target");
}

/// Expected number of calls by operation.
type Calls = &'static [(&'static str, u64)];

/// Expected calls of presets whose originals cannot be run for comparison: preset, phase, calls. The numbers come
/// from the originals (their sources, and articles about them), divided by the factor of the quick scale, which each
/// comment names.
const CALLS: &[(&str, &str, Calls)] = &[
    // HELIOS: 100 files of 20 KB, one of 30,000 KB, 4000 locks and unlocks, a folder of 320 files. The quick scale
    // divides counts by 10 and times by 20.
    ("lantest", "create-100", &[("create", 10), ("write", 10), ("close", 10)]),
    ("lantest", "open-100", &[("open", 10), ("close", 10)]),
    ("lantest", "delete-100", &[("unlink", 10)]),
    ("lantest", "lock-4000", &[("lock", 400)]),
    ("lantest", "read-folder-320", &[("open", 1)]),
    // Netatalk: 1000 files opened, read and queried with stat, 10,000 locks, 2000 files created and removed, 1110
    // folders.
    ("lantest", "stat-and-read-1000", &[("open", 100), ("getattr", 100), ("read", 100), ("close", 100)]),
    ("lantest", "lock-10000", &[("lock", 1000)]),
    ("lantest", "create-2000", &[("create", 200), ("close", 200)]),
    ("lantest", "delete-2000", &[("unlink", 200)]),
    ("lantest", "folders-1110", &[("mkdir", 111), ("open", 0)]),
    ("lantest", "remove-folders-1110", &[("rmdir", 111)]),
    // Divided by 20: 98 files of content creation, and 2833 of the copied folder. Divided by 64: 1.3 GB of film in
    // 256 KiB.
    ("naspt", "hd-playback", &[("read", 77)]),
    ("naspt", "four-films", &[("read", 72), ("open", 4)]),
    ("naspt", "hd-record", &[("create", 1), ("write", 77), ("sync", 1)]),
    ("naspt", "content-creation", &[("create", 4), ("close", 4)]),
    ("naspt", "directory-copy-to", &[("create", 141), ("close", 141)]),
    ("naspt", "directory-copy-from", &[("open", 141), ("close", 141)]),
    // Divided by 32: 724 frames of a film of 4 GB.
    ("aja", "write", &[("create", 1), ("write", 22)]),
    ("aja", "read", &[("open", 1), ("read", 22)]),
    // Divided by 64: 5 GB in 8 MiB blocks, with one sync at the end.
    ("blackmagic", "write-1", &[("create", 1), ("write", 9), ("sync", 1)]),
    ("blackmagic", "write-5", &[("create", 0), ("write", 9), ("sync", 1)]),
    ("blackmagic", "read-5", &[("read", 9)]),
    // Divided by 5: 160 files.
    ("stibium", "write", &[("create", 32), ("close", 32)]),
    ("stibium", "read", &[("open", 32), ("close", 32)]),
    // A library of 2000 songs in 50 folders (divided by 40), a mailbox of 100,000 messages in 100 folders (divided by
    // 400), a folder of 20,000 names (divided by 20).
    ("music-library", "list", &[("open", 50)]),
    ("music-library", "look", &[("getattr", 50), ("lookup", 50)]),
    ("music-library", "tags", &[("open", 50), ("read", 50), ("close", 50)]),
    ("mail-search", "list", &[("open", 100)]),
    ("mail-search", "search", &[("open", 250), ("close", 250)]),
    ("mail-search", "search-again", &[("open", 250), ("close", 250)]),
    ("big-folder", "list", &[("open", 1)]),
    ("big-folder", "look", &[("getattr", 1000), ("lookup", 1000), ("getxattr", 1000)]),
    // Divided by 64: 2 GB read and written in 1 MiB blocks.
    ("remux", "remux", &[("open", 1), ("create", 1), ("read", 29), ("write", 29), ("sync", 1)]),
];

/// Expected bytes of a phase, likewise divided by the quick scale: preset, phase, bytes read, bytes written.
const BYTES: &[(&str, &str, u64, u64)] = &[
    ("aja", "write", 0, 22 * 1920 * 1080 * 8 / 3), // v210 has 10 bits per component: 16 bytes hold six pixels.
    ("aja", "read", 22 * 1920 * 1080 * 8 / 3, 0),
    ("blackmagic", "write-3", 0, 9 << 23),
    ("stibium", "write", 0, 2 * 5_330_000), // 53.3 GB in 160 files; divided by 5 (files) and 1000 (sizes).
    ("stibium", "read", 2 * 5_330_000, 0),
    ("lantest", "create-100", 0, 10 * 1000),
    ("lantest", "stat-and-read-1000", 100 * 25, 0),
    ("music-library", "tags", 50 << 16, 0),
    ("remux", "remux", 29 << 20, 29 << 20),
];

/// Returns a phase of a stored run.
fn phase_of<'a>(run: &'a Value, name: &str) -> &'a Value {
    let phases = run["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no {name}: {run}"))
}

fn calls_of(phase: &Value, operation: &str) -> u64 {
    let operations = phase["ops"].as_array().unwrap();
    let found = operations.iter().find(|found| found["op"] == operation);
    found.map_or(0, |found| found["count"].as_u64().unwrap())
}

/// Checks that calls and bytes match the parameters of the original.
fn check_parameters(run: &Value) {
    let name = run["workload"].as_str().unwrap();
    for (_, phase, calls) in CALLS.iter().filter(|(preset, ..)| *preset == name) {
        let found = phase_of(run, phase);
        for (operation, count) in *calls {
            assert_eq!(calls_of(found, operation), *count, "{name} {phase} {operation}: {found}");
        }
    }
    for (_, phase, read, written) in BYTES.iter().filter(|(preset, ..)| *preset == name) {
        let found = phase_of(run, phase);
        let bytes = ["bytes_read", "bytes_written"].map(|key| found[key].as_u64().unwrap());
        assert_eq!(bytes, [*read, *written], "{name} {phase}");
    }
    check_mixes(run, name);
}

/// Checks the ratios of the calls in a timed phase. Each thread may stop within a repetition, hence the tolerance.
fn check_mixes(run: &Value, name: &str) {
    let of = |phase: &str, operation: &str| calls_of(phase_of(run, phase), operation);
    match name {
        // fileserver.f: in each loop a thread creates, appends to, reads, deletes and stats a file; 50 threads.
        "filebench-fileserver" => {
            let loops = of("serve", "create");
            let shares = [("unlink", 1), ("getattr", 1), ("open", 2), ("close", 3)];
            for (operation, share) in shares {
                assert!(of("serve", operation).abs_diff(share * loops) <= share * 50, "{operation}: {run}");
            }
        }
        // varmail.f: in each loop a thread deletes a message, creates one, syncs two and reads two; 16 threads.
        "filebench-varmail" => {
            let loops = of("deliver", "create");
            for (operation, share) in [("unlink", 1), ("sync", 2), ("open", 2), ("close", 3)] {
                assert!(of("deliver", operation).abs_diff(share * loops) <= share * 16, "{operation}: {run}");
            }
        }
        // networkfs.f: per second one launch, six changed documents, three that grow, one stat; fewer if a call is
        // slow.
        "filebench-networkfs" => {
            assert!((1..=1).contains(&of("events", "getattr")), "{run}");
            assert!((3..=10).contains(&of("events", "open")), "{run}");
        }
        _ => {}
    }
}

/// Returns the profile of a preset or an example profile.
fn profile(name: &str) -> Profile {
    match preset(name) {
        Some(preset) => preset.profile.clone(),
        None => Profile::parse(&fs::read_to_string(format!("{EXAMPLES}/{name}.toml")).unwrap()).unwrap(),
    }
}

/// Checks a run's calls, bytes and phases against its profile. Bytes are only compared if no phase has a time limit.
fn check_run(run: &Value) {
    check_parameters(run);
    let name = run["workload"].as_str().unwrap();
    let profile = profile(name).scaled_to(Scale::Quick);
    let cost = profile.cost();
    let sum = |key: &str| {
        run["phases"].as_array().unwrap().iter().map(|phase| phase[key].as_u64().unwrap()).sum::<u64>()
    };
    // dbench-mix draws its steps by weight, so its bytes match only on average. All others match up to a block per
    // file.
    let is_exact = cost.seconds == 0.0 && name != "dbench-mix";
    for (key, planned) in [("bytes_read", cost.bytes_read), ("bytes_written", cost.bytes_written)] {
        let found = sum(key);
        assert!(
            !is_exact || found.abs_diff(planned) * 20 <= planned,
            "{name}: {found} {key}, planned {planned}"
        );
    }
    for phase in &profile.phases {
        let found =
            run["phases"].as_array().unwrap().iter().find(|found| found["name"] == phase.name.as_str());
        assert!(found.is_some_and(|found| found["complete"] == true), "{name}: {}", phase.name);
    }
}

#[test]
fn dd_makes_the_expected_calls_and_prints_figures() {
    let place = Place::new();
    let target = place.folder("nas");
    let output = run(&place, "dd", &target);
    let calls = [
        ("large-write", "write"),
        ("small-write", "write"),
        ("small-read", "read"),
        ("large-read-again", "read"),
    ]
    .map(|(phase, operation)| count(&output, phase, operation));
    // The original makes 1024, 10,000, 100,000 and 1024 calls; a quick run makes a 64th of them.
    assert_eq!(calls, [16, 156, 1562, 16]);
    assert_eq!(figure(&output, "large write")["unit"], "MB/s");
    assert!(figure(&output, "large read")["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn sysbench_syncs_all_files_every_100_requests() {
    let place = Place::new();
    let output = run(&place, "sysbench-fileio", &place.folder("nas"));
    let (writes, syncs) = (count(&output, "rndwr", "write"), count(&output, "rndwr", "sync"));
    assert_eq!(count(&output, "rndwr", "open"), 128);
    assert_eq!(syncs, 128 * (writes / 100 + 1));
    let (reads, writes) = (count(&output, "rndrw", "read"), count(&output, "rndrw", "write"));
    assert_eq!(reads * 2, writes * 3, "a ratio of 1.5");
}

#[test]
fn dbench_looks_up_missing_names_in_one_call_of_8() {
    let place = Place::new();
    let output = run(&place, "dbench-mix", &place.folder("nas"));
    // 59,614 of 437,042 steps look up a missing name, and a quick run has 2,185 steps: 298 are expected, with a
    // standard deviation of 16. The test allows four standard deviations.
    let found = count(&output, "mix", "lookup");
    assert!((234..=362).contains(&found), "{found}");
}

#[test]
fn blogbench_prints_its_table_and_both_scores() {
    let place = Place::new();
    let target = place.folder("nas");
    let output =
        place.longhaul("preset blogbench --scale quick --runs 1").target("nas", &target).expect(0).out;
    assert!(output.contains("  Nb blogs   R articles    W articles    R pictures"), "{output}");
    assert!(
        output.contains("Final score for writes") && output.contains("Final score for reads"),
        "{output}"
    );
    assert!(output.contains("Differences from the original"), "{output}");
    assert!(
        tree::files(&sandbox(&target)).iter().all(|path| !path.to_string_lossy().contains("blog-")),
        "the blogs are removed"
    );
}

#[test]
fn as_original_writes_zeros_and_is_never_pooled() {
    let place = Place::new();
    let target = place.folder("nas");
    place
        .longhaul("preset remux --as-original")
        .target("nas", &target)
        .expect(2)
        .assert_stderr(&["dd", "blogbench"]);
    let file = place.path("movie.toml");
    fs::write(&file, place.longhaul("preset print remux").expect(0).out).unwrap();
    let run = |line: &str| place.longhaul(line).arg(&file).target("nas", &target).expect(0).out;
    run("preset --scale quick --runs 1");
    let output = run("preset --as-original --scale quick --runs 1");
    assert!(output.contains("LIKE THE ORIGINAL") && output.contains("movie-as-original"), "{output}");
    let summary = place.longhaul("runs --summary --json").expect(0).value();
    let names: Vec<&str> =
        summary["workloads"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["movie", "movie-as-original"]);
    let film = |folder: &str| {
        fs::read(sandbox(&target).join(format!("presets/{folder}/film/d00000/00000000"))).unwrap()
    };
    assert!(film("movie-quick-zeros").iter().all(|byte| *byte == 0));
    assert!(film("movie-quick").iter().filter(|byte| **byte == 0).count() < film("movie-quick").len() / 128);
}

#[test]
fn published_figures_are_shown_with_ratio_and_source() {
    let place = Place::new();
    let output = place
        .longhaul("preset dd --published --scale quick --runs 2 --json")
        .target("nas", &place.folder("nas"))
        .expect(0)
        .value();
    let write = figure(&output, "large write");
    assert_eq!(write["values"].as_array().unwrap().len(), 2, "all runs are shown");
    let afp = &write["published"][0];
    assert_eq!((afp["setup"].as_str(), afp["value"].as_f64()), (Some("AFP"), Some(7.2)));
    let ours = write["median"].as_f64().unwrap();
    assert!((afp["times_published"].as_f64().unwrap() - ours / 7.2).abs() < 1e-9);
    assert!(afp["citation"].as_str().unwrap().contains("NETGEAR"));
}

#[test]
fn damaged_preset_file_fails_the_run_and_is_rebuilt() {
    let place = Place::new();
    let target = place.folder("nas");
    run(&place, "remux", &target);
    let film = sandbox(&target).join("presets/remux-quick/film/d00000/00000000");
    let mut bytes = fs::read(&film).unwrap();
    bytes[700_000] ^= 1;
    fs::write(&film, bytes).unwrap();
    let output = place.longhaul("preset remux --scale quick --runs 1").target("nas", &target).expect(3).out;
    assert!(output.contains("is damaged: byte 700000") && output.contains("No run succeeded"), "{output}");
    assert!(output.contains(": 1 run, 1 failed\n"), "{output}");
    run(&place, "remux", &target);
}

#[test]
fn results_of_two_targets_are_apart() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let call = place.longhaul("preset ioping --scale quick --runs 1").target("a", &a).target("b", &b);
    let output = call.expect(0).out;
    assert!(output.contains("1 run on each of 2 targets,"), "{output}");
    assert!(output.contains("\n\nioping on b ("), "{output}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn preset_on_a_target_without_space_is_refused() {
    mounts::only_in_own_mounts!(preset_on_a_target_without_space_is_refused);
    let place = Place::new();
    let target = place.folder("small");
    let _memory = Memory::mount(&target, 8 << 10);
    let output = place.longhaul("preset aja --scale quick --runs 1").target("nas", &target).expect(3);
    assert!(output.out.contains("are free, but") && output.out.contains("must stay free"), "{output}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn presets_run_on_a_memory_file_system() {
    mounts::only_in_own_mounts!(presets_run_on_a_memory_file_system);
    let place = Place::new();
    let target = place.folder("memory");
    let _memory = Memory::mount(&target, 200 << 10);
    for name in ["dd", "bonnie"] {
        let output = run(&place, name, &target);
        assert_eq!((output["runs"].as_u64(), output["failed"].as_u64()), (Some(1), Some(0)), "{output}");
    }
}

/// Checks that preset runs count against the daily budget of the configuration, as rounds do.
#[test]
fn preset_runs_count_against_the_daily_budget() {
    let place = Place::new();
    place.configure("[limits]\nmegabytes-per-day = 10\n");
    let target = place.folder("nas");
    let output =
        place.longhaul("preset remux --scale quick --runs 3 --json").target("nas", &target).expect(0);
    output.assert_stderr(&["stopped before the next round", "in the last 24 hours"]);
    assert_eq!(output.value()["runs"], 1);
}

/// Work that runs for a time has no bound of its own.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts in a namespace of its own")]
fn appending_for_a_time_leaves_the_reserve_free() {
    mounts::only_in_own_mounts!(appending_for_a_time_leaves_the_reserve_free);
    let place = Place::new();
    let target = place.folder("nas");
    let _disk = Memory::mount(&target, 64 << 10);
    let file = place.path("log.toml");
    let profile = r#"
        summary = "appends to a log"
        [files.log]
        count = 1
        size = "1 MiB"
        [[phase]]
        name = "append"
        [[phase.work]]
        files = "log"
        seconds = 60.0
        steps = [{ do = "append", block = "1 MiB" }]
    "#;
    fs::write(&file, profile).unwrap();
    let output = place.longhaul("preset").arg(&file).target("nas", &target).expect(3);
    assert!(output.out.contains("what it appends would take the space that must stay free"), "{output}");
}
