//! Requests with filters, parameters and keys, and what a reader is told about those that cannot be answered.

use std::sync::Arc;
use std::time::Duration;

use longhaul_model::Outcome;
use longhaul_store::{Reader, RunFilter};

use crate::client::{TestServer, database};
use crate::world::TOKEN;

#[test]
fn runs_are_filtered_by_outcome_and_counted_in_the_whole_database() {
    let server = TestServer::start();
    let reader = Reader::open(&database()).unwrap();
    let mut shown = 0;
    for outcome in Outcome::ALL {
        let filter = RunFilter { outcome: Some(outcome), ..RunFilter::default() };
        let stored = reader.run_count(&filter).unwrap();
        let page = server.get(&format!("/runs?outcome={}", outcome.name())).text();
        let rows = page.matches("<a href=\"/runs/").count() as u64;
        let counted =
            if stored > 100 { format!("Runs 1 to 100 of {stored}") } else { format!("{stored} run") };
        assert!(page.contains(&counted), "{outcome:?}: {counted}");
        assert_eq!(rows, stored.min(100), "{outcome:?}");
        assert_eq!(page.contains("Older runs"), stored > 100, "{outcome:?}");
        shown += stored;
    }
    assert_eq!(shown, reader.run_count(&RunFilter::default()).unwrap());
}

#[test]
fn older_runs_are_on_the_next_page() {
    let server = TestServer::start();
    let numbers = |path: &str| -> Vec<String> {
        let page = server.get(path).text();
        let links = page.split("<a href=\"/runs/").skip(1);
        links.map(|link| link.split('"').next().unwrap().to_owned()).collect()
    };
    let (first, second) = (numbers("/runs"), numbers("/runs?target=&workload=&outcome=&skip=100"));
    assert_eq!((first.len(), second.len()), (100, 100));
    assert!(first.iter().all(|number| !second.contains(number)));
    assert!(server.get("/runs?skip=100").text().contains("Newer runs"));
    assert_eq!(server.get("/runs?skip=4294967295").status, 200);
}

#[test]
fn parameters_that_cannot_be_read_are_named_on_a_page_or_in_json() {
    let server = TestServer::start();
    for path in
        ["/runs?target=smb&target=nfs", "/why?rtt=1ms&rtt=2ms", "/runs?skip=-1", "/theme", "/latency?day=3"]
    {
        let answer = server.get(path);
        let text = answer.text();
        assert_eq!(answer.status, 400, "{path}");
        assert!(
            text.contains("This page cannot be shown") && text.to_lowercase().contains("parameter"),
            "{path}: {text}"
        );
    }
    for path in [
        "/api/v1/events?days=abc",
        "/api/v1/stalls?days=1&days=2",
        "/api/v1/runs?last=x",
        "/api/v1/stalls?target=smb",
        "/api/v1/week?days=3",
        "/api/v1/latency/series?day=3",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.json()["error"].is_string(), "{path}");
    }
    assert_eq!(server.get("/runs?outcome=xyz").status, 400);
}

#[test]
fn week_that_has_not_begun_has_no_report() {
    let server = TestServer::start();
    for path in ["/weeks/2199-W01", "/weeks/2199-W01/longhaul-2199-W01.json", "/api/v1/week?week=2199-W01"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn key_that_does_not_work_is_told() {
    let server = TestServer::start();
    for path in ["/login?key=0123456789abcdef", "/login", "/login?key=1&key=2"] {
        let answer = server.get(path);
        let text = answer.text();
        assert_eq!(answer.status, 401, "{path}");
        // It is open to other machines, which may not see the state of the service.
        assert!(
            text.contains("longhaul dashboard") && !text.contains('<') && !text.contains("round"),
            "{text}"
        );
    }
}

#[test]
fn doctor_that_was_not_run_blames_no_round() {
    let server = TestServer::start();
    let handle = Arc::clone(&server.handle);
    // A service that stops drops the request.
    std::thread::spawn(move || {
        while handle.next_command().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Length", "0")];
    let answer = server.request("POST", "/api/v1/doctor", &headers);
    let error = answer.text();
    assert!(answer.status == 503 && error.contains("stopping") && !error.contains("round"), "{error}");
}

#[test]
fn networks_are_read_as_the_page_prints_them() {
    let server = TestServer::start();
    for query in ["rtt=20+ms", "rtt=20.0%20ms&bandwidth=50+Mbit%2Fs", "bandwidth=1%20Gbit/s&disk=SSD"] {
        assert_eq!(server.get(&format!("/why?{query}")).status, 200, "{query}");
    }
}

#[test]
fn nothing_is_predicted_before_a_question() {
    let server = TestServer::start();
    let (unasked, asked) = (server.get("/why").text(), server.get("/why?rtt=20ms").text());
    assert!(unasked.contains("Choose another network") && !unasked.contains("Predicted from"), "{unasked}");
    assert!(asked.contains("Predicted from") && !asked.contains("Choose another network"), "{asked}");
}

#[test]
fn states_of_targets_are_part_of_the_live_updates() {
    let server = TestServer::start();
    let page = server.get("/targets").text();
    let live = page.split("data-live=\"targets\"").nth(1).expect("a live part");
    assert!(live.contains("Latency probe") && live.contains("smb"), "{live}");
}
