//! A web server on a free port, and a client that sends exactly the given bytes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use longhaul_service::handle::ServiceHandle;
use longhaul_web::{Listeners, ServerDeps};
use tokio::sync::oneshot;

use crate::world;

/// Stand-in for an address that other machines can reach: the second loopback address.
pub const NETWORK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Timeout of the tests; generous, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a database with two weeks of data, created once in this process.
pub fn database() -> PathBuf {
    static DATABASE: LazyLock<(File, PathBuf)> = LazyLock::new(|| {
        let (lock, folder) = (0..).find_map(free_folder).unwrap();
        (lock, world::database(&folder, 2))
    });
    DATABASE.1.clone()
}

/// Returns a lock and the empty folder with this number in the build folder; `None` while another process has the lock.
/// A value in a `static` is not dropped, so the next process replaces what this one leaves.
fn free_folder(number: u32) -> Option<(File, PathBuf)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("two-weeks-{number}"));
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.try_lock().ok()?;
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    Some((lock, folder))
}

/// A running web server, which stops when this value is dropped.
pub struct TestServer {
    pub port: u16,
    pub handle: Arc<ServiceHandle>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    pub fn start() -> Self {
        Self::with_database(database())
    }

    /// Starts a server for this database.
    pub fn with_database(database: PathBuf) -> Self {
        Self::with_deps(world::control(database))
    }

    /// Starts a server that waits this long for the body of a request.
    pub fn with_body_timeout(body_timeout: Duration) -> Self {
        Self::with_deps(ServerDeps { body_timeout, ..world::control(database()) })
    }

    fn with_deps(control: ServerDeps) -> Self {
        let handle = Arc::clone(&control.service);
        let (port_sender, ready) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let loopback = longhaul_web::bind(Ipv4Addr::LOCALHOST.into(), 0).await.unwrap();
                let port = loopback.local_addr().unwrap().port();
                // Only some systems have a second loopback address: Linux has, macOS has not by default.
                let network = longhaul_web::bind(NETWORK.into(), port).await.ok();
                port_sender.send(port).unwrap();
                let stop = async { drop(stopped.await) };
                longhaul_web::serve(Listeners { loopback, network }, control, stop).await.unwrap();
                // The service also runs on for a moment after a stop, so that open responses are sent before the
                // process ends.
                tokio::time::sleep(Duration::from_millis(100)).await;
            });
        });
        Self { port: ready.recv().unwrap(), handle, stop: Some(stop), thread: Some(thread) }
    }

    /// Stops the server and waits until its thread has ended.
    pub fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these bytes and returns the whole response.
    pub fn send(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A request that is refused early may find the connection closed.
        let _ = stream.write_all(request);
        let mut bytes = vec![];
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n", self.port);
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        self.send((request + "\r\n").as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[])
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// An open page: the client side of an event stream.
pub struct Open(BufReader<TcpStream>);

impl Open {
    /// Opens a page, which has seen the updates up to `last`.
    pub fn of(server: &TestServer, last: Option<&str>) -> Self {
        let mut stream = server.connect();
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        let request = format!(
            "GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept-Encoding: gzip\r\n{last}\r\n",
            server.port
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// Returns the next line; `None` at the end of the stream.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.0.read_line(&mut line).unwrap() > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads up to the id of the next part, and returns the id.
    pub fn id(&mut self) -> String {
        let line = self.until("id:").pop().unwrap();
        line.replace("id:", "").trim().to_owned()
    }

    /// Reads up to the first line that contains this text, and returns all lines read.
    pub fn until(&mut self, words: &str) -> Vec<String> {
        let mut seen = vec![];
        loop {
            let line = self.line().unwrap_or_else(|| panic!("`{words}` did not arrive: {seen:?}"));
            let is_it = line.contains(words);
            seen.push(line);
            if is_it {
                return seen;
            }
        }
    }
}

/// A response, parsed.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status; 0 if the connection was closed without a response.
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    fn of(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head, body: bytes.get(end + 4..).unwrap_or_default().to_vec() }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}
