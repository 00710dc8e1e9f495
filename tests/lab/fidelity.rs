//! Checks on real servers which properties of files each protocol keeps, against a table that was made by hand and against the
//! NAS's own disk.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::machines::{Findings, Lab, note, skip, text};
use serde_json::Value;

/// Page with the table made by hand: a row for each property, a column for each target.
const TABLE: &str = include_str!("../../docs/validation/fidelity.md");
/// Targets of the table, in the order of its columns. AFP comes last: its client may crash.
const TARGETS: [&str; 5] = ["smb2", "smb3", "nfs3", "nfs4", "afp"];
/// Targets whose mounts are tried against each other: AFP's client refuses locks.
const LOCKING: [&str; 4] = ["smb2", "smb3", "nfs3", "nfs4"];
/// Number of runs that must agree; more with `LONGHAUL_FIDELITY_RUNS`.
const RUNS: u32 = 2;
/// Time that a check of one target may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Part of the detail of a property that was not checked for lack of time.
const TIME_LIMIT: &str = "time limit";
/// Results with which the NAS holds what was written.
const THERE: [&str; 2] = ["kept", "changed"];
/// Results with which the NAS does not hold what was written.
const MISSING: [&str; 2] = ["refused", "lost"];

/// Expected results of one target by property.
type Results = BTreeMap<String, String>;

/// Returns the results that the table expects of a target.
fn expected(target: &str) -> Results {
    let rows = TABLE.lines().filter(|line| line.starts_with("| `"));
    let column = TARGETS.iter().position(|name| *name == target).expect("the table has the target");
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0].trim_matches('`').to_owned(), cells[column + 1].to_owned())
    };
    rows.map(row).collect()
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn fidelity_equals_the_table_and_the_disk_of_the_nas() {
    let lab = Lab::up("local smb2 smb3 nfs3 nfs4 afp");
    lab.ask("mkdir -p /m/nfs3/media /m/local/fidelity && chmod 777 /m/nfs3/media");
    let mut findings = Findings::default();
    let runs = std::env::var("LONGHAUL_FIDELITY_RUNS").ok().and_then(|runs| runs.parse().ok());
    for target in TARGETS {
        let Some(path) = path_of(&lab, target) else {
            skip(target, "the share cannot be mounted");
            continue;
        };
        check_disk(&lab, &Share { target, path: &path }, &mut findings);
        for _ in 0..runs.unwrap_or(RUNS) {
            check_results(&lab, &Share { target, path: &path }, &mut findings);
        }
    }
    findings.rows.dedup();
    findings.print(&["target", "seconds", "results"]);
    findings.assert(&lab);
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn lock_across_mounts_equals_what_other_programs_meet() {
    let lab = Lab::up("local smb2 smb3 nfs3 nfs4");
    lab.ask("mkdir -p /m/nfs3/media /m/local/fidelity && chmod 777 /m/nfs3/media");
    let targets: Vec<String> =
        LOCKING.iter().map(|name| format!("--target {name}=/m/{name}/media")).collect();
    let program = env!("CARGO_BIN_EXE_longhaul");
    let command =
        format!("{program} fidelity --json --database /m/local/fidelity/locks.sqlite {}", targets.join(" "));
    let output = lab.run(&format!("{command} 2>/dev/null"));
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let mut findings = Findings::default();
    for holder in LOCKING {
        let others: Vec<&str> = LOCKING.into_iter().filter(|name| *name != holder).collect();
        let expected = met_by_programs(&lab, holder, &others);
        let is_it = |row: &&Value| row["target"] == holder && row["property"] == "lock-across-mounts";
        let detail = found.iter().find(is_it).map_or("", |row| row["detail"].as_str().unwrap_or_default());
        findings.check(detail == expected, || {
            format!("{holder}: {detail} instead of {expected}: {}", text(&output))
        });
        findings.row(&[holder, detail]);
    }
    findings.print(&["lock held through", "result"]);
    findings.assert(&lab);
}

/// Holds a lock and tries it through other mounts, with programs that share no code with longhaul. Returns what longhaul
/// should say.
fn met_by_programs(lab: &Lab, holder: &str, others: &[&str]) -> String {
    let script = concat!("/host", env!("CARGO_MANIFEST_DIR"), "/tests/lab/locks.py");
    let path = |name: &str| format!("/m/{name}/media/by-hand-{holder}");
    let paths: Vec<String> = others.iter().map(|name| path(name)).collect();
    let output = lab.run(&format!("python3 {script} {} {}", path(holder), paths.join(" ")));
    let answers = text(&output);
    note(&format!("{holder}: {others:?}: {}", answers.replace('\n', ", ")));
    let with = |answer: &str| {
        let names = answers.lines().zip(others).filter(|(line, _)| *line == answer);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    };
    match (with("taken"), with("held")) {
        (taken, _) if !taken.is_empty() => format!("another program took the same lock through {taken}"),
        (_, held) if !held.is_empty() => format!("against programs that use {held}"),
        _ => answers,
    }
}

/// Share as the client sees it.
struct Share<'a> {
    target: &'a str,
    path: &'a str,
}

