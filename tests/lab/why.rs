//! Test of attribution on real servers: faults with a known place are injected, alone and in pairs, and `longhaul why` must
//! name the layer with the largest part, with shares close to what was injected. Without faults nothing may stand out.
//!
//! What a fault adds is measured: the time with it less the time without. It is not taken from the settings of the fault,
//! because a delay of 15 ms below a file system with a journal is not one of 15 ms for a program.
//!
//! `LONGHAUL_WHY_TRIALS` is the number of trials (default 6, about three minutes on idle cores); a trial is a fault drawn
//! from its number, and each metric that it slows down counts.

use std::collections::BTreeMap;

use longhaul_analysis::attribution::{Attribution, Layer, ServerUse, attribute};
use longhaul_model::draw::draw;
use longhaul_store::Reader;

use crate::machines::{Findings, Lab, note, text};

const DATABASE: &str = "why/l.sqlite";
const CONFIG: &str = "/m/local/why/c.toml";
/// Small trees, so that a run takes seconds.
const SMALL_TREES: &str = "[folder-index]\nfiles = 900\n";
/// Share of a metric's time that a fault must add for the metric to count as a trial.
const MIN_INJECTED: f64 = 0.4;
/// Allowed difference between an attributed and an injected share.
const TOLERANCE: f64 = 0.1;
/// Least share of trials whose largest part is named right.
const MIN_RIGHT: f64 = 0.95;

/// Mounts of one folder of the NAS that lies on a disk with a delay, with the path of the folder.
const SHARES: [Share; 3] = [
    Share { name: "smb3", path: "/m/smb3/slow" },
    Share { name: "nfs3", path: "/m/slow3" },
    Share { name: "nfs4", path: "/m/slow4" },
];

/// Mount of the folder, with its name in reports.
#[derive(Clone, Copy)]
struct Share {
    name: &'static str,
    path: &'static str,
}

/// Fault with a known place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Delay of the network, in milliseconds one way.
    Delay(u64),
    /// Loss of packets, in percent.
    Loss(u64),
    /// Rate limit of the network, in megabits per second.
    Rate(u64),
    /// Delay of each access to the disk below the NAS's file system, in milliseconds.
    Disk(u64),
    /// Milliseconds of each 30 in which the NAS's processor is taken.
    BusyNas(u64),
    /// Milliseconds of each 30 in which this machine's processor is taken.
    BusyClient(u64),
}

impl Fault {
    /// Returns the fault of a trial. The first draws of all trials go through all kinds.
    fn drawn(trial: u64, seed: u64) -> Self {
        let within = |low: u64, high: u64| low + draw(seed, trial, 1) % (high - low + 1);
        match draw(seed, trial, 0).wrapping_add(trial) % 6 {
            0 => Self::Delay(within(4, 15)),
            1 => Self::Loss(within(3, 6)),
            2 => Self::Rate(within(2, 6)),
            3 => Self::Disk(within(20, 50)),
            4 => Self::BusyNas(within(22, 27)),
            _ => Self::BusyClient(within(22, 27)),
        }
    }

    const fn layer(self) -> Layer {
        match self {
            Self::Delay(_) | Self::Loss(_) | Self::Rate(_) => Layer::Wire,
            Self::Disk(_) => Layer::ServerDisk,
            Self::BusyNas(_) => Layer::Server,
            Self::BusyClient(_) => Layer::Client,
        }
    }

    fn begin(self, lab: &Lab) {
        match self {
            Self::Delay(time) => lab.net(&format!("delay {time}ms")),
            Self::Loss(percent) => lab.net(&format!("delay 1ms loss {percent}%")),
            Self::Rate(megabits) => lab.net(&format!("rate {megabits}mbit")),
            Self::Disk(time) => delay_disk(lab, time),
            Self::BusyNas(time) => nas(lab, &hog(time)),
            Self::BusyClient(time) => drop(lab.ask(&hog(time))),
        }
    }

    fn end(self, lab: &Lab) {
        match self {
            Self::Delay(_) | Self::Loss(_) | Self::Rate(_) => lab.net("clear"),
            Self::Disk(_) => delay_disk(lab, 0),
            Self::BusyNas(_) => nas(lab, KILL_HOG),
            Self::BusyClient(_) => drop(lab.ask(KILL_HOG)),
        }
    }
}

