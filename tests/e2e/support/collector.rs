//! In-process OTLP collector: accepts OTLP over HTTP, decodes it, and fails in ways that a test chooses.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{ExponentialHistogramDataPoint, NumberDataPoint};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Reaction of the collector to one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Accepts the request.
    Accept,
    /// Responds with a status, headers and a body; does not accept the data.
    Respond(u16, &'static str, &'static [u8]),
    /// Accepts the request, but responds after this time.
    Delay(Duration),
    /// Closes the sending half of the connection without a response, and continues to read.
    HalfClose,
    /// Accepts the request and closes the connection without a response: the sender cannot know that it arrived.
    AcceptThenClose,
}

/// Requests received by the collector.
#[derive(Default)]
pub struct Received {
    /// Accepted trace requests.
    pub traces: Vec<ExportTraceServiceRequest>,
    /// Accepted metrics requests.
    pub metrics: Vec<ExportMetricsServiceRequest>,
    /// Accepted log records.
    pub logs: Vec<LogRecord>,
    /// Headers of the latest request, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Number of all requests, including rejected ones.
    pub requests: usize,
    /// Start and end of each delayed response.
    pub delayed: Vec<(SystemTime, SystemTime)>,
}

fn histogram(data: &Data) -> Option<Vec<ExponentialHistogramDataPoint>> {
    match data {
        Data::ExponentialHistogram(histogram) => Some(histogram.data_points.clone()),
        _ => None,
    }
}

impl Received {
    /// Returns every span by trace id and span id; duplicates are merged.
    pub fn spans(&self) -> BTreeMap<(Vec<u8>, Vec<u8>), Span> {
        let resources = self.traces.iter().flat_map(|request| &request.resource_spans);
        let spans = resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans);
        spans.map(|span| ((span.trace_id.clone(), span.span_id.clone()), span.clone())).collect()
    }

    /// Returns every data point of all exponential histograms, including duplicates.
    pub fn histograms(&self) -> Vec<ExponentialHistogramDataPoint> {
        self.data().filter_map(|(_, data)| histogram(data)).flatten().collect()
    }

    /// Returns every data point of the histogram with this name, including duplicates.
    pub fn histograms_of(&self, name: &str) -> Vec<ExponentialHistogramDataPoint> {
        self.data()
            .filter(|(found, _)| *found == name)
            .filter_map(|(_, data)| histogram(data))
            .flatten()
            .collect()
    }

    /// Returns every data point of the counter with this name, including duplicates.
    pub fn counts_of(&self, name: &str) -> Vec<NumberDataPoint> {
        let found = self.data().filter(|(found, _)| *found == name);
        let points = found.filter_map(|(_, data)| match data {
            Data::Sum(sum) => Some(sum.data_points.clone()),
            _ => None,
        });
        points.flatten().collect()
    }

    fn data(&self) -> impl Iterator<Item = (&str, &Data)> {
        let resources = self.metrics.iter().flat_map(|request| &request.resource_metrics);
        let metrics = resources.flat_map(|resource| &resource.scope_metrics).flat_map(|scope| &scope.metrics);
        metrics.filter_map(|metric| Some((metric.name.as_str(), metric.data.as_ref()?)))
    }
}

/// Running collector. It stops when dropped.
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    ends: Arc<AtomicBool>,
}

impl Collector {
    /// Starts a collector that accepts everything.
    pub fn start() -> Self {
        Self::over(|stream| Some(Box::new(stream)))
    }

    /// Starts a collector that wraps each connection, for example with TLS.
    pub fn over(wrap: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (received, replies, ends) = (Arc::default(), Arc::default(), Arc::new(AtomicBool::new(false)));
        let collector = Self { address, received, replies, ends };
        let (received, replies, ends) =
            (Arc::clone(&collector.received), Arc::clone(&collector.replies), Arc::clone(&collector.ends));
        let wrap = Arc::new(wrap);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (received, replies, wrap) =
                    (Arc::clone(&received), Arc::clone(&replies), Arc::clone(&wrap));
                std::thread::spawn(move || {
                    let _ = wrap(stream).map(|stream| serve(stream, &received, &replies));
                });
            }
        });
        collector
    }

    /// Returns the base URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the reactions to the next requests, in order; later requests are accepted.
    pub fn reply_with(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).extend(replies);
    }

    /// Calls a function with everything received so far.
    pub fn received<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Connection whose sending half can be closed.
pub trait Stream: Read + Write + Send {
    /// Closes the sending half.
    fn close_writing(&mut self);
}

impl Stream for TcpStream {
    fn close_writing(&mut self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

fn serve(
    stream: Box<dyn Stream>,
    received: &Mutex<Received>,
    replies: &Mutex<VecDeque<Reply>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (path, headers) = head(&mut stream)?;
        let body = body(&mut stream, &headers)?;
        let reply =
            replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(Reply::Accept);
        {
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            received.requests += 1;
            received.headers = headers;
            if matches!(reply, Reply::Accept | Reply::AcceptThenClose | Reply::Delay(_)) {
                take(&mut received, &path, &body);
            }
        }
        match reply {
            Reply::Accept => {
                say(stream.get_mut().as_mut(), 200, "Content-Type: application/x-protobuf\r\n", b"")?
            }
            Reply::Respond(code, headers, body) => say(stream.get_mut().as_mut(), code, headers, body)?,
            Reply::Delay(time) => {
                let began = SystemTime::now();
                std::thread::sleep(time);
                let waited = (began, SystemTime::now());
                received.lock().unwrap_or_else(PoisonError::into_inner).delayed.push(waited);
                say(stream.get_mut().as_mut(), 200, "Content-Type: application/x-protobuf\r\n", b"")?;
            }
            Reply::HalfClose => {
                stream.get_mut().close_writing();
                std::io::copy(&mut stream, &mut std::io::sink()).ok()?;
            }
            Reply::AcceptThenClose => return None,
        }
    }
}

fn head(stream: &mut impl BufRead) -> Option<(String, BTreeMap<String, String>)> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { return Some((path, headers)) };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
}

fn body(stream: &mut impl Read, headers: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    if headers.get("content-encoding").map(String::as_str) != Some("gzip") {
        return Some(body);
    }
    let mut plain = vec![];
    GzDecoder::new(&*body).read_to_end(&mut plain).unwrap();
    Some(plain)
}

fn take(received: &mut Received, path: &str, body: &[u8]) {
    match path {
        "/v1/traces" => received.traces.push(ExportTraceServiceRequest::decode(body).unwrap()),
        "/v1/metrics" => received.metrics.push(ExportMetricsServiceRequest::decode(body).unwrap()),
        "/v1/logs" => received.logs.extend(lines(ExportLogsServiceRequest::decode(body).unwrap())),
        other => panic!("a request for {other}"),
    }
}

fn lines(request: ExportLogsServiceRequest) -> impl Iterator<Item = LogRecord> {
    let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
    scopes.flat_map(|scope| scope.log_records)
}

fn say(stream: &mut dyn Stream, code: u16, headers: &str, body: &[u8]) -> Option<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {code} x\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
    stream.flush().ok()
}
