//! Tests of `longhaul integrity`: damage is made in files of a sandbox, and must be reported once, with its place and
//! its pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Place, assert_all_ok, mounts, sandbox, tree};
use longhaul_model::draw::draw_below;
use longhaul_store::Reader;
use serde_json::{Value, json};

/// Tasks that keep files on a target.
const TASKS: [&str; 4] = ["folder-index", "photo-batch", "incremental-backup", "time-machine"];
/// Number of faults that are injected.
const FAULTS: u64 = 100;
/// Minimum size of a file that is damaged, in bytes.
const MIN_BYTES: u64 = 40_000;

/// A wrong range: file in the sandbox, offset, length and pattern.
type Found = (String, u64, u64, Value);

/// Creates the files of all tasks on a local folder.
fn filled() -> (Place, PathBuf) {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    for _ in 0..2 {
        assert_all_ok(&place.run(&TASKS, &[("nas", &target)]).expect(0).runs());
    }
    (place, target)
}

/// Reads everything back, and returns the lines of the result.
fn check(place: &Place, target: &Path, code: i32) -> Vec<Value> {
    let output = place.longhaul("integrity --check --json").target("nas", target).expect(code).value();
    output.as_array().unwrap().clone()
}

fn wrong_ranges(lines: &[Value]) -> Vec<Found> {
    let ranges = lines.iter().flat_map(|line| line["wrong_ranges"].as_array().unwrap());
    let range = |range: &Value| {
        let number = |key: &str| range[key].as_u64().unwrap();
        let file = range["file"].as_str().unwrap().to_owned();
        (file, number("offset"), number("length"), range["pattern"].clone())
    };
    ranges.map(range).collect()
}

/// Returns the paths of the files that may be damaged, relative to the sandbox.
fn kept_files(sandbox: &Path) -> Vec<PathBuf> {
    let is_kept = |path: &PathBuf| {
        TASKS.iter().any(|task| path.starts_with(task))
            && path.extension().is_none_or(|extension| extension != "plist")
            && fs::metadata(sandbox.join(path)).unwrap().len() >= MIN_BYTES
    };
    tree::files(sandbox).into_iter().filter(is_kept).collect()
}

/// Damages the bytes of a file, and returns the pattern that is to be found.
fn damage(kind: u64, seed: u64, bytes: &mut Vec<u8>) -> Value {
    let length = bytes.len();
    let at = draw_below(seed, 1, kind, length as u64 - 9000) as usize;
    match kind % 6 {
        0 => {
            bytes[at..at + 4096].fill(0);
            json!("zeros")
        }
        1 => {
            let bits = 1 + draw_below(seed, 2, kind, 3);
            bytes[at] ^= (1 << bits) - 1;
            json!({ "bit-flips": { "bits": bits } })
        }
        2 => {
            bytes.truncate(at);
            json!("truncated")
        }
        3 => {
            bytes.copy_within(at..at + 4096, at + 4200);
            json!({ "shifted": { "bytes": -4200 } })
        }
        4 => {
            bytes.extend((0..500u32).map(|index| (index % 251) as u8));
            json!("too-long")
        }
        _ => {
            let noise = |index: usize| draw_below(seed, 3, index as u64, 256) as u8;
            (at..at + 2000).for_each(|index| bytes[index] = noise(index));
            json!("unknown")
        }
    }
}

/// Returns the bounds of the bytes in which two contents differ: offset and length.
fn difference(before: &[u8], after: &[u8]) -> (u64, u64) {
    let shorter = before.len().min(after.len());
    let differs = |index: &usize| before[*index] != after[*index];
    let first = (0..shorter).find(differs).unwrap_or(shorter);
    let end = if before.len() == after.len() {
        (0..shorter).rev().find(differs).unwrap() + 1
    } else {
        before.len().max(after.len())
    };
    (first as u64, (end - first) as u64)
}

/// Injects seeded faults into distinct files. Returns what must be found.
fn inject(sandbox: &Path, seed: u64) -> BTreeSet<String> {
    let mut files = kept_files(sandbox);
    let mut expected = vec![];
    let mut take = |number: u64| {
        let index = draw_below(seed, 4, number, files.len() as u64);
        files.swap_remove(index as usize)
    };
    for number in 0..FAULTS {
        let path = take(number);
        let before = fs::read(sandbox.join(&path)).unwrap();
        let mut after = before.clone();
        let pattern = damage(number, seed, &mut after);
        fs::write(sandbox.join(&path), &after).unwrap();
        let (offset, length) = difference(&before, &after);
        expected.push((path.display().to_string(), offset, length, pattern));
    }
    expected.iter().map(|found| format!("{found:?}")).collect()
}

