//! Checks every latency figure against known network delays: with a longer delay each figure must rise by exactly the
//! round trips that a packet capture counts.
//!
//! In simulated time (tests/lab/simulated.sh) a delay is exact and processor work takes almost no time. Two
//! independent tools provide the truth: strace records start and duration of each call, tcpdump the packets on the
//! wire. A round trip is one change from sent to received packets, as seen by the client.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::machines::simulated::{Simulation, script};
use crate::machines::{Findings, text};
use longhaul_model::Timestamp;
use serde_json::Value;

const SHARES: [&str; 3] = ["smb3", "nfs3", "nfs4"];
/// One-way delays in the syntax of `tc`, and the microseconds that a round trip takes with each.
const DELAYS: [(&str, f64); 3] = [("500us", 1e3), ("2ms", 4e3), ("10ms", 20e3)];
/// Exit code of `tests/lab/truth.sh` if the programs do not start in the machine.
const CANNOT_START: i32 = 77;
/// Allowed difference between the rise of a figure and that of its round trips, in microseconds. The simulated clock
/// advances a little whenever it is read, on the client and on the server: 3 to 60 µs in a call, nearly the same at
/// each delay.
const SLACK_US: f64 = 20.0;
/// Relative error of a median, which is the middle of a histogram bucket (`Histogram::quantile_ns`).
const BUCKET: f64 = 0.0054;
/// Allowed difference between shares whose calls need the same number of round trips, in microseconds: the time that
/// the servers work, mostly for renames on SMB.
const SERVERS_US: f64 = 100.0;
/// Time by which the timestamp of a reply may be later than the end of the call that waited for it.
const STAMP: Duration = Duration::from_micros(50);

/// System call recorded by strace.
struct Call {
    began: Timestamp,
    ended: Timestamp,
    /// Name and arguments of the call.
    text: String,
}

/// Packet with payload, recorded by tcpdump.
struct Packet {
    at: Timestamp,
    is_request: bool,
}

/// Latency figure with the round trips of its calls.
struct Figure {
    /// Number of round trips of each call.
    round_trips: Vec<usize>,
    median_us: f64,
    /// Exact mean in microseconds, from the sum stored with the histogram; `None` for the probe, whose mean is not
    /// printed.
    mean_us: Option<f64>,
}

/// Figures by the name of the phase (or "probe") and the operation.
type Figures = BTreeMap<String, Figure>;

#[test]
#[ignore = "boots a virtual machine for each share; run with --ignored"]
fn each_figure_rises_by_the_round_trips_of_its_calls() {
    assert_can_simulate();
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder is writable");
    std::thread::scope(|scope| {
        let threads = SHARES.map(|share| scope.spawn(|| measure(share, scratch.path())));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
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

fn assert_can_simulate() {
    let output = Command::new("bash").arg(script("simulated.sh")).arg("check").output().unwrap();
    assert!(output.status.success(), "simulated.sh check: {}", text(&output));
}

/// Runs the measurements of one share at all delays in a simulated machine.
fn measure(share: &str, export: &Path) {
    let delays = DELAYS.map(|(delay, _)| delay).join("+");
    let arguments = [share, &delays];
    let script = "truth.sh";
    let output =
        Simulation { script, arguments: &arguments, mounts: share, export, limit_seconds: 1500 }.run();
    assert_ne!(output.status.code(), Some(CANNOT_START), "{share}: the programs do not start in the machine");
    assert!(output.status.success(), "{share}: {}", text(&output));
}

/// Returns the figures of one share at each delay.
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
    let mut figures = probe_figures(&json("samples"), &calls, &packets);
    for phase in json("show")["phases"].as_array().unwrap() {
        for operation in phase["ops"].as_array().unwrap() {
            let name = format!("{} {}", phase["name"].as_str().unwrap(), operation["op"].as_str().unwrap());
            figures.insert(name, profile_figure(phase, operation, &calls, &packets));
        }
    }
    figures
}

/// Returns the figure of one operation in one phase of the profile.
fn profile_figure(phase: &Value, operation: &Value, calls: &[Call], packets: &[Packet]) -> Figure {
    let began = Timestamp::from_us(phase["began_us"].as_i64().unwrap());
    let ended = began + Duration::from_secs_f64(phase["seconds"].as_f64().unwrap());
    let slack = Duration::from_micros(5);
    let system_call = system_call(operation["op"].as_str().unwrap());
    let is_its = |call: &&Call| {
        let is_within = began - slack <= call.began && call.ended <= ended + slack;
        is_within && call.text.starts_with(system_call) && call.text.contains("/presets/")
    };
    let round_trips: Vec<usize> =
        calls.iter().filter(is_its).map(|call| turns(call, call, packets)).collect();
    let count = operation["count"].as_u64().unwrap();
    assert_eq!(
        count,
        round_trips.len() as u64,
        "{phase:#}: strace and longhaul count different numbers of calls"
    );
    let mean_us = Some(operation["sum_us"].as_f64().unwrap() / count as f64);
    Figure { round_trips, median_us: operation["p50_us"].as_f64().unwrap(), mean_us }
}

/// Returns the start of the strace line of an operation's system call.
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
        other => panic!("unknown operation {other}"),
    }
}

