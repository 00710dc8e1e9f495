//! Tests `export share`, `merge` and the template of a repository of results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use longhaul_demo::machine::{MachineSpec, fill_machine};

use crate::support::Place;
use crate::support::template::Template;

/// Databases of three made-up machines.
static MACHINES: [Template; 3] = [
    Template::new(|database| fill(database, 0)),
    Template::new(|database| fill(database, 1)),
    Template::new(|database| fill(database, 2)),
];

fn fill(database: &Path, number: u64) {
    fill_machine(database, &MachineSpec::small(0xfeed + number, 0.3)).unwrap();
}

/// Shares the results of three made-up machines, and returns the files.
fn shared_files(place: &Place) -> Vec<PathBuf> {
    let files = MACHINES.iter().enumerate().map(|(number, machine)| {
        let database = place.path(&format!("machine-{number}.sqlite"));
        machine.copy_to(&database);
        let file = place.path(&format!("machine-{number}.json"));
        share(place, &database, &file);
        file
    });
    files.collect()
}

fn share(place: &Place, database: &Path, file: &Path) {
    let call = place.longhaul("export share --yes --nas synology/4 --database");
    let output = call.arg(database).arg(file).expect(0);
    assert!(
        output.out.contains("What is shared") && output.out.contains("Synology, 4 bays"),
        "{}",
        output.out
    );
}

#[test]
fn files_that_cannot_be_used_make_no_report() {
    let place = Place::new();
    for format in ["text", "json"] {
        let output = place.longhaul(&format!("merge --format {format}")).arg("/no/such/file.json").expect(5);
        output.assert_stderr(&["/no/such/file.json"]);
        assert_eq!(output.out, "");
    }
}

#[test]
fn name_of_a_file_forges_no_line() {
    let place = Place::new();
    let files = shared_files(&place);
    let named = place.path("a\nlonghaul: all is well.json");
    let assert_harmless = |text: &str| {
        let is_forged = text.lines().any(|line| line.starts_with("longhaul: all is well"));
        assert!(text.contains("all is well.json") && !is_forged, "{text}");
    };
    fs::copy(&files[0], &named).unwrap();
    assert_harmless(&place.longhaul("merge check").arg(&named).expect(0).out);
    fs::write(&named, "{").unwrap();
    assert_harmless(&place.longhaul("merge check").arg(&named).expect(3).out);
    assert_harmless(&place.longhaul("merge").arg(&named).expect(5).err);
    for format in ["text", "json", "md"] {
        let call = place.longhaul(&format!("merge --format {format}"));
        let output = call.arg(&files[0]).arg(&named).expect(0);
        assert_harmless(&output.out);
        assert_harmless(&output.err);
    }
}

#[test]
fn three_shared_files_merge_into_every_format() {
    let place = Place::new();
    let files = shared_files(&place);
    let merge = |format: &str| {
        let call = place.longhaul(&format!("merge --format {format}"));
        files.iter().chain(&files[..1]).fold(call, |call, file| call.arg(file)).expect(0)
    };
    let text = merge("text");
    assert!(
        text.out.contains("Results of 3 machines") && text.out.contains("3 of 3 machines agree"),
        "{}",
        text.out
    );
    assert!(text.err.contains("it is the same as"), "a repeated file changes nothing: {}", text.err);
    assert_eq!(merge("json").value()["pairs"][0]["groups"][0]["result"]["machines"], 3);
    assert!(merge("html").out.starts_with("<!DOCTYPE html>") && merge("md").out.starts_with("# "));
    for format in ["text", "json", "html", "md"] {
        let out = merge(format).out;
        let folder = place.root().to_str().unwrap();
        assert!(out.contains("machine-0.json") && !out.contains(folder), "no folder of this computer: {out}");
    }
}

#[test]
fn changed_file_is_refused_and_the_others_merge() {
    let place = Place::new();
    let files = shared_files(&place);
    let text = fs::read_to_string(&files[0]).unwrap();
    let key = "\"ln_ratio\":";
    let at = text.find(key).unwrap() + key.len();
    fs::write(&files[0], format!("{}0.9{}", &text[..at], &text[at + 3..])).unwrap();
    place.longhaul("merge check").arg(&files[1]).expect(0);
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = place.longhaul("merge check").arg(&pipe).expect(3);
    assert!(refused.out.contains("it is not a regular file"), "{}", refused.out);
    let checked = place.longhaul("merge check").arg(&files[0]).expect(3);
    assert!(checked.out.contains("figures: the ratio of overall"), "{}", checked.out);
    let merged = files.iter().fold(place.longhaul("merge"), |call, file| call.arg(file)).expect(0);
    assert!(merged.out.contains("Results of 2 machines") && merged.err.contains("contradicts itself"));
}

#[test]
fn nothing_is_shared_without_consent() {
    let place = Place::new();
    let database = place.path("machine.sqlite");
    fill_machine(&database, &MachineSpec::small(7, 0.0)).unwrap();
    let file = place.path("machine.json");
    let output = place.longhaul("export share --database").arg(&database).arg(&file).expect(2);
    assert!(output.out.contains("What is shared") && output.err.contains("give --yes"), "{}", output.err);
    assert!(!file.exists());
    place.longhaul("export share --yes --nas annas-nas").arg(&file).expect(2);
}

#[test]
fn template_repository_checks_files_and_builds_a_page() {
    let place = Place::new();
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/commons/check.sh");
    let results = place.folder("commons/results");
    fs::copy(template, place.path("commons/check.sh")).unwrap();
    let check = || {
        let mut command = Command::new(place.path("commons/check.sh"));
        command.env("LONGHAUL", env!("CARGO_BIN_EXE_longhaul")).output().unwrap()
    };
    assert_eq!(check().status.code(), Some(1), "there is no file yet");
    for (index, file) in shared_files(&place).iter().enumerate() {
        fs::copy(file, results.join(format!("{index}.json"))).unwrap();
    }
    let passed = check();
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stdout));
    let page = fs::read_to_string(place.path("commons/page/index.html")).unwrap();
    assert!(page.contains("Results of 3 machines"));
    fs::write(results.join("3.json"), "{").unwrap();
    let failed = check();
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        fs::read_to_string(place.path("commons/page/index.html")).unwrap().contains("its end is missing")
    );
}
