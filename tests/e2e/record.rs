//! Tests of `longhaul record`: programs under strace, the second mount, and what is kept of both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{CommandOutput, Place};

/// A name that must not be stored, in any form.
const SECRET: &str = "Kuendigung-Entwurf-7715";

/// Records a shell script that works in a folder.
fn record(place: &Place, folder: &Path, script: &str) -> CommandOutput {
    let script = format!("cd {}; {script}", folder.display());
    let call = place.longhaul("record --on").arg(folder).arg("--").arg("sh").arg("-c").arg(script);
    call.expect(7)
}

fn count(recording: &Value, kind: &str) -> u64 {
    let operations = recording["recording"]["operations"].as_array().unwrap();
    let found = operations.iter().find(|one| one["kind"] == kind);
    found.map_or(0, |one| one["count"].as_u64().unwrap())
}

#[test]
#[ignore = "needs strace; run with --ignored"]
fn program_is_recorded_and_its_exit_code_returned() {
    let place = Place::new();
    let nas = place.folder("nas");
    let output =
        record(&place, &nas, &format!("echo out; echo 12345 > {SECRET}; mv {SECRET} b; rm b; exit 7"));
    assert_eq!(output.out, "out\n");
    output.assert_stderr(&["Recorded as day-1: ", "100 % of operations understood", "5 to 22 %"]);
    let shown = place.longhaul("record show day-1 --json").expect(0).value();
    assert_eq!(["rename", "remove a file"].map(|kind| count(&shown, kind)), [1, 1], "{shown}");
    assert_eq!(
        shown["recording"]["operations"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["kind"] == "write")
            .unwrap()["bytes"],
        6
    );
    let listed = place.longhaul("record list --json").expect(0).value();
    assert_eq!(
        (&listed["recordings"][0]["name"], &listed["recordings"][0]["replayed"]),
        (&"day-1".into(), &false.into())
    );
}

#[test]
#[ignore = "needs strace; run with --ignored"]
fn paths_are_replayed_from_the_open_folders_from_which_they_were_given() {
    let place = Place::new();
    let (nas, target) = (place.folder("nas"), place.folder("target"));
    fs::create_dir_all(nas.join("a/b")).unwrap();
    record(&place, &nas, "find a; exit 7");
    let shown = place.longhaul("record show day-1 --json").expect(0).value();
    assert!(shown["recording"]["from_open_folders"].as_u64() > Some(0), "{shown}");
    place.configure("[recording]\nreplay = \"day-1\"\n");
    let log = place.path("strace.log");
    let strace = ["strace", "-f", "-qq", "-e", "trace=openat2", "-o", log.to_str().unwrap()];
    place.run(&["your-day"], &[("a", &target)]).below(&strace).expect(0);
    // Preparations give the whole path, `n1/n2`.
    let is_given_from_its_folder = |line: &str| line.contains("\"n2\", {flags=O_RDONLY");
    let calls = fs::read_to_string(log).unwrap();
    assert!(calls.lines().any(is_given_from_its_folder), "{calls}");
}

#[test]
#[ignore = "needs strace; run with --ignored"]
fn recorded_names_are_nowhere_on_the_disk() {
    let place = Place::new();
    let nas = place.folder("nas");
    record(
        &place,
        &nas,
        &format!("mkdir {SECRET}; echo {SECRET} > {SECRET}/{SECRET}; rm -r {SECRET}; exit 7"),
    );
    let file = place.data().join("recordings/day-1.recording");
    let modes =
        [&file, file.parent().unwrap()].map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o600, 0o700]);
    let found =
        Command::new("grep").args(["-rlai", "-e", SECRET, "-e", "entwurf"]).arg(place.path("home")).output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
}

#[test]
#[ignore = "needs strace; run with --ignored"]
fn unusable_recordings_are_refused_before_or_after() {
    let place = Place::new();
    let nas = place.folder("nas");
    record(&place, &nas, "ls; exit 7");
    let again =
        place.longhaul("record --name day-1 --on").arg(&nas).arg("--").arg("touch").arg(nas.join("x"));
    again.expect(1).assert_stderr(&["there is a recording `day-1` already", "--name"]);
    assert!(!nas.join("x").exists(), "the program did not run");
    let outside = place.longhaul("record --on").arg(place.folder("other")).arg("--").arg("true").expect(1);
    outside.assert_stderr(&["nothing was recorded", "other"]);
    let missing = place.longhaul("record --on").arg(&nas).arg("--").arg("no-such-program").expect(2);
    missing.assert_stderr(&["there is no program no-such-program"]);
    place.longhaul("record -- true").expect(2).assert_stderr(&["--on FOLDER"]);
    place.longhaul("record").expect(2).assert_stderr(&["say what to record"]);
    let damaged = place.data().join("recordings/bad.recording");
    fs::write(&damaged, "no recording").unwrap();
    place.longhaul("record use bad").expect(1).assert_stderr(&["bad.recording"]);
    assert!(!place.path("home/config/longhaul/config.toml").exists());
}

