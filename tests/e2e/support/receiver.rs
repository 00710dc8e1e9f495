//! A receiver of webhooks on 127.0.0.1 that keeps what it gets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;

/// Time for which a silent receiver keeps a connection.
const PATIENCE: Duration = Duration::from_secs(120);

/// A message as it arrived.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// Head of the request.
    pub head: String,
    /// Body of the request.
    pub body: Value,
}

impl Arrived {
    /// Returns the title of the message.
    pub fn title(&self) -> &str {
        self.body["title"].as_str().unwrap_or_default()
    }
}

/// A receiver of webhooks.
pub struct WebhookReceiver {
    port: u16,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl WebhookReceiver {
    /// Starts a receiver that accepts everything.
    pub fn start() -> Self {
        Self::serve(
            TcpListener::bind("127.0.0.1:0").unwrap(),
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        )
    }

    /// Starts a receiver that accepts everything, on a socket that is bound, so that no other test has its port.
    pub fn start_on(socket: TcpSocket) -> Self {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let listener = runtime.block_on(async { socket.listen(16).unwrap().into_std().unwrap() });
        listener.set_nonblocking(false).unwrap();
        Self::serve(listener, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }

    /// Starts a receiver that takes everything and never answers.
    pub fn start_silent() -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").unwrap(), b"")
    }

    fn serve(listener: TcpListener, answer: &'static [u8]) -> Self {
        let port = listener.local_addr().unwrap().port();
        let arrived = Arc::new(Mutex::new(vec![]));
        let shared = Arc::clone(&arrived);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    if let Some((message, mut stream)) = read_message(stream) {
                        shared.lock().unwrap().push(message);
                        let _ = stream.write_all(answer);
                        if answer.is_empty() {
                            std::thread::sleep(PATIENCE);
                        }
                    }
                });
            }
        });
        Self { port, arrived }
    }

    /// Returns the address of the receiver.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook/secret-path", self.port)
    }

    /// Returns all messages so far.
    pub fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    /// Returns the titles of all messages so far, without the requests of checks.
    pub fn titles(&self) -> Vec<String> {
        let arrived = self.arrived();
        let messages = arrived.iter().filter(|message| message.head.starts_with("POST "));
        messages.map(|message| message.title().to_owned()).collect()
    }
}

fn read_message(mut stream: TcpStream) -> Option<(Arrived, TcpStream)> {
    let (mut request, mut buffer) = (vec![], [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                let body = serde_json::from_str(body).unwrap_or(Value::Null);
                return Some((Arrived { head: head.to_owned(), body }, stream));
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
}