#[test]
fn each_of_100_faults_is_reported_once_with_place_and_pattern() {
    let (place, target) = filled();
    let clean = check(&place, &target, 0);
    assert_eq!(wrong_ranges(&clean), [], "nothing is wrong before");
    assert_verified_just_now(&clean);
    let text = place.longhaul("integrity").expect(0).out;
    assert!(text.contains("read back, 0 wrong"), "{text}");
    let expected = inject(&sandbox(&target), 7);
    for time in 1..=2 {
        let found = wrong_ranges(&check(&place, &target, 3));
        assert_eq!(found.len() as u64, FAULTS, "each once, also the {time}. time");
        let found: BTreeSet<String> = found.iter().map(|found| format!("{found:?}")).collect();
        let missed: Vec<_> = expected.difference(&found).zip(found.difference(&expected)).collect();
        assert_eq!(found, expected, "{missed:#?}");
    }
}

#[test]
fn check_tells_what_it_read_back() {
    let (place, target) = filled();
    let output = place.longhaul("integrity --check").target("nas", &target).expect(0);
    assert!(output.out.lines().next().unwrap().ends_with(" read back just now, 0 wrong."), "{output}");
    assert!(!place.longhaul("integrity").expect(0).out.contains("just now"));
}

/// Checks that all bytes were verified, and are counted by their age.
fn assert_verified_just_now(lines: &[Value]) {
    let [line] = lines else { panic!("one line: {lines:?}") };
    let verified = line["bytes_verified"].as_u64().unwrap();
    let by_age = line["by_age"].as_array().unwrap();
    assert!(verified > 50_000_000, "{line}");
    assert_eq!(by_age.len(), 1, "all of it was written just now: {by_age:?}");
    assert_eq!((&by_age[0]["age"], by_age[0]["bytes"].as_u64()), (&json!("hours"), Some(verified)));
    let over_the_wire = line["bytes_over_the_wire"].as_u64().unwrap();
    assert!(over_the_wire <= verified, "{line}");
    assert_eq!(line["excluded_rate_bytes"].is_null(), over_the_wire == 0);
}