#[test]
#[ignore = "needs strace; run with --ignored"]
fn recording_is_chosen_and_deleted_with_its_choice() {
    let place = Place::new();
    let nas = place.folder("nas");
    record(&place, &nas, "ls; exit 7");
    place.configure("# mine\nscale = \"quick\"\n");
    let config = || fs::read_to_string(place.path("home/config/longhaul/config.toml")).unwrap();
    place.longhaul("record use day-1").expect(0);
    assert_eq!(config(), "# mine\nscale = \"quick\"\n\n[recording]\nreplay = \"day-1\"\n");
    place.longhaul("record use --none").expect(0);
    assert!(!config().contains("replay"), "{}", config());
    place.longhaul("record use day-1").expect(0);
    place.longhaul("record delete day-1").expect(0);
    assert!(!config().contains("replay"), "{}", config());
    place.longhaul("record delete day-1").expect(1).assert_stderr(&["record list"]);
    assert_eq!(fs::read_dir(place.data().join("recordings")).unwrap().count(), 0);
}

#[test]
fn traces_made_elsewhere_are_recognized_and_read() {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("daemon/recording/tests/fixtures");
    let import = |file: &Path, on: &str| place.longhaul("record --import").arg(file).arg("--on").arg(on);
    import(&fixtures.join("synology.log"), "/Volumes/photos")
        .expect(0)
        .assert_stderr(&["Recorded as day-1: "]);
    let shown = place.longhaul("record show day-1 --json").expect(0).value();
    assert_eq!(
        (&shown["recording"]["source"], &shown["recording"]["recorded_on"]),
        (&"synology".into(), &Value::Null)
    );
    fs::write(place.path("letter"), "Dear Sir or Madam,\n").unwrap();
    import(&place.path("letter"), "/x").expect(2).assert_stderr(&["not recognized", "--format"]);
    import(&place.path("letter"), "/x")
        .arg("--format")
        .arg("strace")
        .expect(1)
        .assert_stderr(&["nothing was recorded"]);
    import(&place.path("none"), "/x").expect(1).assert_stderr(&["none"]);
}

#[test]
fn trace_of_renames_alone_says_that_they_are_not_understood() {
    let place = Place::new();
    let trace = place.path("trace.txt");
    let line = "10:15:30.010900  rename            /Volumes/nas/a.jpg            0.000200   Finder.81077\n";
    fs::write(&trace, line).unwrap();
    let output = place.longhaul("record --import").arg(&trace).arg("--on").arg("/Volumes/nas").expect(1);
    output.assert_stderr(&["nothing was recorded", "/Volumes/nas", "`rename`", "sources.md"]);
}

#[test]
fn second_mount_is_recorded_until_interrupted() {
    let place = Place::new();
    let (nas, mount) = (place.folder("nas"), place.path("mount"));
    let mut recorder = place.longhaul("record --folder").arg(&nas).arg("--at").arg(&mount).start();
    recorder.wait_for("the mount", |output| output.err.contains("Press Ctrl-C"));
    fs::create_dir(mount.join(SECRET)).unwrap();
    fs::write(mount.join(SECRET).join("a"), "hello").unwrap();
    assert_eq!(fs::read(nas.join(SECRET).join("a")).unwrap(), b"hello");
    recorder.signal(Signal::INT);
    recorder.finish(0).assert_stderr(&["Recorded as day-1: ", "100 % of operations understood"]);
    assert!(!mount.exists(), "the mount point is removed");
    let shown = place.longhaul("record show day-1 --json").expect(0).value();
    assert_eq!(["create a folder", "open", "write"].map(|kind| count(&shown, kind)), [1, 1, 1], "{shown}");
    assert_eq!(shown["recording"]["source"], "pass-through");
}

#[test]
fn mount_of_a_killed_recorder_is_cleaned_up_by_the_next() {
    let place = Place::new();
    let (nas, mount) = (place.folder("nas"), place.path("mount"));
    let start = || {
        let mut recorder = place.longhaul("record --folder").arg(&nas).arg("--at").arg(&mount).start();
        recorder.wait_for("the mount", |output| output.err.contains("Press Ctrl-C"));
        recorder
    };
    let mut first = start();
    let second = place.longhaul("record --folder").arg(&nas).arg("--at").arg(&mount).expect(1);
    second.assert_stderr(&["a recording that is going on"]);
    first.signal(Signal::KILL);
    first.wait_for_exit();
    fs::metadata(&mount).unwrap_err();
    let second = start();
    fs::write(mount.join("a"), "x").unwrap();
    second.signal(Signal::INT);
    second.finish(0);
    assert_eq!(fs::read_dir(&mount).unwrap().count(), 0, "an empty folder that existed before stays");
}
