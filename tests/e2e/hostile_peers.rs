//! Peers that answer wrongly, slowly, without end, from elsewhere or never: a matrix of peers and misbehaviours.
//!
//! Each cell runs the real program against a real server. Its memory may grow by 8 MB over that of the same command against a
//! server that refuses as the protocol says, and its time is bounded by the limits of the product. docs/validation/security.md has the table.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Place;
use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::hostile::{HostileServer, Misbehaviour};
use crate::support::real_programs::free_port;
use Misbehaviour::{
    ByteASecond, CompressedBomb, EndlessHead, Garbage, Gigabyte, Redirect, Refusal, Silent,
    SuccessAndGigabyte, WrongCertificate,
};

/// Memory in bytes by which a process may grow because of a peer.
const MAX_GROWTH: u64 = 8 << 20;
/// Time that a busy machine may take beyond the limit of the product.
const SLACK: Duration = Duration::from_secs(30);
/// Exit codes of a command whose peer failed.
const FAILED: [i32; 2] = [1, 3];

/// A peer that longhaul talks to, and the command that does it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    OtlpHttp,
    OtlpGrpc,
    Ntfy,
    Heartbeat,
    Mail,
    MailStartTls,
    NodeExporter,
    Snmp,
    SnmpUser,
    Configuration,
}

const PEERS: [Peer; 10] = [
    Peer::OtlpHttp,
    Peer::OtlpGrpc,
    Peer::Ntfy,
    Peer::Heartbeat,
    Peer::Mail,
    Peer::MailStartTls,
    Peer::NodeExporter,
    Peer::Snmp,
    Peer::SnmpUser,
    Peer::Configuration,
];

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::OtlpHttp => "OTLP collector (HTTP)",
            Self::OtlpGrpc => "OTLP collector (gRPC)",
            Self::Ntfy => "ntfy",
            Self::Heartbeat => "heartbeat",
            Self::Mail => "SMTP",
            Self::MailStartTls => "SMTP after STARTTLS",
            Self::NodeExporter => "node_exporter",
            Self::Snmp => "SNMP",
            Self::SnmpUser => "SNMP version 3",
            Self::Configuration => "`init --from`",
        }
    }

    /// Returns the misbehaviours that the protocol has.
    fn misbehaviours(self, elsewhere: &HostileServer) -> Vec<Misbehaviour> {
        let redirects =
            [Redirect("file:///etc/passwd".to_owned()), Redirect(format!("{}/x", elsewhere.url()))];
        let mut all = vec![Silent, ByteASecond, Gigabyte, Garbage];
        match self {
            Self::Snmp | Self::SnmpUser => {}
            Self::MailStartTls => all.push(WrongCertificate),
            Self::Mail | Self::OtlpGrpc => all.extend([EndlessHead, WrongCertificate]),
            _ => {
                all.extend([SuccessAndGigabyte, EndlessHead, CompressedBomb, WrongCertificate]);
                all.extend(redirects);
            }
        }
        all
    }

    fn serve(self, how: Misbehaviour) -> HostileServer {
        match self {
            Self::Mail => HostileServer::smtp(how),
            Self::MailStartTls => HostileServer::starttls(how),
            Self::Snmp | Self::SnmpUser => HostileServer::snmp(how),
            _ => HostileServer::http(how),
        }
    }

    /// Returns the sections of the configuration with the peer at this port.
    fn config(self, port: u16, scheme: &str) -> String {
        let otlp = |protocol: &str| {
            format!(
                "[telemetry]\nendpoint = \"{scheme}://127.0.0.1:{port}\"\nprotocol = \"{protocol}\"\ntimeout-seconds = 3\n"
            )
        };
        let encryption = match self {
            Self::MailStartTls => "starttls",
            _ if scheme == "https" => "tls",
            _ => "none",
        };
        let snmp = format!("[nas]\nkind = \"snmp\"\nhost = \"127.0.0.1\"\nport = {port}\n");
        match self {
            Self::OtlpHttp => otlp("http/protobuf"),
            Self::OtlpGrpc => otlp("grpc"),
            Self::Ntfy => {
                format!(
                    "[notify.channels.phone]\nkind = \"ntfy\"\nurl = \"{scheme}://127.0.0.1:{port}/topic\"\n"
                )
            }
            Self::Heartbeat => format!("[notify]\nheartbeat-url = \"{scheme}://127.0.0.1:{port}/ping\"\n"),
            Self::Mail | Self::MailStartTls => format!(
                "[notify.channels.mail]\nkind = \"email\"\nserver = \"127.0.0.1\"\nport = {port}\n\
                 encryption = \"{encryption}\"\nfrom = \"a@example.com\"\nto = [\"b@example.com\"]\n"
            ),
            Self::NodeExporter => {
                format!("[nas]\nkind = \"node-exporter\"\nurl = \"{scheme}://127.0.0.1:{port}/metrics\"\n")
            }
            Self::Snmp => snmp,
            Self::SnmpUser => snmp + "user = \"ada\"\npassword-env = \"NAS_PASSWORD\"\n",
            Self::Configuration => String::new(),
        }
    }

    fn command(self, address: &str) -> String {
        match self {
            Self::OtlpHttp | Self::OtlpGrpc => "telemetry check".to_owned(),
            Self::Ntfy | Self::Heartbeat | Self::Mail | Self::MailStartTls => "notify test".to_owned(),
            Self::NodeExporter | Self::Snmp | Self::SnmpUser => "nas check".to_owned(),
            Self::Configuration => format!("init --yes --from {address}/site.toml"),
        }
    }

    /// Returns the longest time of the command by the limits of the product.
    fn limit(self) -> Duration {
        Duration::from_secs(match self {
            // Two signals with the configured timeout.
            Self::OtlpHttp | Self::OtlpGrpc => 6,
            Self::Ntfy | Self::Heartbeat | Self::Mail | Self::MailStartTls => 15,
            Self::NodeExporter | Self::Snmp | Self::SnmpUser => 5,
            Self::Configuration => 30,
        })
    }
}

