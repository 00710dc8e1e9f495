//! Tests of freshness on real servers: which changes made elsewhere a mount shows, and when.
//!
//! Samba 4.22 grants directory leases, and a change that is made on the NAS or over NFS does not break them: a listing
//! over SMB 3.1.1 never shows it. Each of two settings alone ends that. NFS remembers for up to a minute that a name did
//! not exist. The changes on the NAS are made by the line that `longhaul freshness helper` prints; an oracle that shares
//! no code with longhaul stamps them with the clock of the NAS and looks for them through the same mount.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Range;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::machines::{Findings, Lab, note, text};
use serde_json::Value;

const SHARES: [&str; 4] = ["smb2", "smb3", "nfs3", "nfs4"];
const KINDS: [&str; 6] =
    ["new-file", "looked-up-name", "grown-file", "changed-content", "deletion", "rename"];
/// Kinds that are looked for in a listing.
const LISTED: [&str; 2] = ["new-file", "rename"];
/// Time for which changes are looked for, in seconds: longer than NFS remembers that a name did not exist (`acdirmax`).
const LIMIT: u64 = 65;
/// Distance in seconds that the median of longhaul may have from the interval of the oracle: the pause between polls.
const TOLERANCE: f64 = 0.1;
/// Kind that only longhaul looks for: two programs that read a file keep it open on an SMB client, which then shows no
/// change.
const WITHOUT_ORACLE: &str = "changed-content";
/// Command that reads the clock of the NAS.
const CLOCK: &str = "date +%s.%N";
/// Folder on the local disk of the client.
const LOCAL: &str = "/m/local/fresh";
const COLUMNS: [&str; 8] = ["made", "target", "change", "n", "not seen", "median", "p90", "oracle"];

/// The oracle: polls the folder of a session, and prints when each change was first seen.
const ORACLE: &str = r#"
import json, os, sys, time
folder, count, end = sys.argv[1], int(sys.argv[2]), time.time() + float(sys.argv[3])
def size(path):
    try: return os.stat(path).st_size
    except FileNotFoundError: return None
def view(place):
    path, kind = f"{folder}/{place}", place % 6
    if kind == 0: return "new" in os.listdir(path)
    if kind == 1: return size(path + "/new") is not None
    if kind == 2: return size(path + "/old") > 20
    if kind == 4: return size(path + "/old") is None
    if kind == 5: return os.listdir(path) == ["new"]
seen = {}
while len(seen) < count - count // 6 and time.time() < end:
    began = time.time()
    for place in range(count):
        # Two programs that read a file keep it open on an SMB client, which then shows no change.
        if place in seen or place % 6 == 3: continue
        try:
            if view(place): seen[place] = time.time()
        except FileNotFoundError: pass
    time.sleep(max(0, began + 0.1 - time.time()))
print(json.dumps(seen))
"#;

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn staleness_of_each_protocol_is_reproduced() {
    let lab = lab();
    let mut findings = Findings::default();
    through_nfs4(&lab, 3, &mut findings);
    on_the_nas(&lab, Sessions { count: 1, changes: 5 }, &mut findings);
    findings.print(&COLUMNS);
    controls(&lab, &mut findings);
    findings.print(&COLUMNS);
    findings.assert(&lab);
}

#[test]
#[ignore = "boots two virtual machines and takes 40 minutes; makes the table of docs/validation/freshness.md"]
fn hundred_changes_of_each_kind_agree_with_the_oracle() {
    let lab = lab();
    let mut findings = Findings::default();
    on_the_nas(&lab, Sessions { count: 20, changes: 5 }, &mut findings);
    findings.print(&COLUMNS);
    findings.assert(&lab);
}

/// Boots the lab with a folder that all shares show.
fn lab() -> Lab {
    let lab = Lab::up("local smb2 smb3 nfs3 nfs4");
    lab.ask(&format!("mkdir -p {LOCAL} && cat >{LOCAL}/oracle.py <<'EOF'{ORACLE}EOF"));
    lab.ask_nas("mkdir -p /srv/share/fresh && chmod 777 /srv/share/fresh");
    lab
}

fn longhaul(database: &str, command: &str) -> String {
    let program = env!("CARGO_BIN_EXE_longhaul");
    format!("HOME={LOCAL} {program} --database {LOCAL}/{database}.sqlite freshness {command}")
}

fn target(share: &str) -> String {
    format!("--target {share}=/m/{share}/fresh")
}

/// Makes changes through NFS 4.2 and looks for them through all other shares.
fn through_nfs4(lab: &Lab, changes: u32, findings: &mut Findings) {
    let targets = SHARES.map(target).join(" ");
    let measure = format!("measure --json --through nfs4 --changes {changes} --limit 30 {targets}");
    let output = lab.ask(&format!("{} 2>/dev/null", longhaul("through", &measure)));
    for cell in cells(&output) {
        check(&cell, Expected::of(&cell), findings);
        row(&cell, None, findings);
    }
}

