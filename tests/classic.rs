//! The tools that people quote, reproduced: listed, run on real file systems, verified, cleaned up.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use longhaul_measure::model::Scale;
use longhaul_measure::workloads::Workload;
use longhaul_measure::workloads::classic::{AS_ORIGINAL, classic, classics};
use serde_json::Value;
use support::mounts::{self, Memory};
use support::{Place, arena, assert_all_ok, schema, tree};

/// The names of all classics, each once.
fn names() -> Vec<&'static str> {
    classics().iter().map(Workload::name).filter(|name| !name.ends_with(AS_ORIGINAL)).collect()
}

/// One quick run, as JSON.
fn run(place: &Place, name: &str, target: &Path) -> Value {
    place
        .longhaul(&format!("classic {name} --scale quick --runs 1 --json"))
        .target("nas", target)
        .expect(0)
        .value()
}

fn figure<'a>(said: &'a Value, name: &str) -> &'a Value {
    let figures = said["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("no {name}: {said}"))
}

/// How many calls of one kind a phase made.
fn count(said: &Value, phase: &str, operation: &str) -> u64 {
    let phases = said["phases"].as_array().unwrap();
    let phase =
        phases.iter().find(|found| found["phase"] == phase).unwrap_or_else(|| panic!("no {phase}: {said}"));
    let operations = phase["operations"].as_array().unwrap();
    operations
        .iter()
        .find(|found| found["operation"] == operation)
        .map_or(0, |found| found["count"].as_u64().unwrap())
}

#[test]
fn every_classic_is_listed_with_what_it_costs() {
    let said = Place::new().longhaul("classic list").expect(0).out;
    for name in names() {
        assert!(said.lines().any(|line| line.trim_start().starts_with(name)), "{name}:\n{said}");
    }
}

/// Through rounds, as a configuration would have them: each run is whole, ok, and every figure of the original is there.
#[test]
fn every_classic_runs_in_a_round_and_gives_all_its_figures() {
    let place = Place::new();
    let target = place.folder("nas");
    let said = place.run(&names(), &[("nas", &target)]).expect(0);
    schema::check_output(&said.lines());
    assert_all_ok(&said.runs());
    assert_eq!(said.runs().len(), names().len());
    for run in said.runs() {
        check_run(&run);
    }
    place.longhaul("clean nas --yes").expect(0);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "nothing is left of any of them");
}

/// How often each call is made.
type Calls = &'static [(&'static str, u64)];

