//! Servers over TCP that answer wrongly, slowly, endlessly or never. The tests of `longhaul-nas` include this file.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Time after which a server gives up, longer than every limit of a client.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counters of a server, and the requests that it got.
pub struct Log {
    sent: AtomicU64,
    pub is_contacted: AtomicBool,
    requests: Sender<String>,
}

impl Log {
    /// Reads a request, and keeps it for [`Server::request`].
    pub fn receive(&self, stream: &mut impl Read) -> std::io::Result<String> {
        let request = read_request(stream)?;
        let _ = self.requests.send(request.clone());
        Ok(request)
    }
}

/// A server on 127.0.0.1 that treats every connection alike.
pub struct Server {
    pub port: u16,
    pub log: Arc<Log>,
    requests: Receiver<String>,
}

impl Server {
    pub fn serve(behave: impl Fn(TcpStream, &Log) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let log = Arc::new(Log { sent: 0.into(), is_contacted: false.into(), requests: sender });
        let (shared, behave) = (Arc::clone(&log), Arc::new(behave));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.is_contacted.store(true, Ordering::SeqCst);
                let (log, behave) = (Arc::clone(&shared), Arc::clone(&behave));
                std::thread::spawn(move || {
                    // A client that gives up closes the connection, which is no fault of the server.
                    let _ = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| behave(stream, &log));
                });
            }
        });
        Self { port, log, requests }
    }

    /// Answers once a request begins, and reads on.
    pub fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::serve(move |mut stream, log| {
            if answer.starts_with(b"220") {
                stream.write_all(&answer)?;
            }
            log.receive(&mut stream)?;
            if !answer.starts_with(b"220") {
                stream.write_all(&answer)?;
            }
            Ok(())
        })
    }

    /// Takes everything and never answers.
    pub fn silent() -> Self {
        Self::serve(|mut stream, _| std::io::copy(&mut stream, &mut std::io::sink()).map(drop))
    }

    /// Sends `start` at once, and then one byte every second, first those of `slow`.
    pub fn dripping(start: &'static [u8], slow: &'static [u8]) -> Self {
        Self::serve(move |mut stream, log| {
            stream.write_all(start)?;
            for byte in slow.iter().copied().chain(std::iter::repeat(b'a')) {
                stream.write_all(&[byte])?;
                log.sent.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_secs(1));
            }
            Ok(())
        })
    }

    /// Sends `start` and then bytes without end, as fast as the client takes them.
    pub fn flooding(start: impl Into<Vec<u8>>) -> Self {
        let start = start.into();
        Self::serve(move |mut stream, log| {
            stream.write_all(&start)?;
            let block = [b'a'; 64 << 10];
            loop {
                stream.write_all(&block)?;
                log.sent.fetch_add(block.len() as u64, Ordering::SeqCst);
            }
        })
    }

    /// Returns a port on which nothing listens.
    pub fn closed_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    /// Returns the address of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Waits for the next request and returns it.
    pub fn request(&self) -> String {
        self.requests.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns the number of bytes that clients have taken.
    pub fn sent_bytes(&self) -> u64 {
        self.log.sent.load(Ordering::SeqCst)
    }
}

/// Returns a complete answer.
pub fn http_answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads a request to the end of its body. A conversation over SMTP is read to its end.
fn read_request(stream: &mut impl Read) -> std::io::Result<String> {
    let (mut request, mut buffer) = (vec![], [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && head.contains("HTTP/1.1")
        {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Ok(text);
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(text),
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
}
