//! A NAS that answers slowly, wrongly, without end, from elsewhere or never. Every reading ends in time, with the reason.

#![allow(clippy::unwrap_used)]

mod servers;

use std::time::{Duration, Instant};

use longhaul_model::{NasProblem, NasReading};
use longhaul_nas::{
    AuthProtocol, NasError, NasReader, NasSource, PrivProtocol, SnmpAccess, SnmpSettings, SnmpUser, read,
};
use longhaul_notify::SecretSource;
use servers::{HttpServer, SnmpServer};

/// Limit of a reading, as before a run.
const LIMIT: Duration = Duration::from_secs(1);
/// Time that this machine may take on top, while other tests use it.
const SLACK: Duration = Duration::from_secs(2);

/// Reads a NAS and checks that this ends in time.
fn timed(source: &NasSource) -> Result<NasReading, NasError> {
    let began = Instant::now();
    let found = read(source, LIMIT);
    assert!(began.elapsed() < LIMIT + SLACK, "{:?}", began.elapsed());
    found
}

fn problem(source: &NasSource) -> NasProblem {
    timed(source).unwrap_err().problem
}

fn snmp(port: u16) -> NasSource {
    let access = SnmpAccess::Community(None);
    NasSource::Snmp(Box::new(SnmpSettings { host: "127.0.0.1".to_owned(), port, access }))
}

fn exporter(server: &HttpServer) -> NasSource {
    NasSource::NodeExporter(format!("{}metrics", server.url()))
}

#[test]
fn exporter_that_sends_a_byte_a_second_is_given_up() {
    let starts: [&[u8]; 2] = [b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"];
    let dripping = starts.map(|start| HttpServer::dripping(start, b""));
    for server in dripping.into_iter().chain([HttpServer::silent()]) {
        assert_eq!(problem(&exporter(&server)), NasProblem::Timeout);
    }
}

#[test]
fn endless_answer_of_an_exporter_is_not_kept() {
    let server = HttpServer::flooding(b"HTTP/1.1 200 OK\r\n\r\n");
    let found = problem(&exporter(&server));
    assert!(matches!(found, NasProblem::TooLarge | NasProblem::Timeout), "{found:?}");
    assert!(server.sent_bytes() < 64 << 20, "{} bytes were taken", server.sent_bytes());
}

#[test]
fn answers_of_other_programs_are_no_reading() {
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>DSM</html", NasProblem::Nothing),
        ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", NasProblem::InvalidAnswer),
        ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", NasProblem::Refused),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", NasProblem::InvalidAnswer),
        ("220 mail.example.com ESMTP\r\n", NasProblem::InvalidAnswer),
        ("", NasProblem::InvalidAnswer),
    ] {
        let server = HttpServer::answering(answer.as_bytes());
        let found = problem(&exporter(&server));
        let is_closed = answer.is_empty() && found == NasProblem::Unreachable;
        assert!(found == expected || is_closed, "{answer:?}: {found:?}");
    }
}

#[test]
fn exporter_that_is_not_there_is_unreachable() {
    let source = NasSource::NodeExporter(format!("http://127.0.0.1:{}/metrics", HttpServer::closed_port()));
    assert_eq!(problem(&source), NasProblem::Unreachable);
    let unknown = NasSource::NodeExporter("http://no-such-nas.invalid:9100/metrics".to_owned());
    assert_eq!(problem(&unknown), NasProblem::Unreachable);
}

#[test]
fn exporter_without_a_collector_is_asked_for_everything() {
    let metrics = "node_disk_reads_completed_total{device=\"sda\"} 7\n";
    let server = HttpServer::refusing_queries(metrics);
    assert_eq!(timed(&exporter(&server)).unwrap().disks[0].name, "sda");
    let has_query = [server.request(), server.request()].map(|request| request.contains('?'));
    assert_eq!(has_query, [true, false]);
}

#[test]
fn agent_that_never_answers_is_given_up() {
    assert_eq!(problem(&snmp(SnmpServer::silent().port)), NasProblem::Timeout);
}

#[test]
fn agent_that_answers_too_slowly_is_given_up() {
    let server = SnmpServer::answering(|request| {
        std::thread::sleep(Duration::from_millis(300));
        Some(servers::disk_answer(request, "sda"))
    });
    assert_eq!(problem(&snmp(server.port)), NasProblem::Timeout);
}

