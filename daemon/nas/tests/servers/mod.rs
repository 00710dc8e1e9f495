//! A NAS on real sockets that answers wrongly, slowly, without end, from elsewhere or never.

#[path = "../../../../tests/e2e/support/tcp_server.rs"]
mod tcp;

use std::io::Write;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_snmp::message::CommunityMessage;
use async_snmp::{DecodeConfig, Oid, ResponsePdu, Value, VarBind, Version};
pub use tcp::Server as HttpServer;
use tcp::http_answer;

impl HttpServer {
    /// Answers a request with a query with 400, and another one with these metrics.
    pub fn refusing_queries(metrics: &'static str) -> Self {
        Self::serve(move |mut stream, log| {
            let (status, body) = match log.receive(&mut stream)?.contains('?') {
                true => ("400 Bad Request", "missing collector: stat"),
                false => ("200 OK", metrics),
            };
            stream.write_all(&http_answer(status, body))
        })
    }
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
