//! A NAS on real sockets that answers wrongly, slowly, without end, from elsewhere or never.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_snmp::message::CommunityMessage;
use async_snmp::{DecodeConfig, Oid, ResponsePdu, Value, VarBind, Version};

/// Returns a port on which nothing listens.
pub fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server over HTTP on 127.0.0.1 that treats every connection alike.
pub struct HttpServer {
    port: u16,
    sent: Arc<AtomicU64>,
}

impl HttpServer {
    fn serve(behave: impl Fn(TcpStream, &AtomicU64) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sent, behave) = (Arc::new(AtomicU64::new(0)), Arc::new(behave));
        let counter = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (behave, counter) = (Arc::clone(&behave), Arc::clone(&counter));
                // A client that gives up closes the connection, which is no fault of the server.
                std::thread::spawn(move || drop(behave(stream, &counter)));
            }
        });
        Self { port, sent }
    }

    /// Answers each request with these bytes and closes the connection.
    pub fn answering(answer: &[u8]) -> Self {
        let answer = answer.to_vec();
        Self::serve(move |mut stream, _| {
            request(&mut stream)?;
            stream.write_all(&answer)
        })
    }

    /// Answers a request with a query with 400, and another one with these metrics.
    pub fn refusing_queries(metrics: &'static str) -> Self {
        Self::serve(move |mut stream, _| {
            let (status, body) = match request(&mut stream)?.contains('?') {
                true => ("400 Bad Request", "missing collector: stat"),
                false => ("200 OK", metrics),
            };
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        })
    }

    /// Takes everything and never answers.
    pub fn silent() -> Self {
        Self::serve(|mut stream, _| std::io::copy(&mut stream, &mut std::io::sink()).map(drop))
    }

    /// Sends these bytes, and then one byte a second.
    pub fn dripping(start: &'static [u8]) -> Self {
        Self::serve(move |mut stream, _| {
            stream.write_all(start)?;
            loop {
                stream.write_all(b"a")?;
                std::thread::sleep(Duration::from_secs(1));
            }
        })
    }

    /// Sends these bytes, and then others without end.
    pub fn flooding(start: &'static [u8]) -> Self {
        Self::serve(move |mut stream, sent| {
            stream.write_all(start)?;
            loop {
                stream.write_all(&[b'a'; 64 << 10])?;
                sent.fetch_add(64 << 10, Ordering::SeqCst);
            }
        })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/metrics", self.port)
    }

    /// Returns the number of bytes that clients have taken of an endless answer.
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

/// Reads the head of a request.
fn request(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut buffer) = (vec![], [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => break,
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// An SNMP agent on 127.0.0.1.
pub struct SnmpServer {
    pub port: u16,
    requests: Arc<AtomicU64>,
}

impl SnmpServer {
    fn serve(behave: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static, answers: Option<UdpSocket>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let requests = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut buffer = [0; 65_535];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                counter.fetch_add(1, Ordering::SeqCst);
                if let Some(answer) = behave(&buffer[..length]) {
                    let _ = answers.as_ref().unwrap_or(&socket).send_to(&answer, client);
                }
            }
        });
        Self { port, requests }
    }

    /// Answers each request with what the function returns.
    pub fn answering(behave: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self::serve(behave, None)
    }

    /// Answers each request from another port, as another host would.
    pub fn from_elsewhere(behave: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self::serve(behave, Some(UdpSocket::bind("127.0.0.1:0").unwrap()))
    }

    /// Never answers.
    pub fn silent() -> Self {
        Self::serve(|_| None, None)
    }

    /// Returns the number of requests that came.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Answers a request with these values.
fn answer(request: &[u8], value: impl Fn(&Oid) -> VarBind) -> Vec<u8> {
    let message = CommunityMessage::decode(request.to_vec().into(), DecodeConfig::DEFAULT).unwrap().value;
    let asked = message.pdu().standard().unwrap();
    let values = asked.varbinds().iter().map(|asked| value(&asked.oid)).collect();
    let pdu = ResponsePdu::success(Version::V2c, asked.request_id(), values).unwrap();
    CommunityMessage::v2c(message.community(), pdu).unwrap().encode().unwrap().to_vec()
}

fn text(id: Oid, text: &'static str) -> VarBind {
    VarBind::new(id, Value::OctetString(text.as_bytes().into()))
}

/// Answers like an agent with one disk, whose other values are all of the wrong type.
pub fn disk_answer(request: &[u8], name: &'static str) -> Vec<u8> {
    answer(request, |asked| match asked.arcs() {
        [.., 0] => text(asked.clone(), name),
        [1, 3, 6, 1, 4, 1, 2021, 13, 15, 1, 1, _] => text(asked.child(1), name),
        _ => VarBind::new(asked.clone(), Value::EndOfMibView),
    })
}

/// Answers like an agent whose tables have no end.
pub fn endless_answer(request: &[u8]) -> Vec<u8> {
    answer(request, |asked| {
        // A column of disks has 12 numbers, and its row is the last one.
        let (column, row) = asked.arcs().split_at(asked.len().min(12));
        let row = row.first().copied().unwrap_or(0) + 1;
        text(Oid::new(column.iter().copied().chain([row])), "x")
    })
}

/// Answers each question about a table with its first row.
pub fn circular_answer(request: &[u8]) -> Vec<u8> {
    answer(request, |asked| text(Oid::new(asked.arcs().iter().copied().take(12).chain([1])), "x"))
}

/// Changes the id of the request in an answer: an integer of four bytes.
pub fn change_request_id(answer: &mut [u8]) {
    let place = answer.windows(2).position(|bytes| bytes == [0x02, 0x04]).unwrap();
    answer[place + 5] ^= 1;
}
