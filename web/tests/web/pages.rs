//! Every page is there, whole and true, without a script.

use std::io::Read;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use longhaul_measure::workloads::WORKLOADS;
use markup5ever_rcdom::RcDom;

use crate::client::{Answer, Face};
use crate::world;

const PAGES: [&str; 13] = [
    "/",
    "/tasks/folder-index",
    "/tasks/photo-batch",
    "/tasks/time-machine-throttled",
    "/latency",
    "/latency?days=1&kind=getattr&beside=calm",
    "/latency?days=0.125",
    "/latency?days=91",
    "/journal",
    "/runs",
    "/runs?target=smb&workload=photo-batch&outcome=ok",
    "/targets",
    "/method",
];

/// The newest week's address.
pub fn week(face: &Face) -> String {
    let answer = face.get("/weeks");
    assert_eq!(answer.status, 303);
    answer.header("location").unwrap().to_owned()
}

/// A page that holds together.
fn page(face: &Face, path: &str) -> String {
    let answer = face.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let text = answer.text();
    let dom: RcDom = parse_document(RcDom::default(), ParseOpts::default()).one(text.as_str());
    assert_eq!(dom.errors.borrow().as_slice(), [] as [&str; 0], "{path}");
    text
}

fn attributes<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    text.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_page_is_sound_and_asks_nobody_else() {
    let face = Face::start();
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain([week(&face)]) {
        let text = page(&face, &path);
        for word in ["http:", "https:", "javascript:", "<style", " style=", " onclick", "url("] {
            assert!(!text.contains(word), "{path}: {word}");
        }
        for address in attributes(&text, "src").into_iter().chain(attributes(&text, "href")) {
            assert!(address.starts_with('/') || address.starts_with('#'), "{path}: {address}");
        }
        let scripts = if path.starts_with("/latency") { 3 } else { 1 };
        assert_eq!(
            text.matches("<script").count(),
            scripts,
            "{path}: what only one page needs only that page loads"
        );
        let mut ids = attributes(&text, "id");
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{path}: no id twice");
    }
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let face = Face::start();
    let mut links: Vec<String> = PAGES
        .iter()
        .map(|path| (*path).to_owned())
        .chain([week(&face)])
        .flat_map(|path| {
            let text = page(&face, &path);
            attributes(&text, "href").into_iter().map(|link| link.replace("&amp;", "&")).collect::<Vec<_>>()
        })
        .filter_map(|link| link.split('#').next().map(ToOwned::to_owned))
        .filter(|link| !link.is_empty())
        .collect();
    links.sort_unstable();
    links.dedup();
    // A hundred runs are a hundred times the same page.
    let runs = links.iter().filter(|link| link.starts_with("/runs/")).take(3).cloned().collect::<Vec<_>>();
    links.retain(|link| !link.starts_with("/runs/"));
    assert!(links.len() > 40, "{links:?}");
    for link in links.iter().chain(&runs) {
        let answer = face.get(link);
        assert!(matches!(answer.status, 200 | 303), "{link}: {}", answer.status);
    }
}

#[test]
fn the_number_on_the_page_is_the_number_of_the_summary() {
    let face = Face::start();
    let weekly = face.get("/api/v1/week").json();
    let overview = page(&face, "/");
    let pairs = weekly["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    for pair in pairs {
        let said = pair["headline"]["text"].as_str().unwrap();
        assert!(overview.contains(said), "{said}");
    }
    let name = weekly["week"].as_str().unwrap();
    let csv = face.get(&format!("/weeks/{name}/longhaul-{name}.csv")).text();
    assert_eq!(csv.lines().count(), 1 + weekly["table"].as_array().unwrap().len() * 4);
    let json = face.get(&format!("/weeks/{name}/longhaul-{name}.json")).json();
    assert_eq!(json, weekly);
    let markdown = face.get(&format!("/weeks/{name}/longhaul-{name}.md"));
    assert!(markdown.header("content-disposition").unwrap().starts_with("attachment"));
    assert!(markdown.text().contains(pairs[0]["headline"]["text"].as_str().unwrap()));
}

#[test]
fn the_slowest_calls_of_a_task_are_told_with_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let database = world::database(folder.path(), 1);
    world::add_calls(&database);
    let face = Face::of(database);
    let text = page(&face, "/tasks/photo-batch");
    let calls = text.split("id=\"calls\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(calls.contains("10.0 s, failed") && calls.contains("href=\"/runs/"), "{calls}");
    assert_eq!(calls.matches("<tr>").count(), 1 + 8, "of more only the slowest: {calls}");
    assert!(page(&face, "/tasks/folder-index").contains("No single call is kept"));
}

