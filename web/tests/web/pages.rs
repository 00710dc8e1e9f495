//! Tests that every page exists, is valid HTML, and shows the right numbers without a script.

use std::io::Read;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use longhaul_measure::platform;
use longhaul_model::TASKS;
use longhaul_view::units;
use markup5ever_rcdom::RcDom;

use crate::client::{Answer, TestServer};
use crate::world;

const PAGES: [&str; 16] = [
    "/",
    "/tasks/folder-index",
    "/tasks/photo-batch",
    "/tasks/time-machine-throttled",
    "/latency",
    "/latency?days=1&kind=getattr&during=idle",
    "/latency?days=0.125",
    "/latency?days=91",
    "/why",
    "/why?rtt=20ms&bandwidth=50mbit&disk=",
    "/checks",
    "/events",
    "/runs",
    "/runs?target=smb&workload=photo-batch&outcome=ok",
    "/targets",
    "/method",
];

/// Returns the path of the newest week.
pub fn week(server: &TestServer) -> String {
    let answer = server.get("/weeks");
    assert_eq!(answer.status, 303);
    answer.header("location").unwrap().to_owned()
}

/// Returns a page, after checking that its HTML has no errors.
fn page(server: &TestServer, path: &str) -> String {
    let answer = server.get(path);
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
fn impossible_network_is_refused_with_an_example() {
    let server = TestServer::start();
    for path in ["/why", "/api/v1/what-if"] {
        for query in ["rtt=0ms", "rtt=20", "bandwidth=fast", "disk=tape"] {
            let answer = server.get(&format!("{path}?{query}"));
            assert_eq!(answer.status, 400, "{query}");
            assert!(answer.text().to_lowercase().contains("write "), "{query}: {}", answer.text());
        }
    }
}

#[test]
fn longer_round_trips_are_predicted_to_take_longer() {
    let server = TestServer::start();
    let seconds = |query: &str| {
        let answers = server.get(&format!("/api/v1/what-if?{query}")).json();
        let answers = answers.as_array().unwrap().clone();
        let cold = answers.iter().find(|answer| answer["target"] == "smb" && answer["metric"] == "walk-cold");
        cold.unwrap()["seconds"].as_f64().unwrap()
    };
    let (near, far) = (seconds("rtt=2ms"), seconds("rtt=20ms"));
    assert!(far > 2.0 * near, "{near} {far}");
}

#[test]
fn question_without_a_change_is_answered_with_the_usual_times() {
    let server = TestServer::start();
    let answers = server.get("/api/v1/what-if").json();
    let known: Vec<_> = answers.as_array().unwrap().iter().filter(|one| one["seconds"].is_number()).collect();
    assert!(!known.is_empty(), "{answers}");
    assert!(known.iter().all(|one| one["seconds"] == one["usual_seconds"]), "{answers}");
}

#[test]
fn pages_are_valid_and_load_nothing_external() {
    let server = TestServer::start();
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain([week(&server)]) {
        let text = page(&server, &path);
        for word in ["http:", "https:", "javascript:", "<style", " style=", " onclick", "url("] {
            assert!(!text.contains(word), "{path}: {word}");
        }
        for address in attributes(&text, "src").into_iter().chain(attributes(&text, "href")) {
            assert!(address.starts_with('/') || address.starts_with('#'), "{path}: {address}");
        }
        let scripts = if path.starts_with("/latency") { 3 } else { 2 };
        assert_eq!(
            text.matches("<script").count(),
            scripts,
            "{path}: only the latency page loads the zoom script"
        );
        let mut ids = attributes(&text, "id");
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{path}: ids are unique");
    }
}

#[test]
fn every_link_works() {
    let server = TestServer::start();
    let mut links: Vec<String> = PAGES
        .iter()
        .map(|path| (*path).to_owned())
        .chain([week(&server)])
        .flat_map(|path| {
            let text = page(&server, &path);
            attributes(&text, "href").into_iter().map(|link| link.replace("&amp;", "&")).collect::<Vec<_>>()
        })
        .filter_map(|link| link.split('#').next().map(ToOwned::to_owned))
        .filter(|link| !link.is_empty())
        .collect();
    links.sort_unstable();
    links.dedup();
    // All run pages are rendered by the same code, so three of them are enough.
    let runs = links.iter().filter(|link| link.starts_with("/runs/")).take(3).cloned().collect::<Vec<_>>();
    links.retain(|link| !link.starts_with("/runs/"));
    assert!(links.len() > 40, "{links:?}");
    for link in links.iter().chain(&runs) {
        let answer = server.get(link);
        assert!(matches!(answer.status, 200 | 303), "{link}: {}", answer.status);
    }
}

#[test]
fn time_links_are_valid_series_queries() {
    let server = TestServer::start();
    for path in ["/latency?days=1", "/latency?days=1&during=idle"] {
        let text = page(&server, path);
        let links: Vec<_> =
            attributes(&text, "href").into_iter().filter(|link| link.starts_with("/latency?days")).collect();
        assert!(links.len() > 2, "{path}: {links:?}");
        for link in links {
            let series = link.replace("&amp;", "&").replacen("/latency", "/api/v1/latency/series", 1);
            let answer = server.get(&series);
            assert_eq!(answer.status, 200, "{series}: {}", answer.text());
        }
    }
}

fn without_round_trip_time(text: &str) -> String {
    let (before, after) = text.split_once(" at a round trip time of ").unwrap();
    format!("{before}{}", after.split_once(" ms").unwrap().1)
}

#[test]
fn pages_show_the_numbers_of_the_summary() {
    let server = TestServer::start();
    let weekly = server.get("/api/v1/week").json();
    let overview = page(&server, "/");
    let pairs = weekly["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    let name = weekly["week"].as_str().unwrap();
    let in_full = page(&server, &format!("/weeks/{name}"));
    let texts: Vec<&str> = pairs.iter().map(|pair| pair["headline"]["text"].as_str().unwrap()).collect();
    for text in &texts {
        // The report in full states the round trip time once, next to the data of a pair.
        assert!(in_full.contains(&without_round_trip_time(text)), "{text}");
    }
    assert!(texts.iter().any(|text| overview.contains(text)), "{texts:?}");
    for median in
        weekly["table"].as_array().unwrap().iter().flat_map(|row| row["targets"].as_array().unwrap())
    {
        let (target, seconds) =
            (median["target"].as_str().unwrap(), median["epoch"]["median"].as_f64().unwrap());
        let shown = units::seconds(seconds);
        assert!(target == "local" || seconds < 0.1 || overview.contains(&shown), "{target}: {shown}");
    }
    let csv = server.get(&format!("/weeks/{name}/longhaul-{name}.csv")).text();
    assert_eq!(csv.lines().count(), 1 + weekly["table"].as_array().unwrap().len() * 4);
    let json = server.get(&format!("/weeks/{name}/longhaul-{name}.json")).json();
    assert_eq!(json, weekly);
    let markdown = server.get(&format!("/weeks/{name}/longhaul-{name}.md"));
    assert!(markdown.header("content-disposition").unwrap().starts_with("attachment"));
    assert!(markdown.text().contains(&without_round_trip_time(texts[0])));
}

#[test]
fn task_page_lists_the_slowest_calls_with_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let database = world::database(folder.path(), 1);
    world::add_calls(&database);
    let server = TestServer::with_database(database);
    let text = page(&server, "/tasks/photo-batch");
    let calls = text.split("id=\"calls\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(calls.contains("10.0 s, failed") && calls.contains("href=\"/runs/"), "{calls}");
    assert_eq!(calls.matches("<tr>").count(), 1 + 8, "only the eight slowest are shown: {calls}");
    assert!(page(&server, "/tasks/folder-index").contains("No single calls are stored"));
}

