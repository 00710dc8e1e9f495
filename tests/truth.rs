//! Known delays on the wire show in the figures: each rises by the round trips that a packet capture counts, no more, no less.
//!
//! In simulated time (tests/lab/simulated.sh) a delay is exact and processors cost next to nothing, so that there is no
//! "roughly". Two witnesses that know nothing of longhaul say what is true: strace, when which call began and how long it
//! took; tcpdump, what crossed the wire meanwhile. A round trip is one turn from what the client sends to what it receives.

#![allow(clippy::unwrap_used)]

mod lab;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::{Findings, note, skip, text};
use serde_json::Value;

const TEST: &str = "every_figure_rises_by_the_round_trips_of_its_calls";
const SHARES: [&str; 3] = ["smb3", "nfs3", "nfs4"];
/// Delays one way: as `tc` has them, and the microseconds of a whole round trip.
const DELAYS: [(&str, f64); 3] = [("500us", 1e3), ("2ms", 4e3), ("10ms", 20e3)];
/// What `tests/lab/truth.sh` ends with where the programs do not start.
const CANNOT_START: i32 = 77;
/// How far a rise may be from what the round trips explain, in microseconds. The simulated clock moves on a little whenever
/// it is read, on the client and on the server: 3 to 60 µs in a call, nearly the same at each delay.
const SLACK_US: f64 = 20.0;
/// A median is a bucket's middle, within this share (`Histogram::quantile_ns`).
const BUCKET: f64 = 0.0054;
/// How far shares whose calls take the same round trips may be from each other, in microseconds: what servers do in
/// simulated time, SMB's renames most of all.
const SERVERS_US: f64 = 100.0;
/// A reply is stamped up to this much after the call that waited for it has ended, in microseconds.
const STAMP_US: i64 = 50;

/// A call, as strace saw it.
struct Call {
    began_us: i64,
    ended_us: i64,
    /// Its name and arguments.
    text: String,
}

/// A packet with content, as tcpdump saw it.
struct Packet {
    at_us: i64,
    is_request: bool,
}

/// What a figure says, and what the witnesses say of its calls.
struct Figure {
    /// Of each call.
    round_trips: Vec<usize>,
    median_us: f64,
    /// Exact, as it is kept beside the histogram; the probe's is not shown.
    mean_us: Option<f64>,
}

/// By the phase or "probe", and the operation.
type Figures = BTreeMap<String, Figure>;

#[test]
fn every_figure_rises_by_the_round_trips_of_its_calls() {
    if let Err(why) = lab::asked_for("truth").and_then(|()| can_simulate()) {
        return skip(TEST, &why);
    }
    let scratch =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder can be written");
    let watched = std::thread::scope(|scope| {
        SHARES.map(|share| scope.spawn(|| watch(share, scratch.path()))).map(|thread| thread.join().unwrap())
    });
    if let Some(why) = watched.iter().find_map(|share| share.as_ref().err()) {
        return skip(TEST, why);
    }
    let shares: Vec<Vec<Figures>> = SHARES.iter().map(|share| figures_of(share, scratch.path())).collect();
    let mut findings = Findings::default();
    for (share, delays) in SHARES.iter().zip(&shares) {
        rises(share, delays, &mut findings);
    }
    let columns = ["share", "figure", "round trips a call", "0.5 ms", "2 ms", "10 ms", "rise / expected"];
    findings.print(&columns);
    ranks(&shares, &mut findings);
    findings.print(&["figure at 10 ms", "fewest round trips first: round trips a call, mean"]);
    assert!(findings.wrong.is_empty(), "{}", findings.wrong.join("\n"));
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab").join(name)
}

fn can_simulate() -> Result<(), String> {
    let output = Command::new("bash").arg(script("simulated.sh")).arg("check").output();
    let output = output.map_err(|error| format!("bash: {error}"))?;
    output.status.success().then_some(()).ok_or_else(|| format!("simulated.sh check: {}", text(&output)))
}