#[test]
fn answers_of_another_host_are_dropped() {
    let server = SnmpServer::from_elsewhere(|request| Some(servers::disk_answer(request, "other")));
    assert_eq!(problem(&snmp(server.port)), NasProblem::Timeout);
}

#[test]
fn answers_to_other_requests_are_dropped() {
    let server = SnmpServer::answering(|request| {
        let mut answer = servers::disk_answer(request, "sda");
        servers::change_request_id(&mut answer);
        Some(answer)
    });
    assert_eq!(problem(&snmp(server.port)), NasProblem::Timeout);
}

#[test]
fn bytes_that_are_no_snmp_are_no_reading() {
    let noise: [&[u8]; 4] = [b"", b"\x30", b"HTTP/1.1 400 Bad Request\r\n", &[0xff; 1400]];
    for bytes in noise {
        let server = SnmpServer::answering(move |_| Some(bytes.to_vec()));
        let found = problem(&snmp(server.port));
        assert!(matches!(found, NasProblem::Timeout | NasProblem::InvalidAnswer), "{found:?}");
    }
}

#[test]
fn table_without_end_is_refused_or_given_up() {
    let server = SnmpServer::answering(|request| Some(servers::endless_answer(request)));
    let found = problem(&snmp(server.port));
    assert!(matches!(found, NasProblem::TooLarge | NasProblem::Timeout), "{found:?}");
}

#[test]
fn table_that_goes_round_in_circles_ends() {
    let server = SnmpServer::answering(|request| Some(servers::circular_answer(request)));
    assert_eq!(timed(&snmp(server.port)).unwrap().disks.len(), 1);
}

#[test]
fn values_of_wrong_types_are_unknown() {
    let server = SnmpServer::answering(|request| Some(servers::disk_answer(request, "sda")));
    let reading = timed(&snmp(server.port)).unwrap();
    assert_eq!(reading.disks.len(), 1);
    let disk = &reading.disks[0];
    assert_eq!((disk.name.as_str(), disk.reads, disk.busy), ("sda", None, None));
    assert_eq!(reading.processors, None);
}

#[test]
fn secrets_are_checked_before_anything_is_sent() {
    let server = SnmpServer::silent();
    let missing = || SecretSource::Variable { key: "password", name: "LONGHAUL_NO_SUCH_VARIABLE".to_owned() };
    let user = SnmpUser {
        name: "ada".to_owned(),
        authentication: AuthProtocol::Sha256,
        password: missing(),
        encryption: Some((PrivProtocol::Aes128, missing())),
    };
    for access in [SnmpAccess::User(user), SnmpAccess::Community(Some(missing()))] {
        let settings = SnmpSettings { host: "127.0.0.1".to_owned(), port: server.port, access };
        let error = timed(&NasSource::Snmp(Box::new(settings))).unwrap_err();
        assert_eq!(error.problem, NasProblem::NoCredentials);
        assert!(error.message.contains("LONGHAUL_NO_SUCH_VARIABLE"), "{error}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn community_is_in_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("community");
    std::fs::write(&path, "tops3cret\n").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).unwrap();
    let source = SecretSource::File { key: "community", path: path.clone() };
    let server = SnmpServer::silent();
    let access = SnmpAccess::Community(Some(source));
    let settings = SnmpSettings { host: "127.0.0.1".to_owned(), port: server.port, access };
    let source = NasSource::Snmp(Box::new(settings));
    let error = timed(&source).unwrap_err();
    assert!(!format!("{error:?} {source:?}").contains("tops3cret"));
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&path, readable).unwrap();
    let error = timed(&source).unwrap_err();
    assert!(error.problem == NasProblem::NoCredentials && error.message.contains("chmod 600"), "{error}");
}

#[test]
fn thread_that_is_still_busy_fails_the_next_reading_in_time() {
    let server = HttpServer::silent();
    let reader = NasReader::start(exporter(&server));
    for _ in 0..3 {
        let began = Instant::now();
        let limit = Duration::from_millis(100);
        assert_eq!(reader.read(limit).unwrap_err().problem, NasProblem::Timeout);
        assert!(began.elapsed() < limit + SLACK, "{:?}", began.elapsed());
    }
}