#[test]
fn smoke_is_given_in_the_finest_steps_that_are_kept() {
    let face = Face::start();
    let smoke = |query: &str| face.get(&format!("/api/v1/smoke{query}")).json();
    let short = smoke("?days=0.5");
    assert_eq!((short["step_seconds"].as_i64(), short["kind"].as_str()), (Some(300), Some("read")));
    assert_eq!(smoke("?days=28")["step_seconds"], 86_400, "drawn day by day");
    let old = short["until_us"].as_i64().unwrap() - 200 * 86_400_000_000;
    assert_eq!(
        smoke(&format!("?days=1&until={old}"))["step_seconds"],
        3_600,
        "five minutes are gone by then"
    );
    let week = smoke("");
    let targets = week["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 3);
    for step in targets.iter().flat_map(|target| target["steps"].as_array().unwrap()) {
        assert!(step["p5"].as_f64() <= step["p50"].as_f64() && step["p50"].as_f64() <= step["p95"].as_f64());
        assert_eq!(step["count"], 60, "every answer of an hour");
    }
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
    let face = Face::start();
    assert_eq!(face.get("/api/v1/samples?days=2.0").status, 200);
    assert_eq!(face.get("/api/v1/samples?days=2.5").status, 400);
    assert_eq!(face.get("/api/v1/runs?last=1e30").status, 400);
    let bearer = format!("Bearer {}", world::TOKEN);
    let order = |path: &str, body: &str| {
        let length = body.len().to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nAuthorization: {bearer}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
            face.port
        );
        face.say(head.as_bytes()).status
    };
    assert_eq!(order("/api/v1/pause", "{\"seconds\": 556.0}"), 200);
    assert_eq!(order("/api/v1/pause", "{\"seconds\": 556.5}"), 422);
    assert_eq!(order("/api/v1/pause", "[]"), 422, "an order is an object");
    assert_eq!(order("/api/v1/log-level", "{\"level\": \"debug\"}"), 200);
    assert_eq!(order("/api/v1/log-level", "{\"level\": \"AAA\"}"), 400, "no level");
}

#[test]
fn what_is_not_there_is_said_on_a_page() {
    let face = Face::start();
    let expected = [
        ("/nothing", 404),
        ("/runs/0", 404),
        ("/runs/no-number", 404),
        ("/tasks/no-task", 404),
        ("/weeks/2026-W99", 400),
        ("/weeks/2026-W46/longhaul-2026-W45.html", 404),
        ("/weeks/2026-W46/charts/none.svg", 404),
        ("/latency?days=many", 400),
        ("/latency?days=NaN", 400),
        ("/latency?until=inf", 400),
        ("/latency?kind=sniff", 400),
        ("/api/v1/smoke?kind=sniff", 400),
        ("/journal?at=yesterday", 400),
        ("/runs?target=%2e%2e%2f", 400),
        ("/api/v1/nothing", 404),
        ("/api/v1/runs/0", 404),
        ("/api/v1/week?week=now", 400),
        ("/api/v1/week?week=2027-W53", 404),
        ("/badges/a/b.svg", 404),
    ];
    for (path, status) in expected {
        let answer = face.get(path);
        assert_eq!(answer.status, status, "{path}");
        if path.starts_with("/api/") {
            assert!(answer.json()["error"].is_string(), "{path}");
        }
    }
}

#[test]
fn a_week_without_a_round_and_far_ages_have_a_page() {
    let face = Face::start();
    assert!(page(&face, "/weeks/1999-W01").contains("The week has no round."));
    page(&face, "/latency?days=1200&until=0");
    page(&face, "/latency?days=999999999");
    page(&face, "/journal?at=1969-12-31");
}

fn unpacked(answer: &Answer) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_page_is_compressed_for_whoever_can_read_that() {
    let face = Face::start();
    let packed = face.ask("GET", "/method", &[("Accept-Encoding", "br, gzip;q=0.9")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(unpacked(&packed), face.get("/method").text());
    assert_eq!(
        face.ask("GET", "/method", &[("Accept-Encoding", "gzip;q=0")]).header("content-encoding"),
        None
    );
}

#[test]
fn the_first_screen_weighs_less_than_sixty_kilobytes() {
    let face = Face::start();
    let overview = face.ask("GET", "/", &[("Accept-Encoding", "gzip")]);
    let text = unpacked(&overview);
    let assets = attributes(&text, "href")
        .into_iter()
        .chain(attributes(&text, "src"))
        .filter(|link| link.starts_with("/assets/"));
    let assets = assets.map(|link| {
        let asset = face.ask("GET", link, &[("Accept-Encoding", "gzip")]);
        assert_eq!(asset.status, 200, "{link}");
        assert!(asset.header("cache-control").unwrap().contains("immutable"));
        asset.body.len()
    });
    let bytes = overview.body.len() + assets.sum::<usize>();
    assert!(bytes < 60_000, "{bytes}");
}

#[test]
fn the_description_of_the_interface_is_true() {
    let face = Face::start();
    let description = face.get("/openapi.json").json();
    assert_eq!(description["openapi"], "3.1.0");
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        if methods["get"].is_object() {
            let answer = face.get(&path.replace("{number}", "1"));
            assert_eq!(answer.status, 200, "{path}");
            answer.json();
            asked += 1;
        }
        if methods["post"].is_object() {
            assert_eq!(face.ask("POST", path, &[("Content-Length", "0")]).status, 401, "{path}");
            asked += 1;
        }
    }
    assert!(asked >= 14, "{asked}");
}

#[test]
fn method_names_every_task_and_its_constants() {
    let face = Face::start();
    let text = page(&face, "/method");
    assert!(
        WORKLOADS.iter().all(|workload| text.contains(workload.name()) && text.contains(workload.summary()))
    );
    for constant in [longhaul_measure::summary::OPENING_DAYS, longhaul_measure::summary::EARLY_DAYS] {
        assert!(text.contains(&format!("{constant} days")));
    }
}
