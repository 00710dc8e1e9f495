//! Tests of `longhaul integrity` on real servers: data is damaged on the NAS, below its file system or through it, and each
//! damage must be reported once, with its place and its pattern. Without damage, nothing may be reported.

use std::collections::BTreeSet;

use crate::machines::{Findings, Lab, note, text};
use serde_json::Value;

const DATABASE: &str = "/m/local/integrity/l.sqlite";
const CONFIG: &str = "/m/local/integrity/c.toml";
/// Few and small files in the folder tree: every file is read several times.
const SMALL_TREES: &str = "[folder-index]\nfiles = 240\n";
/// Number of faults of each kind of injection.
const FAULTS: usize = 50;

/// One share, and the folder on the NAS that it leads to.
struct Share<'a> {
    lab: &'a Lab,
    /// Name of the mount in the client.
    name: &'static str,
    /// Path of the measured folder below the mount, which is also its path below `/srv/share`.
    folder: String,
    /// Name of another mount that leads to the same folder, through which wrong ranges are read again.
    other: Option<&'static str>,
}

impl Share<'_> {
    fn target(&self) -> String {
        format!("--target {0}=/m/{0}/{1}", self.name, self.folder)
    }

    /// Creates the files of all tasks: a round, measured twice.
    fn fill(&self) {
        let tasks = ["folder-index", "photo-batch", "incremental-backup", "time-machine"];
        let tasks = tasks.map(|task| format!("--workload {task}")).join(" ");
        self.lab.ask(&format!("mkdir -p /m/{}/{}", self.name, self.folder));
        let command = format!("run --scale quick --rounds 2 {tasks} {}", self.target());
        note(self.longhaul(&command).lines().last().unwrap_or_default());
    }

    fn longhaul(&self, command: &str) -> String {
        self.lab.ask(&program(command))
    }

    /// Damages files on the NAS. Returns what must be found.
    fn damage(&self, how: &str, seed: u64) -> BTreeSet<String> {
        let script = concat!("/host", env!("CARGO_MANIFEST_DIR"), "/tests/lab/damage.py");
        let sandbox = format!("$(ls -d /srv/share/{}/.longhaul-*)", self.folder);
        let output = self.lab.nas(&format!("python3 {script} {how} {sandbox} {seed} {FAULTS}"));
        assert!(output.status.success(), "damage: {}", text(&output));
        let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(normalized).collect();
        assert_eq!(lines.len(), FAULTS, "damage: {}", text(&output));
        lines.into_iter().collect()
    }

    /// Reads everything back, past all caches. Returns its line of the result.
    fn check(&self) -> Value {
        self.lab.nas("sync; echo 1 >/proc/sys/vm/drop_caches");
        self.lab.ask("sync; echo 3 >/proc/sys/vm/drop_caches");
        let other = self.other.map(|other| format!("--target {other}=/m/{other}/{}", self.folder));
        let targets = format!("{} {}", self.target(), other.unwrap_or_default());
        let output = self.lab.run(&program(&format!("integrity --check --json {targets} 2>/dev/null")));
        let lines: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        let of_share = |line: &&Value| line["target"] == self.name;
        lines.as_array().and_then(|lines| lines.iter().find(of_share)).cloned().unwrap_or_default()
    }
}

fn program(command: &str) -> String {
    let program = env!("CARGO_BIN_EXE_longhaul");
    format!("{program} --database {DATABASE} --config {CONFIG} {command}")
}

/// Returns a line of JSON in one form.
fn normalized(line: &str) -> String {
    serde_json::from_str::<Value>(line).map_or_else(|_| line.to_owned(), |value| value.to_string())
}

fn found(line: &Value) -> Vec<String> {
    let ranges = line["wrong_ranges"].as_array().into_iter().flatten();
    let range = |range: &Value| {
        Value::from(["file", "offset", "length", "pattern"].map(|key| range[key].clone()).to_vec())
            .to_string()
    };
    ranges.map(range).collect()
}

