//! Whoever should not get in: real requests to a real port, and what is answered, as a table (`--nocapture` shows it).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::{Answer, Face, NETWORK};
use crate::world::TOKEN;

/// A request of which only some lines matter.
fn request(face: &Face, first: &str, lines: &[&str]) -> Vec<u8> {
    let port = face.port.to_string();
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

/// What is asked: in words, its first line, further lines, and the answers that are right; 0: the connection is closed.
type Case<'a> = (&'a str, String, Vec<&'a str>, &'a [u16]);

const JSON: &str = "Content-Type: application/json";
const EMPTY: &str = "Content-Length: 0";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1")
}

fn post(path: &str) -> String {
    format!("POST {path} HTTP/1.1")
}

/// Pages and names that are not ours.
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
        ("a foreign origin listens", get("/events"), vec!["Origin: https://evil.example"], &[403]),
        ("a sandboxed page reads", get("/api/v1/status"), vec!["Origin: null"], &[403]),
    ]
}

/// Orders of those who may not give any, and in forms that no page may send.
fn orders<'a>(bearer: &'a str, ours: &'a str) -> Vec<Case<'a>> {
    vec![
        ("an order without a token", post("/api/v1/pause"), vec![JSON, EMPTY], &[401]),
        (
            "an order with a wrong token",
            post("/api/v1/pause"),
            vec!["Authorization: Bearer no", JSON, EMPTY],
            &[401],
        ),
        ("an order of a page without the cookie", post("/orders/pause"), vec![ours, EMPTY], &[401]),
        (
            "an order with a made-up cookie",
            post("/orders/pause"),
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
            "an order as a form",
            post("/api/v1/pause"),
            vec![bearer, "Content-Type: text/plain", "Content-Length: 0"],
            &[415],
        ),
    ]
}

/// What is no request, or more than one.
fn shapes<'a>(bearer: &'a str, long: &'a str, many: Vec<&'a str>) -> Vec<Case<'a>> {
    vec![
        ("an unknown method", "BREW / HTTP/1.1".to_owned(), vec![], &[401, 405]),
        ("a deletion", "DELETE /runs/1 HTTP/1.1".to_owned(), vec![], &[401, 405]),
        ("up through the assets", get("/assets/../../etc/passwd"), vec![], &[404]),
        ("up, encoded", get("/assets/%2e%2e/%2e%2e%2fetc%2fpasswd"), vec![], &[404]),
        ("up through the downloads", get("/weeks/2026-W46/..%2f..%2flonghaul.sqlite"), vec![], &[404]),
        ("a byte of zero", get("/runs/%00"), vec![], &[404]),
        ("what is no text", get("/tasks/%ff%fe"), vec![], &[400, 404]),
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
            "a body of a gigabyte, in pieces",
            post("/api/v1/pause"),
            vec![bearer, JSON, "Transfer-Encoding: chunked"],
            &[413],
        ),
        (
            "a body in pieces that are none",
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
fn whoever_should_not_get_in_does_not() {
    let face = Face::start();
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let ours = format!("Origin: http://127.0.0.1:{}", face.port);
    let long = format!("X-Long: {}", "a".repeat(1_000_000));
    let many: Vec<String> = (0..5_000).map(|line| format!("X-{line}: a")).collect();
    let many = many.iter().map(String::as_str).collect();
    let table = [strangers(), orders(&bearer, &ours), shapes(&bearer, &long, many)].concat();
    let mut wrong = vec![];
    for (what, first, lines, expected) in &table {
        let mut bytes = request(&face, first, lines);
        match *what {
            "a body of a gigabyte, in pieces" => {
                bytes.extend([b"3b9aca00\r\n", &[b'{'; 64 << 10][..]].concat())
            }
            "a body in pieces that are none" => bytes.extend(b"no number\r\n"),
            what if what.contains("gigabyte") => bytes.extend(vec![b'{'; 64 << 10]),
            _ => {}
        }
        let answer = face.say(&bytes);
        println!("| {what:<40} | {:>3} | {} |", answer.status, reason(&answer));
        if !expected.contains(&answer.status) {
            wrong.push((*what, answer.status));
        }
    }
    assert_eq!(wrong, []);
    assert!(face.desk.orders(|orders| orders.pause.is_none()), "nothing was ordered");
}

fn reason(answer: &Answer) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
    let error = value.and_then(|value| value["error"].as_str().map(ToOwned::to_owned));
    error.unwrap_or_else(|| if answer.status == 0 { "closed".to_owned() } else { "-".to_owned() })
}