/// Returns the figures of the probe. When the probe starts it makes one or two more calls on its file, which do not
/// change a median.
fn probe_figures(samples: &Value, calls: &[Call], packets: &[Packet]) -> Figures {
    let of = |kind: &str| match kind {
        "getattr" => turns_of(["statx(", "/probe>, \"pool\", AT_STATX_SYNC"], calls, packets),
        "read" => turns_of(["pread64(", "/probe/read>"], calls, packets),
        _ => {
            let of_small = |name: &'static str| {
                calls
                    .iter()
                    .filter(move |call| call.text.starts_with(name) && call.text.contains("/probe/write>"))
            };
            of_small("pwrite64(")
                .zip(of_small("fsync("))
                .map(|(write, sync)| turns(write, sync, packets))
                .collect()
        }
    };
    let figures = samples["rows"].as_array().unwrap().iter().map(|row| {
        let (kind, median) = (row["kind"].as_str().unwrap(), row["p50"].as_f64().unwrap());
        (format!("probe {kind}"), Figure { round_trips: of(kind), median_us: median * 1e6, mean_us: None })
    });
    figures.collect()
}

fn turns_of([name, part]: [&str; 2], calls: &[Call], packets: &[Packet]) -> Vec<usize> {
    let its = calls.iter().filter(|call| call.text.starts_with(name) && call.text.contains(part));
    its.map(|call| turns(call, call, packets)).collect()
}

/// Returns the number of round trips between the start of one call and the end of another: changes from requests to
/// replies.
fn turns(first: &Call, last: &Call, packets: &[Packet]) -> usize {
    let until = last.ended + STAMP;
    let mut meanwhile = packets.iter().filter(|packet| (first.began..=until).contains(&packet.at));
    let mut turns = 0;
    while meanwhile.any(|packet| packet.is_request) {
        turns += usize::from(meanwhile.any(|packet| !packet.is_request));
    }
    turns
}

/// Parses strace lines such as `1772438880.545775 close(5</m/smb3>) = 0 <0.000003>`. Returns the calls sorted by
/// time.
fn calls_in(folder: &Path) -> Vec<Call> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let traces = files.filter(|path| path.file_stem().is_some_and(|stem| stem == "calls"));
    let texts: Vec<String> = traces.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut calls: Vec<Call> = texts.iter().flat_map(|text| text.lines()).filter_map(call_in).collect();
    calls.sort_by_key(|call| call.began);
    calls
}

fn call_in(line: &str) -> Option<Call> {
    let (began, rest) = line.split_once(' ')?;
    let (text, took) = rest.strip_suffix('>')?.rsplit_once(" <")?;
    let began = Timestamp::UNIX_EPOCH + duration(began)?;
    Some(Call { began, ended: began + duration(took)?, text: text.to_owned() })
}

/// Parses tcpdump lines such as `1772440261.836779 IP 10.77.0.1.835 > 10.77.0.2.2049: tcp 96`. Returns the packets
/// with payload, sorted by time.
fn packets_in(capture: &str) -> Vec<Packet> {
    let packet = |line: &str| {
        let (at, rest) = line.split_once(" IP ")?;
        let (addresses, bytes) = rest.split_once(": tcp ")?;
        let has_content = bytes != "0";
        has_content.then_some(Packet {
            at: Timestamp::UNIX_EPOCH + duration(at)?,
            is_request: addresses.starts_with("10.77.0.1."),
        })
    };
    let mut packets: Vec<Packet> = capture.lines().filter_map(packet).collect();
    packets.sort_by_key(|packet| packet.at);
    packets
}

/// Parses seconds with six decimal places.
fn duration(seconds: &str) -> Option<Duration> {
    let (whole, part) = seconds.split_once('.').filter(|(_, part)| part.len() == 6)?;
    Some(Duration::from_secs(whole.parse().ok()?) + Duration::from_micros(part.parse().ok()?))
}

impl Figure {
    fn mean_round_trips(&self) -> f64 {
        self.round_trips.iter().sum::<usize>() as f64 / self.round_trips.len() as f64
    }

    /// Returns the median by the nearest-rank method, as longhaul computes it.
    fn median_round_trips(&self) -> f64 {
        let mut sorted = self.round_trips.clone();
        sorted.sort_unstable();
        sorted[sorted.len().div_ceil(2) - 1] as f64
    }
}

/// Checks that every figure of a share rises from each delay to the next by the time of its round trips.
fn rises(share: &str, delays: &[Figures], findings: &mut Findings) {
    for name in delays[0].keys() {
        let at: Vec<&Figure> = delays.iter().filter_map(|figures| figures.get(name)).collect();
        findings.check(at.len() == DELAYS.len(), || format!("{share}: {name} is missing at some delay"));
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

/// Adds a table row for one figure of one share at all delays.
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

/// Checks that at the longest delay, in every figure, a share with more round trips is slower, and that shares with
/// equally many take equally long.
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
        let parts =
            ranked.iter().map(|(trips, value, share)| format!("{share} {trips:.2}, {:.3} ms", value / 1e3));
        findings.row(&[name, &parts.collect::<Vec<_>>().join("; ")]);
    }
}
