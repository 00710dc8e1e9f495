//! Sends request bodies to a collector over HTTP.

use std::io::{Read, Write};
use std::sync::Arc;

use async_trait::async_trait;
use flate2::write::GzEncoder;
use longhaul_measure::platform;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::environment::Compression;
use crate::settings::OtlpEndpoint;
use crate::transport::connection::{self, CONNECT_TIMEOUT, ConnectionError, USER_AGENT};
use crate::transport::message::Message;
use crate::transport::response::{self, ExportResult, PROTOBUF_MEDIA_TYPE, RawResponse};

/// Maximum number of bytes that are read of a response.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;
/// Compression level of gzip. A fast level compresses well enough, because the messages are repetitive.
const GZIP_LEVEL: u32 = 3;

/// An HTTP client for one address, with its headers, compression, certificates and timeout.
#[derive(Debug)]
pub struct HttpTransport {
    agent: Agent,
    endpoint: OtlpEndpoint,
}

impl HttpTransport {
    /// Creates a client. It connects only when a body is sent.
    pub fn new(endpoint: &OtlpEndpoint) -> Result<Self, ConnectionError> {
        let roots = match &endpoint.certificates {
            None => RootCerts::WebPki,
            Some(pem) => RootCerts::Specific(Arc::new(connection::certificates(pem)?)),
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(endpoint.timeout))
            .timeout_connect(Some(endpoint.timeout.min(CONNECT_TIMEOUT)))
            .timeout_resolve(Some(endpoint.timeout.min(CONNECT_TIMEOUT)))
            .user_agent(USER_AGENT)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build()
            .into();
        Ok(Self { agent, endpoint: endpoint.clone() })
    }

    /// Sends a message and returns the result. Blocks at most for the timeout of the endpoint.
    pub fn send(&self, message: &Message) -> ExportResult {
        match self.post(&message.encode()) {
            Ok(raw) => response::classify(&raw, message, platform::wall_clock()),
            Err(error) => {
                let reason = failure_reason(&error, &self.endpoint.url);
                ExportResult::RetryLater { reason, after: None }
            }
        }
    }

    fn post(&self, message: &[u8]) -> Result<RawResponse, ureq::Error> {
        let mut request = self.agent.post(&self.endpoint.url).header("Content-Type", PROTOBUF_MEDIA_TYPE);
        for (name, value) in self.endpoint.headers.iter() {
            request = request.header(name, value);
        }
        let mut response = match self.endpoint.compression {
            Compression::None => request.send(message)?,
            Compression::Gzip => request.header("Content-Encoding", "gzip").send(&gzip(message)?)?,
        };
        let text = |name| response.headers().get(name)?.to_str().ok().map(ToOwned::to_owned);
        let (media_type, retry_after) = (text("content-type"), text("retry-after"));
        let code = response.status().as_u16();
        let mut body = vec![];
        response.body_mut().as_reader().take(MAX_RESPONSE_BYTES).read_to_end(&mut body)?;
        Ok(RawResponse { status: code, media_type, retry_after, body })
    }
}

/// Returns the reason why a request failed, worded to follow the address of the collector.
fn failure_reason(error: &ureq::Error, address: &str) -> String {
    match error {
        ureq::Error::Timeout(_) => "no response within the timeout".to_owned(),
        ureq::Error::HostNotFound => "the host name cannot be resolved".to_owned(),
        ureq::Error::ConnectionFailed => "connection failed".to_owned(),
        ureq::Error::Io(error) => connection::failure_reason(error, address),
        other => other.to_string(),
    }
}

/// The official exporter builds the message; everything else about the request is the same as for stored rounds.
/// Blocking is allowed: each batch processor has a thread of its own.
#[async_trait]
impl HttpClient for HttpTransport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let raw = self.post(request.body())?;
        let response = Response::builder().status(raw.status);
        let response = match raw.retry_after {
            Some(delay) => response.header("retry-after", delay),
            None => response,
        };
        Ok(response.body(raw.body.into())?)
    }
}

fn gzip(message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(vec![], flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(message)?;
    encoder.finish()
}
