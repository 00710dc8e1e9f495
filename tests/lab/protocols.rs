//! Runs the program on real servers in the lab: every workload on every protocol, through real client mounts.

use std::collections::BTreeMap;

use crate::machines::{Findings, Lab, json_lines, note, program, skip, text};
use serde_json::Value;

/// Targets, each with the protocol that must be detected. All shares export the same folder of the NAS.
const TARGETS: [(&str, &str); 6] = [
    ("local", "ext4"),
    ("smb1", "SMB 1.0"),
    ("smb2", "SMB 2.1"),
    ("smb3", "SMB 3.1.1"),
    ("nfs3", "NFS 3"),
    ("nfs4", "NFS 4.2"),
];
const WORKLOADS: [&str; 5] =
    ["folder-index", "photo-batch", "incremental-backup", "time-machine", "time-machine-throttled"];
/// Workloads that overwrite parts of a file, which the desktop's AFP client cannot do.
const NEED_WRITING_IN_PLACE: [&str; 2] = ["time-machine", "time-machine-throttled"];
const DATABASE: &str = "/m/local/longhaul/l.sqlite";
const CONFIGURATION: &str = "/m/local/shares.toml";
/// Separate database for AFP, because two processes cannot measure with one database at the same time.
const AFP_DATABASE: &str = "/m/local/longhaul-afp/l.sqlite";
const AFP_CONFIGURATION: &str = "/m/local/afp.toml";