/// Expectation of the changes of one kind on a share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Seen,
    NeverSeen,
    /// Seen up to a minute later, when NFS asks again for a name that did not exist.
    Late,
}

impl Expected {
    /// Returns what Linux 6.1 and Samba 4.22 do without any setting.
    fn of(cell: &Value) -> Self {
        let is_listed = LISTED.iter().any(|kind| cell["kind"] == *kind);
        let is_nfs = cell["protocol"]["family"] == "nfs";
        match cell["kind"].as_str() {
            Some("looked-up-name") if is_nfs => Self::Late,
            _ if cell["target"] == "smb3" && is_listed => Self::NeverSeen,
            _ => Self::Seen,
        }
    }
}

fn check(cell: &Value, expected: Expected, findings: &mut Findings) {
    let not_seen = match expected {
        Expected::Seen => 0.into(),
        Expected::NeverSeen => cell["n"].clone(),
        Expected::Late => cell["not_seen"].clone(),
    };
    findings.check(cell["not_seen"] == not_seen && cell["n"] != 0 && cell["void"] == 0, || {
        format!("{not_seen} must not be seen: {cell}")
    });
}

fn cells(output: &str) -> Vec<Value> {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

fn row(cell: &Value, oracle: Option<Range<f64>>, findings: &mut Findings) {
    let word = |key: &str| cell[key].as_str().unwrap_or("NAS").to_owned();
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.2}"));
    findings.row(&[
        &word("changed_through"),
        &word("target"),
        &word("kind"),
        &cell["n"].to_string(),
        &cell["not_seen"].to_string(),
        &seconds(cell["median_seconds"].as_f64()),
        &seconds(cell["p90_seconds"].as_f64()),
        &oracle.map_or("-".to_owned(), |oracle| format!("{:.2} to {:.2}", oracle.start, oracle.end)),
    ]);
}

/// Numbers of sessions on the NAS, and of changes of each kind in each.
#[derive(Clone, Copy)]
struct Sessions {
    count: u32,
    changes: u32,
}

/// Makes changes on the NAS with the printed line, and compares longhaul with the oracle on each share.
fn on_the_nas(lab: &Lab, sessions: Sessions, findings: &mut Findings) {
    // By share and kind: delays by the oracle; `None` if it did not see the change.
    let mut oracle: BTreeMap<(String, String), Vec<Option<Range<f64>>>> = BTreeMap::new();
    for number in 0..sessions.count {
        note(&format!("session {number}"));
        std::thread::scope(|scope| {
            let session =
                |share: &'static str| scope.spawn(move || Session::run(lab, share, sessions.changes));
            for session in SHARES.map(session).map(|thread| thread.join().expect("the session ends")) {
                for (kind, time) in session {
                    oracle.entry(kind).or_default().push(time);
                }
            }
        });
    }
    for share in SHARES {
        for cell in cells(&lab.ask(&longhaul(share, "--json"))) {
            let kind = cell["kind"].as_str().unwrap_or_default().to_owned();
            let times = oracle.remove(&(share.to_owned(), kind)).unwrap_or_default();
            let median = median(&times);
            check(&cell, Expected::of(&cell), findings);
            let agrees = match (&median, cell["median_seconds"].as_f64()) {
                (Some(median), Some(found)) => {
                    (median.start - TOLERANCE..=median.end + TOLERANCE).contains(&found)
                }
                (None, None) => true,
                _ => cell["kind"] == WITHOUT_ORACLE,
            };
            findings.check(agrees, || format!("the oracle has {median:?} of {}: {cell}", times.len()));
            row(&cell, median, findings);
        }
    }
}

/// Delay of a change in seconds, between two limits; `None` if it was never seen.
type Delay = Option<Range<f64>>;

/// Returns the medians of both ends; `None` if more than half of the delays do not exist.
fn median(delays: &[Delay]) -> Delay {
    let of = |end: fn(&Range<f64>) -> f64| {
        let mut ends: Vec<f64> =
            delays.iter().map(|delay| delay.as_ref().map_or(f64::INFINITY, end)).collect();
        ends.sort_by(f64::total_cmp);
        ends.get(ends.len().saturating_sub(1) / 2).copied().filter(|end| end.is_finite())
    };
    Some(of(|delay| delay.start)?..of(|delay| delay.end)?)
}

/// One session of changes on the NAS, watched by longhaul and the oracle.
struct Session<'a> {
    lab: &'a Lab,
    share: &'static str,
    changes: u32,
}