/// Damages a share, checks it twice, and compares what was found with what was done.
fn compare(share: &Share<'_>, how: &str, findings: &mut Findings) {
    let clean = share.check();
    findings.check(clean["mismatches"] == 0, || format!("{}: wrong without damage: {clean}", share.name));
    let expected = share.damage(how, 11);
    share.check();
    let line = share.check();
    let all = found(&line);
    let distinct: BTreeSet<String> = all.iter().cloned().collect();
    let right = distinct.intersection(&expected).count();
    findings.check(all.len() == distinct.len(), || format!("{} {how}: reported twice", share.name));
    findings.check(distinct == expected, || {
        let (missed, wrong): (Vec<_>, Vec<_>) =
            (expected.difference(&distinct).collect(), distinct.difference(&expected).collect());
        format!("{} {how}: missed {missed:#?}, reported {wrong:#?}", share.name)
    });
    if let Some(other) = share.other {
        for range in line["wrong_ranges"].as_array().into_iter().flatten() {
            let read = &range["elsewhere"][0];
            let is_there_too = read["target"] == other && read["result"] == "same-damage";
            findings.check(is_there_too, || format!("{} {how}: not read over {other}: {range}", share.name));
        }
    }
    let megabytes = |key: &str| (line[key].as_u64().unwrap_or(0) / 1_000_000).to_string();
    findings.row(&[
        share.name,
        how,
        &FAULTS.to_string(),
        &right.to_string(),
        &(all.len() - right).to_string(),
        &megabytes("bytes_verified"),
        &megabytes("bytes_over_the_wire"),
    ]);
}

const COLUMNS: [&str; 7] =
    ["share", "damage", "faults", "found right", "other", "MB verified", "MB over the wire"];

fn prepared(lab: &Lab) {
    lab.ask(&format!("mkdir -p /m/local/integrity && printf '{SMALL_TREES}' >{CONFIG}"));
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn files_damaged_on_the_nas_are_reported_once() {
    let lab = Lab::up("local smb3 nfs4");
    prepared(&lab);
    let mut findings = Findings::default();
    for (name, other) in [("smb3", "nfs4"), ("nfs4", "smb3")] {
        let share = Share { lab: &lab, name, folder: format!("integrity-{name}"), other: Some(other) };
        share.fill();
        compare(&share, "direct", &mut findings);
    }
    findings.print(&COLUMNS);
    findings.assert(&lab);
}

/// Makes a disk on the NAS whose blocks can be changed, and damages a share on it.
fn compare_below_the_file_system(how: &str) {
    let lab = Lab::up("local smb3");
    prepared(&lab);
    lab.ask_nas(
        "modprobe -a loop dm-mod dm-flakey && truncate -s 900M /srv/share/.disk && losetup /dev/loop0 /srv/share/.disk && \
         echo \"0 $(blockdev --getsz /dev/loop0) linear /dev/loop0 0\" | dmsetup --noudevsync create flaky && \
         dmsetup mknodes && mkfs.ext4 -q /dev/mapper/flaky && mkdir -p /srv/share/flaky && \
         mount /dev/mapper/flaky /srv/share/flaky && chmod 777 /srv/share/flaky",
    );
    let mut findings = Findings::default();
    let share = Share { lab: &lab, name: "smb3", folder: format!("flaky/{how}"), other: None };
    share.fill();
    compare(&share, how, &mut findings);
    findings.print(&COLUMNS);
    findings.assert(&lab);
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn bytes_changed_on_the_disk_are_reported_once() {
    compare_below_the_file_system("disk");
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn bytes_changed_while_written_are_reported_once() {
    compare_below_the_file_system("writes");
}

/// Number of bytes that are read back without any damage.
const UNDAMAGED_BYTES: u64 = 10_000_000_000;

#[test]
#[ignore = "boots two virtual machines, and reads 10 GB; run with --ignored"]
fn nothing_is_reported_in_10_gb_without_damage() {
    let lab = Lab::up("local smb3");
    prepared(&lab);
    let share = Share { lab: &lab, name: "smb3", folder: "integrity".to_owned(), other: None };
    share.fill();
    let mut line = share.check();
    while line["bytes_over_the_wire"].as_u64().is_some_and(|bytes| bytes < UNDAMAGED_BYTES) {
        line = share.check();
    }
    let megabytes = |key: &str| (line[key].as_u64().unwrap_or(0) / 1_000_000).to_string();
    note(&format!(
        "{} MB verified, {} MB over the wire",
        megabytes("bytes_verified"),
        megabytes("bytes_over_the_wire")
    ));
    assert_eq!(line["mismatches"], 0, "{line}{}", lab.logs());
}