/// Lets one machine live through all delays with one share; `Err` says why it cannot.
fn watch(share: &str, export: &Path) -> Result<(), String> {
    let inside = format!("/host{}", script("truth.sh").display());
    let delays = DELAYS.map(|(delay, _)| delay).join("+");
    let output = Command::new("bash")
        .arg(script("simulated.sh"))
        .args(["run", "env", &format!("EXPORT={}", export.display())])
        .arg(format!("LONGHAUL={}", env!("CARGO_BIN_EXE_longhaul")))
        .arg(format!("LONGHAULD={}", env!("CARGO_BIN_EXE_longhauld")))
        .args(["bash", &inside, share, &delays])
        .env(
            "LAB_SHARE",
            Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder"),
        )
        .env("SIMULATED_MOUNTS", share)
        .env("SIMULATED_START", "2026-03-02T08:00:00Z")
        .env("SIMULATED_TIMEOUT", "1500")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("bash: {error}"))?;
    note(&format!("{share}: {}", text(&output)));
    if output.status.code() == Some(CANNOT_START) {
        return Err(format!("the programs do not start in the machine: {}", text(&output)));
    }
    assert!(output.status.success(), "{share}: {}", text(&output));
    Ok(())
}

/// The figures of one share at each delay.
fn figures_of(share: &str, export: &Path) -> Vec<Figures> {
    let folders = DELAYS.map(|(delay, _)| export.join(format!("{share}-{delay}")));
    folders.iter().map(|folder| figures(folder)).collect()
}

fn figures(folder: &Path) -> Figures {
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    let (calls, packets) = (calls_in(folder), packets_in(&read("capture")));
    let mut figures = probed(&json("samples"), &calls, &packets);
    for phase in json("show")["phases"].as_array().unwrap() {
        for operation in phase["ops"].as_array().unwrap() {
            let name = format!("{} {}", phase["name"].as_str().unwrap(), operation["op"].as_str().unwrap());
            figures.insert(name, worked(phase, operation, &calls, &packets));
        }
    }
    figures
}

/// What the profile measured in one phase of one operation.
fn worked(phase: &Value, operation: &Value, calls: &[Call], packets: &[Packet]) -> Figure {
    let began_us = phase["began_us"].as_i64().unwrap();
    let ended_us = began_us + (phase["seconds"].as_f64().unwrap() * 1e6) as i64;
    let system_call = system_call(operation["op"].as_str().unwrap());
    let is_its = |call: &&Call| {
        let is_within = began_us - 5 <= call.began_us && call.ended_us <= ended_us + 5;
        is_within && call.text.starts_with(system_call) && call.text.contains("/classics/")
    };
    let round_trips: Vec<usize> =
        calls.iter().filter(is_its).map(|call| turns(call, call, packets)).collect();
    let count = operation["count"].as_u64().unwrap();
    assert_eq!(count, round_trips.len() as u64, "{phase:#}: strace saw as many calls as were counted");
    let mean_us = Some(operation["sum_us"].as_f64().unwrap() / count as f64);
    Figure { round_trips, median_us: operation["p50_us"].as_f64().unwrap(), mean_us }
}

/// How the system calls an operation of the profile.
fn system_call(operation: &str) -> &'static str {
    match operation {
        "getattr" | "lookup" => "statx(",
        "readdir" => "getdents64(",
        "open" | "create" => "openat(",
        "close" => "close(",
        "read" => "pread64(",
        "write" => "pwrite64(",
        "sync" => "fsync(",
        "rename" => "renameat(",
        "unlink" => "unlinkat(",
        other => panic!("the profile has no {other}"),
    }
}

