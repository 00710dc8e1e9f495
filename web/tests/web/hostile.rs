//! Requests that must be refused, sent to a real port. The test prints a table of the responses (`cargo test --
//! --nocapture`).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use longhaul_service::command::Command;

use crate::client::{Answer, NETWORK, TestServer};
use crate::world::TOKEN;

/// Builds a raw HTTP request with a valid Host header, unless `lines` contains another one.
fn request(server: &TestServer, first: &str, lines: &[&str]) -> Vec<u8> {
    let port = server.port.to_string();
    let host = format!("Host: 127.0.0.1:{port}");
    let written = |line: &str| match line {
        "OURS" => host.clone(),
        "SIGNED" => format!("Host: 127.0.0.1:+{port}"),
        "PADDED" => format!("Host: 127.0.0.1:0{port}"),
        "PAGE" => format!("Origin: http://127.0.0.1:{port}"),
        other => other.to_owned(),
    };
    let lines: Vec<String> = lines.iter().map(|line| written(line)).collect();
    let own_host = !lines.iter().any(|line| line.to_lowercase().starts_with("host:"));
    let mut all = vec![first.replace("PORT", &port)];
    all.extend(own_host.then(|| host.clone()));
    all.extend(lines);
    all.push("Connection: close\r\n\r\n".to_owned());
    all.join("\r\n").into_bytes()
}

/// A request: description, request line, further headers, and the acceptable status codes. Status 0 means that the
/// connection was closed.
type Case<'a> = (&'a str, String, Vec<&'a str>, &'a [u16]);

const JSON: &str = "Content-Type: application/json";
const EMPTY: &str = "Content-Length: 0";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1")
}

fn post(path: &str) -> String {
    format!("POST {path} HTTP/1.1")
}

/// Requests with wrong Host or Origin headers, and valid ones for comparison.
fn strangers<'a>() -> Vec<Case<'a>> {
    vec![
        ("our own host", get("/method"), vec![], &[200]),
        ("a foreign host", get("/"), vec!["Host: evil.example"], &[421]),
        ("a rebound name with our port", get("/"), vec!["Host: evil.example:4000"], &[421]),
        ("our address with another port", get("/"), vec!["Host: 127.0.0.1:1"], &[421]),
        ("two hosts", get("/"), vec!["Host: 127.0.0.1:1", "Host: evil.example"], &[400, 421]),
        ("a second host after our own", get("/"), vec!["OURS", "Host: evil.example"], &[400]),
        ("our host twice", get("/"), vec!["OURS", "OURS"], &[400]),
        ("our port with a sign", get("/"), vec!["SIGNED"], &[421]),
        ("our port with a zero before it", get("/"), vec!["PADDED"], &[421]),
        ("two origins", get("/"), vec!["PAGE", "Origin: https://evil.example"], &[400]),
        ("an address of ours for another host", get("http://evil.example/"), vec!["OURS"], &[421]),
        ("an address of ours over https", get("https://127.0.0.1:PORT/"), vec!["OURS"], &[421]),
        ("our whole address", get("http://127.0.0.1:PORT/method"), vec!["OURS"], &[200]),
        ("a foreign origin reads", get("/api/v1/status"), vec!["Origin: https://evil.example"], &[403]),
        ("a foreign origin listens", get("/stream"), vec!["Origin: https://evil.example"], &[403]),
        ("a sandboxed page reads", get("/api/v1/status"), vec!["Origin: null"], &[403]),
    ]
}

/// Commands without permission, or in formats that a page must not be able to send.
fn commands<'a>(bearer: &'a str, ours: &'a str) -> Vec<Case<'a>> {
    vec![
        ("a command without a token", post("/api/v1/pause"), vec![JSON, EMPTY], &[401]),
        (
            "a command with a wrong token",
            post("/api/v1/pause"),
            vec!["Authorization: Bearer no", JSON, EMPTY],
            &[401],
        ),
        ("a page command without the cookie", post("/commands/pause"), vec![ours, EMPTY], &[401]),
        (
            "a page command with a made-up cookie",
            post("/commands/pause"),
            vec![ours, "Cookie: longhaul-1=x", EMPTY],
            &[401],
        ),
        (
            "a foreign page with the token",
            post("/api/v1/pause"),
            vec![bearer, "Origin: https://evil.example", JSON, EMPTY],
            &[403],
        ),
        (
            "a command as form data",
            post("/api/v1/pause"),
            vec![bearer, "Content-Type: text/plain", "Content-Length: 0"],
            &[415],
        ),
    ]
}

