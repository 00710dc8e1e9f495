//! Measures the memory of open pages. It has a process of its own, because memory is counted per process.

#![allow(clippy::unwrap_used)]
// This test uses only a part of the modules that it shares with the other tests.
#![allow(dead_code)]

#[path = "../web/client.rs"]
mod client;
#[path = "../web/world.rs"]
mod world;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use client::TestServer;

/// Opens a page and waits until its stream has sent the current state.
fn open(server: &TestServer) -> BufReader<TcpStream> {
    let mut stream = server.connect();
    stream
        .write_all(format!("GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.port).as_bytes())
        .unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("No round in progress") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream stays open");
    }
    stream
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn hundred_open_pages_use_less_than_10_megabytes() {
    let server = TestServer::start();
    drop(server.get("/"));
    let before = resident();
    let pages: Vec<BufReader<TcpStream>> = (0..100).map(|_| open(&server)).collect();
    let after = resident();
    assert!(after < before + 10_000_000, "{before} to {after}");
    println!("{} open pages: {} bytes more", pages.len(), after.saturating_sub(before));
    assert_eq!(server.get("/").status, 200, "other requests are still answered");
}

/// Returns the resident memory of this process in bytes. It includes the client side of the connections.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
