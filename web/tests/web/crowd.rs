//! Tests that the server still answers when more clients connect than it has connection slots.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Answer, Open, PATIENCE, TestServer};
use crate::world::TOKEN;

/// Requests the status with the token, as the command line does.
fn status(server: &TestServer) -> Answer {
    server.request("GET", "/api/v1/status", &[("Authorization", &format!("Bearer {TOKEN}"))])
}

/// Sends a request on a new connection and leaves the connection open.
fn send(server: &TestServer, request: &str) -> TcpStream {
    let mut stream = server.connect();
    // A connection that the server rejected is already closed.
    let _ = stream.write_all(request.as_bytes());
    stream
}

/// Opens this many event streams, like pages without a key.
fn listeners(server: &TestServer, count: usize) -> Vec<TcpStream> {
    let request = format!("GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port);
    (0..count).map(|_| send(server, &request)).collect()
}

#[test]
fn idle_connections_do_not_block_requests() {
    let server = TestServer::start();
    let mut idle = vec![];
    for _ in 0..12 {
        idle.extend((0..50).map(|_| server.connect()));
        assert_eq!(status(&server).status, 200, "with {} idle connections", idle.len());
        assert_eq!(server.get("/method").status, 200, "also without the token");
    }
}

#[test]
fn streams_are_limited_and_do_not_block_requests() {
    let server = TestServer::start();
    let mut streams = vec![];
    for _ in 0..6 {
        streams.extend(listeners(&server, 100));
        assert_eq!(status(&server).status, 200, "with {} streams", streams.len());
        assert_eq!(server.get("/method").status, 200, "also without the token");
    }
    let answers = streams.iter_mut().map(|stream| {
        let mut head = [0; 12];
        stream.read_exact(&mut head).map_or(0, |()| String::from_utf8_lossy(&head)[9..].parse().unwrap())
    });
    let answers: Vec<u16> = answers.collect();
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 128, "{answers:?}");
    assert!(
        answers.iter().all(|status| matches!(status, 200 | 503)),
        "every stream is either open or refused: {answers:?}"
    );
}

#[test]
fn stream_survives_many_idle_connections() {
    let server = TestServer::start();
    let mut open = Open::of(&server, None);
    open.until("No round in progress");
    let _idle: Vec<TcpStream> = (0..400).map(|_| server.connect()).collect();
    assert_eq!(status(&server).status, 200);
    server.handle.set_stalls(vec![longhaul_demo::stall_now()]);
    open.until("<code>nfs</code>: getattr has not returned");
}

#[test]
fn token_requests_are_served_when_all_slots_are_busy() {
    let server = TestServer::with_body_timeout(PATIENCE);
    let _streams = listeners(&server, 128);
    // Requests whose announced bodies never arrive. They need no token.
    let head =
        format!("GET /method HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 9\r\n\r\n", server.port);
    let waiting: Vec<TcpStream> = (0..128).map(|_| send(&server, &head)).collect();
    wait_for(&server, 503);
    let _idle: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    for _ in 0..20 {
        assert_eq!(status(&server).status, 200);
    }
    let refused = server.get("/method");
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    drop(waiting);
    wait_for(&server, 200);
}

#[test]
fn slowly_sent_body_times_out() {
    let server = TestServer::with_body_timeout(Duration::from_millis(200));
    let bearer = format!("Authorization: Bearer {TOKEN}");
    for first in ["POST /api/v1/pause HTTP/1.1", "GET /method HTTP/1.1"] {
        let head = format!(
            "{first}\r\nHost: 127.0.0.1:{}\r\n{bearer}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
            server.port
        );
        let answer = drip(&mut send(&server, &head), 999);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("did not arrive within"), "{answer}");
    }
    assert!(server.handle.next_command().is_none(), "no command was accepted");
}

#[test]
fn unauthorized_request_is_refused_before_its_body() {
    let server = TestServer::with_body_timeout(PATIENCE);
    let head = "POST /api/v1/pause HTTP/1.1";
    let mut stream = send(
        &server,
        &format!("{head}\r\nHost: 127.0.0.1:{}\r\nContent-Length: 1000\r\n\r\n{{", server.port),
    );
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

/// Sends one byte at a time until the server answers, and returns the answer up to the end of the connection.
fn drip(stream: &mut TcpStream, most: usize) -> String {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut answer = vec![];
    for _ in 0..most {
        let mut part = [0; 4096];
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend(&part[..read]),
            Err(_) if answer.is_empty() => drop(stream.write_all(b" ")),
            Err(_) => {}
        }
    }
    String::from_utf8(answer).unwrap()
}

/// Repeats a request without the token until the response has this status.
fn wait_for(server: &TestServer, expected: u16) {
    let began = Instant::now();
    loop {
        let found = server.get("/method").status;
        if found == expected {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{found} instead of {expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
