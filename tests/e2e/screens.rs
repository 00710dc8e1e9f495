//! Snapshots of the output of every command and of the text of every page, so that rewording is reviewed as a diff.
//!
//! `INSTA_UPDATE=always cargo test --workspace --locked --test e2e screens::` accepts all changes. The lists below contain
//! one command line per line. Help pages are not listed: the test finds every command in the help of its parent.

// The paths of data and configuration, and the service manager, are those of Linux.

mod contract;
mod home;
mod html;
mod service;
mod usage;
mod world;

use std::io::{Read, Write};
use std::net::TcpStream;

use home::{Home, Snapshots};
use longhaul_service::daemon_address::DaemonAddress;
use longhaul_service::status::State;
use service::Service;

/// Commands that read the database: name of the snapshot, then the command line.
const RESULTS: &str = "
report            report 2021-W12
report-verbose    report 2021-W12 --verbose
report-first      report 2021-W09
report-markdown   report 2021-W12 --format md
pair              report --pair smb,nfs
pair-event        report --pair smb,nfs --at mtu
pair-since        report --pair smb,nfs --since 2021-03-10 --workload photo-batch
report-exit-code  report 2021-W12 --exit-code
report-anonymous  report 2021-W12 --format md --anonymous
summary           runs --summary
overview
menubar           menubar
runs              runs --last 6
run               runs 1
latency           latency --since 9000d
latency-series    latency --since 9000d --by 12h --target smb
stalls            stalls --since 9000d
stalls-recent     stalls
events            events --since 9000d
events-recent     events
usage             usage
export-events     export events --format csv
export-from       export runs --format csv --from 2022-01-01
clean             targets clean nfs
";

/// All other commands, run without a service.
const OTHERS: &str = "
config           config
config-print     config --print
doctor           doctor
status           status
pause            pause
resume           resume
round            round
log-level        service log-level debug
dashboard        dashboard
watch            status --watch
logs             service logs
start            service start --dry-run
stop             service stop --dry-run
restart          service restart --dry-run
install          service install --dry-run
uninstall        service uninstall --dry-run
uninstall-purge  service uninstall --purge --dry-run
preset-list      preset list
preset-print     preset print dd
preset-check     preset check ~/own.toml
telemetry-check  telemetry check
telemetry-replay telemetry replay --from 2021-03-28
";

/// Commands with counted usage, and with corrections of it.
const USAGE: &str = "
counted          usage
counted-json     usage --json
report           report 2021-W12
export           export runs --format json --output ~/counted.jsonl
from-export      report 2021-W12 --from-export ~/counted.jsonl
reset-nothing    usage reset
set              usage set folder-openings=200 backups=7
corrected        usage
reset            usage reset
set-again        usage set photo-sessions=2.5
";

/// Invalid command lines.
const MISTAKES: &str = "
no-such-command
report --no-such-option
report --database ~/no/such/database.sqlite
report --database ~
report 2021-12
report 2021-W99
report 2021-W12 --format md --json
report --from-export ~/missing
report --from-export ~/own.toml
report 2021-W12 --format html --output ~/no/such/folder.html
report --pair smb
report --pair smb,afp
report --pair smb,nfs --at reboot
report --pair smb,nfs --at 2001-01-01
report --pair smb,nfs --workload no-such-task
report --pair smb,nfs --since yesterday
report --pair smb,nfs --format md
runs 999999
runs x
runs --summary --scale huge
runs --scale quick
runs --target afp
latency --since 2
latency --by day
stalls --target a/b
export
what-if
export runs --format parquet
export runs --format csv --from yesterday
export runs --format csv --output ~/home/data/longhaul/longhaul.sqlite
export runs --format csv --output ~/no/such/folder.csv
usage set
usage set backups=-1
usage set folder-openings=1e9
usage set folder-opening=3
usage reset --json
targets clean afp
targets clean
config --config ~/missing
config --config ~/bad.toml
config --config ~/own.toml
run --workload no-such-task
run --target smb
run --target a=~/x --target a=~/y
run --rounds 0
run --target data=~/home/data/longhaul
try --target smb=
preset
preset no-such-preset --target smb
preset dd
preset dd --target afp
preset ~/missing.toml --target smb
preset check ~/missing
preset check ~/bad.toml
preset print no-such-preset
pause --for 2w
service log-level loud
service
telemetry replay
telemetry replay --from yesterday
init --yes
init --yes --force --target smb
init --yes --target smb=~/x
init --yes --force --target smb=~/x --gigabytes-per-day much
selfcheck --limit 99
service uninstall --purge
service logs --lines many
run --keep
";

