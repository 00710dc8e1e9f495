//! Tests of the telemetry exporter with an in-process collector: every round arrives exactly as stored, whatever the
//! collector does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::collector::{Collector, Received, Reply, Stream};
use crate::support::exporter::{Export, Key, STEP, key_of, nanoseconds, samples, stored_histograms, text};
use crate::support::{hostile, machine};
use longhaul_model::time::DAY;
use longhaul_model::{Histogram, Timestamp};
use longhaul_store::{FinishedRound, Reader, Signal};
use longhaul_telemetry::environment::EnvironmentVariables;
use longhaul_telemetry::settings::{ExportSettings, TelemetryConfig};
use opentelemetry_proto::tonic::metrics::v1::{ExponentialHistogramDataPoint, number_data_point};

/// Returns environment variables for a collector, with delta temporality, in which each histogram is sent as it is
/// stored.
fn variables_for(collector: &Collector) -> Vec<(&'static str, String)> {
    vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta".to_owned()),
    ]
}

fn with<'a>(variables: &'a [(&'static str, String)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).chain(more.iter().copied()).collect()
}

/// Checks that every stored run arrived once, with its phases and exact times.
fn assert_runs_are_exact(rounds: &[FinishedRound], collector: &Collector) {
    let spans = collector.received(Received::spans);
    let runs = spans.values().filter_map(|span| Some((text(&span.attributes, "longhaul.run.id")?, span)));
    let runs: BTreeMap<&str, _> = runs.collect();
    let stored: Vec<_> = rounds.iter().flat_map(|round| &round.runs).collect();
    assert_eq!(runs.len(), stored.len(), "every run once");
    let phases: usize = stored.iter().map(|stored| stored.run.phases.len()).sum();
    assert_eq!(spans.len(), rounds.len() + stored.len() + phases, "only rounds, runs and phases are sent");
    for stored in stored {
        let span = runs[stored.trace_id.as_str()];
        assert_eq!(span.start_time_unix_nano, nanoseconds(stored.run.started_us));
        let children = spans.values().filter(|child| child.parent_span_id == span.span_id);
        let mut children: Vec<_> = children.collect();
        children.sort_by_key(|child| child.start_time_unix_nano);
        for (child, phase) in children.iter().zip(&stored.run.phases) {
            assert_eq!(child.name, phase.name);
            assert_eq!(child.start_time_unix_nano, nanoseconds(phase.began_us.unwrap()));
            let length_us = (child.end_time_unix_nano - child.start_time_unix_nano) as f64 / 1e3;
            assert!((length_us - phase.seconds * 1e6).abs() < 1.0, "durations are exact to the microsecond");
        }
    }
}

/// Checks that every stored histogram arrived with exact buckets.
fn assert_histograms_are_exact(rounds: &[FinishedRound], collector: &Collector) {
    let stored = stored_histograms(rounds);
    let points = collector.received(Received::histograms);
    let came: BTreeMap<Key, ExponentialHistogramDataPoint> =
        points.into_iter().map(|point| (key_of(&point), point)).collect();
    assert_eq!(came.len(), stored.len());
    for (key, point) in came {
        let latency = &stored[&key];
        let (offset, counts) = latency.buckets();
        let buckets = point.positive.unwrap();
        assert_eq!((point.scale, buckets.offset, &buckets.bucket_counts[..]), (6, offset, counts), "{key:?}");
        assert_eq!(point.count, latency.count());
        assert_eq!(point.sum, Some(latency.sum_ns() as f64 / 1e3));
    }
}

#[test]
fn week_is_exported_once_with_exact_times_and_buckets() {
    let collector = Collector::start();
    let export = Export::new(
        7,
        &with(&variables_for(&collector), &[("OTEL_EXPORTER_OTLP_HEADERS", "x-token=secret%20word")]),
    );
    export.wait_until_empty();
    let rounds = export.rounds();
    assert!(rounds.len() > 100, "{}", rounds.len());
    assert_runs_are_exact(&rounds, &collector);
    assert_histograms_are_exact(&rounds, &collector);
    let sent: usize = collector.received(|received| {
        received
            .traces
            .iter()
            .flat_map(|request| &request.resource_spans[0].scope_spans)
            .map(|scope| scope.spans.len())
            .sum()
    });
    assert_eq!(sent, collector.received(|received| received.spans().len()), "nothing was sent twice");
    assert_eq!(collector.received(|received| received.headers["x-token"].clone()), "secret word");
    assert_eq!(collector.received(|received| received.headers["content-encoding"].clone()), "gzip");
}

#[test]
fn daily_totals_survive_a_restart_of_the_exporter() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_TRACES_EXPORTER", "none")];
    let export = Export::new(2, &variables);
    machine::wait_until("a few rounds to be sent", || export.status(Signal::Metrics).sent > 20);
    // The exporter restarts in the middle of a day.
    let export = export.restarted(&variables);
    let reader = Reader::open(&export.database).unwrap();
    machine::wait_until("the rest", || reader.pending_items(Signal::Metrics, 1).unwrap().is_empty());
    let mut days: BTreeMap<(Key, u64), Histogram> = BTreeMap::new();
    for ((target, workload, state, operation, at), latency) in stored_histograms(&export.rounds()) {
        let day = at - at % 86_400_000_000_000;
        days.entry(((target, workload, state, operation, 0), day)).or_default().merge(&latency);
    }
    let mut last: BTreeMap<(Key, u64), ExponentialHistogramDataPoint> = BTreeMap::new();
    for point in collector.received(Received::histograms) {
        let (target, workload, state, operation, _) = key_of(&point);
        let key = ((target, workload, state, operation, 0), point.start_time_unix_nano);
        let latest = last.entry(key).or_insert_with(|| point.clone());
        if latest.time_unix_nano <= point.time_unix_nano {
            *latest = point;
        }
    }
    assert_eq!(last.len(), days.len());
    for (key, point) in last {
        assert_eq!(point.positive.unwrap().bucket_counts, days[&key].buckets().1, "{key:?}");
    }
}

