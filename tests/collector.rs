//! A real OpenTelemetry Collector and a real Prometheus: what they have is what is stored.
//!
//! `tests/collector/build.sh FOLDER` builds both; `LONGHAUL_COLLECTOR=FOLDER cargo test --test collector` uses them.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longhaul_measure::corpus::draw::draw_below;
use longhaul_measure::stats::Histogram;
use longhaul_store::Signal;
use serde_json::Value;
use support::exporting::{Export, STEP_US, samples, stored_histograms};
use support::machine;

/// How often the collector is killed.
const KILLS: u64 = 50;
/// A bucket's relative width.
const BUCKET: f64 = 1.0109;

/// The folder with the programs; without it the test says why it does not run.
fn programs(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LONGHAUL_COLLECTOR").map(PathBuf::from);
    if folder.is_none() {
        machine::skip(test, "LONGHAUL_COLLECTOR names no folder that tests/collector/build.sh has filled");
    }
    folder
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// A program that is killed when it is dropped.
struct Program(Child);

impl Program {
    fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        machine::wait_until("a program to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A collector that writes what it takes to a file before it says so.
struct RealCollector {
    program: PathBuf,
    config: PathBuf,
    file: PathBuf,
    port: u16,
}

impl RealCollector {
    fn new(programs: &Path, folder: &Path) -> Self {
        let (port, file, config) = (free_port(), folder.join("out.jsonl"), folder.join("collector.yaml"));
        // No batching, and a file that rotates: its lines are written at once, others once a second.
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:{port}}}}}}}}}\n\
             exporters: {{file: {{path: {}, rotation: {{max_megabytes: 100000}}}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n    \
             traces: {{receivers: [otlp], exporters: [file]}}\n    metrics: {{receivers: [otlp], exporters: [file]}}\n",
            file.display()
        );
        std::fs::write(&config, text).unwrap();
        Self { program: programs.join("otelcol"), config, file, port }
    }

    fn start(&self) -> Program {
        Program::start(Command::new(&self.program).arg("--config").arg(&self.config), self.port)
    }

    /// Everything that it wrote. A line that a kill cut off is followed by the next one on the same line.
    fn written(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let whole = |line: &str| -> Option<Value> {
            let begins = line.rfind("{\"resourceSpans\"").max(line.rfind("{\"resourceMetrics\""))?;
            serde_json::from_str(&line[begins..]).ok()
        };
        text.lines().filter_map(whole).collect()
    }

    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Every value at a path of keys, through all lists on the way.
fn all<'v>(values: &'v [Value], path: &[&str]) -> Vec<&'v Value> {
    path.iter().fold(values.iter().collect(), |found, key| {
        let below = found.into_iter().flat_map(|value| match &value[*key] {
            Value::Array(list) => list.iter().collect(),
            Value::Null => vec![],
            other => vec![other],
        });
        below.collect()
    })
}

fn attribute<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    let found = value["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    found["value"]["stringValue"].as_str()
}

fn count(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

/// Every run that is stored is in the file, once by its id, with exact instants; every histogram, bucket for bucket.
fn assert_exact(export: &Export, written: &[Value]) {
    let rounds = export.rounds();
    let spans = all(written, &["resourceSpans", "scopeSpans", "spans"]);
    let by_id: BTreeMap<&str, &&Value> =
        spans.iter().map(|span| (span["spanId"].as_str().unwrap(), span)).collect();
    let runs: BTreeMap<&str, &&&Value> =
        by_id.values().filter_map(|span| Some((attribute(span, "longhaul.run.id")?, span))).collect();
    let stored: Vec<_> = rounds.iter().flat_map(|round| &round.runs).collect();
    let phases: usize = stored.iter().map(|stored| stored.run.phases.len()).sum();
    assert_eq!((runs.len(), by_id.len()), (stored.len(), rounds.len() + stored.len() + phases));
    for stored in &stored {
        let span = runs[stored.trace_id.as_str()];
        assert_eq!(count(&span["startTimeUnixNano"]), stored.run.started_us as u64 * 1000);
        assert_eq!(count(&span["endTimeUnixNano"]), longhaul_telemetry::trace::ended(&stored.run));
    }
    let histograms = stored_histograms(&rounds);
    let points =
        all(written, &["resourceMetrics", "scopeMetrics", "metrics", "exponentialHistogram", "dataPoints"]);
    let key_of = |point: &Value| {
        let of = |key| attribute(point, key).unwrap().to_owned();
        let names =
            ["longhaul.target", "longhaul.workload", "longhaul.cache.state", "longhaul.file.operation.name"];
        let [target, workload, state, operation] = names.map(of);
        (target, workload, state, operation, count(&point["timeUnixNano"]))
    };
    let came: BTreeMap<_, _> = points.iter().map(|point| (key_of(point), point)).collect();
    assert_eq!(came.len(), histograms.len());
    for (key, latency) in &histograms {
        let buckets = &came[key]["positive"];
        let counts: Vec<u64> = buckets["bucketCounts"].as_array().unwrap().iter().map(count).collect();
        let (offset, stored) = latency.buckets();
        let came_offset = buckets["offset"].as_i64().unwrap_or(0);
        assert_eq!((came_offset, &counts[..]), (i64::from(offset), stored), "{key:?}");
    }
    println!(
        "{} rounds, {} runs, {} spans ({} sent), {} histograms ({} sent)",
        rounds.len(),
        runs.len(),
        by_id.len(),
        spans.len(),
        came.len(),
        points.len()
    );
}

#[test]
fn a_real_collector_that_is_killed_fifty_times_has_every_run_exactly() {
    let Some(programs) = programs("a_real_collector_that_is_killed_fifty_times_has_every_run_exactly") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let collector = RealCollector::new(&programs, folder.path());
    let endpoint = collector.endpoint();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
    ];
    let mut running = collector.start();
    let export = Export::new(4, &variables);
    let mut in_the_middle = 0;
    for kill in 0..KILLS {
        // After so many bytes more: between two messages, or in the middle of one.
        let enough = collector.bytes() + draw_below(0x6b69_6c6c, 1, kill, 600_000);
        let is_over = || Signal::ALL.into_iter().all(|signal| export.status(signal).waiting == 0);
        machine::wait_until("something to be sent", || collector.bytes() >= enough || is_over());
        in_the_middle += u64::from(!is_over());
        drop(running);
        running = collector.start();
    }
    export.wait_until_empty();
    drop(running);
    assert_exact(&export, &collector.written());
    println!("{in_the_middle} of {KILLS} kills came while there was something to send");
    assert!(in_the_middle > KILLS / 2, "only {in_the_middle} kills came in time");
}