/// Calls of classics whose originals cannot be run beside them, phase by phase. The numbers are those of the originals
/// (their sources, and articles about them), over what a quick run divides by, which is said where it is.
const CALLS: &[(&str, &str, Calls)] = &[
    // HELIOS: 100 files of 20 KB, one of 30,000 KB, 4000 times locked and unlocked, a folder of 320; counts by 10, times by 20.
    ("lantest", "create-100", &[("create", 10), ("write", 10), ("close", 10)]),
    ("lantest", "open-100", &[("open", 10), ("close", 10)]),
    ("lantest", "delete-100", &[("unlink", 10)]),
    ("lantest", "lock-4000", &[("lock", 400)]),
    ("lantest", "read-folder-320", &[("open", 1)]),
    // Netatalk: 1000 files opened, looked at and read, 10,000 locks, 2000 files made and removed, 1110 folders.
    ("lantest", "stat-and-read-1000", &[("open", 100), ("getattr", 100), ("read", 100), ("close", 100)]),
    ("lantest", "lock-10000", &[("lock", 1000)]),
    ("lantest", "create-2000", &[("create", 200), ("close", 200)]),
    ("lantest", "delete-2000", &[("unlink", 200)]),
    ("lantest", "folders-1110", &[("mkdir", 111), ("open", 0)]),
    ("lantest", "remove-folders-1110", &[("rmdir", 111)]),
    // 98 files of content creation and 2833 of the folder that is copied, by 20; 1.3 GB of film in 256 KiB, by 64.
    ("naspt", "hd-playback", &[("read", 77)]),
    ("naspt", "four-films", &[("read", 72), ("open", 4)]),
    ("naspt", "hd-record", &[("create", 1), ("write", 77), ("sync", 1)]),
    ("naspt", "content-creation", &[("create", 4), ("close", 4)]),
    ("naspt", "directory-copy-to", &[("create", 141), ("close", 141)]),
    ("naspt", "directory-copy-from", &[("open", 141), ("close", 141)]),
    // 724 frames of a film of 4 GB, by 32.
    ("aja", "write", &[("create", 1), ("write", 22)]),
    ("aja", "read", &[("open", 1), ("read", 22)]),
    // 5 GB in 8 MiB, by 64, synced as a whole.
    ("blackmagic", "write-1", &[("create", 1), ("write", 9), ("sync", 1)]),
    ("blackmagic", "write-5", &[("create", 0), ("write", 9), ("sync", 1)]),
    ("blackmagic", "read-5", &[("read", 9)]),
    // 160 files, by 5.
    ("stibium", "write", &[("create", 32), ("close", 32)]),
    ("stibium", "read", &[("open", 32), ("close", 32)]),
    // A library of 2000 songs in 50 folders, by 40; a mailbox of 100,000 messages in 100, by 400; 20,000 names, by 20.
    ("music-library", "list", &[("open", 50)]),
    ("music-library", "look", &[("getattr", 50), ("lookup", 50)]),
    ("music-library", "tags", &[("open", 50), ("read", 50), ("close", 50)]),
    ("mail-search", "list", &[("open", 100)]),
    ("mail-search", "search", &[("open", 250), ("close", 250)]),
    ("mail-search", "search-again", &[("open", 250), ("close", 250)]),
    ("big-folder", "list", &[("open", 1)]),
    ("big-folder", "look", &[("getattr", 1000), ("lookup", 1000), ("getxattr", 1000)]),
    // 2 GB read and written in MiB, by 64.
    ("remux", "remux", &[("open", 1), ("create", 1), ("read", 29), ("write", 29), ("sync", 1)]),
];

/// Bytes of phases, read and written, in the same manner.
const BYTES: &[(&str, &str, u64, u64)] = &[
    ("aja", "write", 0, 22 * 1920 * 1080 * 8 / 3), // 10 bits in v210: 16 bytes hold six pixels
    ("aja", "read", 22 * 1920 * 1080 * 8 / 3, 0),
    ("blackmagic", "write-3", 0, 9 << 23),
    ("stibium", "write", 0, 2 * 5_330_000), // 53.3 GB in 160 files, over 5 and 1000
    ("stibium", "read", 2 * 5_330_000, 0),
    ("lantest", "create-100", 0, 10 * 1000),
    ("lantest", "stat-and-read-1000", 100 * 25, 0),
    ("music-library", "tags", 50 << 16, 0),
    ("remux", "remux", 29 << 20, 29 << 20),
];

/// The phase of a run as it is stored.
fn phase_of<'a>(run: &'a Value, name: &str) -> &'a Value {
    let phases = run["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no {name}: {run}"))
}

fn calls_of(phase: &Value, operation: &str) -> u64 {
    let operations = phase["ops"].as_array().unwrap();
    let found = operations.iter().find(|found| found["op"] == operation);
    found.map_or(0, |found| found["count"].as_u64().unwrap())
}

/// Calls and bytes are those of the original's parameters.
fn check_parameters(run: &Value) {
    let name = run["workload"].as_str().unwrap();
    for (_, phase, calls) in CALLS.iter().filter(|(classic, ..)| *classic == name) {
        let found = phase_of(run, phase);
        for (operation, count) in *calls {
            assert_eq!(calls_of(found, operation), *count, "{name} {phase} {operation}: {found}");
        }
    }
    for (_, phase, read, written) in BYTES.iter().filter(|(classic, ..)| *classic == name) {
        let found = phase_of(run, phase);
        let bytes = ["bytes_read", "bytes_written"].map(|key| found[key].as_u64().unwrap());
        assert_eq!(bytes, [*read, *written], "{name} {phase}");
    }
    check_mixes(run, name);
}