/// Commands that talk to the service, run with a service.
const SERVICE: &str = "
status          status
doctor          doctor
pause           pause
pause-for       pause --for 2h
resume          resume
round           round
log-level       service log-level debug
dashboard       dashboard
watch           status --watch
overview
menubar         menubar
";

/// Pages of the service: name of the snapshot, then the path.
const PAGES: &str = "
overview          /
week              /weeks/2021-W12
week-empty        /weeks/1999-W01
week-markdown     /weeks/2021-W12/longhaul-2021-W12.md
tasks             /tasks
task              /tasks/photo-batch
latency           /latency?days=7&until=1616976000000000
events            /events
runs              /runs
runs-filtered     /runs?target=nfs&outcome=hung
run               /runs/1
targets           /targets
method            /method
nowhere           /nothing
run-unknown       /runs/0
task-unknown      /tasks/no-task
week-wrong        /weeks/2021-W99
latency-wrong     /latency?kind=sniff
runs-wrong        /runs?target=%2e%2e%2f
api-nowhere       /api/v1/nothing
api-wrong         /api/v1/week?week=now
";

/// Splits the lines of a list into name and rest.
fn lines(list: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    list.lines().filter(|line| !line.is_empty()).map(|line| {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        (name, rest.trim())
    })
}

/// Creates a home with results, a valid profile and an invalid configuration.
fn full_home() -> Home {
    let home = Home::full();
    home.write("own.toml", &home.longhaul("preset print dd").out);
    home.write("bad.toml", "scale = \"quick\"\n[targets.smb]\npaht = \"/Volumes/smb\"\n");
    home
}

/// Collects a command and all its subcommands from their help. An empty command is longhaul itself.
fn commands(home: &Home, command: &str, found: &mut Vec<String>) {
    let help = home.longhaul(format!("{command} --help").trim());
    let usage = [" ", "\n"].map(|end| format!("Usage: longhaul{command}{end}"));
    let is_command = help.code == Some(0) && usage.iter().any(|usage| help.out.contains(usage));
    if !is_command || command.ends_with(" help") {
        return;
    }
    found.push(command.to_owned());
    for line in help.out.lines().filter_map(|line| line.strip_prefix("  ")) {
        let name = line.split([' ', ',']).next().unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_lowercase()) && !command.ends_with(&format!(" {name}")) {
            commands(home, &format!("{command} {name}"), found);
        }
    }
}

#[test]
fn help_of_every_command_matches() {
    let (home, mut snapshots, mut found) = (Home::new(), Snapshots::new("help"), vec![]);
    commands(&home, "", &mut found);
    assert!(found.len() > 15, "{found:?}");
    for command in found {
        let name = format!("longhaul{command}").replace(' ', "-");
        snapshots.check(&name, &home.longhaul(&format!("{} --help", command.trim())).text());
    }
    snapshots.check("longhauld", &home.run(env!("CARGO_BIN_EXE_longhauld"), "--help", None).text());
    snapshots.finish();
}