#[test]
fn series_uses_the_finest_stored_steps() {
    let server = TestServer::start();
    let series = |query: &str| server.get(&format!("/api/v1/latency/series{query}")).json();
    let short = series("?days=0.5");
    assert_eq!((short["step_seconds"].as_i64(), short["kind"].as_str()), (Some(300), Some("read")));
    assert_eq!(series("?days=28")["step_seconds"], 86_400, "drawn day by day");
    let old = short["until_us"].as_i64().unwrap() - 200 * 86_400_000_000;
    assert_eq!(
        series(&format!("?days=1&until={old}"))["step_seconds"],
        3_600,
        "steps of five minutes are no longer stored"
    );
    let week = series("");
    let targets = week["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 3);
    for step in targets.iter().flat_map(|target| target["steps"].as_array().unwrap()) {
        assert!(step["p5"].as_f64() <= step["p50"].as_f64() && step["p50"].as_f64() <= step["p95"].as_f64());
        assert_eq!(step["count"], 60, "all answers of the hour");
    }
}

#[test]
fn integers_may_be_written_with_a_zero_fraction() {
    let server = TestServer::start();
    assert_eq!(server.get("/api/v1/latency?days=2.0").status, 200);
    assert_eq!(server.get("/api/v1/latency?days=2.5").status, 400);
    assert_eq!(server.get("/api/v1/runs?last=1e30").status, 400);
    let bearer = format!("Bearer {}", world::TOKEN);
    let post = |path: &str, body: &str| {
        let length = body.len().to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nAuthorization: {bearer}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
            server.port
        );
        server.send(head.as_bytes()).status
    };
    assert_eq!(post("/api/v1/pause", "{\"seconds\": 556.0}"), 200);
    assert_eq!(post("/api/v1/pause", "{\"seconds\": 556.5}"), 422);
    assert_eq!(post("/api/v1/pause", "[]"), 422, "a body has to be an object");
    assert_eq!(post("/api/v1/log-level", "{\"level\": \"debug\"}"), 200);
    assert_eq!(post("/api/v1/log-level", "{\"level\": \"AAA\"}"), 400, "not a log level");
}