/// What goes on for a time keeps the shares of its calls; each thread may be in the midst of a repetition.
fn check_mixes(run: &Value, name: &str) {
    let of = |phase: &str, operation: &str| calls_of(phase_of(run, phase), operation);
    match name {
        // fileserver.f: create, append, read whole, delete and stat in each loop, by 50 threads.
        "filebench-fileserver" => {
            let loops = of("serve", "create");
            let shares = [("unlink", 1), ("getattr", 1), ("open", 2), ("close", 3)];
            for (operation, share) in shares {
                assert!(of("serve", operation).abs_diff(share * loops) <= share * 50, "{operation}: {run}");
            }
        }
        // varmail.f: in each loop a message is deleted, one is made, two are synced, two are read, by 16 threads.
        "filebench-varmail" => {
            let loops = of("deliver", "create");
            for (operation, share) in [("unlink", 1), ("sync", 2), ("open", 2), ("close", 3)] {
                assert!(of("deliver", operation).abs_diff(share * loops) <= share * 16, "{operation}: {run}");
            }
        }
        // networkfs.f: in a second one launch, six documents changed, three that grow, one looked at; fewer if one is slow.
        "filebench-networkfs" => {
            assert!((1..=1).contains(&of("events", "getattr")), "{run}");
            assert!((3..=10).contains(&of("events", "open")), "{run}");
        }
        _ => {}
    }
}

/// Bytes are those that the profile says beforehand, where no time bounds them.
fn check_run(run: &Value) {
    check_parameters(run);
    let name = run["workload"].as_str().unwrap();
    let profile = classic(name).unwrap().profile.at(Scale::Quick);
    let cost = profile.cost();
    let sum = |key: &str| {
        run["phases"].as_array().unwrap().iter().map(|phase| phase[key].as_u64().unwrap()).sum::<u64>()
    };
    // What is drawn by weight is as said on average; all else to a block for each file.
    let is_exact = cost.seconds == 0.0 && name != "dbench-mix";
    for (key, said) in [("bytes_read", cost.read), ("bytes_written", cost.written)] {
        let found = sum(key);
        assert!(!is_exact || found.abs_diff(said) * 20 <= said, "{name}: {found} {key}, {said} were said");
    }
    for phase in &profile.phases {
        let found =
            run["phases"].as_array().unwrap().iter().find(|found| found["name"] == phase.name.as_str());
        assert!(found.is_some_and(|found| found["complete"] == true), "{name}: {}", phase.name);
    }
}