/// Malformed requests, and requests that are too large.
fn shapes<'a>(bearer: &'a str, long: &'a str, many: Vec<&'a str>) -> Vec<Case<'a>> {
    vec![
        ("an unknown method", "BREW / HTTP/1.1".to_owned(), vec![], &[401, 405]),
        ("a deletion", "DELETE /runs/1 HTTP/1.1".to_owned(), vec![], &[401, 405]),
        ("up through the assets", get("/assets/../../etc/passwd"), vec![], &[404]),
        ("up, encoded", get("/assets/%2e%2e/%2e%2e%2fetc%2fpasswd"), vec![], &[404]),
        ("up through the downloads", get("/weeks/2026-W46/..%2f..%2flonghaul.sqlite"), vec![], &[404]),
        ("a byte of zero", get("/runs/%00"), vec![], &[404]),
        ("a path that is not UTF-8", get("/tasks/%ff%fe"), vec![], &[400, 404]),
        ("an address of another machine", get("http://evil.example/"), vec!["Host: evil.example"], &[421]),
        ("an address of a megabyte", get(&format!("/{}", "a".repeat(1_000_000))), vec![], &[0, 414, 431]),
        ("a header of a megabyte", get("/"), vec![long], &[0, 431]),
        ("five thousand headers", get("/"), many, &[0, 431]),
        (
            "a body of a gigabyte, announced",
            post("/api/v1/pause"),
            vec![bearer, JSON, "Content-Length: 1000000000"],
            &[413],
        ),
        (
            "a body of a gigabyte, chunked",
            post("/api/v1/pause"),
            vec![bearer, JSON, "Transfer-Encoding: chunked"],
            &[413],
        ),
        (
            "a body with an invalid chunk length",
            post("/api/v1/pause"),
            vec![bearer, JSON, "Transfer-Encoding: chunked"],
            &[400],
        ),
        (
            "two lengths",
            post("/api/v1/pause"),
            vec![bearer, JSON, "Content-Length: 1", "Content-Length: 2"],
            &[0, 400],
        ),
        ("no HTTP at all", "\u{16}\u{3}\u{1}".to_owned(), vec![], &[0, 400]),
    ]
}

#[test]
fn hostile_requests_are_refused() {
    let server = TestServer::start();
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let ours = format!("Origin: http://127.0.0.1:{}", server.port);
    let long = format!("X-Long: {}", "a".repeat(1_000_000));
    let many: Vec<String> = (0..5_000).map(|line| format!("X-{line}: a")).collect();
    let many = many.iter().map(String::as_str).collect();
    let documented = include_str!("../../../docs/validation/security.md");
    let table = [strangers(), commands(&bearer, &ours), shapes(&bearer, &long, many)].concat();
    let mut wrong = vec![];
    for (what, first, lines, expected) in &table {
        let mut bytes = request(&server, first, lines);
        match *what {
            "a body of a gigabyte, chunked" => {
                bytes.extend([b"3b9aca00\r\n", &[b'{'; 64 << 10][..]].concat())
            }
            "a body with an invalid chunk length" => bytes.extend(b"no number\r\n"),
            what if what.contains("gigabyte") => bytes.extend(vec![b'{'; 64 << 10]),
            _ => {}
        }
        let answer = server.send(&bytes);
        println!("| {what:<40} | {:>3} | {} |", answer.status, reason(&answer));
        let row = format!("| {what} | {} |", statuses(expected));
        assert!(documented.lines().any(|line| line == row), "docs/validation/security.md lacks `{row}`");
        if !expected.contains(&answer.status) {
            wrong.push((*what, answer.status));
        }
    }
    assert_eq!(wrong, []);
    assert!(server.handle.next_command().is_none(), "no command was accepted");
}

