//! The guided first run, through the real program: in scripts, and answered as a person would.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use longhaul_measure::model::Scale;
use longhaul_measure::workloads::WORKLOADS;
use longhaul_service::config::Config;
use longhaul_service::cost::round_load;
use longhaul_service::draft::knows;
use support::{Place, Said, assert_all_ok, find_arena, machine, mounts, tree};

fn config_path(place: &Place) -> PathBuf {
    place.path("home/config/longhaul/config.toml")
}

fn config(place: &Place) -> Config {
    Config::read(&config_path(place)).unwrap()
}

/// The answer to the question for a share of time, which is only asked where the configuration knows of one.
const TIME: &str = "20 %";

/// A call that is answered, line by line.
fn answered(place: &Place, arguments: &str, answers: &[&str]) -> (Option<i32>, Said) {
    let mut command = place.longhaul(arguments).command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let asked = |answer: &&&str| **answer != TIME || knows("schedule", "duty-percent");
    let text: String = answers.iter().filter(asked).map(|answer| format!("{answer}\n")).collect();
    // one that ends before it has read everything closes the pipe
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), Said { out: text(output.stdout), err: text(output.stderr) })
}

#[test]
fn a_script_gives_everything_and_is_asked_nothing() {
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("with \"quotes\" and 🐚"));
    let call = place
        .longhaul("init --yes --scale quick --gigabytes-per-day 2.5")
        .target("smb", &a)
        .target("nfs", &b);
    let said = call.expect(0);
    for part in ["What this costs", "a round", "a day", "an hour", "Written:"] {
        assert!(said.out.contains(part), "`{part}` is not said: {said}");
    }
    let config = config(&place);
    assert_eq!(config.scale, Scale::Quick);
    assert_eq!(config.limits.bytes_per_day, Some(2_500_000_000));
    let paths: Vec<&Path> = config.targets.iter().map(|target| target.path.as_path()).collect();
    assert_eq!(paths, [b.as_path(), &a], "by name");
    let text = fs::read_to_string(config_path(&place)).unwrap();
    assert!(text.contains("# Which tasks run.") && text.contains("#: cap-seconds = 900"), "{text}");
    assert_eq!(tree::files(&a).len() + tree::files(&b).len(), 0, "nothing was written to a target");
    let folder = fs::read_dir(config_path(&place).parent().unwrap()).unwrap();
    assert_eq!(folder.count(), 1, "nothing is left beside it");
}

#[test]
fn a_configuration_is_never_lost_in_a_script() {
    let place = Place::new();
    let a = place.folder("a");
    place.configure("# mine\n");
    place.longhaul("init --yes").target("a", &a).expect(2).complains_of(&["config.toml", "--force"]);
    assert_eq!(fs::read_to_string(config_path(&place)).unwrap(), "# mine\n");
    place.longhaul("init --yes --force").target("a", &a).expect(0);
    assert_eq!(config(&place).targets.len(), 1);
}

#[test]
fn what_a_script_gives_wrongly_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let a = place.folder("a");
    place.longhaul("init --yes").expect(2).complains_of(&["--target NAME=PATH"]);
    place.longhaul("init --yes --gigabytes-per-day -1").target("a", &a).expect(2);
    place
        .longhaul("init --yes --gigabytes-per-day much")
        .target("a", &a)
        .expect(2)
        .complains_of(&["gigabytes"]);
    place.longhaul("init --yes").target("a", &a).target("a", &a).expect(2).complains_of(&["given twice"]);
    assert!(!config_path(&place).exists());
}

#[test]
fn a_dialogue_that_breaks_off_writes_nothing() {
    let place = Place::new();
    let a = place.folder("a");
    let arguments = format!("init --target a={}", a.display());
    let (code, said) = answered(&place, &arguments, &["quick"]);
    assert_eq!(code, Some(1), "{said}");
    said.complains_of(&["nothing was written", "--yes"]);
    let (code, said) = answered(&place, &arguments, &["quick", "5", TIME, "no"]);
    assert!(code == Some(0) && said.out.contains("Nothing was written."), "{said}");
    assert!(!config_path(&place).exists());
    let (code, said) = answered(&place, &arguments, &["enormous", "quick", "all", "5", TIME, "yes"]);
    assert!(said.out.contains("Answer quick, standard or large"), "{said}");
    assert!(said.out.contains("no number of gigabytes"), "{said}");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(config(&place).limits.bytes_per_day, Some(5_000_000_000));
}

