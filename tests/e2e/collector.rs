//! Tests with a real OpenTelemetry Collector and a real Prometheus: they receive exactly what the database contains.
//!
//! `tests/collector/build.sh FOLDER` builds both; `LONGHAUL_COLLECTOR=FOLDER cargo test --test e2e collector:: -- --ignored` uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::daemon::{BUSY, Daemon, target};
use crate::support::exporter::{Export, STEP, nanoseconds, samples, stored_histograms};
use crate::support::real_programs::{Accepts, Program, Prometheus, RealCollector, programs};
use crate::support::{Place, machine};
use longhaul_model::draw::draw_below;
use longhaul_model::{Histogram, Timestamp};
use longhaul_store::{Reader, Signal};
use serde_json::Value;

/// Number of times that the collector is killed.
const KILLS: u64 = 50;
/// Ratio of the upper to the lower bound of a histogram bucket (scale 6: 1.09 % wide).
const BUCKET: f64 = 1.0109;

/// Returns every value at a path of keys; arrays on the path are flattened.
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

/// Checks that the file contains every stored run once by its id, with exact times, and every histogram with exact
/// buckets.
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
        assert_eq!(count(&span["startTimeUnixNano"]), nanoseconds(stored.run.started_us));
        assert_eq!(count(&span["endTimeUnixNano"]), longhaul_telemetry::trace::end_ns(&stored.run));
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
#[ignore = "needs a real collector and Prometheus: tests/collector/build.sh; run with --ignored"]
fn killed_real_collector_receives_every_run_exactly() {
    let programs = programs();
    let folder = tempfile::tempdir().unwrap();
    let collector = RealCollector::new(&programs, folder.path(), Accepts::Http);
    let endpoint = collector.endpoint();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
    ];
    let running = collector.start();
    let export = Export::new(28, &variables);
    let kills_while_sending = export_to_killed_collector(&export, &collector, running, KILLS);
    assert!(
        kills_while_sending > KILLS / 2,
        "only {kills_while_sending} kills happened while rounds were pending"
    );
}

/// Kills the collector this many times while it receives, and checks that it has everything in the end. Returns the
/// number of kills that happened while rounds were pending.
fn export_to_killed_collector(
    export: &Export,
    collector: &RealCollector,
    mut running: Program,
    kills: u64,
) -> u64 {
    let mut kills_while_sending = 0;
    for kill in 0..kills {
        // Kill after a random number of further bytes: between two messages, or in the middle of one.
        let enough = collector.bytes() + draw_below(0x6b69_6c6c, 1, kill, 600_000);
        let is_over = || Signal::ALL.into_iter().all(|signal| export.status(signal).pending == 0);
        machine::wait_until("something to be sent", || collector.bytes() >= enough || is_over());
        kills_while_sending += u64::from(!is_over());
        drop(running);
        running = collector.start();
    }
    export.wait_until_empty();
    drop(running);
    assert_exact(export, &collector.written());
    println!("{kills_while_sending} of {kills} kills happened while rounds were pending");
    kills_while_sending
}

#[test]
#[ignore = "needs a real collector and Prometheus: tests/collector/build.sh; run with --ignored"]
fn killed_collector_receives_every_run_over_grpc() {
    let folder = tempfile::tempdir().unwrap();
    let collector = RealCollector::new(&programs(), folder.path(), Accepts::GrpcOverTls);
    let endpoint = collector.endpoint().replace("http:", "https:");
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/certificate.pem");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
    ];
    let export = Export::new(7, &variables);
    let running = collector.start();
    machine::wait_until("a refusal", || {
        export.status(Signal::Traces).last_failure.is_some_and(|why| why.contains("certificate"))
    });
    assert_eq!(collector.bytes(), 0, "nothing is sent to an untrusted certificate");
    export.configure(&[&variables[..], &[("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)]].concat());
    assert!(export_to_killed_collector(&export, &collector, running, 10) > 0);
}

#[test]
#[ignore = "needs a real collector and Prometheus: tests/collector/build.sh; run with --ignored"]
fn service_sends_round_and_diagnostics_over_grpc() {
    let place = Place::new();
    let collector = RealCollector::new(&programs(), place.root(), Accepts::Grpc);
    let _running = collector.start();
    let rarely = BUSY.replace("8640", "1");
    let target = target("a", &place.folder("a"));
    let endpoint = collector.endpoint();
    place.configure(&format!(
        "{rarely}[telemetry]\nendpoint = \"{endpoint}\"\nprotocol = \"grpc\"\ndiagnostics = true\n\
         interval-seconds = 1\n{target}"
    ));
    let check = place.longhaul("telemetry check").expect(0);
    assert!(check.out.contains(&format!("ok       traces   {endpoint}: accepted")), "{check}");
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| status["telemetry"]["signals"][0]["sent"] == 1);
    let spans = || {
        let written = collector.written();
        all(&written, &["resourceSpans", "scopeSpans", "spans"]).into_iter().cloned().collect::<Vec<_>>()
    };
    machine::wait_until("the service's own spans", || {
        spans().iter().any(|span| span["name"] == "run" && attribute(span, "longhaul.log.module").is_some())
    });
    machine::wait_until("the service's own log", || {
        let written = collector.written();
        let records = all(&written, &["resourceLogs", "scopeLogs", "logRecords"]);
        let is_round = |record: &&&Value| record["body"]["stringValue"] == "a round ended";
        records
            .iter()
            .filter(is_round)
            .any(|record| record["traceId"].as_str().is_some_and(|id| !id.is_empty()))
    });
    daemon.stop();
    // A round that ended just before the service stopped is still pending.
    let reader = Reader::open(&place.database()).unwrap();
    let pending = reader.pending_items(Signal::Traces, 10).unwrap();
    let delivered = reader.items_between(Signal::Traces, Timestamp::MIN, Timestamp::MAX).unwrap();
    let delivered = delivered.into_iter().filter(|number| !pending.contains(number));
    let rounds = delivered.map(|number| reader.finished_round(number).unwrap().unwrap());
    let stored: Vec<String> = rounds.flat_map(|round| round.runs).map(|stored| stored.trace_id).collect();
    let sent = spans();
    let sent: Vec<&str> = sent.iter().filter_map(|span| attribute(span, "longhaul.run.id")).collect();
    assert!(!stored.is_empty());
    assert_eq!(sent, stored, "every run once");
}
#[test]
#[ignore = "needs a real collector and Prometheus: tests/collector/build.sh; run with --ignored"]
fn real_prometheus_p99_is_within_one_bucket() {
    let programs = programs();
    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&programs, folder.path(), None);
    let endpoint = format!("http://127.0.0.1:{}/api/v1/otlp", prometheus.port);
    let export = Export::new(
        7,
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
        status.sent > 0 && status.pending == 0
    });
    let last = export.rounds().into_iter().next_back().unwrap();
    let at_ns = last.runs.iter().map(|stored| longhaul_telemetry::trace::end_ns(&stored.run)).max().unwrap();
    let day_ns = at_ns - at_ns % 86_400_000_000_000;
    let mut ours: BTreeMap<(String, String, String, String), Histogram> = BTreeMap::new();
    for ((target, workload, state, operation, at), latency) in stored_histograms(&export.rounds()) {
        if at >= day_ns {
            ours.entry((target, workload, state, operation)).or_default().merge(&latency);
        }
    }
    let name = "longhaul_file_operation_duration_microseconds";
    let query = format!("histogram_quantile(0.99, last_over_time({name}[20h]))");
    let answer = prometheus.query(&query, at_ns as f64 / 1e9 + 1.0);
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
    assert_probe_p99_within_one_bucket(&export, (&prometheus, at));
    assert_every_dashboard_query_works(&prometheus, at);
}