/// Returns the acceptable status codes as the documentation has them.
fn statuses(expected: &[u16]) -> String {
    let one = |status: &u16| if *status == 0 { "closed".to_owned() } else { status.to_string() };
    expected.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn reason(answer: &Answer) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
    let error = value.and_then(|value| value["error"].as_str().map(ToOwned::to_owned));
    error.unwrap_or_else(|| if answer.status == 0 { "closed".to_owned() } else { "-".to_owned() })
}

#[test]
fn every_response_has_security_headers() {
    let server = TestServer::start();
    for path in ["/", "/api/v1/status", "/openapi.json", "/nothing", "/badges/smb/nfs.svg"] {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    let refused = server.request("GET", "/", &[("Origin", "https://evil.example")]);
    assert!(refused.header("content-security-policy").is_some(), "refusals have the headers too");
}

#[test]
fn chart_file_is_a_download_that_may_only_use_its_own_style() {
    let server = TestServer::start();
    let page = server.get("/latency").text();
    let link = page.split("<a href=\"").find(|rest| rest.starts_with("/latency/charts/")).unwrap();
    let (address, rest) = link.split_once('"').unwrap();
    assert!(rest.starts_with(" download>"), "{link}");
    let answer = server.get(&address.replace("&amp;", "&"));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/svg+xml")));
    let policy = answer.header("content-security-policy").unwrap();
    assert_eq!(policy, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    assert_eq!(answer.head.matches("content-security-policy").count(), 1);
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn key_logs_a_browser_in_once() {
    let server = TestServer::start();
    let bearer = format!("Bearer {TOKEN}");
    let origin = format!("http://127.0.0.1:{}", server.port);
    let key =
        server.request("POST", "/api/v1/key", &[("Authorization", &bearer), ("Content-Length", "0")]).json();
    let address = format!("/login?key={}", key["key"].as_str().unwrap());
    let entered = server.get(&address);
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(TOKEN));
    let cookie = cookie.split(';').next().unwrap();
    assert!(server.get(&address).header("set-cookie").is_none(), "a key works once");
    let shown = server.request("GET", "/targets", &[("Cookie", cookie)]).text();
    assert!(
        shown.contains("formaction=\"/commands/pause\"")
            && !server.get("/targets").text().contains("formaction")
    );
    let command = server.request(
        "POST",
        "/commands/pause",
        &[("Origin", &origin), ("Cookie", cookie), ("Content-Length", "0")],
    );
    assert_eq!((command.status, command.header("location")), (303, Some("/targets")));
    assert!(matches!(server.handle.next_command(), Some(Command::SetPause(_))));
    let foreign = server.request(
        "POST",
        "/commands/round",
        &[("Origin", "http://127.0.0.1:1"), ("Cookie", cookie), ("Content-Length", "0")],
    );
    assert_eq!(foreign.status, 403);
    assert!(server.handle.next_command().is_none());
}

#[test]
fn slow_and_silent_clients_do_not_block_others() {
    let server = TestServer::start();
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let idle: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    assert_eq!(server.get("/method").status, 200, "with a hundred silent connections");
    let mut response = vec![];
    let began = Instant::now();
    let _ = slow.read_to_end(&mut response);
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "the slow connection was closed after {:?}",
        began.elapsed()
    );
    drop(idle);
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "this system has no second loopback address")]
fn network_access_needs_a_key() {
    let server = TestServer::start();
    let at = |path: &str, cookie: &str| {
        let mut stream = TcpStream::connect((NETWORK, server.port)).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {NETWORK}:{}\r\n{cookie}Connection: close\r\n\r\n",
            server.port
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let refused = at("/api/v1/status", "");
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("longhaul dashboard"), "{refused}");
    let bearer = format!("Bearer {TOKEN}");
    let key =
        server.request("POST", "/api/v1/key", &[("Authorization", &bearer), ("Content-Length", "0")]).json();
    let entered = at(&format!("/login?key={}", key["key"].as_str().unwrap()), "");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert!(at("/api/v1/status", &cookie).starts_with("HTTP/1.1 200"));
}
