//! Tests of telemetry in the running service: configuration, `status`, `telemetry` commands and the Prometheus
//! endpoint.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::collector::{Collector, Received, Reply};
use crate::support::daemon::{BUSY, Daemon, http, log, target};
use crate::support::exporter::text;
use crate::support::{Place, machine};
use longhaul_model::Timestamp;
use longhaul_store::{Reader, RunFilter};
use opentelemetry_proto::tonic::trace::v1::Span;

/// Creates a test environment with one target, rounds only on request, and these lines in `[telemetry]`.
fn place(telemetry: &str) -> Place {
    let place = Place::new();
    configure(&place, telemetry);
    place
}

fn configure(place: &Place, telemetry: &str) {
    let rarely = BUSY.replace("8640", "1");
    let target = target("a", &place.folder("a"));
    place.configure(&format!("{rarely}[telemetry]\ninterval-seconds = 1\n{telemetry}{target}"));
}

fn endpoint(collector: &Collector) -> String {
    format!("endpoint = \"{}\"\n", collector.endpoint())
}

fn sent(status: &serde_json::Value) -> u64 {
    status["telemetry"]["signals"][0]["sent"].as_u64().unwrap_or(0)
}

#[test]
fn service_exports_rounds_and_status_shows_it() {
    let collector = Collector::start();
    let place = place(&(endpoint(&collector) + "[telemetry.attributes]\n\"site\" = \"attic\"\n"));
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| sent(status) == 1);
    let output = place.longhaul("status").expect(0);
    let traces = format!("{}/v1/traces: 1 rounds sent", collector.endpoint());
    assert!(
        output.out.contains(&traces) && output.out.contains("0 pending, 0 rejected, 0 expired"),
        "{output}"
    );
    let names: Vec<String> =
        collector.received(Received::spans).into_values().map(|span| span.name).collect();
    assert!(names.contains(&"round".to_owned()) && names.contains(&"folder-index".to_owned()), "{names:?}");
    assert!(names.len() > 4, "the phases are sent as well: {names:?}");
    assert_calls_lie_within_phases(&collector);
    let all = collector.received(|received| format!("{:?}", received.traces));
    assert!(
        all.contains("attic") && !all.contains(place.root().to_str().unwrap()),
        "no path leaves the machine"
    );
    let metrics = || collector.received(|received| format!("{:?}", received.metrics));
    machine::wait_until("the live metrics", || metrics().contains("longhaul.budget.used"));
    daemon.stop();
}

/// Checks that sampled calls of a run were sent, each within the time of its phase and with the reason for its
/// selection.
fn assert_calls_lie_within_phases(collector: &Collector) {
    let spans = collector.received(Received::spans);
    let keep_reason = |span: &Span| text(&span.attributes, "longhaul.call.keep_reason").map(str::to_owned);
    let calls: Vec<&Span> = spans.values().filter(|span| keep_reason(span).is_some()).collect();
    for reason in ["slowest", "sample"] {
        assert!(calls.iter().any(|call| keep_reason(call).as_deref() == Some(reason)), "{reason}");
    }
    for call in calls {
        let phase = &spans[&(call.trace_id.clone(), call.parent_span_id.clone())];
        // The start of a phase is read from two clocks one after the other, so the end may be off by up to 1 ms.
        let slack = 1_000_000;
        assert!(call.start_time_unix_nano >= phase.start_time_unix_nano, "{call:?}");
        assert!(call.end_time_unix_nano <= phase.end_time_unix_nano + slack, "{call:?} {phase:?}");
    }
}