/// Returns the path of the folder on a share; `None` if it cannot be mounted.
fn path_of(lab: &Lab, target: &str) -> Option<String> {
    if target == "afp" { lab.afp_path() } else { Some(format!("/m/{target}/media")) }
}

/// Runs the command on one target, and compares its results with the table. Nothing must be left on the NAS.
fn check_results(lab: &Lab, share: &Share<'_>, findings: &mut Findings) {
    let Share { target, path } = share;
    // Not the optimised program of the other tests: calls on the share take the time, not the program.
    let program = env!("CARGO_BIN_EXE_longhaul");
    let database = format!("/m/local/fidelity/{target}.sqlite");
    let started = Instant::now();
    let output =
        lab.run(&format!("{program} fidelity --json --database {database} --target '{target}={path}'"));
    let took = started.elapsed();
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    findings.check(took < LIMIT, || format!("{target}: the check took {took:?}"));
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (property, result) in expected(target) {
        let row = found.iter().find(|row| row["property"] == property.as_str());
        let now = row.and_then(|row| row["result"].as_str()).unwrap_or("no result");
        let detail = row.and_then(|row| row["detail"].as_str()).unwrap_or_default();
        // gvfs takes more than a second for each property, and longer on a busy machine.
        if *target == "afp" && detail.contains(TIME_LIMIT) {
            skip(&format!("afp {property}"), detail);
            continue;
        }
        findings.check(now == result, || {
            let detail = if row.is_some() { detail.to_owned() } else { text(&output) };
            format!("{target}: {property}: {now} instead of {result}: {detail}")
        });
        *counts.entry(now.to_owned()).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(result, count)| format!("{count} {result}")).collect();
    findings.row(&[target, &format!("{:.0}", took.as_secs_f64()), &counts.join(", ")]);
    let left = text(&lab.nas("find /srv/share/media -mindepth 1"));
    findings.check(left.is_empty(), || format!("{target}: left on the NAS: {left}"));
}

/// Writes the same properties with other programs, and compares what the NAS's disk holds with the table.
fn check_disk(lab: &Lab, share: &Share<'_>, findings: &mut Findings) {
    let Share { target, path } = share;
    let script = concat!("PYTHONUTF8=1 python3 /host", env!("CARGO_MANIFEST_DIR"), "/tests/lab/fidelity.py");
    let written = lab.run(&format!("mkdir '{path}/by-hand' && {script} write '{path}/by-hand'"));
    note(&format!("{target}: {}", text(&written)));
    let seen = lab.nas(&format!("{script} look /srv/share/media/by-hand; rm -rf /srv/share/media/by-hand"));
    let expected = expected(target);
    let mut compared = 0;
    for line in text(&seen).lines() {
        let mut words = line.splitn(3, ' ');
        let (property, state) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let result = expected.get(property).map(String::as_str).unwrap_or_default();
        let agrees = match state {
            "there" => !MISSING.contains(&result),
            _ => !THERE.contains(&result),
        };
        findings.check(agrees, || format!("{target}: the table says {result}, the NAS's disk: {line}"));
        compared += 1;
    }
    findings
        .check(compared > 25, || format!("{target}: {compared} properties were compared: {}", text(&seen)));
}