/// Checks protocol and outcome of a run, and for a backup which attributes were kept, and adds a row to the table.
fn check_run(findings: &mut Findings, run: &Value, (protocol, outcome): (&str, &str)) {
    let word = |key: &str| run[key].as_str().unwrap_or("?").to_owned();
    let (target, workload) = (word("target"), word("workload"));
    let message = run["failure"]["message"].as_str().unwrap_or_default();
    findings.check(word("protocol") == protocol, || format!("{target} was detected as {}", word("protocol")));
    findings
        .check(word("outcome") == outcome, || format!("{target} {workload}: {}: {message}", word("outcome")));
    let facts = ["mode", "extended-attributes", "modification-times"];
    let attributes = facts.map(|fact| run["facts"][fact].as_str().map(|answer| format!("{fact} {answer}")));
    if workload == "incremental-backup" {
        findings.check(attributes[0].is_some() && attributes[2].is_some(), || {
            format!("{target}: the facts about attributes are missing")
        });
    }
    let attributes = attributes.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let seconds = run["seconds"].as_f64().unwrap_or(f64::NAN);
    let seconds = format!("{seconds:.1}");
    findings.row(&[&target, &word("protocol"), &workload, &word("outcome"), &seconds, &attributes]);
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn every_workload_runs_on_every_protocol() {
    let lab = Lab::up("local smb1 smb2 smb3 nfs3 nfs4 afp");
    let program = program();
    lab.assert_starts(program);
    lab.ask("mkdir -p /m/local/media /m/nfs3/media && chmod 777 /m/nfs3/media");
    let mut findings = Findings::default();
    std::thread::scope(|scope| {
        let afp = scope.spawn(|| afp(&lab, program));
        kernel_clients(&lab, program, &mut findings);
        let afp = afp.join().expect("the thread of AFP does not panic");
        findings.rows.extend(afp.rows);
        findings.wrong.extend(afp.wrong);
    });
    findings.rows.sort();
    findings.print(&["target", "protocol detected", "task", "outcome", "seconds", "what a backup kept"]);
    findings.assert(&lab);
}

/// Trace of a program that locks a file through two handles and writes it under the lock, as databases do.
const LOCKING_PROGRAM: &str = r#"1 7.000000 openat(AT_FDCWD, "/x/db", O_RDWR) = 3 <0.000020>
1 7.001000 openat(AT_FDCWD, "/x/db", O_RDONLY) = 4 <0.000020>
1 7.002000 fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = 0 <0.000020>
1 7.003000 flock(4, LOCK_SH) = 0 <0.000020>
1 7.004000 pwrite64(3, "", 4096, 0) = 4096 <0.000020>
1 7.005000 pread64(4, "", 4096, 0) = 4096 <0.000020>
1 7.006000 flock(4, LOCK_UN) = 0 <0.000020>
1 7.007000 close(4) = 0 <0.000020>
1 7.008000 close(3) = 0 <0.000020>
"#;

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn protocols_replay_a_program_that_locks() {
    let lab = Lab::up("local smb1 smb3 nfs3 nfs4");
    let program = program();
    let options = "--config /m/local/locks/c.toml --database /m/local/locks/l.sqlite";
    lab.ask("mkdir -p /m/local/locks /m/nfs3/locks && chmod 777 /m/nfs3/locks");
    lab.ask("printf '[recording]\nreplay = \"locks\"\n' >/m/local/locks/c.toml");
    lab.ask(&format!("cat >/m/local/locks/trace <<'END'\n{LOCKING_PROGRAM}END"));
    lab.ask(&format!("{program} record {options} --import /m/local/locks/trace --on /x --name locks"));
    let targets =
        ["smb1", "smb3", "nfs3", "nfs4"].map(|name| format!("--target {name}=/m/{name}/locks")).join(" ");
    let run = format!("{program} run {options} --workload your-day --scale quick --json {targets}");
    let mut findings = Findings::default();
    let runs = runs(&lab.run(&run));
    findings.check(runs.len() == 4, || format!("{} of 4 shares were measured", runs.len()));
    for run in &runs {
        let word = |key: &str| run[key].as_str().unwrap_or("?");
        let (protocol, outcome) = (word("protocol"), word("outcome"));
        let message = run["failure"]["message"].as_str().unwrap_or_default();
        findings.row(&[protocol, outcome, message]);
        findings.check(outcome == "ok", || format!("{protocol}: {outcome}: {message}"));
    }
    findings.print(&["protocol", "outcome", "message"]);
    findings.assert(&lab);
}

/// Runs one round on all targets that the kernel mounts itself.
fn kernel_clients(lab: &Lab, program: &str, findings: &mut Findings) {
    let targets = TARGETS.map(|(name, _)| format!("--target {name}=/m/{name}/media")).join(" ");
    // Client and server create only about forty files a second here, so a larger tree would take too long.
    lab.ask(&format!("printf '[folder-index]\nfiles = 1500\n' >{CONFIGURATION}"));
    let options = format!("--config {CONFIGURATION} --database {DATABASE} --scale quick --json");
    let runs = runs(&lab.run(&format!("{program} run {options} {targets}")));
    findings.check(runs.len() == TARGETS.len() * WORKLOADS.len(), || format!("{} runs", runs.len()));
    let protocols = BTreeMap::from(TARGETS);
    for run in &runs {
        let protocol = protocols.get(run["target"].as_str().unwrap_or_default()).copied();
        check_run(findings, run, (protocol.unwrap_or("a target of the test"), "ok"));
    }
    let speed = lab.nas("find /srv/share/media -path '*/time-machine/speed/*' -not -path '*-afp/*'");
    findings.check(text(&speed).is_empty(), || "files of the speed test are left on the NAS".to_owned());
    for (name, _) in TARGETS {
        check_backup_on_server(lab, (name, DATABASE), findings);
        clean(
            lab,
            program,
            &UsedTarget { name, path: &format!("/m/{name}/media"), database: DATABASE },
            findings,
        );
    }
}

/// Returns the run records in the output of `--json`.
fn runs(output: &std::process::Output) -> Vec<Value> {
    let mut runs = json_lines(&String::from_utf8_lossy(&output.stdout));
    runs.retain(|value| value["type"] == "run");
    if runs.is_empty() {
        note(&format!("no run: {}", text(output)));
    }
    runs
}

/// Checks that the backup on the NAS's disk equals the source on the client, by file name and checksum.
fn check_backup_on_server(lab: &Lab, (name, database): (&str, &str), findings: &mut Findings) {
    let sums = "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum";
    let folder = database.trim_end_matches("/l.sqlite");
    let source = lab.run(&format!("cd {folder}/local/{name}/incremental-backup/600 && {sums}"));
    let there = format!("/media/.longhaul-*-{name}/incremental-backup/600 && {sums}");
    let copy = match name {
        "local" => lab.run(&format!("cd /m/local{there}")),
        _ => lab.nas(&format!("cd /srv/share{there}")),
    };
    let files = text(&source).lines().count();
    findings.check(files > 500, || format!("{name}: the source has {files} files: {}", text(&source)));
    findings.check(source.stdout == copy.stdout, || {
        format!(
            "{name}: on the server the backup differs from its source: {}",
            first_difference(&source, &copy)
        )
    });
}

fn first_difference(one: &std::process::Output, other: &std::process::Output) -> String {
    let (one, other) = (text(one), text(other));
    let differing = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    format!("{differing:?}, {} and {} lines", one.lines().count(), other.lines().count())
}

/// Target whose sandbox is to be removed.
struct UsedTarget<'a> {
    name: &'a str,
    path: &'a str,
    database: &'a str,
}

