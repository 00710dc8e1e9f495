//! Tests of `longhaul demo`: it answers, says that its data is made up, and leaves nothing.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, machine};

/// A running demo. It is killed when dropped.
struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    temporary: PathBuf,
}

impl Demo {
    fn start(place: &Place) -> Self {
        let temporary = place.folder("temporary");
        let mut command = place.longhaul("demo").command();
        let mut child = command.env("TMPDIR", &temporary).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, temporary }
    }

    /// Waits until the demo is ready, and returns its address.
    fn address(&mut self) -> String {
        let line = self.lines.next().unwrap().unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    }

    /// Returns the names of what the demo keeps in the temporary folder.
    fn left(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.temporary).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Sends a signal, and checks that the demo ends as it should.
    fn end(&mut self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(self.left(), [] as [PathBuf; 0]);
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str) -> String {
    ureq::get(address).call().unwrap().body_mut().read_to_string().unwrap()
}

#[test]
fn demo_shows_made_up_weeks_and_leaves_nothing() {
    let place = Place::new();
    let mut demo = Demo::start(&place);
    let address = demo.address();
    for path in ["", "weeks", "latency", "tasks", "events", "runs", "targets", "method"] {
        let page = get(&format!("{address}{path}"));
        assert!(page.contains("Demo: these weeks are made up."), "{path}");
    }
    let status: Value = serde_json::from_str(&get(&format!("{address}api/v1/status"))).unwrap();
    assert_eq!(status["targets"].as_array().unwrap().len(), 4);
    let glance: Value = serde_json::from_str(&get(&format!("{address}api/v1/glance"))).unwrap();
    assert_eq!(glance["confidence"], "decided");
    machine::wait_until("a round in progress", || {
        get(&format!("{address}api/v1/live")).contains("photo-batch")
    });
    assert_eq!(demo.left().len(), 1);
    demo.end(Signal::INT);
    assert!(!place.data().exists(), "nothing is written to the user's data folder");
}

#[test]
fn demo_that_is_stopped_early_leaves_nothing() {
    let place = Place::new();
    let mut demo = Demo::start(&place);
    machine::wait_until("the database", || {
        demo.left().iter().any(|folder| folder.join("longhaul.sqlite").exists())
    });
    demo.end(Signal::TERM);
}

#[test]
fn demo_names_a_port_in_use() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = place.longhaul("demo --port").arg(port.to_string()).expect(1);
    refused.assert_stderr(&[&format!("port {port}: ")]);
    assert!(refused.err.trim_end().ends_with("; try another --port"), "{refused}");
}
