//! Open-loop load generator: requests one path at a constant rate and prints the time to the first byte. Times
//! count from the scheduled start of a request, so a stalled server is charged for every request it delayed.
//! Usage: `cargo run -p longhaul-web --example load -- PORT PATH [A_SECOND] [SECONDS]`.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Number of threads that take turns. A request starts late only if all of them are busy.
const CONNECTIONS: u32 = 32;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments
        .next()
        .and_then(|port| port.parse().ok())
        .expect("usage: load PORT PATH [A_SECOND] [SECONDS]");
    let path = arguments.next().unwrap_or_else(|| "/".to_owned());
    let a_second: u32 = arguments.next().map_or(200, |rate| rate.parse().unwrap());
    let seconds: u32 = arguments.next().map_or(10, |seconds| seconds.parse().unwrap());
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    );
    let begin = Instant::now() + Duration::from_millis(200);
    let threads = (0..CONNECTIONS).map(|thread| {
        let request = request.clone();
        std::thread::spawn(move || {
            let slots = (thread..a_second * seconds).step_by(CONNECTIONS as usize);
            slots
                .map(|slot| timed_request(port, &request, begin + Duration::from_secs(1) * slot / a_second))
                .collect::<Vec<_>>()
        })
    });
    let threads: Vec<_> = threads.collect();
    let mut answers: Vec<(Duration, usize)> =
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    answers.sort_unstable();
    let at = |q: f64| answers[((answers.len() - 1) as f64 * q).round() as usize].0.as_secs_f64() * 1e3;
    println!(
        "{path}: n {} at {a_second} per second: first byte p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms; {} bytes each",
        answers.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        answers[0].1
    );
}

/// Sends a request at its scheduled time. Returns the time from then to the first byte, and the size of the
/// response in bytes.
fn timed_request(port: u16, request: &str, at: Instant) -> (Duration, usize) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = vec![0; 1];
    stream.read_exact(&mut bytes).unwrap();
    let first = at.elapsed();
    stream.read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&bytes[..40]));
    (first, bytes.len())
}
