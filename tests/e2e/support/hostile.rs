//! Servers on 127.0.0.1 that misbehave in one way each, for any protocol over TCP or UDP.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Time after which a server gives up, longer than every limit of the product.
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of bytes in an answer that is called a gigabyte.
const GIGABYTE: u64 = 1 << 30;
/// Path of a certificate for 127.0.0.1 that no public authority has signed, valid until the year 2125. It and its key are used in
/// tests only.
pub const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/key.pem");

/// A gigabyte of zeros, compressed to a megabyte: 16 members of gzip in a row.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(vec![], Compression::default());
    let block = vec![0; 1 << 20];
    (0..64).for_each(|_| encoder.write_all(&block).unwrap());
    encoder.finish().unwrap().repeat(16)
});

/// The way in which a server misbehaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It takes everything and never answers.
    Silent,
    /// It sends one byte a second.
    ByteASecond,
    /// It answers with an error of a gigabyte.
    Gigabyte,
    /// It answers with success and a gigabyte.
    SuccessAndGigabyte,
    /// It sends the head of an answer without end.
    EndlessHead,
    /// It redirects to a file or to another server.
    Redirect(String),
    /// It answers with a megabyte that becomes a gigabyte.
    CompressedBomb,
    /// It has a certificate that no authority has signed.
    WrongCertificate,
    /// It answers with what is no answer, and closes.
    Garbage,
    /// It refuses as the protocol says: the answer that the others are compared with.
    Refusal,
}

impl Misbehaviour {
    /// Returns the name in the table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Silent => "never answers",
            Self::ByteASecond => "a byte a second",
            Self::Gigabyte => "a gigabyte",
            Self::SuccessAndGigabyte => "success and a gigabyte",
            Self::EndlessHead => "an endless head",
            Self::Redirect(to) if to.starts_with("file:") => "a redirect to a file",
            Self::Redirect(_) => "a redirect to another host",
            Self::CompressedBomb => "a compressed bomb",
            Self::WrongCertificate => "a wrong certificate",
            Self::Garbage => "garbage",
            Self::Refusal => "a refusal",
        }
    }

    /// Returns the start of an answer over HTTP.
    fn http_start(&self) -> String {
        match self {
            Self::Silent | Self::WrongCertificate => String::new(),
            Self::ByteASecond => "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".to_owned(),
            Self::Gigabyte => format!("HTTP/1.1 500 Broken\r\nContent-Length: {GIGABYTE}\r\n\r\n"),
            Self::SuccessAndGigabyte => format!("HTTP/1.1 200 OK\r\nContent-Length: {GIGABYTE}\r\n\r\n"),
            Self::EndlessHead => "HTTP/1.1 200 OK\r\nX-Long: ".to_owned(),
            Self::Redirect(to) => {
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
            }
            Self::CompressedBomb => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                BOMB.len()
            ),
            Self::Refusal => "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Self::Garbage => "\u{16}\u{3}\u{1}\u{0}garbage".to_owned(),
        }
    }
}

/// A server that misbehaves. It ends with the test.
pub struct HostileServer {
    /// Port on 127.0.0.1.
    pub port: u16,
    connections: Arc<AtomicU64>,
}

impl HostileServer {
    /// Starts a server for HTTP and gRPC.
    pub fn http(how: Misbehaviour) -> Self {
        Self::tcp(move |stream| match how {
            Misbehaviour::WrongCertificate => encrypted(stream),
            _ => misbehave(stream, &how, &how.http_start()),
        })
    }

    /// Starts a mail server.
    pub fn smtp(how: Misbehaviour) -> Self {
        Self::tcp(move |stream| {
            let start = match how {
                Misbehaviour::WrongCertificate => return encrypted(stream),
                Misbehaviour::EndlessHead => "220-",
                Misbehaviour::Gigabyte => "220 hello\r\n",
                Misbehaviour::Refusal => "554 no service\r\n",
                _ => "",
            };
            misbehave(stream, &how, start)
        })
    }

    /// Starts a mail server that misbehaves once it has agreed to encrypt.
    pub fn starttls(how: Misbehaviour) -> Self {
        Self::tcp(move |mut stream| {
            for answer in ["220 hello\r\n", "250-hello\r\n250 STARTTLS\r\n"] {
                stream.write_all(answer.as_bytes())?;
                read_line(&mut stream)?;
            }
            let answer = if how == Misbehaviour::Refusal { "454 not now\r\n" } else { "220 go ahead\r\n" };
            stream.write_all(answer.as_bytes())?;
            match how {
                Misbehaviour::WrongCertificate => encrypted(stream),
                _ => misbehave(stream, &how, ""),
            }
        })
    }

    /// Starts an agent of SNMP: it answers each request with datagrams that are not expected.
    pub fn snmp(how: Misbehaviour) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            let mut request = [0; 2048];
            while let Ok((_, from)) = socket.recv_from(&mut request) {
                counted.fetch_add(1, Ordering::SeqCst);
                let (datagrams, size) = match how {
                    Misbehaviour::Silent => (0, 0),
                    Misbehaviour::ByteASecond => (5, 1),
                    Misbehaviour::Gigabyte => (16_384, 60_000),
                    _ => (1, 40),
                };
                for _ in 0..datagrams {
                    let _ = socket.send_to(&vec![0x30; size], from);
                    if how == Misbehaviour::ByteASecond {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                }
            }
        });
        Self { port, connections }
    }

    fn tcp(behave: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        let behave = Arc::new(behave);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let behave = Arc::clone(&behave);
                // A client that gives up closes the connection, which is no fault of the server.
                std::thread::spawn(move || drop(behave(stream)));
            }
        });
        Self { port, connections }
    }

    /// Returns the address with http.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the number of connections or requests so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads a command to the end of its line.
fn read_line(stream: &mut TcpStream) -> io::Result<()> {
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte)?;
    }
    Ok(())
}

fn misbehave(mut stream: TcpStream, how: &Misbehaviour, start: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // The request is read for a while: a connection that is closed with unread data is reset, and the answer is lost.
    let _ = io::copy(&mut stream, &mut io::sink());
    match how {
        Misbehaviour::ByteASecond => {
            for byte in start.bytes().chain(std::iter::repeat(b'a')) {
                stream.write_all(&[byte])?;
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        Misbehaviour::Gigabyte | Misbehaviour::SuccessAndGigabyte | Misbehaviour::EndlessHead => {
            stream.write_all(start.as_bytes())?;
            (0..GIGABYTE >> 16).try_for_each(|_| stream.write_all(&[b'a'; 1 << 16]))?;
        }
        Misbehaviour::CompressedBomb => {
            stream.write_all(start.as_bytes())?;
            stream.write_all(&BOMB)?;
        }
        _ => stream.write_all(start.as_bytes())?,
    }
    if !matches!(how, Misbehaviour::Garbage | Misbehaviour::Refusal) {
        stream.set_read_timeout(Some(PATIENCE))?;
        io::copy(&mut stream, &mut io::sink())?;
    }
    Ok(())
}

/// Returns the settings of a server that proves itself with [`CERTIFICATE`].
pub fn tls() -> Arc<ServerConfig> {
    let certificates = CertificateDer::pem_file_iter(CERTIFICATE).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(certificates, key).unwrap())
}

/// Offers TLS with a certificate that nothing trusts.
fn encrypted(stream: TcpStream) -> io::Result<()> {
    let connection = ServerConnection::new(tls()).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.read_exact(&mut [0])?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}
