//! A collector in the test's own process: takes OTLP over HTTP, decodes it, and fails in the ways that it is told to.

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

/// What it does with one request.
#[derive(Debug, Clone)]
pub enum Mood {
    /// Takes it.
    Take,
    /// Answers with a status, headers and a body.
    Say(u16, &'static str, &'static [u8]),
    /// Waits for so long, then takes it.
    Dawdle(Duration),
    /// Closes its half of the connection without an answer, and goes on reading.
    HalfClose,
    /// Takes it and closes the connection before the answer: the sender cannot know.
    TakeAndVanish,
}

/// What it has.
#[derive(Default)]
pub struct Got {
    /// Every request for traces.
    pub traces: Vec<ExportTraceServiceRequest>,
    /// Every request for metrics.
    pub metrics: Vec<ExportMetricsServiceRequest>,
    /// Every line of a log.
    pub logs: Vec<LogRecord>,
    /// The headers of the latest request.
    pub headers: BTreeMap<String, String>,
    /// Requests in all, whatever became of them.
    pub requests: usize,
    /// From when to when it kept somebody waiting.
    pub dawdled: Vec<(SystemTime, SystemTime)>,
}

fn histogram(data: &Data) -> Option<Vec<ExponentialHistogramDataPoint>> {
    match data {
        Data::ExponentialHistogram(histogram) => Some(histogram.data_points.clone()),
        _ => None,
    }
}

impl Got {
    /// Every span, by trace and span: what came twice is there once.
    pub fn spans(&self) -> BTreeMap<(Vec<u8>, Vec<u8>), Span> {
        let resources = self.traces.iter().flat_map(|request| &request.resource_spans);
        let spans = resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans);
        spans.map(|span| ((span.trace_id.clone(), span.span_id.clone()), span.clone())).collect()
    }

    /// Every point of an exponential histogram, as often as it came.
    pub fn histograms(&self) -> Vec<ExponentialHistogramDataPoint> {
        self.data().filter_map(|(_, data)| histogram(data)).flatten().collect()
    }

    /// Every point of one instrument with this name, as often as it came.
    pub fn histograms_of(&self, name: &str) -> Vec<ExponentialHistogramDataPoint> {
        self.data()
            .filter(|(found, _)| *found == name)
            .filter_map(|(_, data)| histogram(data))
            .flatten()
            .collect()
    }

    /// Every point of a counter with this name, likewise.
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

/// A running collector.
pub struct Collector {
    address: SocketAddr,
    got: Arc<Mutex<Got>>,
    moods: Arc<Mutex<VecDeque<Mood>>>,
    ends: Arc<AtomicBool>,
}

impl Collector {
    /// Starts one that takes everything.
    pub fn start() -> Self {
        Self::over(|stream| Some(Box::new(stream)))
    }

    /// Starts one whose connections are first made into something else, such as encrypted ones.
    pub fn over(wrap: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (got, moods, ends) = (Arc::default(), Arc::default(), Arc::new(AtomicBool::new(false)));
        let collector = Self { address, got, moods, ends };
        let (got, moods, ends) =
            (Arc::clone(&collector.got), Arc::clone(&collector.moods), Arc::clone(&collector.ends));
        let wrap = Arc::new(wrap);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (got, moods, wrap) = (Arc::clone(&got), Arc::clone(&moods), Arc::clone(&wrap));
                std::thread::spawn(move || {
                    let _ = wrap(stream).map(|stream| serve(stream, &got, &moods));
                });
            }
        });
        collector
    }

    /// Where it is.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The base of its addresses.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it does with the next requests, in turn; then it takes everything again.
    pub fn will(&self, moods: impl IntoIterator<Item = Mood>) {
        self.moods.lock().unwrap_or_else(PoisonError::into_inner).extend(moods);
    }

    /// Looks at what it has.
    pub fn got<T>(&self, look: impl FnOnce(&Got) -> T) -> T {
        look(&self.got.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// A connection.
pub trait Stream: Read + Write + Send {
    /// Closes the half that it writes.
    fn close_writing(&mut self);
}

impl Stream for TcpStream {
    fn close_writing(&mut self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

fn serve(stream: Box<dyn Stream>, got: &Mutex<Got>, moods: &Mutex<VecDeque<Mood>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (path, headers) = head(&mut stream)?;
        let body = body(&mut stream, &headers)?;
        let mood = moods.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or(Mood::Take);
        {
            let mut got = got.lock().unwrap_or_else(PoisonError::into_inner);
            got.requests += 1;
            got.headers = headers;
            if matches!(mood, Mood::Take | Mood::TakeAndVanish | Mood::Dawdle(_)) {
                take(&mut got, &path, &body);
            }
        }
        match mood {
            Mood::Take => {
                say(stream.get_mut().as_mut(), 200, "Content-Type: application/x-protobuf\r\n", b"")?
            }
            Mood::Say(code, headers, body) => say(stream.get_mut().as_mut(), code, headers, body)?,
            Mood::Dawdle(time) => {
                let began = SystemTime::now();
                std::thread::sleep(time);
                let waited = (began, SystemTime::now());
                got.lock().unwrap_or_else(PoisonError::into_inner).dawdled.push(waited);
                say(stream.get_mut().as_mut(), 200, "Content-Type: application/x-protobuf\r\n", b"")?;
            }
            Mood::HalfClose => {
                stream.get_mut().close_writing();
                std::io::copy(&mut stream, &mut std::io::sink()).ok()?;
            }
            Mood::TakeAndVanish => return None,
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

fn take(got: &mut Got, path: &str, body: &[u8]) {
    match path {
        "/v1/traces" => got.traces.push(ExportTraceServiceRequest::decode(body).unwrap()),
        "/v1/metrics" => got.metrics.push(ExportMetricsServiceRequest::decode(body).unwrap()),
        "/v1/logs" => got.logs.extend(lines(ExportLogsServiceRequest::decode(body).unwrap())),
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
