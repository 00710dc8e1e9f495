//! More connections than there are places: who is answered all the same.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use longhaul_web::Limits;

use crate::client::{Answer, Face, PATIENCE};
use crate::world::{self, TOKEN};

/// Asks for the status as the command line does.
fn status(face: &Face) -> Answer {
    face.ask("GET", "/api/v1/status", &[("Authorization", &format!("Bearer {TOKEN}"))])
}

/// A connection on which this was said, and which stays open.
fn say(face: &Face, request: &str) -> TcpStream {
    let mut stream = face.connect();
    // A client that was turned away finds the line closed.
    let _ = stream.write_all(request.as_bytes());
    stream
}

/// So many attempts to listen, as a page does that has no key.
fn listeners(face: &Face, count: usize) -> Vec<TcpStream> {
    let request = format!("GET /events HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", face.port);
    (0..count).map(|_| say(face, &request)).collect()
}

#[test]
fn idle_connections_lock_nobody_out() {
    let face = Face::start();
    let mut idle = vec![];
    for _ in 0..12 {
        idle.extend((0..50).map(|_| face.connect()));
        assert_eq!(status(&face).status, 200, "beside {} idle connections", idle.len());
        assert_eq!(face.get("/method").status, 200, "without the token too");
    }
}

#[test]
fn streams_have_a_share_and_lock_nobody_out() {
    let face = Face::start();
    let mut streams = vec![];
    for _ in 0..6 {
        streams.extend(listeners(&face, 100));
        assert_eq!(status(&face).status, 200, "beside {} attempts", streams.len());
        assert_eq!(face.get("/method").status, 200, "without the token too");
    }
    let answers = streams.iter_mut().map(|stream| {
        let mut head = [0; 12];
        stream.read_exact(&mut head).map_or(0, |()| String::from_utf8_lossy(&head)[9..].parse().unwrap())
    });
    let answers: Vec<u16> = answers.collect();
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 128, "{answers:?}");
    assert!(answers.iter().all(|status| matches!(status, 200 | 503)), "none is cut off: {answers:?}");
}

#[test]
fn a_stream_goes_on_beside_idle_connections() {
    let face = Face::start();
    let mut streams = listeners(&face, 1);
    let stream = &mut streams[0];
    read_until(stream, "No round goes on");
    let _idle: Vec<TcpStream> = (0..400).map(|_| face.connect()).collect();
    assert_eq!(status(&face).status, 200);
    face.desk.set_stalls(vec![world::stall_now()]);
    read_until(stream, "nfs keeps a");
}

#[test]
fn the_token_is_answered_while_every_other_place_is_taken() {
    let face = Face::with(Limits { body: PATIENCE });
    let _streams = listeners(&face, 128);
    // Requests whose bodies do not come, which nobody needs a token for.
    let head = format!("GET /method HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 9\r\n\r\n", face.port);
    let waiting: Vec<TcpStream> = (0..128).map(|_| say(&face, &head)).collect();
    wait_for(&face, 503);
    let _idle: Vec<TcpStream> = (0..100).map(|_| face.connect()).collect();
    for _ in 0..20 {
        assert_eq!(status(&face).status, 200);
    }
    let refused = face.get("/method");
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    drop(waiting);
    wait_for(&face, 200);
}

#[test]
fn a_body_sent_byte_by_byte_is_ended() {
    let face = Face::with(Limits { body: Duration::from_millis(200) });
    let bearer = format!("Authorization: Bearer {TOKEN}");
    for first in ["POST /api/v1/pause HTTP/1.1", "GET /method HTTP/1.1"] {
        let head = format!(
            "{first}\r\nHost: 127.0.0.1:{}\r\n{bearer}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
            face.port
        );
        let answer = drip(&mut say(&face, &head), 999);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("did not come within"), "{answer}");
    }
    assert!(face.desk.orders(|orders| orders.pause.is_none()), "nothing was ordered");
}

#[test]
fn a_refused_body_is_not_waited_for() {
    let face = Face::with(Limits { body: PATIENCE });
    let head = "POST /api/v1/pause HTTP/1.1";
    let mut stream =
        say(&face, &format!("{head}\r\nHost: 127.0.0.1:{}\r\nContent-Length: 1000\r\n\r\n{{", face.port));
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

/// Sends one byte after the other until there is an answer, which is given back with the end of the connection.
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

/// Asks without the token until the answer is this one.
fn wait_for(face: &Face, expected: u16) {
    let began = Instant::now();
    loop {
        let found = face.get("/method").status;
        if found == expected {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{found} instead of {expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads until these words came.
fn read_until(stream: &mut TcpStream, words: &str) {
    let mut seen = String::new();
    let mut part = [0; 4096];
    while !seen.contains(words) {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "`{words}` does not come: {seen}");
        seen += &String::from_utf8_lossy(&part[..read]);
    }
}