#[test]
fn misbehaving_collector_receives_everything_once() {
    let collector = Collector::start();
    let misbehaviours = [
        Reply::Respond(503, "", b"busy"),
        Reply::AcceptThenClose,
        Reply::Respond(429, "Retry-After: 3\r\n", b""),
        Reply::HalfClose,
        Reply::Respond(200, "Content-Type: text/html\r\n", b"<html>Welcome to our hotel</html>"),
        Reply::Respond(200, "Content-Type: application/x-protobuf\r\n", b"\xff\xff\xff garbage"),
        Reply::Respond(401, "", b"who are you?"),
        Reply::Delay(Duration::from_secs(3)),
        Reply::Respond(302, "Location: http://127.0.0.1:1/\r\n", b""),
    ];
    // After a success of a signal, its next pause is short again.
    let well_behaved = || std::iter::repeat_n(Reply::Accept, 5);
    collector
        .reply_with(misbehaviours.into_iter().flat_map(|reply| std::iter::once(reply).chain(well_behaved())));
    let export = Export::new(2, &with(&variables_for(&collector), &[("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")]));
    export.wait_until_empty();
    let rounds = export.rounds();
    assert_runs_are_exact(&rounds, &collector);
    assert_histograms_are_exact(&rounds, &collector);
    for signal in Signal::ALL {
        let status = export.status(signal);
        assert_eq!((status.rejected, status.expired), (0, 0), "{status:?}");
    }
}

/// 2026-11-09T00:00Z.
const MIDNIGHT: Timestamp = Timestamp::from_us(1_794_182_400_000_000);

#[test]
fn samples_are_exported_once_with_exact_buckets() {
    let collector = Collector::start();
    let more = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRIC_EXPORT_INTERVAL", "500")];
    let export = Export::new(2, &with(&variables_for(&collector), &more));
    let stored = samples(MIDNIGHT, 100);
    export.sample(stored.clone());
    machine::wait_until("all complete steps to be sent", || export.status(Signal::Samples).sent == 98);
    let came = collector.received(|received| received.histograms_of("longhaul.probe.duration"));
    assert_eq!(came.len(), 2 * 98, "two targets, each step except the last two, once");
    for point in came {
        let target = text(&point.attributes, "longhaul.target").unwrap();
        let began_ns = point.start_time_unix_nano;
        assert_eq!(point.time_unix_nano - point.start_time_unix_nano, 300_000_000_000);
        let is_it = |probe: &&longhaul_model::ProbeStep| {
            (probe.target.as_str(), nanoseconds(probe.at_us)) == (target, began_ns)
        };
        let latency = &stored.probes.iter().find(is_it).unwrap().latency;
        assert_eq!(point.positive.unwrap().bucket_counts, latency.buckets().1);
    }
    export.sample(samples(MIDNIGHT + 100 * STEP, 1));
    machine::wait_until("one more step to be sent", || export.status(Signal::Samples).sent == 99);
}

#[test]
fn sample_counts_add_up_over_the_day_across_a_restart() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ];
    let export = Export::new(2, &variables);
    export.sample(samples(MIDNIGHT, 50));
    machine::wait_until("the complete steps to be sent", || export.status(Signal::Samples).sent == 48);
    let export = export.restarted(&variables);
    // A day has 288 steps; the last two steps are not sent yet.
    export.sample(samples(MIDNIGHT + 50 * STEP, 250));
    machine::wait_until("the rest", || export.status(Signal::Samples).sent == 298);
    let counts = collector.received(|received| received.counts_of("longhaul.share.requests"));
    let total = |at: Timestamp| {
        let found = counts.iter().find(|point| point.time_unix_nano == nanoseconds(at));
        match found.unwrap().value {
            Some(number_data_point::Value::AsInt(count)) => count,
            _ => panic!("{found:?}"),
        }
    };
    assert_eq!([1, 50, 51, 288].map(|steps| total(MIDNIGHT + steps * STEP)), [3, 150, 153, 864]);
    assert_eq!(total(MIDNIGHT + 289 * STEP), 3, "a new day starts at zero");
}