/// Exports an hour of probe samples, and checks that the p99 of Prometheus is within one bucket of ours.
fn assert_probe_p99_within_one_bucket(export: &Export, (prometheus, at): (&Prometheus, f64)) {
    let now = Timestamp::from_us((at * 1e6) as i64);
    let stored = samples(now.floor(STEP) - 14 * STEP, 14);
    export.sample(stored.clone());
    machine::wait_until("the samples", || export.status(Signal::Samples).sent == 12);
    let query = "histogram_quantile(0.99, last_over_time(longhaul_probe_duration_microseconds[20h]))";
    let answer = prometheus.query(query, at);
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

/// Runs every query of the dashboard. Queries of pushed metrics must find data; those of live metrics need not.
fn assert_every_dashboard_query_works(prometheus: &Prometheus, at: f64) {
    let text = include_str!("../../daemon/telemetry/dashboards/grafana.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let targets = all(std::slice::from_ref(&dashboard), &["panels", "targets", "expr"]);
    assert!(targets.len() >= 8, "{}", targets.len());
    let live = [
        "longhaul_target_stuck_duration",
        "longhaul_budget",
        "longhaul_schedule",
        "longhaul_telemetry",
        "longhaul_freshness",
        "longhaul_integrity",
        "longhaul_fidelity",
    ];
    for query in targets.iter().map(|expr| expr.as_str().unwrap()) {
        let query = query
            .replace("$target", ".*")
            .replace("$workload", ".*")
            .replace("$__range", "20h")
            .replace("$__rate_interval", "12h");
        let answer = prometheus.query(&query, at);
        let is_found = answer["data"]["result"].as_array().is_some_and(|found| !found.is_empty());
        let is_live = live.iter().any(|name| query.contains(name));
        assert!(is_found || is_live, "no data found by {query}");
    }
}

#[test]
#[ignore = "needs a real collector and Prometheus: tests/collector/build.sh; run with --ignored"]
fn alert_rules_are_valid() {
    let programs = programs();
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/daemon/telemetry/dashboards/alerts.yml");
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/alerts.test.yml");
    for arguments in [["check", "rules", rules], ["test", "rules", tests]] {
        let printed = Command::new(programs.join("promtool")).args(arguments).output().unwrap();
        assert!(
            printed.status.success(),
            "{}{}",
            String::from_utf8_lossy(&printed.stdout),
            String::from_utf8_lossy(&printed.stderr)
        );
    }
}

#[test]
#[ignore = "needs a real collector and Prometheus: tests/collector/build.sh; run with --ignored"]
fn real_prometheus_scrapes_the_service() {
    let programs = programs();
    let place = Place::new();
    let nas = place.folder("nas");
    place.configure(&format!("{}{}", BUSY.replace("8640", "24"), target("nas", &nas)));
    let daemon = Daemon::start(&place);
    daemon.round();
    let folder = tempfile::tempdir().unwrap();
    let prometheus = Prometheus::start(&programs, folder.path(), Some(daemon.address().unwrap().port));
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let mut found = BTreeSet::new();
    machine::wait_until("Prometheus to read the service", || {
        let answer = prometheus.query("{job=\"longhaul\"}", now());
        let names = all(std::slice::from_ref(&answer), &["data", "result", "metric", "__name__"]);
        found = names.into_iter().map(|name| name.as_str().unwrap().to_owned()).collect();
        found.contains("longhaul_runs_total")
    });
    for name in ["longhaul_file_operation_duration_microseconds_bucket", "longhaul_budget_used_bytes"] {
        assert!(found.contains(name), "{name} is not in {found:?}");
    }
    let up = prometheus.query("up{job=\"longhaul\"}", now());
    assert_eq!(up["data"]["result"][0]["value"][1], "1");
    daemon.stop();
}
