//! Servers on real sockets that answer wrongly, slowly, endlessly or never.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Certificate of [`Server::encrypted`], which is its own authority, for 127.0.0.1.
pub const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/collector/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/collector/key.pem");
/// Time after which a server gives up, longer than every limit of a client.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counters of a server, and the requests that it got.
struct Log {
    sent: AtomicU64,
    is_contacted: AtomicBool,
    requests: Sender<String>,
}

/// A server on 127.0.0.1 that treats every connection alike.
pub struct Server {
    pub port: u16,
    log: Arc<Log>,
    requests: Receiver<String>,
}

impl Server {
    fn serve(behave: impl Fn(TcpStream, &Log) -> std::io::Result<()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let log = Arc::new(Log { sent: 0.into(), is_contacted: false.into(), requests: sender });
        let shared = Arc::clone(&log);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.is_contacted.store(true, Ordering::SeqCst);
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                // A client that gives up closes the connection, which is no fault of the server.
                let _ = behave(stream, &shared);
            }
        });
        Self { port, log, requests }
    }

    /// Answers once a request begins, and reads on.
    pub fn answering(answer: Vec<u8>) -> Self {
        Self::serve(move |mut stream, log| {
            if answer.starts_with(b"220") {
                stream.write_all(&answer)?;
            }
            let request = read_request(&mut stream)?;
            let _ = log.requests.send(request);
            if !answer.starts_with(b"220") {
                stream.write_all(&answer)?;
            }
            Ok(())
        })
    }

    /// Sends these lines one after the other: the first at once, each other after something was received.
    pub fn conversing(lines: &[&'static str]) -> Self {
        let lines = lines.to_vec();
        Self::serve(move |mut stream, _| {
            let mut buffer = [0; 4096];
            for line in &lines {
                stream.write_all(line.as_bytes())?;
                if stream.read(&mut buffer)? == 0 {
                    return Ok(());
                }
            }
            while stream.read(&mut buffer)? > 0 {}
            Ok(())
        })
    }

    /// Takes everything and never answers.
    pub fn silent() -> Self {
        Self::serve(|mut stream, _| std::io::copy(&mut stream, &mut std::io::sink()).map(drop))
    }

    /// Closes each connection after the request.
    pub fn closing() -> Self {
        Self::serve(|mut stream, _| read_request(&mut stream).map(drop))
    }

    /// Sends one byte every second, first those of `start`.
    pub fn dripping(start: Vec<u8>) -> Self {
        Self::serve(move |mut stream, log| {
            for byte in start.iter().copied().chain(std::iter::repeat(b'a')) {
                stream.write_all(&[byte])?;
                log.sent.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_secs(1));
            }
            Ok(())
        })
    }

    /// Sends `start` and then bytes without end, as fast as the client takes them.
    pub fn flooding(start: Vec<u8>) -> Self {
        Self::serve(move |mut stream, log| {
            stream.write_all(&start)?;
            let block = [b'a'; 64 << 10];
            loop {
                stream.write_all(&block)?;
                log.sent.fetch_add(block.len() as u64, Ordering::SeqCst);
            }
        })
    }

    /// Accepts every request over TLS, with [`CERTIFICATE`].
    pub fn encrypted() -> Self {
        let certificates = CertificateDer::pem_file_iter(CERTIFICATE).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(KEY).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config =
            Arc::new(builder.unwrap().with_no_client_auth().with_single_cert(certificates, key).unwrap());
        Self::serve(move |stream, log| {
            let connection = ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
            let mut stream = StreamOwned::new(connection, stream);
            let request = read_request(&mut stream)?;
            let _ = log.requests.send(request);
            stream.write_all(&http_answer("200 OK", ""))
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

    /// Returns whether a client has connected.
    pub fn was_contacted(&self) -> bool {
        self.log.is_contacted.load(Ordering::SeqCst)
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