/// A Prometheus that takes OTLP, also of last year.
struct Prometheus {
    _program: Program,
    port: u16,
}

impl Prometheus {
    fn start(programs: &Path, folder: &Path, scraped: Option<u16>) -> Self {
        let port = free_port();
        let scrape = scraped.map_or(String::new(), |port| {
            format!(
                "scrape_configs:\n- job_name: longhaul\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['127.0.0.1:{port}']\n"
            )
        });
        let config = folder.join("prometheus.yml");
        let text = format!("storage: {{tsdb: {{out_of_order_time_window: 2000d}}}}\n{scrape}");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(programs.join("prometheus"));
        command
            .arg("--web.enable-otlp-receiver")
            .arg("--storage.tsdb.retention.time=10y")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        let program = Program::start(&mut command, port);
        let prometheus = Self { _program: program, port };
        machine::wait_until("Prometheus to be ready", || prometheus.get("/-/ready").is_some());
        prometheus
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut answer = ureq::get(format!("http://127.0.0.1:{}{path}", self.port)).call().ok()?;
        answer.body_mut().with_config().limit(100 << 20).read_to_string().ok()
    }

    /// What it answers to a question as of a moment in seconds since 1970 UTC.
    fn ask(&self, question: &str, at: f64) -> Value {
        let escaped: String = question.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query?query={escaped}&time={at}");
        let body = self.get(&path).unwrap_or_else(|| panic!("it does not understand {question}"));
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }
}

#[test]
fn a_real_prometheus_finds_our_p99_within_a_bucket() {
    let Some(programs) = programs("a_real_prometheus_finds_our_p99_within_a_bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&programs, folder.path(), None);
    let endpoint = format!("http://127.0.0.1:{}/api/v1/otlp", prometheus.port);
    let export = Export::new(
        1,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
        ],
    );
    let began = Instant::now();
    machine::wait_until("all metrics", || {
        let status = export.status(Signal::Metrics);
        assert_eq!(status.rejected, 0, "{status:?}");
        assert!(began.elapsed() < Duration::from_secs(150), "{status:?}");
        status.sent > 0 && status.waiting == 0
    });
    let last = export.rounds().into_iter().next_back().unwrap();
    let at_ns = last.runs.iter().map(|stored| longhaul_telemetry::trace::ended(&stored.run)).max().unwrap();
    let day_ns = at_ns - at_ns % 86_400_000_000_000;
    let mut ours: BTreeMap<(String, String, String, String), Histogram> = BTreeMap::new();
    for ((target, workload, state, operation, at), latency) in stored_histograms(&export.rounds()) {
        if at >= day_ns {
            ours.entry((target, workload, state, operation)).or_default().merge(&latency);
        }
    }
    let name = "longhaul_file_operation_duration_microseconds";
    let question = format!("histogram_quantile(0.99, last_over_time({name}[20h]))");
    let answer = prometheus.ask(&question, at_ns as f64 / 1e9 + 1.0);
    let found = answer["data"]["result"].as_array().unwrap();
    assert_eq!(found.len(), ours.len(), "{answer}");
    for series in found {
        let of = |key: &str| series["metric"][key].as_str().unwrap().to_owned();
        let names =
            ["longhaul_target", "longhaul_workload", "longhaul_cache_state", "longhaul_file_operation_name"];
        let [target, workload, state, operation] = names.map(of);
        let theirs: f64 = series["value"][1].as_str().unwrap().parse().unwrap();
        let our_us = ours[&(target, workload, state, operation)].quantile_ns(0.99).unwrap() / 1e3;
        let ratio = theirs / our_us;
        assert!(ratio < BUCKET && ratio > 1.0 / BUCKET, "{theirs} against {our_us}: {series}");
    }
    let at = at_ns as f64 / 1e9 + 1.0;
    the_probe_is_found_within_a_bucket(&export, (&prometheus, at));
    every_question_of_the_dashboard_and_the_alerts_is_understood(&prometheus, at);
}