/// The result of a command.
struct Measured {
    code: Option<i32>,
    text: String,
    peak_bytes: u64,
    took: Duration,
}

/// Runs a command to its end, and returns its largest resident memory.
fn measure(mut command: Command, limit: Duration) -> Measured {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut peak_bytes = 0;
    while child.try_wait().unwrap().is_none() {
        // VmHWM never falls, so that only what happens in the last milliseconds can be missed.
        peak_bytes = memory(child.id(), "VmHWM:").unwrap_or(peak_bytes);
        if began.elapsed() > limit + SLACK {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = began.elapsed();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Measured {
        code: output.status.code(),
        text: String::from_utf8_lossy(&text).into_owned(),
        peak_bytes,
        took,
    }
}

/// Returns a figure of /proc/PID/status in bytes. `None`: the process has ended.
fn memory(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
}

/// Runs the command of a peer at a port.
fn run(peer: Peer, port: u16, scheme: &str) -> Measured {
    let place = Place::new();
    place.configure(&peer.config(port, scheme));
    let mut command = place.longhaul(&peer.command(&format!("{scheme}://127.0.0.1:{port}"))).command();
    command.env("NAS_PASSWORD", "authenticate-me");
    measure(command, peer.limit())
}

/// A cell of the table, as one line, and what is wrong with it.
fn cell(peer: Peer, how: &Misbehaviour, baseline: u64) -> (String, Vec<String>) {
    let server = peer.serve(how.clone());
    let scheme = if *how == WrongCertificate { "https" } else { "http" };
    let found = run(peer, server.port, scheme);
    let growth = found.peak_bytes.saturating_sub(baseline);
    // A message or a heartbeat was taken if the status says so; what follows is not read.
    let is_success = matches!(how, CompressedBomb | SuccessAndGigabyte);
    let codes = if matches!(peer, Peer::Ntfy | Peer::Heartbeat) && is_success { &[0][..] } else { &FAILED };
    let line = format!(
        "| {} | {} | +{:.1} MB | {:.1} s | {} |",
        peer.name(),
        how.name(),
        growth as f64 / 1e6,
        found.took.as_secs_f64(),
        answer(&found.text, server.port)
    );
    let checks = [
        (growth <= MAX_GROWTH, format!("it grew by {growth} bytes")),
        (found.took <= peer.limit() + SLACK, format!("it took {:?}", found.took)),
        (found.code.is_some_and(|code| codes.contains(&code)), format!("exit code {:?}", found.code)),
        (!found.text.contains("panicked"), "it panicked".to_owned()),
        (!found.text.trim().is_empty(), "it says nothing".to_owned()),
        (server.connections() > 0, "the server was not asked".to_owned()),
    ];
    let wrong = checks.into_iter().filter(|(is_right, _)| !is_right);
    let wrong = wrong.map(|(_, text)| format!("{}, {}: {text}: {}", peer.name(), how.name(), found.text));
    (line, wrong.collect())
}

/// Returns the cells of a peer as lines, and what is wrong with them. Those that only wait for a limit run beside the others: the
/// memory is that of each process.
fn cells(peer: Peer, elsewhere: &HostileServer) -> (Vec<String>, Vec<String>) {
    let baseline = run(peer, peer.serve(Refusal).port, "http").peak_bytes;
    let all = peer.misbehaviours(elsewhere);
    let (slow, quick): (Vec<_>, Vec<_>) = all.iter().partition(|how| matches!(how, Silent | ByteASecond));
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            slow.into_iter().map(|how| scope.spawn(move || cell(peer, how, baseline))).collect();
        let quick: Vec<_> = quick.into_iter().map(|how| cell(peer, how, baseline)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).chain(quick).collect()
    });
    let (lines, wrong): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    (lines, wrong.concat())
}