/// What the probe measured. It looks at its pool once or twice more, when it begins; that moves no median.
fn probed(samples: &Value, calls: &[Call], packets: &[Packet]) -> Figures {
    let of = |kind: &str| match kind {
        "getattr" => turns_of(["statx(", "/probe>, \"pool\", AT_STATX_SYNC"], calls, packets),
        "read" => turns_of(["pread64(", "/probe/pool>"], calls, packets),
        _ => {
            let of_small = |name: &'static str| {
                calls
                    .iter()
                    .filter(move |call| call.text.starts_with(name) && call.text.contains("/probe/small>"))
            };
            of_small("pwrite64(")
                .zip(of_small("fsync("))
                .map(|(write, sync)| turns(write, sync, packets))
                .collect()
        }
    };
    let felt = samples["felt"].as_array().unwrap().iter().map(|felt| {
        let (kind, median) = (felt["kind"].as_str().unwrap(), felt["p50"].as_f64().unwrap());
        (format!("probe {kind}"), Figure { round_trips: of(kind), median_us: median * 1e6, mean_us: None })
    });
    felt.collect()
}

fn turns_of([name, part]: [&str; 2], calls: &[Call], packets: &[Packet]) -> Vec<usize> {
    let its = calls.iter().filter(|call| call.text.starts_with(name) && call.text.contains(part));
    its.map(|call| turns(call, call, packets)).collect()
}

/// How often it turned from sending to receiving between the begin of one call and the end of another.
fn turns(first: &Call, last: &Call, packets: &[Packet]) -> usize {
    let until_us = last.ended_us + STAMP_US;
    let mut meanwhile = packets.iter().filter(|packet| (first.began_us..=until_us).contains(&packet.at_us));
    let mut turns = 0;
    while meanwhile.any(|packet| packet.is_request) {
        turns += usize::from(meanwhile.any(|packet| !packet.is_request));
    }
    turns
}

/// Every line `1772438880.545775 close(5</m/smb3>) = 0 <0.000003>`, in the order of time.
fn calls_in(folder: &Path) -> Vec<Call> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let traces = files.filter(|path| path.file_stem().is_some_and(|stem| stem == "calls"));
    let texts: Vec<String> = traces.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut calls: Vec<Call> = texts.iter().flat_map(|text| text.lines()).filter_map(call_in).collect();
    calls.sort_by_key(|call| call.began_us);
    calls
}

fn call_in(line: &str) -> Option<Call> {
    let (began, rest) = line.split_once(' ')?;
    let (text, took) = rest.strip_suffix('>')?.rsplit_once(" <")?;
    let began_us = microseconds(began)?;
    Some(Call { began_us, ended_us: began_us + microseconds(took)?, text: text.to_owned() })
}

/// Every line `1772440261.836779 IP 10.77.0.1.835 > 10.77.0.2.2049: tcp 96`, without those that only acknowledge.
fn packets_in(capture: &str) -> Vec<Packet> {
    let packet = |line: &str| {
        let (at, rest) = line.split_once(" IP ")?;
        let (addresses, bytes) = rest.split_once(": tcp ")?;
        let has_content = bytes != "0";
        has_content
            .then_some(Packet { at_us: microseconds(at)?, is_request: addresses.starts_with("10.77.0.1.") })
    };
    let mut packets: Vec<Packet> = capture.lines().filter_map(packet).collect();
    packets.sort_by_key(|packet| packet.at_us);
    packets
}

/// Seconds with six places, in microseconds.
fn microseconds(seconds: &str) -> Option<i64> {
    let (whole, part) = seconds.split_once('.').filter(|(_, part)| part.len() == 6)?;
    Some(whole.parse::<i64>().ok()? * 1_000_000 + part.parse::<i64>().ok()?)
}

impl Figure {
    fn mean_round_trips(&self) -> f64 {
        self.round_trips.iter().sum::<usize>() as f64 / self.round_trips.len() as f64
    }

    /// By nearest rank, as longhaul has it.
    fn median_round_trips(&self) -> f64 {
        let mut sorted = self.round_trips.clone();
        sorted.sort_unstable();
        sorted[sorted.len().div_ceil(2) - 1] as f64
    }
}