/// An hour of samples of the same day, as the last round ended.
fn the_probe_is_found_within_a_bucket(export: &Export, (prometheus, at): (&Prometheus, f64)) {
    let at_us = (at * 1e6) as i64;
    let stored = samples(at_us - at_us % STEP_US - 14 * STEP_US, 14);
    export.sample(stored.clone());
    machine::wait_until("the samples", || export.status(Signal::Samples).sent == 12);
    let question = "histogram_quantile(0.99, last_over_time(longhaul_probe_duration_microseconds[20h]))";
    let answer = prometheus.ask(question, at);
    let found = answer["data"]["result"].as_array().unwrap();
    assert_eq!(found.len(), 2, "{answer}");
    for series in found {
        let target = series["metric"]["longhaul_target"].as_str().unwrap();
        let probe = stored.probes.iter().find(|probe| probe.target.as_str() == target).unwrap();
        let our_us = probe.latency.quantile_ns(0.99).unwrap() / 1e3;
        let ratio = series["value"][1].as_str().unwrap().parse::<f64>().unwrap() / our_us;
        assert!(ratio < BUCKET && ratio > 1.0 / BUCKET, "{ratio} times {our_us}: {series}");
    }
}

/// Each question is asked; the ones about what was pushed have to find something.
fn every_question_of_the_dashboard_and_the_alerts_is_understood(prometheus: &Prometheus, at: f64) {
    let text = include_str!("../telemetry/grafana.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let targets = all(std::slice::from_ref(&dashboard), &["panels", "targets", "expr"]);
    assert!(targets.len() >= 8, "{}", targets.len());
    let live = ["longhaul_target_stuck", "longhaul_budget", "longhaul_schedule", "longhaul_telemetry"];
    for question in targets.iter().map(|expr| expr.as_str().unwrap()) {
        let question = question
            .replace("$target", ".*")
            .replace("$workload", ".*")
            .replace("$__range", "20h")
            .replace("$__rate_interval", "12h");
        let answer = prometheus.ask(&question, at);
        let is_found = answer["data"]["result"].as_array().is_some_and(|found| !found.is_empty());
        let is_live = live.iter().any(|name| question.contains(name));
        assert!(is_found || is_live, "nothing is found by {question}");
    }
}

#[test]
fn the_alert_rules_are_valid() {
    let Some(programs) = programs("the_alert_rules_are_valid") else { return };
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/telemetry/alerts.yml");
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/alerts.test.yml");
    for arguments in [["check", "rules", rules], ["test", "rules", tests]] {
        let said = Command::new(programs.join("promtool")).args(arguments).output().unwrap();
        assert!(
            said.status.success(),
            "{}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
    }
}

#[test]
fn a_real_prometheus_reads_the_service() {
    let Some(programs) = programs("a_real_prometheus_reads_the_service") else { return };
    use support::daemon::{BUSY, Daemon, target};
    let place = support::Place::new();
    let nas = place.folder("nas");
    place.configure(&format!("{}{}", BUSY.replace("8640", "24"), target("nas", &nas)));
    let daemon = Daemon::start(&place);
    daemon.round();
    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&programs, folder.path(), Some(daemon.contact().unwrap().port));
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let mut found = BTreeSet::new();
    machine::wait_until("Prometheus to read the service", || {
        let answer = prometheus.ask("{job=\"longhaul\"}", now());
        let names = all(std::slice::from_ref(&answer), &["data", "result", "metric", "__name__"]);
        found = names.into_iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        found.contains("longhaul_runs_total")
    });
    for name in ["longhaul_file_operation_duration_microseconds_bucket", "longhaul_budget_used_bytes"] {
        assert!(found.contains(name), "{name} is not in {found:?}");
    }
    let up = prometheus.ask("up{job=\"longhaul\"}", now());
    assert_eq!(up["data"]["result"][0]["value"][1], "1");
    daemon.stop();
}
