//! Exports to a bucket of a real S3 server (moto) through a proxy that breaks requests. tests/fleet/run.sh installs the
//! server and sets `LONGHAUL_MOTO` to the path of its program, and the `AWS_...` variables to the address of the proxy.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, Ordering};
use std::time::Duration;

use longhaul_fleet::{BucketEnvironment, Collection, MissingCollection, RefusedFiles, check, export};
use longhaul_model::Hint as _;
use longhaul_model::time::DAY;

use crate::support::{MONDAY, Machine, settings};

/// Faults of the proxy.
const NO_FAULT: u8 = 0;
/// The server is busy: answer 503 without passing the request on.
const BUSY: u8 = 1;
/// Pass half of the request on, then close both connections.
const CUT_REQUEST: u8 = 2;
/// Pass the request on, then close the connection without the answer.
const CUT_ANSWER: u8 = 3;
/// The clock of the client differs too much.
const SKEWED: u8 = 4;

const SKEWED_BODY: &str = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is too large.</Message></Error>";

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a server with an empty bucket. After this many requests, it refuses keys that it does not know.
    fn start(open_requests: u32) -> Self {
        let program = std::env::var_os("LONGHAUL_MOTO").expect("LONGHAUL_MOTO is the path of moto_server");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .env("INITIAL_NO_AUTH_ACTION_COUNT", open_requests.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port };
        let is_up = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(is_up, "moto_server does not listen");
        server.create_bucket();
        server
    }

    fn create_bucket(&self) {
        let url = format!("http://127.0.0.1:{}/fleet", self.port);
        let answer = ureq::put(&url).send_empty().unwrap();
        assert_eq!(answer.status(), 200);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A proxy that breaks the next requests that write.
struct Proxy {
    server: Arc<AtomicU16>,
    fault: Arc<AtomicU8>,
    faults_left: Arc<AtomicI64>,
}

impl Proxy {
    fn before(server: &Server) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port_of("AWS_ENDPOINT_URL"))).unwrap();
        let proxy = Self {
            server: Arc::new(AtomicU16::new(server.port)),
            fault: Arc::new(AtomicU8::new(NO_FAULT)),
            faults_left: Arc::new(AtomicI64::new(0)),
        };
        let (fault, left, to) =
            (Arc::clone(&proxy.fault), Arc::clone(&proxy.faults_left), Arc::clone(&proxy.server));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (fault, left) = (Arc::clone(&fault), Arc::clone(&left));
                let to = to.load(Ordering::SeqCst);
                std::thread::spawn(move || serve(client, to, &fault, &left));
            }
        });
        proxy
    }

    fn break_next(&self, fault: u8, requests: i64) {
        self.faults_left.store(requests, Ordering::SeqCst);
        self.fault.store(fault, Ordering::SeqCst);
    }
}

/// Returns a port of this machine from the address in an environment variable.
fn port_of(variable: &str) -> u16 {
    let address = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: tests/fleet/run.sh sets it"));
    address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("{variable} has no port"))
}

fn collection(secret: &str) -> Collection {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("access-key-id = \"key\"\nsecret-access-key = \"{secret}\"\n"))
        .unwrap();
    let environment = BucketEnvironment::All;
    Collection::open("s3://fleet/all", Some(file.path()), MissingCollection::Refuse, environment).unwrap()
}

/// Passes one request and its answer on, or breaks it.
fn serve(mut client: TcpStream, to: u16, fault: &AtomicU8, left: &AtomicI64) {
    let Some(request) = read_request(&mut client) else { return };
    let writes = request.starts_with(b"PUT ");
    let kind = fault.load(Ordering::SeqCst);
    let breaks = kind != NO_FAULT && writes && left.fetch_sub(1, Ordering::SeqCst) > 0;
    let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
    match kind {
        BUSY if breaks => answer(&mut client, "503 Slow Down", "<Error><Code>SlowDown</Code></Error>"),
        SKEWED if breaks => answer(&mut client, "403 Forbidden", SKEWED_BODY),
        CUT_REQUEST if breaks => {
            server.write_all(&request[..request.len() / 2]).unwrap();
            let _ = server.shutdown(Shutdown::Both);
        }
        _ => {
            server.write_all(&request).unwrap();
            let response = read_to_close(&mut server);
            if !(breaks && kind == CUT_ANSWER) {
                let _ = client.write_all(&response);
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

fn answer(client: &mut TcpStream, status: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = client.write_all(text.as_bytes());
}

/// Reads a request with its body, and asks the server to close the connection after the answer.
fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut buffer) = (vec![], [0; 65_536]);
    loop {
        let read = client.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            let body = bytes.split_off(end);
            bytes.extend_from_slice(b"\r\nConnection: close");
            bytes.extend_from_slice(&body);
            return Some(bytes);
        }
    }
}

fn read_to_close(server: &mut TcpStream) -> Vec<u8> {
    let mut bytes = vec![];
    let _ = server.read_to_end(&mut bytes);
    bytes
}

#[test]
#[ignore = "needs moto_server: tests/fleet/run.sh"]
fn faults_of_a_bucket_lose_and_double_nothing() {
    let server = Server::start(1_000_000);
    let proxy = Proxy::before(&server);
    let machine = Machine::with_rounds_on(&[0, 8]);
    let collection = collection("secret");
    for (fault, requests) in [(BUSY, 3), (CUT_REQUEST, 2), (CUT_ANSWER, 2)] {
        machine.add_round(MONDAY + (9 + u32::from(fault)) * DAY);
        proxy.break_next(fault, requests);
        export(&machine.reader(), &collection, &settings(20))
            .unwrap_or_else(|error| panic!("fault {fault}: {}", error.one_line()));
        assert!(proxy.faults_left.load(Ordering::SeqCst) <= 0, "fault {fault} happened");
    }
    proxy.break_next(NO_FAULT, 0);
    assert_eq!(export(&machine.reader(), &collection, &settings(20)).unwrap().files, 0, "all is exported");
    let checked = check(&collection, RefusedFiles::Keep, MONDAY + 30 * DAY).unwrap();
    // Five rounds with two runs; a run has four readings, and one operation.
    assert_eq!((checked.refused, checked.rows), (vec![], 5 + 10 + 40 + 10));
    refuses_skewed_clock(&proxy, &machine);
    refuses_unknown_key(&proxy, &machine);
}

/// The error names neither the key nor the secret.
fn refuses_unknown_key(proxy: &Proxy, machine: &Machine) {
    let strict = Server::start(1);
    proxy.server.store(strict.port, Ordering::SeqCst);
    let error = export(&machine.reader(), &collection("wrong-secret"), &settings(20)).unwrap_err().one_line();
    assert!(error.contains("check the key and its rights"), "{error}");
    assert!(!error.contains("wrong-secret"), "{error}");
}

/// The export ends with the reason, and the next one continues.
fn refuses_skewed_clock(proxy: &Proxy, machine: &Machine) {
    let collection = collection("secret");
    machine.add_round(MONDAY + 13 * DAY);
    proxy.break_next(SKEWED, 100);
    let error = export(&machine.reader(), &collection, &settings(20)).unwrap_err();
    assert!(error.one_line().contains("set the clock"), "{}", error.one_line());
    assert!(!error.one_line().contains("secret"), "{}", error.one_line());
    proxy.break_next(NO_FAULT, 0);
    assert_eq!(export(&machine.reader(), &collection, &settings(20)).unwrap().files, 4);
}
