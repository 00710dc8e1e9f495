//! Starts the background service as a real process and sends requests to it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use longhaul_service::daemon_address::DaemonAddress;
use rustix::process::Signal;
use serde_json::Value;

use super::{Place, machine};

/// Configuration with tiny trees, one cheap workload, a round every ten seconds, and all reasons to skip disabled.
pub const BUSY: &str = concat!(
    r#"
scale = "quick"
workloads = ["folder-index"]
[folder-index]
files = 40
[schedule]
rounds-per-day = 8640
freshness = false
"#,
    include_str!("never-skip.toml")
);

/// Returns the configuration lines for one target.
pub fn target(name: &str, path: &Path) -> String {
    format!("[targets.{name}]\npath = {}\n", serde_json::to_string(path.to_str().unwrap()).unwrap())
}

/// Running longhauld process. It is killed when dropped.
pub struct Daemon<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Daemon<'a> {
    /// Starts the service in a test environment, without waiting until it is ready.
    pub fn spawn(place: &'a Place) -> Self {
        Self::spawn_with(place, &[])
    }

    /// Like [`Daemon::spawn`], with additional arguments.
    pub fn spawn_with(place: &'a Place, arguments: &[&str]) -> Self {
        let mut command = command(place);
        command.args(arguments);
        Self::spawn_as(place, command)
    }

    /// Like [`Daemon::spawn`], with another command, such as a shell that executes longhauld.
    pub fn spawn_as(place: &'a Place, mut command: Command) -> Self {
        let errors = std::fs::File::create(place.path("output/daemon.err")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        Self { place, child }
    }

    /// Returns the standard error output so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.place.path("output/daemon.err")).unwrap()
    }

    /// Starts the service and waits until its API answers.
    pub fn start(place: &'a Place) -> Self {
        let mut daemon = Self::spawn(place);
        daemon.wait_until_ready();
        daemon
    }

    /// Waits until the API of the service answers.
    pub fn wait_until_ready(&mut self) {
        machine::wait_until("the service to answer", || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the service ended ({ended:?}) before it answered: {}", self.stderr());
            self.address().is_some_and(|address| {
                address.pid == self.child.id() && self.ask("GET", "status", "").is_some()
            })
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn address(&self) -> Option<DaemonAddress> {
        DaemonAddress::read(&self.place.database())
    }

    /// Returns the status of the service. Panics if the request takes two seconds or more.
    pub fn status(&self) -> Value {
        let began = Instant::now();
        let status = self.ask("GET", "status", "").expect("the service answers");
        // The limit is generous: it only shows that the request does not wait for a hung target.
        assert!(began.elapsed() < Duration::from_secs(2), "a status took {:?}", began.elapsed());
        status
    }

    /// Waits until the status satisfies a condition, and returns it. Panics with the last status after [`machine::TIMEOUT`].
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let asked = Instant::now();
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            assert!(began.elapsed() < machine::TIMEOUT, "timed out waiting for {what}: {status}");
            machine::pause_after_poll(asked.elapsed());
        }
    }

    /// Waits until this many rounds have the status `ok`.
    pub fn wait_for_rounds(&self, rounds: u64) -> Value {
        self.wait_for("rounds", |status| status["rounds"]["ok"].as_u64() >= Some(rounds))
    }

    /// Requests a round now and waits for its end.
    pub fn round(&self) {
        let number = |status: &Value| status["last_round"]["number"].as_i64().unwrap_or(0);
        let before = number(&self.status());
        self.send_command("round", "{}");
        self.wait_for("the requested round", |status| {
            // A scheduled round that is skipped meanwhile has a number, too.
            let skipped = i64::from(status["last_round"]["status"] == "skipped");
            number(status) > before + skipped && status["state"]["name"] != "measuring"
        });
    }

    /// Sends a command to the API and returns the response.
    pub fn send_command(&self, what: &str, body: &str) -> Value {
        self.ask("POST", what, body).expect("the service accepts the command")
    }

    /// Requests a page as a browser does. Returns the body and the response time. Panics unless the status code is 200.
    pub fn page(&self, path: &str) -> (String, Duration) {
        let port = self.address().expect("the address file exists").port;
        let began = Instant::now();
        let (code, text) =
            http(port, &format!("GET {path}"), &format!("Host: 127.0.0.1:{port}\r\n"), "").unwrap();
        assert_eq!(code, 200, "{path}: {text}");
        (text, began.elapsed())
    }

    fn ask(&self, method: &str, what: &str, body: &str) -> Option<Value> {
        let address = self.address()?;
        let headers = format!(
            "Host: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            address.port, address.token
        );
        let (code, body) = http(address.port, &format!("{method} /api/v1/{what}"), &headers, body)?;
        (code == 200).then(|| serde_json::from_str(&body).ok()).flatten()
    }

    pub fn signal(&self, signal: Signal) {
        machine::signal(i32::try_from(self.child.id()).unwrap(), signal);
    }

    /// Waits for the process to end.
    pub fn wait_for_exit(mut self) -> ExitStatus {
        let mut status = None;
        machine::wait_until("the service to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Stops the service with SIGTERM. Panics if that takes five seconds or if the exit code is not 0.
    pub fn stop(self) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        let status = self.wait_for_exit();
        assert!(began.elapsed() < Duration::from_secs(5), "the stop took {:?}", began.elapsed());
        assert_eq!(status.code(), Some(0));
    }

    /// Kills the service with SIGKILL and waits until its worker processes have ended.
    pub fn kill(self) {
        let root = self.place.root().to_owned();
        self.signal(Signal::KILL);
        self.wait_for_exit();
        machine::wait_for_no_worker(&root);
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command that starts longhauld in a test environment.
pub fn command(place: &Place) -> Command {
    place.at_home(Command::new(env!("CARGO_BIN_EXE_longhauld")))
}

/// Returns the path of the service's log.
pub fn log(place: &Place) -> PathBuf {
    place.path("home/state/longhaul/longhaul.log")
}

/// Deletes the record of unclean exits, so that the next start does not enter safe mode.
pub fn reset_crash_counter(place: &Place) {
    let _ = std::fs::remove_file(place.database().with_extension("starts"));
}

/// Sends a literal HTTP request and returns the status code and body. `None` if there is no complete response.
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