#[test]
fn metrics_endpoint_serves_only_the_own_host() {
    let place = place("");
    let daemon = Daemon::start(&place);
    daemon.round();
    let port = daemon.address().unwrap().port;
    let ask = |host: &str| http(port, "GET /metrics", &format!("Host: {host}\r\n"), "").unwrap();
    let (code, text) = ask(&format!("127.0.0.1:{port}"));
    assert_eq!(code, 200, "{text}");
    for line in
        ["longhaul_runs_total{", "longhaul_target_stuck_duration_seconds{longhaul_target=\"a\"} 0", "# EOF"]
    {
        assert!(text.contains(line), "`{line}` is missing:\n{text}");
    }
    let runs = |text: &str| {
        text.lines().find_map(|line| line.strip_prefix("longhaul_rounds_total{")).map(str::to_owned)
    };
    daemon.round();
    let again = ask(&format!("localhost:{port}")).1;
    assert_ne!(runs(&text), runs(&again), "the counter increases");
    assert_eq!(ask("evil.example").0, 421);
    daemon.stop();
}

#[test]
fn unreachable_collector_gets_all_rounds_later() {
    let collector = Collector::start();
    let place = place("endpoint = \"http://127.0.0.1:1\"\n");
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.round();
    daemon.wait_for("a failure with two rounds", |status| {
        let traces = &status["telemetry"]["signals"][0];
        !traces["last_failure"].is_null() && traces["pending"] == 2
    });
    let output = place.longhaul("status").expect(0);
    assert!(
        output.out.contains("2 pending") && output.out.contains("unreachable: connection refused"),
        "{output}"
    );
    configure(&place, &endpoint(&collector));
    daemon.wait_for("both rounds to be sent", |status| sent(status) == 2);
    daemon.stop();
}

#[test]
fn diagnostics_are_sent_only_if_enabled() {
    let collector = Collector::start();
    let place = place(&endpoint(&collector));
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| sent(status) == 1);
    assert_eq!(collector.received(|received| received.logs.len()), 0);
    assert!(diagnostic_spans(&collector).is_empty());
    configure(&place, &(endpoint(&collector) + "diagnostics = true\n"));
    let is_applied = || std::fs::read_to_string(log(&place)).unwrap().contains("new configuration");
    machine::wait_until("the configuration to be applied", is_applied);
    daemon.round();
    let has = |output: &str| {
        collector
            .received(|received| received.logs.iter().any(|line| format!("{:?}", line.body).contains(output)))
    };
    machine::wait_until("the log", || {
        if !has("a round ended") {
            daemon.round();
        }
        has("a round ended")
    });
    let runs_lie_in_rounds = || {
        let spans = diagnostic_spans(&collector);
        spans.values().any(|span| {
            let round = spans.get(&(span.trace_id.clone(), span.parent_span_id.clone()));
            span.name == "run" && round.is_some_and(|round| round.name == "round")
        })
    };
    machine::wait_until("the spans of a round", runs_lie_in_rounds);
    machine::wait_until("a log record that belongs to a span", || {
        let (spans, logs) =
            (diagnostic_spans(&collector), collector.received(|received| received.logs.clone()));
        logs.into_iter().any(|line| spans.contains_key(&(line.trace_id, line.span_id)))
    });
    let lines = collector.received(|received| format!("{:?}", received.logs));
    assert!(!lines.contains(&place.path("").display().to_string()), "a path was sent: {lines}");
    daemon.stop();
}

/// Returns the diagnostic spans of the service itself, without the spans of stored rounds.
fn diagnostic_spans(collector: &Collector) -> BTreeMap<(Vec<u8>, Vec<u8>), Span> {
    let mut spans = collector.received(Received::spans);
    spans.retain(|_, span| text(&span.attributes, "longhaul.log.module").is_some());
    spans
}

#[test]
fn service_stops_in_time_with_a_slow_collector() {
    let collector = Collector::start();
    collector.reply_with(vec![Reply::Delay(Duration::from_secs(60)); 4]);
    let place = place(&(endpoint(&collector) + "timeout-seconds = 100\n"));
    let daemon = Daemon::start(&place);
    daemon.round();
    machine::wait_until("a request", || collector.received(|received| received.requests) > 0);
    daemon.stop();
}