/// Returns what a command says about its peer, without addresses and times.
fn answer(text: &str, port: u16) -> String {
    let line = text.lines().find(|line| line.contains(&format!(":{port}"))).unwrap_or_default();
    let after = line.split(&format!(":{port}")).last().unwrap_or_default();
    let said = match after.find("answers ") {
        Some(start) => &after[start..],
        None => after.split_once(": ").map_or(after, |(_, said)| said),
    };
    let said = said.split(" (").next().unwrap_or_default().trim().trim_end_matches('.');
    if said.len() > 90 { said.chars().take(80).chain("...".chars()).collect() } else { said.to_owned() }
}

#[test]
fn hostile_peers_cost_bounded_memory_and_time() {
    let elsewhere = HostileServer::http(Silent);
    let rows: Vec<(Vec<String>, Vec<String>)> = std::thread::scope(|scope| {
        let elsewhere = &elsewhere;
        let threads = PEERS.map(|peer| scope.spawn(move || cells(peer, elsewhere)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (lines, wrong): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let lines = lines.concat();
    lines.iter().for_each(|line| eprintln!("{line}"));
    assert_eq!(wrong.concat(), Vec::<String>::new());
    assert_eq!(elsewhere.connections(), 0, "no redirect was followed");
    assert_documented(&lines);
}

/// Checks that the documentation has the same peers and misbehaviours. Its figures are from one run.
fn assert_documented(lines: &[String]) {
    let documented = include_str!("../../docs/validation/security.md");
    let names = |line: &str| line.split(" | ").take(2).collect::<Vec<_>>().join(" | ");
    for line in lines {
        let row = names(line);
        assert!(
            documented.lines().any(|line| names(line) == row),
            "docs/validation/security.md lacks `{row}`"
        );
    }
    let is_cell = |line: &&str| PEERS.iter().any(|peer| line.starts_with(&format!("| {} | ", peer.name())));
    assert_eq!(
        documented.lines().filter(is_cell).count(),
        lines.len(),
        "cells in docs/validation/security.md"
    );
}

/// Configures a service whose peers all misbehave in one way, with rounds only on request.
fn configure(place: &Place, ports: [u16; 4]) {
    let [otlp, ntfy, mail, nas] = ports;
    let text = [
        BUSY.replace("8640", "1"),
        "[notify]\ndown-minutes = 0\ndisk-below-percent = 90.0\n".to_owned(),
        Peer::OtlpHttp.config(otlp, "http") + "interval-seconds = 1\n",
        Peer::Ntfy.config(ntfy, "http"),
        Peer::Mail.config(mail, "http"),
        Peer::NodeExporter.config(nas, "http"),
        target("a", &place.folder("a")),
    ];
    place.configure(&text.concat());
}

/// Runs rounds in a service, and returns its resident memory afterwards and the time of the rounds.
fn service(ports: [u16; 4], is_told: impl Fn(&serde_json::Value) -> bool) -> (u64, Duration) {
    let place = Place::new();
    configure(&place, ports);
    let daemon = Daemon::start(&place);
    let began = Instant::now();
    (0..3).for_each(|_| daemon.round());
    let took = began.elapsed();
    daemon.wait_for("the failures to be in the status", is_told);
    let output = place.longhaul("status").expect(0);
    assert!(output.out.contains("pending"), "{output}");
    assert!(place.stored_runs().iter().all(|run| run["outcome"] == "ok"), "rounds are not affected");
    let bytes = memory(daemon.pid(), "VmHWM:").unwrap();
    daemon.stop();
    (bytes, took)
}

/// Returns whether telemetry tells a failure, and each channel that it has not sent.
fn tells_failures(status: &serde_json::Value) -> bool {
    let failed = status["telemetry"]["signals"].as_array().is_some_and(|signals| {
        signals.iter().any(|signal| !signal["last_failure"].is_null() || !signal["last_rejection"].is_null())
    });
    let channels = status["notify"]["channels"].as_array();
    let is_unsent = |channel: &serde_json::Value| channel["sent"] == 0;
    failed && channels.is_some_and(|channels| channels.len() == 2 && channels.iter().all(is_unsent))
}

#[test]
fn service_with_hostile_peers_measures_on() {
    let (baseline, _) = service([free_port(), free_port(), free_port(), free_port()], tells_failures);
    std::thread::scope(|scope| {
        for how in [Silent, ByteASecond, Gigabyte, CompressedBomb, EndlessHead, Garbage] {
            scope.spawn(move || {
                let http = || HostileServer::http(how.clone());
                let (otlp, ntfy, nas) = (http(), http(), http());
                let mail = HostileServer::smtp(how.clone());
                let (bytes, took) = service([otlp.port, ntfy.port, mail.port, nas.port], tells_failures);
                let growth = bytes.saturating_sub(baseline);
                eprintln!(
                    "| service, {} | +{:.1} MB | three rounds in {took:?} |",
                    how.name(),
                    growth as f64 / 1e6
                );
                assert!(growth <= MAX_GROWTH, "{}: {growth}", how.name());
                // Each run waits for a reading of the NAS twice, a second at most.
                assert!(took < Duration::from_secs(6) + SLACK, "{}: {took:?}", how.name());
                assert!(otlp.connections() > 0 && nas.connections() > 0, "{}", how.name());
            });
        }
    });
}