fn nas(lab: &Lab, command: &str) {
    let output = lab.nas(command);
    assert!(output.status.success(), "on the NAS: {command}: {}", text(&output));
}

/// Ends the command of [`hog`]. The brackets keep it from ending its own shell.
const KILL_HOG: &str = "pkill -f 'longhaul-[h]og'";

/// Returns the command that takes the only processor of a machine for a part of each 30 ms, before all ordinary programs.
fn hog(milliseconds: u64) -> String {
    let idle = 30 - milliseconds;
    format!(
        "setsid chrt -f 10 python3 -c 'import time # longhaul-hog\nwhile True:\n end = time.monotonic() + {milliseconds} / 1000\n \
         while time.monotonic() < end: pass\n time.sleep({idle} / 1000)' >/dev/null 2>&1 </dev/null &"
    )
}

fn delay_disk(lab: &Lab, milliseconds: u64) {
    nas(
        lab,
        &format!(
            "dmsetup --noudevsync suspend slow && echo \"0 $(blockdev --getsz /dev/loop0) delay /dev/loop0 0 {milliseconds}\" | \
             dmsetup load slow && dmsetup --noudevsync resume slow"
        ),
    );
}

/// Makes a file system on the NAS whose disk can be slowed down, exports it and mounts it three times.
fn prepare(lab: &Lab) {
    nas(
        lab,
        "modprobe -a loop dm-mod dm-delay && truncate -s 1500M /srv/share/.disk && losetup /dev/loop0 /srv/share/.disk && \
         echo \"0 $(blockdev --getsz /dev/loop0) delay /dev/loop0 0 0\" | dmsetup --noudevsync create slow && \
         dmsetup mknodes && mkfs.ext4 -q /dev/mapper/slow && mkdir -p /srv/share/slow && \
         mount -o noatime /dev/mapper/slow /srv/share/slow && chmod 777 /srv/share/slow && \
         exportfs -o rw,sync,no_subtree_check,all_squash,anonuid=1000,anongid=1000,fsid=7,insecure '*:/srv/share/slow'",
    );
    // The shortest round-trip time is that of the last two seconds instead of five minutes, because faults follow each
    // other.
    lab.ask(&format!(
        "sysctl -q net.ipv4.tcp_min_rtt_wlen=2; mkdir -p /m/slow3 /m/slow4 /m/local/why && \
         mount -t nfs 10.77.0.2:/srv/share/slow /m/slow3 -o vers=3,nolock,tcp && \
         mount -t nfs 10.77.0.2:/slow /m/slow4 -o vers=4.2 && printf '{SMALL_TREES}' >{CONFIG} && \
         for s in {}; do mkdir -p $s/t; done",
        SHARES.map(|share| share.path).join(" ")
    ));
}

/// Runs the tasks once on a share. Returns the attribution of each metric.
fn measure(lab: &Lab, share: Share, source: NasSource) -> Vec<Attribution> {
    let Share { name, path } = share;
    lab.ask("sync; echo 3 >/proc/sys/vm/drop_caches");
    nas(lab, "sync; echo 3 >/proc/sys/vm/drop_caches");
    let program = env!("CARGO_BIN_EXE_longhaul");
    let scratch = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let database = "/m/local/".to_owned() + DATABASE;
    let before = disk_seconds(lab);
    lab.ask(&format!(
        "{program} --database {database} --config {CONFIG} run --scale quick --workload folder-index \
         --workload incremental-backup --target {name}={path}/t >/m/local/why/output 2>&1 || {{ cat /m/local/why/output; exit 1; }}"
    ));
    let busy = disk_seconds(lab) - before;
    // The database is read here, because the readings of the NAS are not in it.
    let copy = scratch.join(format!("why-{}.sqlite", std::process::id()));
    // The last program that closes the database moves its log into it. The host sees the copy only after a sync.
    lab.ask(&format!("cp {database} {} && sync", copy.display()));
    let phases =
        Reader::open(&copy).and_then(|reader| reader.phase_times(1)).expect("the database is complete");
    let own: Vec<_> = phases.into_iter().filter(|phase| phase.target.as_str() == name).collect();
    let server: f64 =
        attribute(&own, &BTreeMap::new()).iter().filter_map(|found| found.seconds_of(Layer::Server)).sum();
    let use_of = |run: i64| {
        // The disk was also busy for preparations; both runs share what it did according to their server times.
        let of_run: Vec<_> = own.iter().filter(|phase| phase.run == run).cloned().collect();
        let part: f64 = attribute(&of_run, &BTreeMap::new())
            .iter()
            .filter_map(|found| found.seconds_of(Layer::Server))
            .sum();
        ServerUse { disk_seconds: Some(busy * part / server.max(f64::MIN_POSITIVE)), processor_share: None }
    };
    let readings = match source {
        NasSource::None => BTreeMap::new(),
        NasSource::Disk => own.iter().map(|phase| (phase.run, use_of(phase.run))).collect(),
    };
    attribute(&own, &readings)
}

