//! A real OpenTelemetry Collector and a real Prometheus, which tests start and kill.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::machine;

/// Returns the folder with the built programs.
pub fn programs() -> PathBuf {
    let folder = std::env::var_os("LONGHAUL_COLLECTOR");
    folder.expect("LONGHAUL_COLLECTOR must be a folder built by tests/collector/build.sh").into()
}

/// Returns a port on which nothing listens.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Running program. It is killed when dropped.
pub struct Program(Child);

impl Program {
    pub fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        machine::wait_until("a program to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Collector that writes received data to a file before it responds.
pub struct RealCollector {
    program: PathBuf,
    config: PathBuf,
    file: PathBuf,
    port: u16,
}

/// Protocol that a collector accepts.
pub enum Accepts {
    Http,
    Grpc,
    /// gRPC with the test certificate.
    GrpcOverTls,
}

impl Accepts {
    /// Returns the setting of the collector.
    pub fn receiver(&self, port: u16) -> String {
        let address = format!("endpoint: 127.0.0.1:{port}");
        match self {
            Self::Http => format!("http: {{{address}}}"),
            Self::Grpc => format!("grpc: {{{address}}}"),
            Self::GrpcOverTls => {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector");
                let tls = format!("cert_file: {folder}/certificate.pem, key_file: {folder}/key.pem");
                format!("grpc: {{{address}, tls: {{{tls}}}}}")
            }
        }
    }
}

impl RealCollector {
    pub fn new(programs: &Path, folder: &Path, accepts: Accepts) -> Self {
        let (port, file, config) = (free_port(), folder.join("out.jsonl"), folder.join("collector.yaml"));
        // No batching. A rotating file is written immediately; the exporter flushes any other file only once a
        // second.
        let text = format!(
            "receivers: {{otlp: {{protocols: {{{}}}}}}}\n\
             exporters: {{file: {{path: {}, rotation: {{max_megabytes: 100000}}}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n    \
             traces: {{receivers: [otlp], exporters: [file]}}\n    metrics: {{receivers: [otlp], exporters: [file]}}\n    \
             logs: {{receivers: [otlp], exporters: [file]}}\n",
            accepts.receiver(port),
            file.display()
        );
        std::fs::write(&config, text).unwrap();
        Self { program: programs.join("otelcol"), config, file, port }
    }

    pub fn start(&self) -> Program {
        Program::start(Command::new(&self.program).arg("--config").arg(&self.config), self.port)
    }

    /// Returns everything that the collector wrote. A line truncated by a kill is followed by the next one without a
    /// line break.
    pub fn written(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let whole = |line: &str| -> Option<Value> {
            let kinds = ["{\"resourceSpans\"", "{\"resourceMetrics\"", "{\"resourceLogs\""];
            let begins = kinds.into_iter().filter_map(|kind| line.rfind(kind)).max()?;
            serde_json::from_str(&line[begins..]).ok()
        };
        text.lines().filter_map(whole).collect()
    }

    pub fn bytes(&self) -> u64 {
        std::fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Running Prometheus that accepts OTLP, also with old timestamps.
pub struct Prometheus {
    _program: Program,
    /// Port on which it listens.
    pub port: u16,
}

impl Prometheus {
    pub fn start(programs: &Path, folder: &Path, scraped: Option<u16>) -> Self {
        let port = free_port();
        let scrape = scraped.map_or(String::new(), |port| {
            format!(
                "scrape_configs:\n- job_name: longhaul\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['127.0.0.1:{port}']\n"
            )
        });
        let config = folder.join("prometheus.yml");
        let text = format!("storage: {{tsdb: {{out_of_order_time_window: 2000d}}}}\n{scrape}");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(programs.join("prometheus"));
        command
            .arg("--web.enable-otlp-receiver")
            .arg("--storage.tsdb.retention.time=10y")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        let program = Program::start(&mut command, port);
        let prometheus = Self { _program: program, port };
        machine::wait_until("Prometheus to be ready", || prometheus.get("/-/ready").is_some());
        prometheus
    }

    pub fn get(&self, path: &str) -> Option<String> {
        let mut answer = ureq::get(format!("http://127.0.0.1:{}{path}", self.port)).call().ok()?;
        answer.body_mut().with_config().limit(100 << 20).read_to_string().ok()
    }

    /// Returns the result of a PromQL query at a time in seconds since 1970 UTC.
    pub fn query(&self, query: &str, at: f64) -> Value {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query?query={escaped}&time={at}");
        let body = self.get(&path).unwrap_or_else(|| panic!("Prometheus rejects the query {query}"));
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }
}
