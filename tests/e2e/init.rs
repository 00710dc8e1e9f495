//! Tests of `longhaul init`, in scripts and as an interactive dialog.

use std::fs;
#[cfg(target_os = "linux")]
use std::io::Read;
use std::io::Write;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process::Command;
use std::process::Stdio;

#[cfg(target_os = "linux")]
use crate::fuse::{Disk, hang::Fuse};
#[cfg(target_os = "linux")]
use crate::support::mounts::only_in_own_mounts;
use crate::support::{CommandOutput, Place, assert_all_ok, tree};
use longhaul_model::{STANDARD_TASKS, Scale};
use longhaul_service::config::Config;
use longhaul_service::config_draft::has_key;
use longhaul_service::cost::round_load;

fn config_path(place: &Place) -> PathBuf {
    place.path("home/config/longhaul/config.toml")
}

fn config(place: &Place) -> Config {
    let path = config_path(place);
    Config::parse(&fs::read_to_string(&path).unwrap(), &path).unwrap()
}

/// Answer to the question about the share of time, which `init` only asks if the configuration has that key.
const TIME: &str = "20 %";

/// Runs longhaul with lines of answers on standard input. Returns the exit code and the output.
fn answered(place: &Place, arguments: &str, answers: &[&str]) -> (Option<i32>, CommandOutput) {
    let mut command = place.longhaul(arguments).command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_asked = |answer: &&&str| **answer != TIME || has_key("schedule", "max-time-percent");
    let text: String = answers.iter().filter(is_asked).map(|answer| format!("{answer}\n")).collect();
    // The write fails if the program ends before it has read all answers.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), CommandOutput { out: text(output.stdout), err: text(output.stderr) })
}

#[test]
fn init_with_all_options_asks_nothing() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("with \"quotes\" and 🐚"));
    let call = place
        .longhaul("init --yes --scale quick --gigabytes-per-day 2.5")
        .target("smb", &a)
        .target("nfs", &b);
    let output = call.expect(0);
    for part in ["What this costs", "per round", "per day", "per hour", "Written:"] {
        assert!(output.out.contains(part), "the output lacks `{part}`: {output}");
    }
    let config = config(&place);
    assert_eq!(config.scale, Scale::Quick);
    assert_eq!(config.limits.bytes_per_day, Some(2_500_000_000));
    let paths: Vec<&Path> = config.targets.iter().map(|target| target.path.as_path()).collect();
    assert_eq!(paths, [b.as_path(), &a], "targets are sorted by name");
    let text = fs::read_to_string(config_path(&place)).unwrap();
    assert!(text.contains("# Workloads to run.") && text.contains("#: cap-seconds = 900"), "{text}");
    assert_eq!(tree::files(&a).len() + tree::files(&b).len(), 0, "nothing was written to a target");
    let folder = fs::read_dir(config_path(&place).parent().unwrap()).unwrap();
    assert_eq!(folder.count(), 1, "no other file is left in the folder");
}

#[test]
fn init_overwrites_a_config_only_with_force() {
    let place = Place::new();
    let a = place.folder("a");
    place.configure("# mine\n");
    place.longhaul("init --yes").target("a", &a).expect(2).assert_stderr(&["config.toml", "--force"]);
    assert_eq!(fs::read_to_string(config_path(&place)).unwrap(), "# mine\n");
    place.longhaul("init --yes --force").target("a", &a).expect(0);
    assert_eq!(config(&place).targets.len(), 1);
}

#[test]
fn linked_config_stays_a_link() {
    let place = Place::new();
    let a = place.folder("a");
    place.configure("# mine\n");
    let (path, kept) = (config_path(&place), place.path("dotfiles.toml"));
    fs::rename(&path, &kept).unwrap();
    std::os::unix::fs::symlink(&kept, &path).unwrap();
    place.longhaul("init --yes --force").target("a", &a).expect(0);
    assert!(path.is_symlink());
    assert_ne!(fs::read_to_string(&kept).unwrap(), "# mine\n");
    assert_eq!(config(&place).targets.len(), 1);
}

#[test]
fn init_with_invalid_options_writes_nothing() {
    let place = Place::new();
    let a = place.folder("a");
    place.longhaul("init --yes").expect(2).assert_stderr(&["--target NAME=PATH"]);
    place.longhaul("init --yes --gigabytes-per-day -1").target("a", &a).expect(2);
    let refused =
        place.longhaul("init --yes --scale quick --gigabytes-per-day 0.1").target("a", &a).expect(2);
    refused.assert_stderr(&["less than one round", "a smaller scale"]);
    place
        .longhaul("init --yes --gigabytes-per-day much")
        .target("a", &a)
        .expect(2)
        .assert_stderr(&["gigabytes"]);
    place.longhaul("init --yes").target("a", &a).target("a", &a).expect(2).assert_stderr(&["used twice"]);
    assert!(!config_path(&place).exists());
}