/// Where a mount stands in the list that `init` shows.
fn number_of(said: &Said, at: &Path) -> String {
    let line = said.out.lines().find(|line| line.split("  ").any(|word| Path::new(word) == at));
    line.unwrap_or_else(|| panic!("{} is not listed: {said}", at.display()))
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn two_ways_to_one_folder_are_recognised_and_checked_with_consent() {
    const TEST: &str = "two_ways_to_one_folder_are_recognised_and_checked_with_consent";
    if let Some(why) = mounts::Fuse::impossible() {
        return machine::skip(TEST, why);
    }
    if !mounts::are_our_own(TEST) {
        return;
    }
    let place = Place::new();
    let (source, other) = (place.folder("source"), place.folder("other"));
    let at = ["one", "two", "three"].map(|name| place.folder(name));
    let _fuse = [(&source, &at[0]), (&source, &at[1]), (&other, &at[2])]
        .map(|(from, at)| mounts::Fuse::over(from, at));
    let (_, listed) = answered(&place, "init", &[]);
    let numbers = [0, 1, 2].map(|which| number_of(&listed, &at[which]));
    let alike = format!("{} and {} look like one and the same folder.", numbers[0], numbers[1]);
    assert!(listed.out.contains(&alike), "`{alike}` is not said: {listed}");
    fs::create_dir(source.join("inner")).unwrap();
    let chosen = numbers.join(",");
    let answers = [&chosen, "smb", "inner", "nfs", "inner", "other", "", "yes", "quick", "3", TIME, "yes"];
    let (code, said) = answered(&place, "init", &answers);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.out.contains("`smb` and `nfs` are the same folder."), "{said}");
    assert!(said.out.contains("`smb` and `other` are not the same folder"), "{said}");
    let paths: Vec<PathBuf> = config(&place).targets.into_iter().map(|target| target.path).collect();
    assert_eq!(paths, [at[1].join("inner"), at[2].clone(), at[0].join("inner")]);
    assert_eq!(tree::files(&source).len() + tree::files(&other).len(), 0);
    assert_eq!(find_arena(&source.join("inner")), None, "the marker is gone");
    assert!(!place.data().join("local").exists() && !place.data().join("longhaul.lock").exists());
}

#[test]
fn without_consent_no_target_is_touched() {
    const TEST: &str = "without_consent_no_target_is_touched";
    if let Some(why) = mounts::Fuse::impossible() {
        return machine::skip(TEST, why);
    }
    if !mounts::are_our_own(TEST) {
        return;
    }
    let place = Place::new();
    let source = place.folder("source");
    let at = ["one", "two"].map(|name| place.folder(name));
    let fuse = at.clone().map(|at| mounts::Fuse::over(&source, &at));
    // whoever touches it now waits for ever
    fuse.iter().for_each(mounts::Fuse::freeze);
    let (_, listed) = answered(&place, "init", &[]);
    let chosen = at.iter().map(|at| number_of(&listed, at)).collect::<Vec<_>>().join(",");
    let (code, said) = answered(&place, "init", &[&chosen, "", "", "", "", "no", "", "", TIME, ""]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(config(&place).targets.len(), 2);
}

#[test]
fn a_share_that_hangs_is_told_and_does_not_hold_up_the_dialogue() {
    const TEST: &str = "a_share_that_hangs_is_told_and_does_not_hold_up_the_dialogue";
    if let Some(why) = mounts::Fuse::impossible() {
        return machine::skip(TEST, why);
    }
    if !mounts::are_our_own(TEST) {
        return;
    }
    let place = Place::new();
    let (source, other) = (place.folder("source"), place.folder("other"));
    let at = ["one", "two"].map(|name| place.folder(name));
    let (_one, two) = (mounts::Fuse::over(&source, &at[0]), mounts::Fuse::over(&other, &at[1]));
    two.freeze();
    let (_, listed) = answered(&place, "init", &[]);
    let chosen = at.iter().map(|at| number_of(&listed, at)).collect::<Vec<_>>().join(",");
    let (code, said) = answered(&place, "init", &[&chosen, "", "", "", "", "yes", "", "", TIME, ""]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.out.contains("That could not be found out:"), "{said}");
    assert_eq!(find_arena(&source), None, "what was made through the other is removed");
}

#[test]
fn a_round_costs_about_what_the_plan_says() {
    let place = Place::new();
    let target = place.folder("nas");
    let runs = place.run(&[], &[("nas", &target)]).expect(0).runs();
    assert_all_ok(&runs);
    let phases = runs.iter().flat_map(|run| run["phases"].as_array().unwrap());
    let bytes = |phase: &serde_json::Value| {
        phase["bytes_read"].as_u64().unwrap() + phase["bytes_written"].as_u64().unwrap()
    };
    let seen: u64 = phases.map(bytes).sum();
    let workloads: Vec<String> = WORKLOADS.iter().map(|workload| workload.name().to_owned()).collect();
    let told = round_load(Scale::Quick, &workloads, &[]).0.bytes;
    let ratio = seen as f64 / told;
    assert!((0.85..1.15).contains(&ratio), "a round moved {seen} bytes, the plan says {told}");
    let said = place.longhaul("init --yes --scale quick").target("nas", &target).expect(0);
    assert!(said.out.contains("measured in 5 runs on this machine"), "{said}");
}
