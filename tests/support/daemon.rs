//! The background service as a real process, and what the tests ask of it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use longhaul_service::contact::Contact;
use rustix::process::Signal;
use serde_json::Value;

use super::{Place, machine};

/// Tiny trees, one cheap workload, a round every ten seconds, and nothing that this machine does is a reason to skip.
pub const BUSY: &str = concat!(
    r#"
scale = "quick"
workloads = ["folder-index"]
[folder-index]
files = 40
[schedule]
rounds-per-day = 8640
"#,
    include_str!("never-skip.toml")
);

/// The lines of a configuration that name a target.
pub fn target(name: &str, path: &Path) -> String {
    format!("[targets.{name}]\npath = {}\n", serde_json::to_string(path.to_str().unwrap()).unwrap())
}

/// A running longhauld. It is killed when it is dropped before its end.
pub struct Daemon<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Daemon<'a> {
    /// Starts one in a place, without waiting for anything.
    pub fn spawn(place: &'a Place) -> Self {
        Self::spawn_with(place, &[])
    }

    /// The same with further arguments.
    pub fn spawn_with(place: &'a Place, arguments: &[&str]) -> Self {
        let mut command = command(place);
        command.args(arguments);
        Self::spawn_as(place, command)
    }

    /// Starts a command that becomes one.
    pub fn spawn_as(place: &'a Place, mut command: Command) -> Self {
        let errors = std::fs::File::create(place.path("said/daemon.err")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        Self { place, child }
    }

    /// What it has said to standard error so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.place.path("said/daemon.err")).unwrap()
    }

    /// Starts one and waits until it answers.
    pub fn start(place: &'a Place) -> Self {
        let mut daemon = Self::spawn(place);
        daemon.wait_until_ready();
        daemon
    }

    /// Waits until it answers.
    pub fn wait_until_ready(&mut self) {
        machine::wait_until("the service to answer", || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended ({ended:?}) instead: {}", self.said());
            self.contact().is_some_and(|contact| {
                contact.pid == self.child.id() && self.ask("GET", "status", "").is_some()
            })
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn contact(&self) -> Option<Contact> {
        Contact::read(&self.place.database())
    }

    /// What it says of itself, and how long it took to say it.
    pub fn status(&self) -> Value {
        let began = Instant::now();
        let status = self.ask("GET", "status", "").expect("the service answers");
        // It says nothing about speed, only that nothing that hangs is waited for.
        assert!(began.elapsed() < Duration::from_secs(2), "a status took {:?}", began.elapsed());
        status
    }

    /// Waits until its status is as it should be.
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        machine::wait_until(what, || {
            last = self.status();
            is_so(&last)
        });
        last
    }

    /// Waits for so many rounds that ended well.
    pub fn wait_for_rounds(&self, rounds: u64) -> Value {
        self.wait_for("rounds", |status| status["rounds"]["ok"].as_u64() >= Some(rounds))
    }

    /// Makes a round now, and waits for its end.
    pub fn round(&self) {
        let number = |status: &Value| status["last"]["number"].as_i64();
        let before = number(&self.status());
        self.order("round", "{}");
        self.wait_for("the round that was asked for", |status| {
            number(status) > before && status["state"]["name"] != "measuring"
        });
    }

    /// Gives an order.
    pub fn order(&self, what: &str, body: &str) -> Value {
        self.ask("POST", what, body).expect("the service takes an order")
    }

    /// A page as a browser gets it, and how long that took.
    pub fn page(&self, path: &str) -> (String, Duration) {
        let port = self.contact().expect("the service says where it is").port;
        let began = Instant::now();
        let (code, text) =
            http(port, &format!("GET {path}"), &format!("Host: 127.0.0.1:{port}\r\n"), "").unwrap();
        assert_eq!(code, 200, "{path}: {text}");
        (text, began.elapsed())
    }

    fn ask(&self, method: &str, what: &str, body: &str) -> Option<Value> {
        let contact = self.contact()?;
        let headers = format!(
            "Host: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            contact.port, contact.token
        );
        let (code, body) = http(contact.port, &format!("{method} /api/v1/{what}"), &headers, body)?;
        (code == 200).then(|| serde_json::from_str(&body).ok()).flatten()
    }

    pub fn signal(&self, signal: Signal) {
        machine::signal(i32::try_from(self.child.id()).unwrap(), signal);
    }

    /// Waits for its end.
    pub fn ended(mut self) -> ExitStatus {
        let mut status = None;
        machine::wait_until("the service to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Stops it, which has to take less than five seconds and to end well.
    pub fn stop(self) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        let status = self.ended();
        assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
        assert_eq!(status.code(), Some(0));
    }

    /// Kills it, and waits until its workers have noticed.
    pub fn kill(self) {
        let root = self.place.root().to_owned();
        self.signal(Signal::KILL);
        self.ended();
        machine::wait_for_no_worker(&root);
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that starts longhauld in a place.
pub fn command(place: &Place) -> Command {
    at_home(Command::new(env!("CARGO_BIN_EXE_longhauld")), place)
}

/// A command with the surroundings of a place, and without the traces of a service manager that runs these tests.
pub fn at_home(mut command: Command, place: &Place) -> Command {
    command
        .env("HOME", place.path("home"))
        .env("XDG_DATA_HOME", place.path("home/data"))
        .env("XDG_CONFIG_HOME", place.path("home/config"))
        .env("XDG_STATE_HOME", place.path("home/state"))
        .env_remove("NOTIFY_SOCKET")
        .env_remove("INVOCATION_ID")
        .env_remove("SYSTEMD_EXEC_PID")
        .env_remove("XPC_SERVICE_NAME")
        .current_dir(place.path("home"))
        .stdin(Stdio::null());
    command
}

/// The log that the service writes in a place.
pub fn log(place: &Place) -> PathBuf {
    place.path("home/state/longhaul/longhaul.log")
}

/// Forgets that the service did not end in order, so that it does not come up in safe mode.
pub fn forgive(place: &Place) {
    let _ = std::fs::remove_file(place.database().with_extension("starts"));
}

/// One request, word for word: its status code and body.
pub fn http(port: u16, request: &str, headers: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(100))).ok()?;
    let length = body.len();
    let text =
        format!("{request} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let code = answer.split(' ').nth(1)?.parse().ok()?;
    Some((code, answer.split_once("\r\n\r\n")?.1.to_owned()))
}