#[test]
fn missing_and_invalid_paths_give_error_responses() {
    let server = TestServer::start();
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
        ("/api/v1/latency/series?kind=sniff", 400),
        ("/events?at=yesterday", 400),
        ("/events?days=many", 400),
        ("/api/v1/latency/series?days=", 400),
        ("/runs?target=%2e%2e%2f", 400),
        ("/api/v1/nothing", 404),
        ("/api/v1/runs/0", 404),
        ("/api/v1/week?week=now", 400),
        ("/api/v1/week?week=2027-W53", 404),
        ("/badges/a/b.svg", 404),
    ];
    for (path, status) in expected {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}");
        if path.starts_with("/api/") {
            assert!(answer.json()["error"].is_string(), "{path}");
        }
    }
}

#[test]
fn events_of_a_range_are_those_of_all_up_to_its_start() {
    let server = TestServer::start();
    let rows = |path: &str| {
        let text = page(&server, path);
        let (_, list) = text.split_once("Events and epochs").unwrap_or_default();
        let rows: Vec<String> = list.split("<tr").skip(2).map(str::to_owned).collect();
        rows
    };
    let (all, week, day) = (rows("/events"), rows("/events?days=7"), rows("/events?days=1"));
    assert!(all.len() > day.len() && all.len() >= week.len(), "{} {}", all.len(), day.len());
    assert_eq!(week[..], all[..week.len()], "the newest first");
    let points = |path: &str| page(&server, path).matches("class=\"cn\"").count();
    // The charts have the last eight days of the history, which ended on Monday in UTC+1: four or five of them are asked for.
    let days_since_monday = (platform::wall_clock().local_day(3600) + 3) % 7;
    let recent = points(&format!("/events?days={}", days_since_monday + 4));
    assert!((1..points("/events")).contains(&recent), "{recent}");
}

#[test]
fn empty_weeks_and_distant_times_have_pages() {
    let server = TestServer::start();
    assert!(page(&server, "/weeks/1999-W01").contains("No rounds in this week."));
    page(&server, "/latency?days=1200&until=0");
    page(&server, "/latency?days=999999999");
    page(&server, "/events?at=1969-12-31");
    page(&server, "/events?days=4294967295");
}