#[test]
fn dd_makes_the_calls_of_its_parameters_and_prints_its_figures() {
    let place = Place::new();
    let target = place.folder("nas");
    let said = run(&place, "dd", &target);
    let calls = [
        ("large-write", "write"),
        ("small-write", "write"),
        ("small-read", "read"),
        ("large-read-again", "read"),
    ]
    .map(|(phase, operation)| count(&said, phase, operation));
    // 1024, 10000, 100000 and 1024, of which a quick run makes a 64th.
    assert_eq!(calls, [16, 156, 1562, 16]);
    assert_eq!(figure(&said, "large write")["unit"], "MB/s");
    assert!(figure(&said, "large read")["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn sysbench_syncs_all_its_files_after_each_hundred_requests_and_at_the_end() {
    let place = Place::new();
    let said = run(&place, "sysbench-fileio", &place.folder("nas"));
    let (writes, syncs) = (count(&said, "rndwr", "write"), count(&said, "rndwr", "sync"));
    assert_eq!(count(&said, "rndwr", "open"), 128);
    assert_eq!(syncs, 128 * (writes / 100 + 1));
    let (reads, writes) = (count(&said, "rndrw", "read"), count(&said, "rndrw", "write"));
    assert_eq!(reads * 2, writes * 3, "a ratio of 1.5");
}

#[test]
fn dbench_looks_for_names_that_do_not_exist_in_one_call_of_eight() {
    let place = Place::new();
    let said = run(&place, "dbench-mix", &place.folder("nas"));
    // 59,614 of 437,042 steps look for one, and a quick run takes 2,185 steps: 298 are expected, and 16 of them are one
    // standard deviation. Four of these.
    let found = count(&said, "mix", "lookup");
    assert!((234..=362).contains(&found), "{found}");
}

#[test]
fn blogbench_prints_its_table_and_both_scores() {
    let place = Place::new();
    let target = place.folder("nas");
    let said =
        place.longhaul("classic blogbench --scale quick --runs 1").target("nas", &target).expect(0).out;
    assert!(said.contains("  Nb blogs   R articles    W articles    R pictures"), "{said}");
    assert!(said.contains("Final score for writes") && said.contains("Final score for reads"), "{said}");
    assert!(said.contains("what differs from the original"), "{said}");
    assert!(
        tree::files(&arena(&target)).iter().all(|path| !path.to_string_lossy().contains("blog-")),
        "blogs are removed"
    );
}

#[test]
fn as_the_original_it_writes_zeros_says_so_and_is_never_pooled_with_the_honest_one() {
    let place = Place::new();
    let target = place.folder("nas");
    run(&place, "remux", &target);
    let said = place
        .longhaul("classic remux --as-original --scale quick --runs 1")
        .target("nas", &target)
        .expect(0)
        .out;
    assert!(said.contains("AS THE ORIGINAL WRITES") && said.contains("remux-as-original"), "{said}");
    let summary = place.longhaul("summary --json").expect(0).value();
    let names: Vec<&str> =
        summary["workloads"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["remux", "remux-as-original"]);
    let film = |place: &str| {
        fs::read(arena(&target).join(format!("classics/{place}/film/d00000/00000000"))).unwrap()
    };
    assert!(film("remux-quick-zeros").iter().all(|byte| *byte == 0));
    assert!(film("remux-quick").iter().filter(|byte| **byte == 0).count() < film("remux-quick").len() / 128);
}

#[test]
fn published_figures_stand_beside_ours_as_multiples_with_their_source() {
    let place = Place::new();
    let said = place
        .longhaul("classic dd --published --scale quick --runs 2 --json")
        .target("nas", &place.folder("nas"))
        .expect(0)
        .value();
    let write = figure(&said, "large write");
    assert_eq!(write["values"].as_array().unwrap().len(), 2, "all runs are shown");
    let afp = &write["published"][0];
    assert_eq!((afp["under"].as_str(), afp["value"].as_f64()), (Some("AFP"), Some(7.2)));
    let ours = write["median"].as_f64().unwrap();
    assert!((afp["multiple"].as_f64().unwrap() - ours / 7.2).abs() < 1e-9);
    assert!(afp["citation"].as_str().unwrap().contains("NETGEAR"));
}

#[test]
fn a_byte_that_changed_on_the_target_fails_the_run_and_the_next_makes_the_file_anew() {
    let place = Place::new();
    let target = place.folder("nas");
    run(&place, "remux", &target);
    let film = arena(&target).join("classics/remux-quick/film/d00000/00000000");
    let mut bytes = fs::read(&film).unwrap();
    bytes[700_000] ^= 1;
    fs::write(&film, bytes).unwrap();
    let said = place.longhaul("classic remux --scale quick --runs 1").target("nas", &target).expect(3).out;
    assert!(said.contains("is damaged: byte 700000") && said.contains("No run ended well"), "{said}");
    run(&place, "remux", &target);
}

#[test]
fn a_target_without_room_is_left_alone() {
    if !mounts::are_our_own("a_target_without_room_is_left_alone") {
        return;
    }
    let place = Place::new();
    let target = place.folder("small");
    let _memory = Memory::mount(&target, 8 << 10);
    let said = place.longhaul("classic aja --scale quick --runs 1").target("nas", &target).expect(3);
    assert!(said.out.contains("are free, but") && said.out.contains("have to stay free"), "{said}");
}

#[test]
fn the_same_figures_come_of_memory() {
    if !mounts::are_our_own("the_same_figures_come_of_memory") {
        return;
    }
    let place = Place::new();
    let target = place.folder("memory");
    let _memory = Memory::mount(&target, 200 << 10);
    for name in ["dd", "bonnie"] {
        let said = run(&place, name, &target);
        assert_eq!((said["runs"].as_u64(), said["failed"].as_u64()), (Some(1), Some(0)), "{said}");
    }
}

/// The budget of the configuration holds a classic as it holds a round.
#[test]
fn a_classic_that_was_run_uses_up_the_budget() {
    let place = Place::new();
    place.configure("[limits]\nmegabytes-per-day = 10\n");
    let target = place.folder("nas");
    let said = place.longhaul("classic remux --scale quick --runs 3 --json").target("nas", &target).expect(0);
    said.complains_of(&["no further round", "within 24 hours"]);
    assert_eq!(said.value()["runs"], 1);
}
