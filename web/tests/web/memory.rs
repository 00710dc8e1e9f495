//! Measures the memory of open pages. Each test has a process of its own, because memory is counted per process.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Open, PATIENCE, TestServer};
use crate::own_process::in_own_process;
use crate::world::TOKEN;

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn hundred_open_pages_use_less_than_10_megabytes() {
    if !in_own_process(hundred_open_pages_use_less_than_10_megabytes, &[]) {
        return;
    }
    let server = TestServer::start();
    drop(server.get("/"));
    let before = resident();
    let mut pages: Vec<Open> = (0..100).map(|_| Open::of(&server, None)).collect();
    pages.iter_mut().for_each(|page| drop(page.until("No round in progress")));
    let after = resident();
    assert!(after < before + 10_000_000, "{before} to {after}");
    println!("{} open pages: {} bytes more", pages.len(), after.saturating_sub(before));
    assert_eq!(server.get("/").status, 200, "other requests are still answered");
}

#[test]
#[ignore = "opens 11,000 connections and takes 100 s; RELEASING.md lists it"]
fn ten_thousand_idle_and_a_thousand_slow_connections_block_nothing() {
    if !in_own_process(ten_thousand_idle_and_a_thousand_slow_connections_block_nothing, &[]) {
        return;
    }
    longhaul_measure::platform::raise_descriptor_limit().unwrap();
    let server = TestServer::start();
    assert_eq!(server.get("/method").status, 200);
    let before = resident();
    // A connection beyond the limit is closed by the server, and its client end stays open here.
    let idle: Vec<TcpStream> = (0..10_000).map(|_| server.connect()).collect();
    let mut slow: Vec<TcpStream> = (0..1_000).map(|_| server.connect()).collect();
    let head = format!("GET /method HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", server.port);
    let began = Instant::now();
    for (second, byte) in head.bytes().take(20).enumerate() {
        let open = slow.iter_mut().filter_map(|stream| stream.write_all(&[byte]).ok()).count();
        let asked = Instant::now();
        let status =
            server.request("GET", "/api/v1/status", &[("Authorization", &format!("Bearer {TOKEN}"))]);
        assert_eq!(status.status, 200, "after {second} s with {open} slow connections");
        assert!(asked.elapsed() < PATIENCE, "{:?}", asked.elapsed());
        std::thread::sleep(Duration::from_secs(1).saturating_sub(asked.elapsed()));
    }
    let growth = resident().saturating_sub(before);
    println!(
        "| {} idle, {} slow connections | +{:.1} MB | {:?} |",
        idle.len(),
        slow.len(),
        growth as f64 / 1e6,
        began.elapsed()
    );
    assert!(growth < 8 << 20, "{growth}");
    drop((idle, slow));
    assert_eq!(server.get("/method").status, 200);
}

/// Returns the resident memory of this process in bytes. It includes the client side of the connections.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