impl<'a> Session<'a> {
    /// Returns the delay by the oracle for each change, as an interval.
    fn run(lab: &'a Lab, share: &'static str, changes: u32) -> Vec<((String, String), Delay)> {
        let session = Self { lab, share, changes };
        let helper = format!(
            "helper --json --folder /srv/share/fresh --changes {changes} --limit {LIMIT} {}",
            target(share)
        );
        let errors = format!("{LOCAL}/{share}.line");
        lab.ask(&format!("rm -f {errors}"));
        let mut watching = lab.start(&format!("{} 2>{errors}", longhaul(share, &helper)));
        let line = session.wait_for_line(&errors);
        let count = changes as usize * KINDS.len();
        let folder = line.split('\'').nth(1).expect("the line begins with a folder").to_owned();
        let seen = folder.replacen("/srv/share/", &format!("/m/{share}/"), 1);
        let mut oracle = lab.start(&format!("python3 {LOCAL}/oracle.py {seen} {count} {}", 2 + 30 + LIMIT));
        let stamps = session.make_changes(&line);
        let seen: BTreeMap<usize, f64> =
            serde_json::from_str(&output(&mut oracle)).expect("the oracle prints JSON");
        let printed = output(&mut watching);
        assert!(watching.wait().is_ok_and(|status| status.success()), "{share}: {printed}{}", lab.logs());
        let time = |place: usize| {
            let kind = KINDS[place % KINDS.len()].to_owned();
            let delay = |seen: &f64| seen - stamps[&place].end..seen - stamps[&place].start;
            ((share.to_owned(), kind), seen.get(&place).map(delay))
        };
        (0..count).map(time).collect()
    }

    fn wait_for_line(&self, errors: &str) -> String {
        let patience = Instant::now() + Duration::from_secs(120);
        loop {
            let printed = text(&self.lab.run(&format!("cat {errors}")));
            if let Some(line) = printed.lines().find(|line| line.starts_with("cd '")) {
                return line.to_owned();
            }
            assert!(Instant::now() < patience, "{}: no line: {printed}", self.share);
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Runs the line on the NAS. Returns the times of its clock before and after each change: on a busy machine they lie
    /// tenths of a second apart, because a program reads the clock.
    fn make_changes(&self, line: &str) -> BTreeMap<usize, Range<f64>> {
        let stamped = line.split("; ").map(|command| match place(command) {
            Some(place) => format!("echo {place} $({CLOCK}); {command} && echo {place} $({CLOCK})"),
            None => command.to_owned(),
        });
        let printed = self.lab.nas(&stamped.collect::<Vec<_>>().join("; "));
        let printed = text(&printed);
        let mut stamps: BTreeMap<usize, Range<f64>> = BTreeMap::new();
        for line in printed.lines() {
            let Some((place, time)) = line.split_once(' ') else { continue };
            let (Ok(place), Ok(time)) = (place.parse(), time.parse()) else { continue };
            stamps.entry(place).or_insert(time..time).end = time;
        }
        let made = stamps.values().filter(|time| time.start < time.end).count();
        assert_eq!(made, self.changes as usize * KINDS.len(), "{}: {printed}", self.share);
        stamps
    }
}

/// Returns the number of the change that a command of the line makes.
fn place(command: &str) -> Option<usize> {
    let path = command.split([' ', '>']).find(|word| word.ends_with("/new") || word.ends_with("/old"))?;
    path.split_once('/')?.0.parse().ok()
}

fn output(process: &mut Child) -> String {
    let mut text = String::new();
    process.stdout.take().expect("a pipe").read_to_string(&mut text).expect("UTF-8");
    text
}

/// Checks that each of two settings alone ends the staleness of SMB 3.1.1.
fn controls(lab: &Lab, findings: &mut Findings) {
    let remount = |options: &str| {
        lab.ask(&format!(
            "umount /m/smb3 && mount -t cifs //10.77.0.2/share /m/smb3 \
             -o vers=3.1.1,username=lab,password=labpw,nosharesock,iocharset=utf8{options}"
        ));
    };
    let measure = |name: &str, findings: &mut Findings| {
        let (smb3, nfs4) = (target("smb3"), target("nfs4"));
        let measure = format!("measure --json --through nfs4 --changes 2 --limit 4 {smb3} {nfs4}");
        let output = lab.ask(&format!("{} 2>/dev/null", longhaul(name, &measure)));
        for cell in cells(&output).into_iter().filter(|cell| LISTED.iter().any(|kind| cell["kind"] == *kind))
        {
            check(&cell, Expected::Seen, findings);
            row(&Value::Object(with_name(&cell, name)), None, findings);
        }
    };
    remount(",nohandlecache");
    measure("nohandlecache", findings);
    let setting = "sed -i '/^\\[global\\]/a smb3 directory leases = no' /etc/samba/smb.conf && smbcontrol all reload-config";
    let set = lab.nas(setting);
    findings.check(set.status.success(), || format!("the setting of the server: {}", text(&set)));
    remount("");
    measure("no-directory-leases", findings);
}

fn with_name(cell: &Value, name: &str) -> serde_json::Map<String, Value> {
    let mut cell = cell.as_object().cloned().unwrap_or_default();
    cell.insert("target".to_owned(), format!("smb3 {name}").into());
    cell
}