/// Checks that `targets clean --yes` leaves nothing of a target on the server.
fn clean(lab: &Lab, program: &str, target: &UsedTarget<'_>, findings: &mut Findings) {
    let UsedTarget { name, path, database } = target;
    let cleaned = lab.run(&format!("{program} targets clean --yes --database {database} '{name}={path}'"));
    findings.check(cleaned.status.success(), || format!("{name}: clean: {}", text(&cleaned)));
    let left = match *name {
        "local" => lab.run("find /m/local/media -mindepth 1"),
        _ => lab.nas(&format!("find /srv/share/media -path '*-{name}*'")),
    };
    findings.check(text(&left).is_empty(), || {
        let few = text(&left).lines().take(5).collect::<Vec<_>>().join("\n");
        format!("{name}: left behind: {few}\noutput of clean: {}", text(&cleaned))
    });
}

/// Runs the workloads on AFP one by one through the desktop's client. That client may crash; the affected workloads
/// are skipped.
fn afp(lab: &Lab, program: &str) -> Findings {
    let mut findings = Findings::default();
    // The client creates only about ten files a second, so the tree is small.
    let tree = format!("printf '[folder-index]\nfiles = 200\n' >{AFP_CONFIGURATION}");
    lab.ask(&format!("mkdir -p /m/local/longhaul-afp && {tree}"));
    let mut has_crashed = false;
    for workload in WORKLOADS {
        has_crashed |= !afp_task(lab, program, workload, &mut findings);
        if workload == "incremental-backup" && !has_crashed {
            check_backup_on_server(lab, ("afp", AFP_DATABASE), &mut findings);
        }
    }
    let path = lab.afp_path();
    match path {
        Some(path) if !has_crashed => {
            clean(
                lab,
                program,
                &UsedTarget { name: "afp", path: &path, database: AFP_DATABASE },
                &mut findings,
            );
        }
        // After a crash the server keeps the client's files open for a while, and they cannot be removed.
        _ => skip("afp clean", "the desktop's AFP client crashed, or its mount is gone"),
    }
    findings
}

/// Runs a workload on AFP and checks it. Returns false if the mount is gone afterwards.
fn afp_task(lab: &Lab, program: &str, workload: &str, findings: &mut Findings) -> bool {
    let Some(path) = lab.afp_path() else {
        skip(&format!("afp {workload}"), "the AFP share cannot be mounted");
        findings.rows.push(format!("| afp | AFP | {workload} | skipped: not mounted | | |"));
        return false;
    };
    let command = format!(
        "{program} run --config {AFP_CONFIGURATION} --database {AFP_DATABASE} --target 'afp={path}' --scale quick \
         --cap 400 --json --workload {workload}"
    );
    let output = lab.run(&command);
    let is_there = lab.run("ls /m/afp/media").status.success();
    let expected = if NEED_WRITING_IN_PLACE.contains(&workload) { "unavailable" } else { "ok" };
    match runs(&output).first() {
        Some(run) if is_there || run["outcome"] == expected => check_run(findings, run, ("AFP", expected)),
        _ => {
            skip(&format!("afp {workload}"), "the desktop's AFP client crashed during the run");
            findings.rows.push(format!("| afp | AFP | {workload} | skipped: the client crashed | | |"));
        }
    }
    is_there
}
