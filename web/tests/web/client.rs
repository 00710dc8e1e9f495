//! A face on a port, and a client that says exactly what it is told to.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use longhaul_service::desk::Desk;
use longhaul_web::{Control, Doors, Limits};
use tokio::sync::oneshot;

use crate::world;

/// What stands for the address that other machines know.
pub const NETWORK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Generous: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Two weeks, made once.
pub fn database() -> PathBuf {
    static KEPT: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = world::database(folder.path(), 2);
        (folder, path)
    });
    KEPT.1.clone()
}

/// A running face; it ends when this is dropped.
pub struct Face {
    pub port: u16,
    pub desk: Arc<Desk>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Face {
    pub fn start() -> Self {
        Self::of(database())
    }

    /// A face in front of a database.
    pub fn of(database: PathBuf) -> Self {
        Self::under(world::control(database))
    }

    /// A face with these limits.
    pub fn with(limits: Limits) -> Self {
        Self::under(Control { limits, ..world::control(database()) })
    }

    fn under(control: Control) -> Self {
        let desk = Arc::clone(&control.desk);
        let (tell, ready) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let loopback = longhaul_web::listen(Ipv4Addr::LOCALHOST.into(), 0).await.unwrap();
                let port = loopback.local_addr().unwrap().port();
                // A second loopback address, which not every system has.
                let network = longhaul_web::listen(NETWORK.into(), port).await.ok();
                tell.send(port).unwrap();
                let stop = async { drop(stopped.await) };
                longhaul_web::serve(Doors { loopback, network }, control, stop).await.unwrap();
                // As the service does: what it still has to say is said before the process ends.
                tokio::time::sleep(Duration::from_millis(100)).await;
            });
        });
        Self { port: ready.recv().unwrap(), desk, stop: Some(stop), thread: Some(thread) }
    }

    /// Ends it, and waits until it has ended.
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

    /// Says exactly this, and gives back everything that is answered.
    pub fn say(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // Whoever is refused early may find the line closed.
        let _ = stream.write_all(request);
        let mut bytes = vec![];
        let _ = stream.read_to_end(&mut bytes);
        Answer::of(&bytes)
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n", self.port);
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        self.say((request + "\r\n").as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        self.end();
    }
}

/// An answer, taken apart.
#[derive(Debug)]
pub struct Answer {
    /// 0 where nothing was answered.
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
