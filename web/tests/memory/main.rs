//! What open pages cost. Alone in its process, for the memory of others is none of ours.

#![allow(clippy::unwrap_used)]
// Of what the other tests share, a part is used here.
#![allow(dead_code)]

#[path = "../web/client.rs"]
mod client;
#[path = "../web/world.rs"]
mod world;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use client::Face;

/// A page that has heard what is so now.
fn open(face: &Face) -> BufReader<TcpStream> {
    let mut stream = face.connect();
    stream
        .write_all(format!("GET /events HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", face.port).as_bytes())
        .unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("No round goes on") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "it goes on");
    }
    stream
}

#[test]
fn a_hundred_open_pages_cost_less_than_ten_megabytes() {
    let face = Face::start();
    drop(face.get("/"));
    let before = resident();
    let pages: Vec<BufReader<TcpStream>> = (0..100).map(|_| open(&face)).collect();
    let Some((before, after)) = before.zip(resident()) else {
        eprintln!("skipped: this system does not say what memory a process has");
        return;
    };
    assert!(after < before + 10_000_000, "{before} to {after}");
    println!("{} open pages: {} bytes more", pages.len(), after.saturating_sub(before));
    assert_eq!(face.get("/").status, 200, "and others are answered");
}

/// What memory this process has, in bytes; the test's own side of the connections is in it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
