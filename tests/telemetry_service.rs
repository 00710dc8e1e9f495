//! The export as a person meets it: configured, shown by `status`, asked by `otel`, read by Prometheus.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_store::{Reader, RunFilter};
use opentelemetry_proto::tonic::trace::v1::Span;
use support::collector::{Collector, Got, Mood};
use support::daemon::{BUSY, Daemon, http, log, target};
use support::exporting::text;
use support::{Place, machine};

/// A place with a target whose rounds are made when a test says so, and these lines below `[telemetry]`.
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
fn a_service_sends_its_rounds_and_status_tells_of_it() {
    let collector = Collector::start();
    let place = place(&(endpoint(&collector) + "[telemetry.attributes]\n\"site\" = \"attic\"\n"));
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| sent(status) == 1);
    let said = place.longhaul("status").expect(0);
    let traces = format!("{}/v1/traces: 1 rounds sent", collector.endpoint());
    assert!(said.out.contains(&traces) && said.out.contains("0 waiting, 0 rejected, 0 expired"), "{said}");
    let names: Vec<String> = collector.got(Got::spans).into_values().map(|span| span.name).collect();
    assert!(names.contains(&"round".to_owned()) && names.contains(&"folder-index".to_owned()), "{names:?}");
    assert!(names.len() > 4, "and the phases, whose begins were kept: {names:?}");
    calls_lie_within_their_phases(&collector);
    let all = collector.got(|got| format!("{:?}", got.traces));
    assert!(
        all.contains("attic") && !all.contains(place.root().to_str().unwrap()),
        "no path leaves the machine"
    );
    let metrics = || collector.got(|got| format!("{:?}", got.metrics));
    machine::wait_until("what is so just now", || metrics().contains("longhaul.budget.used"));
    daemon.stop();
}

/// Some calls of a real run are there, each at an instant of its phase and with the reason why it was kept.
fn calls_lie_within_their_phases(collector: &Collector) {
    let spans = collector.got(Got::spans);
    let kept = |span: &Span| text(&span.attributes, "longhaul.call.kept").map(str::to_owned);
    let calls: Vec<&Span> = spans.values().filter(|span| kept(span).is_some()).collect();
    for reason in ["slowest", "sample"] {
        assert!(calls.iter().any(|call| kept(call).as_deref() == Some(reason)), "{reason}");
    }
    for call in calls {
        let phase = &spans[&(call.trace_id.clone(), call.parent_span_id.clone())];
        // The phase begins by two clocks, which are read one after the other.
        let slack = 1_000_000;
        assert!(call.start_time_unix_nano >= phase.start_time_unix_nano, "{call:?}");
        assert!(call.end_time_unix_nano <= phase.end_time_unix_nano + slack, "{call:?} {phase:?}");
    }
}

#[test]
fn prometheus_reads_the_same_instruments_and_nobody_else_does() {
    let place = place("");
    let daemon = Daemon::start(&place);
    daemon.round();
    let port = daemon.contact().unwrap().port;
    let ask = |host: &str| http(port, "GET /metrics", &format!("Host: {host}\r\n"), "").unwrap();
    let (code, text) = ask(&format!("127.0.0.1:{port}"));
    assert_eq!(code, 200, "{text}");
    for line in ["longhaul_runs_total{", "longhaul_target_stuck_seconds{longhaul_target=\"a\"} 0", "# EOF"] {
        assert!(text.contains(line), "`{line}` is missing:\n{text}");
    }
    let runs = |text: &str| {
        text.lines().find_map(|line| line.strip_prefix("longhaul_rounds_total{")).map(str::to_owned)
    };
    daemon.round();
    let again = ask(&format!("localhost:{port}")).1;
    assert_ne!(runs(&text), runs(&again), "it goes on counting");
    assert_eq!(ask("evil.example").0, 421);
    daemon.stop();
}

#[test]
fn a_collector_that_is_away_disturbs_nothing_and_gets_all_when_it_is_back() {
    let collector = Collector::start();
    let place = place("endpoint = \"http://127.0.0.1:1\"\n");
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.round();
    daemon.wait_for("a failure", |status| !status["telemetry"]["signals"][0]["failing"].is_null());
    let said = place.longhaul("status").expect(0);
    assert!(
        said.out.contains("2 waiting") && said.out.contains("does not answer: nobody listens there"),
        "{said}"
    );
    configure(&place, &endpoint(&collector));
    daemon.wait_for("both rounds to be sent", |status| sent(status) == 2);
    daemon.stop();
}

#[test]
fn the_log_and_the_spans_of_the_service_are_sent_only_if_that_is_asked_for() {
    let collector = Collector::start();
    let place = place(&endpoint(&collector));
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| sent(status) == 1);
    assert_eq!(collector.got(|got| got.logs.len()), 0);
    assert!(own_spans(&collector).is_empty());
    configure(&place, &(endpoint(&collector) + "diagnostics = true\n"));
    let is_taken = || std::fs::read_to_string(log(&place)).unwrap().contains("a new configuration");
    machine::wait_until("the configuration to be taken", is_taken);
    daemon.round();
    let has = |said: &str| {
        collector.got(|got| got.logs.iter().any(|line| format!("{:?}", line.body).contains(said)))
    };
    machine::wait_until("the log", || {
        if !has("a round ended") {
            daemon.round();
        }
        has("a round ended")
    });
    let runs_lie_in_rounds = || {
        let spans = own_spans(&collector);
        spans.values().any(|span| {
            let round = spans.get(&(span.trace_id.clone(), span.parent_span_id.clone()));
            span.name == "run" && round.is_some_and(|round| round.name == "round")
        })
    };
    machine::wait_until("the spans of a round that was made", runs_lie_in_rounds);
    machine::wait_until("a line that says what the service was busy with", || {
        let (spans, logs) = (own_spans(&collector), collector.got(|got| got.logs.clone()));
        logs.into_iter().any(|line| spans.contains_key(&(line.trace_id, line.span_id)))
    });
    daemon.stop();
}