#[test]
fn no_phase_overlaps_an_export_request() {
    let collector = Collector::start();
    let place = place(&endpoint(&collector));
    let daemon = Daemon::start(&place);
    collector.reply_with(vec![Reply::Delay(Duration::from_millis(900)); 12]);
    for _ in 0..3 {
        let answered = collector.received(|received| received.requests);
        machine::wait_until("a request", || collector.received(|received| received.requests) > answered);
        daemon.round();
    }
    daemon.stop();
    let timestamp = |at: SystemTime| Timestamp::UNIX_EPOCH + at.duration_since(UNIX_EPOCH).unwrap();
    let delayed = collector.received(|received| received.delayed.clone());
    assert!(
        delayed.len() >= 3,
        "each round was requested while an export request was in flight: {delayed:?}"
    );
    let runs = Reader::open(&place.database()).unwrap().runs(&RunFilter::default()).unwrap();
    for phase in runs.iter().flat_map(|stored| &stored.run.phases) {
        let began = phase.began_us.unwrap();
        let ended = began + Duration::from_secs_f64(phase.seconds);
        for (from, to) in &delayed {
            let (from, to) = (timestamp(*from), timestamp(*to));
            let apart = ended <= from || to <= began;
            assert!(apart, "{} was measured during an export request, {from:?} to {to:?}", phase.name);
        }
    }
}

#[test]
fn export_problem_is_shown_by_status() {
    let place = place("endpoint = \"http://127.0.0.1:1\"\nheaders-variable = \"NO_SUCH\"\n");
    let daemon = Daemon::start(&place);
    daemon.wait_for("the problem", |status| !status["telemetry"]["problem"].is_null());
    let output = place.longhaul("status").expect(0);
    assert!(output.out.contains("nothing is sent: the variable NO_SUCH"), "{output}");
    daemon.stop();
}

#[test]
fn telemetry_check_shows_the_response_but_no_secret() {
    let place = place("");
    place.longhaul("telemetry check").expect(2).assert_stderr(&[
        "endpoint",
        "[telemetry]",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ]);
    let (collector, secrets) = (Collector::start(), place.path("secrets"));
    std::fs::write(&secrets, "authorization: Bearer topsecret\n").unwrap();
    std::fs::set_permissions(&secrets, PermissionsExt::from_mode(0o600)).unwrap();
    configure(&place, &format!("{}headers-file = \"{}\"\n", endpoint(&collector), secrets.display()));
    let output = place.longhaul("telemetry check").expect(0);
    assert!(output.out.contains("ok       traces") && output.out.contains("ok       metrics"), "{output}");
    assert!(
        output.out.contains("Sent by this program") && output.out.contains("`longhaul status`"),
        "{output}"
    );
    assert_eq!(collector.received(|received| received.headers["authorization"].clone()), "Bearer topsecret");
    collector.reply_with([Reply::Respond(401, "Content-Type: text/plain\r\n", b"who are you?")]);
    let output = place.longhaul("telemetry check").expect(3);
    assert!(output.out.contains("failed   traces") && output.out.contains("401: who are you?"), "{output}");
    assert!(!format!("{output}").contains("topsecret"));
    std::fs::set_permissions(&secrets, PermissionsExt::from_mode(0o644)).unwrap();
    place.longhaul("telemetry check").expect(2).assert_stderr(&["chmod 600"]);
}

#[test]
fn telemetry_replay_sends_the_same_ids_again() {
    let collector = Collector::start();
    let place = place(&endpoint(&collector));
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| sent(status) == 1);
    daemon.stop();
    let before = collector.received(Received::spans);
    let output = place.longhaul("telemetry replay --from 2020-01-01").expect(0);
    assert!(output.out.contains("1 rounds") && output.out.contains("0 messages rejected"), "{output}");
    assert_eq!(collector.received(Received::spans), before, "all spans are identical");
    assert_eq!(collector.received(|received| received.traces.len()), 2, "the spans arrived a second time");
    let output = place.longhaul("telemetry replay --from 2020-01-01 --to 2020-02-01").expect(0);
    assert!(output.out.contains("0 rounds"), "{output}");
    place.longhaul("telemetry replay --from tomorrow").expect(2).assert_stderr(&["tomorrow"]);
}