/// Source of readings of the NAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NasSource {
    /// The NAS tells nothing.
    None,
    /// `/proc/diskstats` of the NAS.
    Disk,
}

/// Returns the time in which the disk with a delay was busy: the tenth number after its name
/// (Documentation/admin-guide/iostats.rst).
fn disk_seconds(lab: &Lab) -> f64 {
    let stats = text(&lab.nas("cat /proc/diskstats"));
    let line =
        stats.lines().find(|line| line.split_whitespace().nth(2).is_some_and(|name| name.starts_with("dm-")));
    let busy = line.and_then(|line| line.split_whitespace().nth(12)?.parse::<f64>().ok());
    busy.unwrap_or_else(|| panic!("{stats}")) / 1000.0
}

/// Table and counts of all trials.
#[derive(Default)]
struct Score {
    findings: Findings,
    trials: usize,
    named_right: usize,
    shares: usize,
    shares_close: usize,
    quiet: usize,
    blamed: usize,
}

#[test]
#[ignore = "boots two virtual machines; run with --ignored"]
fn the_layer_of_an_injected_fault_is_named() {
    let trials = std::env::var("LONGHAUL_WHY_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(6u64);
    let seed = std::env::var("LONGHAUL_WHY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1u64);
    let lab = Lab::up("local smb3");
    prepare(&lab);
    for share in SHARES {
        measure(&lab, share, NasSource::None);
    }
    let mut score = Score::default();
    for trial in 0..trials {
        let share = SHARES[(trial % 3) as usize];
        let source = if draw(seed, trial, 2).is_multiple_of(2) { NasSource::Disk } else { NasSource::None };
        let first = Fault::drawn(trial, seed);
        let second = Some(Fault::drawn(trial, seed ^ 0xffff)).filter(|second| is_pair(first, *second));
        run_trial(&lab, Trial { number: trial, share, source, first, second }, &mut score);
    }
    let Score { mut findings, trials, named_right, shares, shares_close, quiet, blamed } = score;
    findings.print(&COLUMNS);
    note(&format!(
        "{named_right} of {trials} largest parts named right, {shares_close} of {shares} shares within 10 points, \
         {blamed} blamed in {quiet} quiet trials"
    ));
    findings.check(named_right as f64 >= MIN_RIGHT * trials as f64, || {
        format!("{named_right} of {trials} largest parts named right")
    });
    findings.assert(&lab);
}

/// Returns whether two faults can be injected together: not twice the same means.
fn is_pair(first: Fault, second: Fault) -> bool {
    let is_wire = |fault: Fault| fault.layer() == Layer::Wire;
    first.layer() != second.layer() && !(is_wire(first) && is_wire(second))
}

const COLUMNS: [&str; 8] =
    ["trial", "share", "NAS asked", "fault", "metric", "seconds", "injected, attributed (%)", "named"];

/// One trial: a fault alone, then with a second one.
#[derive(Clone, Copy)]
struct Trial {
    number: u64,
    share: Share,
    source: NasSource,
    first: Fault,
    second: Option<Fault>,
}

fn run_trial(lab: &Lab, trial: Trial, score: &mut Score) {
    let quiet = measure(lab, trial.share, trial.source);
    for found in &quiet {
        score.quiet += 1;
        score.blamed += usize::from(found.largest.is_some());
        let row = row(trial, "none", found, &shares(&seconds(found)));
        score.add(row);
    }
    trial.first.begin(lab);
    let alone = measure(lab, trial.share, trial.source);
    judge(trial, &[(trial.first, &quiet)], &alone, score);
    if let Some(second) = trial.second {
        second.begin(lab);
        let both = measure(lab, trial.share, trial.source);
        judge(trial, &[(trial.first, &quiet), (second, &alone)], &both, score);
        second.end(lab);
    }
    trial.first.end(lab);
}

type Parts = [f64; Layer::ALL.len()];

fn seconds(found: &Attribution) -> Parts {
    Layer::ALL.map(|layer| found.seconds_of(layer).unwrap_or(0.0))
}

fn shares(parts: &Parts) -> Parts {
    let sum: f64 = parts.iter().sum();
    parts.map(|part| part / sum.max(f64::MIN_POSITIVE))
}

/// Compares the attribution with what was injected: the parts of the quiet run, and what each fault added.
fn judge(trial: Trial, faults: &[(Fault, &Vec<Attribution>)], found: &[Attribution], score: &mut Score) {
    for now in found {
        let before = |runs: &[Attribution]| runs.iter().find(|one| one.metric == now.metric).cloned();
        let steps: Vec<(Fault, Attribution)> =
            faults.iter().filter_map(|(fault, runs)| Some((*fault, before(runs)?))).collect();
        let Some((_, quiet)) = steps.first() else { continue };
        let mut expected = seconds(quiet);
        for (index, (fault, then)) in steps.iter().enumerate() {
            let after = steps.get(index + 1).map_or(now.seconds, |(_, next)| next.seconds);
            expected[visible(*fault, trial.source) as usize] += (after - then.seconds).max(0.0);
        }
        let injected = now.seconds - quiet.seconds;
        if injected < MIN_INJECTED * now.seconds {
            continue;
        }
        let (expected, attributed) = (shares(&expected), shares(&seconds(now)));
        let name = steps.iter().map(|(fault, _)| format!("{fault:?}")).collect::<Vec<_>>().join(" + ");
        score.trials += 1;
        let is_right = now.largest.is_some_and(|layer| is_among_largest(&expected, layer));
        score.named_right += usize::from(is_right);
        for layer in Layer::ALL {
            let differs = (expected[layer as usize] - attributed[layer as usize]).abs();
            score.shares += 1;
            score.shares_close += usize::from(differs <= TOLERANCE);
        }
        let row = row(trial, &name, now, &expected);
        score.add(row);
    }
}

/// Returns the layer in which a fault shows: without readings of the NAS its disk is a part of the server.
fn visible(fault: Fault, source: NasSource) -> Layer {
    match (fault.layer(), source) {
        (Layer::ServerDisk, NasSource::None) => Layer::Server,
        (layer, _) => layer,
    }
}

/// Returns whether a layer has the largest expected share, or one that is as large within the tolerance.
fn is_among_largest(expected: &Parts, layer: Layer) -> bool {
    let largest = expected.iter().copied().fold(0.0, f64::max);
    expected[layer as usize] >= largest - TOLERANCE
}

/// Returns the cells of one line of the table.
fn row(trial: Trial, fault: &str, found: &Attribution, expected: &Parts) -> [String; 8] {
    let percent = |parts: &Parts| parts.map(|part| format!("{:.0}", part * 100.0)).join("/");
    [
        trial.number.to_string(),
        trial.share.name.to_owned(),
        if trial.source == NasSource::Disk { "disk" } else { "no" }.to_owned(),
        fault.to_owned(),
        found.metric.to_owned(),
        format!("{:.2}", found.seconds),
        format!("{}, {}", percent(expected), percent(&shares(&seconds(found)))),
        found.largest.map_or("-", Layer::name).to_owned(),
    ]
}

impl Score {
    /// Adds a line to the table, and prints it at once: a long test that fails still shows what it found.
    fn add(&mut self, row: [String; 8]) {
        self.findings.row(&row.each_ref().map(String::as_str));
        note(self.findings.rows.last().map_or("", String::as_str));
    }
}