#[test]
fn folder_without_a_sandbox_is_left_alone() {
    let place = Place::new();
    let target = place.folder("nas");
    let call = place.longhaul("integrity --check").target("nas", &target);
    call.expect(3).assert_stderr(&["nas", "longhaul keeps no files there", "longhaul run"]);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn swapped_missing_and_old_files_are_recognized() {
    let (place, target) = filled();
    let sandbox = sandbox(&target);
    let backup = sandbox.join("incremental-backup");
    let old = tree::contents(&backup);
    assert_all_ok(&place.run(&["incremental-backup"], &[("nas", &target)]).expect(0).runs());
    let is_edited = |(path, (content, _)): &(PathBuf, (Vec<u8>, i128))| {
        let before = old.get(path).map(|(before, _)| before);
        before.is_some_and(|before| before.len() > 64 && content.len() > 64 && before[..64] != content[..64])
    };
    let (edited, _) = tree::contents(&backup).into_iter().find(is_edited).expect("a file that was edited");
    fs::write(backup.join(&edited), &old[&edited].0).unwrap();
    let files = kept_files(&sandbox);
    let of = |task: &str| files.iter().filter(|path| path.starts_with(task)).collect::<Vec<_>>();
    let mut expected = BTreeMap::new();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for task in ["folder-index", "photo-batch", "time-machine"] {
        let (one, other) = (of(task)[0], of(task)[1]);
        fs::rename(sandbox.join(one), sandbox.join("moved")).unwrap();
        fs::rename(sandbox.join(other), sandbox.join(one)).unwrap();
        fs::rename(sandbox.join("moved"), sandbox.join(other)).unwrap();
        expected.insert(one.display().to_string(), json!({ "other-file": { "name": name(other) } }));
        expected.insert(other.display().to_string(), json!({ "other-file": { "name": name(one) } }));
    }
    let removed = of("photo-batch")[3];
    fs::remove_file(sandbox.join(removed)).unwrap();
    expected.insert(removed.display().to_string(), json!("missing"));
    expected
        .insert(Path::new("incremental-backup").join(&edited).display().to_string(), json!("old-version"));
    let found = wrong_ranges(&check(&place, &target, 3));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    let found: BTreeMap<String, Value> =
        found.into_iter().map(|(file, _, _, pattern)| (file, pattern)).collect();
    assert_eq!(found, expected);
}

#[test]
fn run_that_reads_damage_fails_and_reports_it_once() {
    let place = Place::with_tiny_trees();
    let target = place.folder("nas");
    let run = |code| place.run(&["time-machine"], &[("nas", &target)]).expect(code);
    assert_all_ok(&run(0).runs());
    for file in kept_files(&sandbox(&target)) {
        let path = sandbox(&target).join(file);
        let mut bytes = fs::read(&path).unwrap();
        bytes.chunks_mut(64 << 10).for_each(|block| block[1000..1512].fill(0));
        fs::write(&path, bytes).unwrap();
    }
    let failed = run(3).run_on("nas");
    assert_eq!(failed["outcome"], "error", "{failed}");
    let first_line = || place.longhaul("integrity --json").expect(0).value()[0].clone();
    let line = first_line();
    let found = line["wrong_ranges"].as_array().unwrap();
    assert!((1..=16).contains(&found.len()), "one megabyte of 16 blocks was read: {line}");
    for range in found {
        assert_eq!((&range["pattern"], &range["phase"]), (&json!("zeros"), &json!("restore")), "{range}");
        assert_eq!((&range["reread"], &range["times_found"]), (&json!("same-damage"), &json!(1)), "{range}");
        assert_eq!(range["offset"].as_u64().unwrap() % (64 << 10) / 8, 1000 / 8, "{range}");
    }
    let events = Reader::open(&place.database()).unwrap().events(None).unwrap();
    assert_eq!(events.iter().filter(|stored| stored.event.kind == "mismatch").count(), found.len());
    assert_all_ok(&run(0).runs());
    assert_eq!(first_line()["wrong_ranges"], line["wrong_ranges"], "the image was made again");
}

/// Reads everything back through two paths, and returns the only wrong range with what the other path read.
fn check_two_paths(place: &Place, share: &Path, other: &Path) -> Value {
    let call = place.longhaul("integrity --check --json").target("a", share).target("b", other);
    let lines = call.expect(3).value();
    let ranges = lines.as_array().unwrap().iter().flat_map(|line| line["wrong_ranges"].as_array().unwrap());
    let ranges: Vec<Value> = ranges.cloned().collect();
    let [range] = &ranges[..] else { panic!("one wrong range: {lines}") };
    range.clone()
}

#[test]
fn wrong_range_is_read_again_through_another_path_to_the_folder() {
    mounts::only_in_own_mounts!(wrong_range_is_read_again_through_another_path_to_the_folder);
    let place = Place::with_tiny_trees();
    let (share, other, aside) = (place.folder("share"), place.folder("other"), place.folder("aside"));
    mounts::bind(&share, &other);
    assert_all_ok(&place.run(&["photo-batch"], &[("a", &share), ("b", &other)]).expect(0).runs());
    let sandboxes = fs::read_dir(&share).unwrap().map(|entry| entry.unwrap().path());
    let of_a = |path: &PathBuf| path.to_str().unwrap().ends_with("-a");
    let sandbox = sandboxes.into_iter().find(of_a).unwrap();
    let photo = sandbox.join(&kept_files(&sandbox)[0]);
    let mut bytes = fs::read(&photo).unwrap();
    bytes[5000..6000].fill(0);
    let damaged = aside.join("damaged");
    fs::write(&damaged, &bytes).unwrap();
    // Only the first path shows the damaged file.
    mounts::bind(&damaged, &photo);
    let range = check_two_paths(&place, &share, &other);
    let [other_path] = &range["elsewhere"].as_array().unwrap()[..] else { panic!("one other path: {range}") };
    assert_eq!((&other_path["target"], &other_path["result"]), (&json!("b"), &json!("correct")), "{range}");
    mounts::unmount(&photo);
    fs::write(&photo, &bytes).unwrap();
    let range = check_two_paths(&place, &share, &other);
    assert_eq!(range["elsewhere"][0]["result"], "same-damage", "{range}");
    assert_eq!(range["times_found"], 2, "{range}");
    let text = place.longhaul("integrity").expect(0).out;
    assert!(text.contains("the same wrong bytes, so they are on the NAS"), "{text}");
}