#[test]
fn results_of_four_weeks_match() {
    let (home, mut snapshots) = (full_home(), Snapshots::new("results"));
    for (name, line) in lines(RESULTS) {
        snapshots.check(name, &home.longhaul(line).text());
    }
    let failed = ["hung", "error"].map(|outcome| failed_run(&home, outcome));
    for (number, outcome) in failed.iter().zip(["hung", "error"]) {
        snapshots.check(&format!("run-{outcome}"), &home.longhaul(&format!("runs {number}")).text());
    }
    for (name, line) in [("report", "report 2021-W12"), ("anonymous", "report 2021-W12 --anonymous")] {
        let screen = home.longhaul(&format!("{line} --format html --output ~/{name}.html"));
        let page = std::fs::read_to_string(home.path(&format!("{name}.html"))).unwrap();
        let words = home.normalize(&html::text_of(&page));
        snapshots.check(&format!("{name}-html"), &format!("{}{words}", screen.text()));
    }
    snapshots.finish();
}

/// Returns the number of the latest run with this outcome.
fn failed_run(home: &Home, outcome: &str) -> i64 {
    let json = home.longhaul("runs --json --last 0 --target nfs").out;
    let mut runs = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    runs.rfind(|run| run["outcome"] == outcome).unwrap()["run"].as_i64().unwrap()
}

#[test]
fn other_verdicts_match() {
    let mut snapshots = Snapshots::new("verdicts");
    for (name, world) in world::OTHERS {
        let home = Home::of(world);
        let week = if name == "first-day" { "2021-W09" } else { "2021-W12" };
        let screens = [
            format!("report {week}"),
            format!("report {week} --verbose"),
            format!("report {week} --format md"),
        ];
        let screens = screens.map(|line| home.longhaul(&line).text());
        snapshots.check(name, &screens.join("\n"));
    }
    snapshots.finish();
}

#[test]
fn counted_usage_and_its_corrections_match() {
    let (home, mut snapshots) = (Home::full(), Snapshots::new("usage"));
    home.configure("# My NAS.\n[targets.smb]\npath = \"/Volumes/smb\"  # fast\n");
    usage::add_usage(&home.database(), 6);
    let mut check = |(name, line)| snapshots.check(name, &home.longhaul(line).text());
    check(("too-few-days", "usage"));
    usage::add_usage(&home.database(), 21);
    check(("no-task-yet", "usage"));
    usage::add_listings(&home.database());
    lines(USAGE).for_each(check);
    let written = std::fs::read_to_string(home.path("home/config/longhaul/config.toml")).unwrap();
    snapshots.check("written", &written);
    snapshots.finish();
}

#[test]
fn missing_empty_and_broken_databases_match() {
    let mut snapshots = Snapshots::new("nothing");
    for (name, home) in
        [("empty-database", Home::empty()), ("no-database", Home::new()), ("broken-database", Home::broken())]
    {
        let screens = lines(RESULTS).map(|(_, line)| home.longhaul(line).text());
        snapshots.check(name, &screens.collect::<Vec<_>>().join("\n"));
    }
    snapshots.finish();
}

#[test]
fn commands_without_a_service_match() {
    let (home, mut snapshots) = (full_home(), Snapshots::new("others"));
    lines(OTHERS).for_each(|(name, line)| snapshots.check(name, &home.longhaul(line).text()));
    let log = "{\"timestamp\":\"2021-03-01T08:00:00Z\",\"level\":\"INFO\",\"fields\":{\"message\":\"round begins\",\"round\":7}}\n";
    home.write("home/state/longhaul/longhaul.log", log);
    snapshots.check("logs-of-a-service", &home.longhaul("service logs").text());
    // The mounts of this machine are removed; the table header stays.
    let mounts = home.longhaul("targets").text_without_numbers();
    let is_output = |line: &&str| !line.starts_with(['/', '#']) || line.starts_with("$");
    let mounts: Vec<&str> = mounts.lines().filter(is_output).collect();
    snapshots.check("targets", &mounts.join("\n"));
    let newcomer = Home::new();
    for (name, line) in [
        ("first-config", "config"),
        ("first-doctor", "doctor"),
        ("first-install", "service install"),
        ("first-run", "run"),
        ("first-init-unanswered", "init --target smb=~/a"),
        ("first-init", "init --yes --scale quick --target smb=~/a --target nfs=~/b"),
        ("second-init", "init --yes --target smb=~/a"),
    ] {
        snapshots.check(name, &newcomer.longhaul(line).text());
    }
    let line = "init --target smb=~/a --target nfs=~/b";
    let dialogue = Home::new().longhaul_answered(line, "enormous\nquick\nmuch\n5\n0\n20\n\nyes\n");
    snapshots.check("init-dialogue", &dialogue.text());
    snapshots.finish();
}