#[test]
fn retry_after_is_obeyed() {
    let collector = Collector::start();
    collector.reply_with([Reply::Respond(429, "Retry-After: 4\r\n", b"")]);
    let export = Export::new(2, &with(&variables_for(&collector), &[("OTEL_METRICS_EXPORTER", "none")]));
    machine::wait_until("the first request", || collector.received(|received| received.requests) == 1);
    let began = Instant::now();
    machine::wait_until("the next request", || collector.received(|received| received.requests) > 1);
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
    machine::wait_until("all traces", || export.status(Signal::Traces).pending == 0);
}

#[test]
fn rejected_round_is_counted_and_the_others_are_sent() {
    let collector = Collector::start();
    collector.reply_with([
        Reply::Respond(400, "Content-Type: text/plain\r\n", b"span 7 is bad"),
        Reply::Respond(400, "Content-Type: text/plain\r\n", b"span 7 is bad"),
    ]);
    let export = Export::new(2, &with(&variables_for(&collector), &[("OTEL_METRICS_EXPORTER", "none")]));
    machine::wait_until("all traces", || {
        let status = export.status(Signal::Traces);
        status.sent > 0 && status.pending == 0
    });
    let (status, rounds) = (export.status(Signal::Traces), export.rounds());
    assert_eq!((status.rejected, status.sent), (1, rounds.len() as u64 - 1));
    assert!(status.last_rejection.as_ref().unwrap().contains("400: span 7 is bad"), "{status:?}");
    assert_runs_are_exact(&rounds[1..], &collector);
}

#[test]
fn rejected_current_state_is_told_in_the_status() {
    let collector = Collector::start();
    collector.reply_with([Reply::Respond(400, "Content-Type: text/plain\r\n", b"a label is bad")]);
    // Nothing is stored, so that the current state is the only message.
    let export = Export::new(0, &with(&variables_for(&collector), &[]));
    machine::wait_until("the rejection", || {
        let rejection = export.status(Signal::Metrics).last_rejection;
        rejection.as_deref() == Some("current state: 400: a label is bad")
    });
}

#[test]
fn unreachable_collector_loses_nothing() {
    let export = Export::new(2, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://no-such-host.invalid:4318")]);
    let fails = |why: &str| {
        machine::wait_until("a failure", || {
            let status = export.status(Signal::Traces);
            status.last_failure.is_some_and(|failing| failing.contains(why)) && status.pending > 0
        });
    };
    machine::wait_until("a failure", || export.status(Signal::Traces).last_failure.is_some());
    export.configure(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")]);
    fails("connection refused");
    let status = export.status(Signal::Traces);
    assert_eq!((status.sent, status.rejected, status.expired), (0, 0, 0));
    assert!(status.next_try_us.is_some());
}

impl Stream for rustls::StreamOwned<rustls::ServerConnection, std::net::TcpStream> {
    fn close_writing(&mut self) {
        self.conn.send_close_notify();
    }
}

fn encrypted() -> Collector {
    let config = hostile::tls();
    Collector::over(move |stream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).ok()?;
        Some(Box::new(rustls::StreamOwned::new(connection, stream)))
    })
}

#[test]
fn nothing_is_sent_to_an_untrusted_certificate() {
    let collector = encrypted();
    let endpoint = collector.endpoint().replace("http:", "https:");
    let address = ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str());
    let export = Export::new(2, &[address]);
    machine::wait_until("a refusal", || {
        let failing = export.status(Signal::Traces).last_failure;
        failing.is_some_and(|why| why.contains("certificate"))
    });
    assert_eq!(collector.received(|received| received.requests), 0);
    export.configure(&[address, ("OTEL_EXPORTER_OTLP_CERTIFICATE", hostile::CERTIFICATE)]);
    export.wait_until_empty();
    assert_runs_are_exact(&export.rounds(), &collector);
}

#[test]
fn rounds_older_than_the_retention_expire() {
    let collector = Collector::start();
    let export = Export::new(2, &[]);
    let endpoint = Some(collector.endpoint());
    let configured = TelemetryConfig { endpoint, retention: DAY, ..TelemetryConfig::default() };
    let settings = ExportSettings::resolve(&configured, &EnvironmentVariables::default());
    export.exporter.configure(settings.map_err(|error| error.to_string()));
    export.wait_until_empty();
    let rounds = export.rounds().len() as u64;
    machine::wait_until("the count", || export.status(Signal::Traces).expired == rounds);
    assert_eq!(collector.received(|received| received.traces.len()), 0);
}

#[test]
fn exporter_stops_within_two_seconds() {
    let collector = Collector::start();
    collector.reply_with(vec![Reply::Delay(Duration::from_secs(30)); 4]);
    let export =
        Export::new(2, &with(&variables_for(&collector), &[("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")]));
    machine::wait_until("a request", || collector.received(|received| received.requests) == 1);
    let began = Instant::now();
    export.exporter.stop();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(Reader::open(&export.database).unwrap().pending_items(Signal::Traces, 1).unwrap().len() == 1);
}