fn unpacked(answer: &Answer) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn pages_are_compressed_if_the_client_accepts_gzip() {
    let server = TestServer::start();
    let packed = server.request("GET", "/method", &[("Accept-Encoding", "br, gzip;q=0.9")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(unpacked(&packed), server.get("/method").text());
    let length = packed.body.len().to_string();
    assert_eq!(packed.header("content-length"), Some(length.as_str()), "the body is sent in one piece");
    assert_eq!(
        server.request("GET", "/method", &[("Accept-Encoding", "gzip;q=0")]).header("content-encoding"),
        None
    );
}

#[test]
fn overview_is_smaller_than_60_kilobytes() {
    let server = TestServer::start();
    let overview = server.request("GET", "/", &[("Accept-Encoding", "gzip")]);
    let text = unpacked(&overview);
    let assets = attributes(&text, "href")
        .into_iter()
        .chain(attributes(&text, "src"))
        .filter(|link| link.starts_with("/assets/"));
    let assets = assets.map(|link| {
        let asset = server.request("GET", link, &[("Accept-Encoding", "gzip")]);
        assert_eq!(asset.status, 200, "{link}");
        assert!(asset.header("cache-control").unwrap().contains("immutable"));
        asset.body.len()
    });
    let bytes = overview.body.len() + assets.sum::<usize>();
    assert!(bytes < 60_000, "{bytes}");
}

#[test]
fn latency_page_is_smaller_than_120_kilobytes() {
    let server = TestServer::start();
    for query in ["", "?days=1", "?days=30", "?days=364"] {
        let bytes = server.get(&format!("/latency{query}")).body.len();
        assert!(bytes < 120_000, "{query}: {bytes}");
    }
}

#[test]
fn colours_are_chosen_without_a_script() {
    let server = TestServer::start();
    assert!(page(&server, "/events").contains("data-theme=\"system\""));
    let chosen = server.get("/theme?to=dark&back=/latency%3Fdays%3D7");
    assert_eq!((chosen.status, chosen.header("location")), (303, Some("/latency?days=7")));
    let cookie = chosen.header("set-cookie").unwrap().split(';').next().unwrap();
    let dark = server.request("GET", "/latency?days=7", &[("Cookie", cookie)]).text();
    assert!(dark.contains("data-theme=\"dark\"") && dark.contains("value=\"/latency?days=7\""), "{cookie}");
}

#[test]
fn strips_tell_each_round_of_each_target() {
    let server = TestServer::start();
    let overview = page(&server, "/");
    for target in ["local", "smb", "nfs", "afp"] {
        assert!(overview.contains(&format!("aria-label=\"{target}, last 60 rounds: ")), "{target}");
    }
    assert_eq!(overview.matches("class=\"strip\"").count(), 4);
    let strip =
        overview.split("class=\"strip\"").nth(1).and_then(|rest| rest.split("</svg>").next()).unwrap();
    assert_eq!(strip.matches("<title>").count(), 60);
}

#[test]
fn task_page_shows_the_chosen_range() {
    let server = TestServer::start();
    let table_rows =
        |query: &str| page(&server, &format!("/tasks/photo-batch{query}")).matches("<tr>").count();
    // The history has two weeks and ends on Monday: late on a Sunday the last 7 days have no round, on Monday the last 14 have all.
    let rows = ["?days=1", "?days=10", "?days=all"].map(table_rows);
    assert!(rows[0] < rows[1] && rows[1] < rows[2], "{rows:?}");
    assert_eq!(server.get("/tasks/photo-batch?days=x").status, 400);
}

#[test]
fn openapi_lists_working_endpoints() {
    let server = TestServer::start();
    let description = server.get("/openapi.json").json();
    assert_eq!(description["openapi"], "3.1.0");
    let mut requested = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        if methods["get"].is_object() {
            let answer = server.get(&path.replace("{number}", "1"));
            assert_eq!(answer.status, 200, "{path}");
            answer.json();
            requested += 1;
        }
        if methods["post"].is_object() {
            assert_eq!(server.request("POST", path, &[("Content-Length", "0")]).status, 401, "{path}");
            requested += 1;
        }
    }
    assert!(requested >= 14, "{requested}");
}

#[test]
fn method_names_every_task_and_its_constants() {
    let server = TestServer::start();
    let text = page(&server, "/method");
    assert!(TASKS.iter().all(|workload| text.contains(workload.name()) && text.contains(workload.summary())));
    for constant in
        [longhaul_analysis::summary::MIN_VERDICT_DAYS, longhaul_analysis::summary::EARLY_VERDICT_DAYS]
    {
        assert!(text.contains(&format!("{constant} days")));
    }
}