#[test]
fn refused_command_lines_match() {
    let (home, mut snapshots) = (full_home(), Snapshots::new("mistakes"));
    let screens = MISTAKES.lines().filter(|line| !line.is_empty());
    let screens = screens.map(|line| home.longhaul(if line == "none" { "" } else { line }).text());
    snapshots.check("all", &screens.collect::<Vec<_>>().join("\n"));
    snapshots.finish();
}

#[test]
fn commands_with_a_service_match() {
    let (home, mut snapshots) = (full_home(), Snapshots::new("service"));
    let service = Service::start(&home.database());
    lines(SERVICE).for_each(|(name, line)| snapshots.check(name, &home.longhaul(line).text()));
    drop(service);
    for (name, state) in [
        ("measuring", State::Measuring),
        ("paused", State::Paused { until_us: None }),
        ("safe-mode", State::SafeMode),
        ("idle", State::Idle),
        ("stopping", State::Stopping),
    ] {
        let _service = Service::start_as(&home.database(), state);
        snapshots.check(&format!("status-{name}"), &home.longhaul("status").text());
        let port = DaemonAddress::read(&home.database()).unwrap().port;
        snapshots.check(&format!("page-{name}"), &home.normalize(&html::main_text(&page(port, "/targets"))));
    }
    snapshots.finish();
}

#[test]
fn pages_match() {
    let (home, mut snapshots) = (full_home(), Snapshots::new("page"));
    let service = Service::start(&home.database());
    show_pages(&home, "", &mut snapshots);
    drop(service);
    let home = Home::empty();
    let _service = Service::start(&home.database());
    show_pages(&home, "empty-", &mut snapshots);
    snapshots.finish();
}

fn show_pages(home: &Home, prefix: &str, snapshots: &mut Snapshots) {
    let port = DaemonAddress::read(&home.database()).unwrap().port;
    for (name, path) in lines(PAGES) {
        let answer = page(port, path);
        // Navigation and footer are the same on all pages, so they are compared only once.
        let words = if path == "/" { html::text_of(&answer) } else { html::main_text(&answer) };
        snapshots.check(&format!("{prefix}{name}"), &format!("GET {path}\n{}", home.normalize(&words)));
    }
}

/// Requests a page and returns the status line and the body.
fn page(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    format!("{}\n{body}", head.lines().next().unwrap())
}

#[test]
fn measuring_commands_match() {
    let (home, mut snapshots) = (Home::new(), Snapshots::new("measuring"));
    home.configure("[folder-index]\nfiles = 40\n");
    std::fs::create_dir(home.path("nas")).unwrap();
    for (name, line) in [
        ("run", "run --scale quick --workload folder-index --target nas=~/nas"),
        ("clean-unasked", "targets clean nas"),
        ("clean", "targets clean nas --yes"),
        ("preset", "preset ioping --target nas=~/nas --scale quick --runs 2"),
        ("preset-published", "preset dd --as-original --published --target nas=~/nas --scale quick --runs 1"),
    ] {
        snapshots.check(name, &home.longhaul(line).text_without_numbers());
    }
    // No program listens at port 9 (discard).
    home.configure("[telemetry]\nendpoint = \"http://127.0.0.1:9\"\n");
    snapshots.check("telemetry-check", &home.longhaul("telemetry check").text_without_numbers());
    snapshots.finish();
}