#[test]
fn every_answer_forbids_what_no_page_of_ours_needs() {
    let face = Face::start();
    for path in ["/", "/api/v1/status", "/openapi.json", "/nothing", "/badges/smb/nfs.svg"] {
        let answer = face.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    let refused = face.ask("GET", "/", &[("Origin", "https://evil.example")]);
    assert!(refused.header("content-security-policy").is_some(), "refusals too");
}

#[test]
fn a_browser_with_a_key_may_give_orders_and_the_key_is_good_once() {
    let face = Face::start();
    let bearer = format!("Bearer {TOKEN}");
    let origin = format!("http://127.0.0.1:{}", face.port);
    let key = face.ask("POST", "/api/v1/key", &[("Authorization", &bearer), ("Content-Length", "0")]).json();
    let address = format!("/enter?key={}", key["key"].as_str().unwrap());
    let entered = face.get(&address);
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains(TOKEN));
    let cookie = cookie.split(';').next().unwrap();
    assert!(face.get(&address).header("set-cookie").is_none(), "once");
    let shown = face.ask("GET", "/targets", &[("Cookie", cookie)]).text();
    assert!(
        shown.contains("formaction=\"/orders/pause\"") && !face.get("/targets").text().contains("formaction")
    );
    let ordered = face.ask(
        "POST",
        "/orders/pause",
        &[("Origin", &origin), ("Cookie", cookie), ("Content-Length", "0")],
    );
    assert_eq!((ordered.status, ordered.header("location")), (303, Some("/targets")));
    assert!(face.desk.orders(|orders| orders.pause.is_some()));
    let foreign = face.ask(
        "POST",
        "/orders/round",
        &[("Origin", "http://127.0.0.1:1"), ("Cookie", cookie), ("Content-Length", "0")],
    );
    assert_eq!(foreign.status, 403);
    assert!(face.desk.orders(|orders| !orders.round));
}

#[test]
fn who_says_nothing_or_speaks_slowly_is_let_go_and_others_are_answered() {
    let face = Face::start();
    let mut slow = face.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let idle: Vec<TcpStream> = (0..100).map(|_| face.connect()).collect();
    assert_eq!(face.get("/method").status, 200, "beside a hundred who say nothing");
    let mut rest = vec![];
    let began = Instant::now();
    let _ = slow.read_to_end(&mut rest);
    assert!(began.elapsed() < Duration::from_secs(30), "it is closed: {:?}", began.elapsed());
    drop(idle);
}

#[test]
fn more_idle_connections_than_there_are_places_block_nobody_for_long() {
    let face = Face::start();
    let idle: Vec<TcpStream> =
        (0..600).filter_map(|_| TcpStream::connect(("127.0.0.1", face.port)).ok()).collect();
    let began = Instant::now();
    while face.get("/method").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(30), "places are free again after a while");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(idle);
}

#[test]
fn from_another_machine_a_browser_needs_a_key_to_read() {
    let face = Face::start();
    let at = |path: &str, cookie: &str| {
        let mut stream = TcpStream::connect((NETWORK, face.port)).ok()?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {NETWORK}:{}\r\n{cookie}Connection: close\r\n\r\n",
            face.port
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Some(answer)
    };
    let Some(refused) = at("/api/v1/status", "") else {
        let _ = writeln!(
            std::io::stderr(),
            "\nskipped: from another machine: this system has no second loopback address"
        );
        return;
    };
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("longhaul page"), "{refused}");
    let bearer = format!("Bearer {TOKEN}");
    let key = face.ask("POST", "/api/v1/key", &[("Authorization", &bearer), ("Content-Length", "0")]).json();
    let entered = at(&format!("/enter?key={}", key["key"].as_str().unwrap()), "").unwrap();
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert!(at("/api/v1/status", &cookie).unwrap().starts_with("HTTP/1.1 200"));
}