#[test]
fn file_is_refused_and_missing_folder_told() {
    let place = Place::new();
    let (file, missing) = (place.path("file"), place.path("missing"));
    fs::write(&file, "").unwrap();
    place.longhaul("init --yes").target("a", &file).expect(2).assert_stderr(&["is not a folder"]);
    assert!(!config_path(&place).exists());
    let folder = place.folder("folder");
    let twice = place.longhaul("init --yes").target("a", &folder).target("b", &folder).expect(2);
    twice.assert_stderr(&["targets `a` and `b` are one folder"]);
    let told = place.longhaul("init --yes").target("a", &missing).expect(0);
    told.assert_stderr(&["there is no", "mount the share, or correct the path"]);
    let link = place.path("link");
    std::os::unix::fs::symlink(&missing, &link).unwrap();
    let behind = place.longhaul("init --yes --force").target("a", &link.join("folder")).expect(0);
    assert!(!behind.err.contains("there is no"), "a link may lead to a share that does not answer: {behind}");
    let linked = place.longhaul("init --yes --force").target("a", &link).expect(2);
    linked.assert_stderr(&["is a symbolic link", "Give the path that it leads to"]);
}

#[test]
fn interrupted_init_dialog_writes_nothing() {
    let place = Place::new();
    let a = place.folder("a");
    let arguments = format!("init --target a={}", a.display());
    let (code, output) = answered(&place, &arguments, &["quick"]);
    assert_eq!(code, Some(1), "{output}");
    output.assert_stderr(&["nothing was changed", "--yes"]);
    let (code, output) = answered(&place, &arguments, &["quick", "5", TIME, "no"]);
    assert!(code == Some(0) && output.out.contains("Nothing was written."), "{output}");
    assert!(!config_path(&place).exists());
    let (code, output) = answered(&place, &arguments, &["enormous", "quick", "all", "5", TIME, "yes"]);
    assert!(output.out.contains("Answer quick, standard or large"), "{output}");
    assert!(output.out.contains("not a valid number of gigabytes"), "{output}");
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(config(&place).limits.bytes_per_day, Some(5_000_000_000));
}

#[cfg(target_os = "linux")]
/// Returns the number of a mount in the list that `init` prints.
fn number_of(output: &CommandOutput, at: &Path) -> String {
    let line = output.out.lines().find(|line| line.split("  ").any(|word| Path::new(word) == at));
    line.unwrap_or_else(|| panic!("{} is not listed: {output}", at.display()))
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn init_detects_two_mounts_of_one_folder() {
    only_in_own_mounts!(init_detects_two_mounts_of_one_folder);
    let place = Place::new();
    let (disk, other) = (Disk::new(), Disk::new());
    let at = ["one", "two", "three"].map(|name| place.folder(name));
    let _fuse = [(&disk, &at[0]), (&disk, &at[1]), (&other, &at[2])].map(|(disk, at)| Fuse::of(disk, at));
    let (_, listed) = answered(&place, "init", &[]);
    let numbers = [0, 1, 2].map(|which| number_of(&listed, &at[which]));
    let alike = format!("{} and {} look like the same folder.", numbers[0], numbers[1]);
    assert!(listed.out.contains(&alike), "the output lacks `{alike}`: {listed}");
    fs::create_dir(at[0].join("inner")).unwrap();
    let chosen = numbers.join(",");
    let answers =
        [&chosen, "smb", "inner", "nfs", "inner", "other", "", "yes", "quick", "3", TIME, "-1", "30", "yes"];
    let (code, output) = answered(&place, "init", &answers);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.out.contains("`smb` and `nfs` are the same folder."), "{output}");
    assert!(output.out.contains("`smb` and `other` are not the same folder"), "{output}");
    assert!(output.out.contains("`-1` is not a number of times a week"), "{output}");
    assert_eq!(config(&place).analysis.usage_profile["folder-index/folder-cold"], 30.0);
    let paths: Vec<PathBuf> = config(&place).targets.into_iter().map(|target| target.path).collect();
    assert_eq!(paths, [at[1].join("inner"), at[2].clone(), at[0].join("inner")]);
    assert_eq!(tree::files(&at[0]).len() + tree::files(&at[2]).len(), 0);
    assert_eq!(crate::support::find_sandbox(&at[0].join("inner")), None, "the marker is removed");
    assert!(!place.data().join("local").exists() && !place.data().join("longhaul.lock").exists());
}