/// What the service was busy with. Rounds that are stored have no such origin.
fn own_spans(collector: &Collector) -> BTreeMap<(Vec<u8>, Vec<u8>), Span> {
    let mut spans = collector.got(Got::spans);
    spans.retain(|_, span| text(&span.attributes, "longhaul.log.from").is_some());
    spans
}

#[test]
fn a_service_ends_in_time_while_a_collector_keeps_it_waiting() {
    let collector = Collector::start();
    collector.will(vec![Mood::Dawdle(Duration::from_secs(60)); 4]);
    let place = place(&(endpoint(&collector) + "timeout-seconds = 100\n"));
    let daemon = Daemon::start(&place);
    daemon.round();
    machine::wait_until("a request", || collector.got(|got| got.requests) > 0);
    daemon.stop();
}

#[test]
fn nothing_is_measured_while_a_message_is_in_flight() {
    let collector = Collector::start();
    let place = place(&endpoint(&collector));
    let daemon = Daemon::start(&place);
    collector.will(vec![Mood::Dawdle(Duration::from_millis(900)); 12]);
    for _ in 0..3 {
        let answered = collector.got(|got| got.requests);
        machine::wait_until("a request", || collector.got(|got| got.requests) > answered);
        daemon.round();
    }
    daemon.stop();
    let microseconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
    let dawdled = collector.got(|got| got.dawdled.clone());
    assert!(dawdled.len() >= 3, "each round was ordered while a message was in flight: {dawdled:?}");
    let runs = Reader::open(&place.database()).unwrap().runs(&RunFilter::default()).unwrap();
    for phase in runs.iter().flat_map(|stored| &stored.run.phases) {
        let began_us = phase.began_us.unwrap();
        let ended_us = began_us + (phase.seconds * 1e6) as i64;
        for (from, to) in &dawdled {
            let (from_us, to_us) = (microseconds(*from), microseconds(*to));
            let apart = ended_us <= from_us || to_us <= began_us;
            assert!(apart, "{} was timed while a message waited, {from_us} to {to_us}", phase.name);
        }
    }
}

#[test]
fn what_keeps_everything_from_being_sent_is_told() {
    let place = place("endpoint = \"http://127.0.0.1:1\"\nheaders-variable = \"NO_SUCH\"\n");
    let daemon = Daemon::start(&place);
    daemon.wait_for("the problem", |status| !status["telemetry"]["problem"].is_null());
    let said = place.longhaul("status").expect(0);
    assert!(said.out.contains("nothing is sent: the variable NO_SUCH"), "{said}");
    daemon.stop();
}

#[test]
fn check_says_what_came_back_and_shows_no_secret() {
    let place = place("");
    place.longhaul("otel check").expect(2).complains_of(&[
        "endpoint",
        "[telemetry]",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ]);
    let (collector, secrets) = (Collector::start(), place.path("secrets"));
    std::fs::write(&secrets, "authorization: Bearer topsecret\n").unwrap();
    std::fs::set_permissions(&secrets, PermissionsExt::from_mode(0o600)).unwrap();
    configure(&place, &format!("{}headers-file = \"{}\"\n", endpoint(&collector), secrets.display()));
    let said = place.longhaul("otel check").expect(0);
    assert!(said.out.contains("ok       traces") && said.out.contains("ok       metrics"), "{said}");
    assert!(said.out.contains("Sent by this program") && said.out.contains("`longhaul status`"), "{said}");
    assert_eq!(collector.got(|got| got.headers["authorization"].clone()), "Bearer topsecret");
    collector.will([Mood::Say(401, "Content-Type: text/plain\r\n", b"who are you?")]);
    let said = place.longhaul("otel check").expect(3);
    assert!(said.out.contains("failed   traces") && said.out.contains("401: who are you?"), "{said}");
    assert!(!format!("{said}").contains("topsecret"));
    std::fs::set_permissions(&secrets, PermissionsExt::from_mode(0o644)).unwrap();
    place.longhaul("otel check").expect(2).complains_of(&["chmod 600"]);
}

#[test]
fn replay_sends_a_window_again_with_the_same_ids() {
    let collector = Collector::start();
    let place = place(&endpoint(&collector));
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.wait_for("the round to be sent", |status| sent(status) == 1);
    daemon.stop();
    let before = collector.got(Got::spans);
    let said = place.longhaul("otel replay --from 2020-01-01").expect(0);
    assert!(said.out.contains("1 rounds") && said.out.contains("0 messages refused"), "{said}");
    assert_eq!(collector.got(Got::spans), before, "all of it is the same");
    assert_eq!(collector.got(|got| got.traces.len()), 2, "and was sent");
    let said = place.longhaul("otel replay --from 2020-01-01 --to 2020-02-01").expect(0);
    assert!(said.out.contains("0 rounds"), "{said}");
    place.longhaul("otel replay --from tomorrow").expect(2).complains_of(&["tomorrow"]);
}
