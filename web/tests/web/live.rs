//! What is live reaches every page that is open, and ends with the service.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::Face;
use crate::world;

/// A page that is open.
struct Open(BufReader<TcpStream>);

impl Open {
    fn of(face: &Face, last: Option<&str>) -> Self {
        use std::io::Write;
        let mut stream = face.connect();
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept-Encoding: gzip\r\n{last}\r\n",
            face.port
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next line; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.0.read_line(&mut line).unwrap() > 0).then(|| line.trim_end().to_owned())
    }

    /// The first line with these words, and everything before it.
    fn until(&mut self, words: &str) -> Vec<String> {
        let mut seen = vec![];
        loop {
            let line = self.line().unwrap_or_else(|| panic!("`{words}` does not come: {seen:?}"));
            let is_it = line.contains(words);
            seen.push(line);
            if is_it {
                return seen;
            }
        }
    }
}

#[test]
fn a_round_appears_and_ends_without_reloading() {
    let face = Face::start();
    let mut open = Open::of(&face, None);
    open.until("No round goes on");
    world::begin_round(&face.desk);
    let seen = open.until("4 of 12 runs");
    assert!(
        seen.iter().any(|line| line.contains("photo-batch"))
            && seen.iter().any(|line| line.contains("measuring"))
    );
    face.desk.set_round(None);
    open.until("No round goes on");
}

#[test]
fn a_stall_is_on_an_open_page_within_two_seconds() {
    let face = Face::start();
    let mut open = Open::of(&face, None);
    open.until("No round goes on");
    let began = Instant::now();
    face.desk.set_stalls(vec![world::stall_now()]);
    open.until("nfs keeps a");
    // Twice what is promised: the machine may be busy.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_stream_is_never_compressed() {
    let face = Face::start();
    let head = Open::of(&face, None).until("data:").join("\n").to_lowercase();
    assert!(head.contains("content-type: text/event-stream") && !head.contains("content-encoding"), "{head}");
}

#[test]
fn who_comes_back_gets_only_what_is_new() {
    let face = Face::start();
    let mut open = Open::of(&face, None);
    let seen = open.until("No round goes on");
    let id = seen
        .iter()
        .find_map(|line| line.strip_prefix("id: "))
        .or(seen.iter().find_map(|line| line.strip_prefix("id:")));
    let id = id.map_or_else(|| open.until("id:").pop().unwrap().replace("id:", ""), ToOwned::to_owned);
    let mut back = Open::of(&face, Some(id.trim()));
    face.desk.set_stalls(vec![world::stall_now()]);
    let news = back.until("nfs keeps a");
    assert!(!news.iter().any(|line| line.contains("No round goes on")), "{news:?}");
}

#[test]
fn every_stream_ends_with_the_service() {
    let mut face = Face::start();
    let mut open: Vec<Open> = (0..5).map(|_| Open::of(&face, None)).collect();
    open.iter_mut().for_each(|page| drop(page.until("No round goes on")));
    face.end();
    for page in &mut open {
        while page.line().is_some() {}
    }
}

#[test]
fn who_is_not_measured_waits_for_the_round_in_progress() {
    let face = Face::start();
    world::begin_round(&face.desk);
    let status = face.get("/api/v1/status").json();
    let states: Vec<_> =
        status["targets"].as_array().unwrap().iter().map(|target| &target["state"]).collect();
    let (measured, others): (Vec<_>, Vec<_>) =
        states.into_iter().partition(|state| state["name"] == "measuring");
    assert_eq!((measured.len(), others.len()), (1, 2));
    assert!(others.iter().all(|state| state["reason"] == "the round in progress"), "{others:?}");
}