/// Runs `longhaul init` in a pseudo-terminal. Types each text once the output contains the words before it, and returns
/// the whole output.
#[cfg(target_os = "linux")]
fn typed_at_terminal(place: &Place, steps: &[(&str, &str)]) -> String {
    let inner = place.longhaul("init").command();
    let line = format!("stty rows 40 cols 120 && exec {} init", inner.get_program().display());
    let mut child = Command::new("timeout")
        .args(["60", "script", "--quiet", "--return", "--command", &line, "/dev/null"])
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut output, mut buffer) = (vec![], [0; 4096]);
    for (words, text) in steps {
        let begin = output.len();
        while !String::from_utf8_lossy(&output[begin..]).contains(words) {
            let count = screen.read(&mut buffer).unwrap();
            assert!(count > 0, "`{words}` did not appear: {}", String::from_utf8_lossy(&output));
            output.extend_from_slice(&buffer[..count]);
        }
        keyboard.write_all(text.as_bytes()).unwrap();
    }
    screen.read_to_end(&mut output).unwrap();
    let output = String::from_utf8_lossy(&output).into_owned();
    assert!(child.wait().unwrap().success(), "{output}");
    output
}

#[cfg(target_os = "linux")]
#[test]
fn mounts_are_marked_in_a_list_at_a_terminal() {
    only_in_own_mounts!(mounts_are_marked_in_a_list_at_a_terminal);
    let (place, disk) = (Place::new(), Disk::new());
    let at = ["one", "two"].map(|name| place.folder(name));
    let _fuse = at.clone().map(|at| Fuse::of(&disk, &at));
    let time = if has_key("schedule", "max-time-percent") { "\n\n" } else { "\n" };
    let steps = [
        // No list entry is chosen by a number: the proposal is cleared with the left arrow, and "two" is found by typing.
        ("to filter", "\x1b[Dtwo"),
        ("compare? two", " \r"),
        ("Name for", "nas\n"),
        ("Folder in which", "\n"),
        ("quick", "quick\n"),
        ("gigabytes", time),
        ("large folders", "\n"),
        ("Write this", "yes\n"),
    ];
    let output = typed_at_terminal(&place, &steps);
    assert!(output.contains("Written:"), "{output}");
    let paths: Vec<PathBuf> = config(&place).targets.into_iter().map(|target| target.path).collect();
    assert_eq!(paths, [at[1].clone()]);
}

#[cfg(target_os = "linux")]
#[test]
fn init_touches_no_target_without_consent() {
    only_in_own_mounts!(init_touches_no_target_without_consent);
    let (place, disk) = (Place::new(), Disk::new());
    let at = ["one", "two"].map(|name| place.folder(name));
    let fuse = at.clone().map(|at| Fuse::of(&disk, &at));
    // Any access to a target would now hang.
    fuse.iter().for_each(Fuse::freeze);
    let (_, listed) = answered(&place, "init", &[]);
    let chosen = at.iter().map(|at| number_of(&listed, at)).collect::<Vec<_>>().join(",");
    let (code, output) = answered(&place, "init", &[&chosen, "", "", "", "", "no", "", "", TIME, "", ""]);
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(config(&place).targets.len(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn hung_share_does_not_block_the_init_dialog() {
    only_in_own_mounts!(hung_share_does_not_block_the_init_dialog);
    let place = Place::new();
    let at = ["one", "two"].map(|name| place.folder(name));
    let (_one, two) = (Fuse::mount(&at[0]), Fuse::mount(&at[1]));
    two.freeze();
    let (_, listed) = answered(&place, "init", &[]);
    let chosen = at.iter().map(|at| number_of(&listed, at)).collect::<Vec<_>>().join(",");
    let (code, output) = answered(&place, "init", &[&chosen, "", "", "", "", "yes", "", "", TIME, "", ""]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.out.contains("The check failed:"), "{output}");
    assert_eq!(
        crate::support::find_sandbox(&at[0]),
        None,
        "the marker created through the other mount is removed"
    );
}

#[test]
fn round_moves_as_many_bytes_as_planned() {
    let place = Place::new();
    let target = place.folder("nas");
    let runs = place.run(&[], &[("nas", &target)]).expect(0).runs();
    assert_all_ok(&runs);
    let phases = runs.iter().flat_map(|run| run["phases"].as_array().unwrap());
    let bytes = |phase: &serde_json::Value| {
        phase["bytes_read"].as_u64().unwrap() + phase["bytes_written"].as_u64().unwrap()
    };
    let seen: u64 = phases.map(bytes).sum();
    let workloads: Vec<String> = STANDARD_TASKS.iter().map(|workload| workload.name().to_owned()).collect();
    let planned = round_load(Scale::Quick, &workloads, &[]).0.bytes;
    let ratio = seen as f64 / planned;
    assert!((0.85..1.15).contains(&ratio), "a round moved {seen} bytes, the plan says {planned}");
    let output = place.longhaul("init --yes --scale quick").target("nas", &target).expect(0);
    assert!(output.out.contains("measured in 5 runs on this machine"), "{output}");
}