/// From each delay to the next, every figure of a share rises as its round trips say.
fn rises(share: &str, delays: &[Figures], findings: &mut Findings) {
    for name in delays[0].keys() {
        let at: Vec<&Figure> = delays.iter().filter_map(|figures| figures.get(name)).collect();
        findings.check(at.len() == DELAYS.len(), || format!("{share}: {name} is not there at every delay"));
        for (figures, delays) in at.windows(2).zip(DELAYS.windows(2)) {
            let what = || format!("{share}: {name} from {} to {}", delays[0].0, delays[1].0);
            rise([figures[0], figures[1]], [delays[0].1, delays[1].1], &what, findings);
        }
        row(share, name, &at, findings);
    }
}

fn rise(figures: [&Figure; 2], round_trip_us: [f64; 2], what: &dyn Fn() -> String, findings: &mut Findings) {
    let rise = |of: [f64; 2]| of[1] - of[0];
    let explained = |trips: fn(&Figure) -> f64| rise([0, 1].map(|at| trips(figures[at]) * round_trip_us[at]));
    let medians = figures.map(|figure| figure.median_us);
    let differs = rise(medians) - explained(Figure::median_round_trips);
    findings.check(differs.abs() <= SLACK_US + BUCKET * (medians[0] + medians[1]), || {
        format!("{}: the median rises by {differs:.0} µs more than its round trips explain", what())
    });
    if let [Some(first), Some(second)] = figures.map(|figure| figure.mean_us) {
        let differs = rise([first, second]) - explained(Figure::mean_round_trips);
        findings.check(differs.abs() <= SLACK_US, || {
            format!("{}: the mean rises by {differs:.0} µs more than its round trips explain", what())
        });
    }
}

/// One figure of one share at all delays.
fn row(share: &str, name: &str, at: &[&Figure], findings: &mut Findings) {
    let (first, last) = (at[0], at[at.len() - 1]);
    let expected = last.median_round_trips() * DELAYS[2].1 - first.median_round_trips() * DELAYS[0].1;
    let ratio = match expected > 0.0 {
        true => format!("{:.4}", (last.median_us - first.median_us) / expected),
        false => format!("{:+.1} µs / 0", last.median_us - first.median_us),
    };
    let trips: Vec<String> = at.iter().map(|figure| format!("{:.2}", figure.mean_round_trips())).collect();
    let mut cells = vec![share.to_owned(), name.to_owned(), trips.join(", ")];
    cells.extend(at.iter().map(|figure| format!("{:.3} ms", figure.median_us / 1e3)));
    cells.push(ratio);
    findings.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Under the longest delay, more round trips are slower and as many take as long, in every figure.
fn ranks(shares: &[Vec<Figures>], findings: &mut Findings) {
    let last = |share: usize| &shares[share][DELAYS.len() - 1];
    for name in last(0).keys() {
        let value = |figure: &Figure| figure.mean_us.map_or(figure.median_us, |mean| mean);
        let trips = |figure: &Figure| {
            figure.mean_us.map_or(figure.median_round_trips(), |_| figure.mean_round_trips())
        };
        let mut ranked: Vec<(f64, f64, &str)> = (0..shares.len())
            .filter_map(|share| {
                last(share).get(name).map(|figure| (trips(figure), value(figure), SHARES[share]))
            })
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in ranked.windows(2) {
            let ((fewer, faster, a), (more, slower, b)) = (pair[0], pair[1]);
            let holds = if fewer < more { faster < slower } else { (slower - faster).abs() <= SERVERS_US };
            findings.check(holds, || {
                format!("{name}: {a} takes {faster:.0} µs with {fewer} round trips, {b} {slower:.0} µs with {more}")
            });
        }
        let told =
            ranked.iter().map(|(trips, value, share)| format!("{share} {trips:.2}, {:.3} ms", value / 1e3));
        findings.row(&[name, &told.collect::<Vec<_>>().join("; ")]);
    }
}
