//! Sends messages to a collector over gRPC.

use std::error::Error;
use std::io;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use tokio::runtime::Runtime;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::environment::Compression;
use crate::settings::OtlpEndpoint;
use crate::transport::connection::{self, CONNECT_TIMEOUT, ConnectionError, USER_AGENT};
use crate::transport::message::Message;
use crate::transport::response::{ExportResult, MAX_RETRY_AFTER, truncated};

/// A gRPC client for one address, with its headers, compression, certificates and timeout.
#[derive(Debug)]
pub struct GrpcTransport {
    endpoint: Endpoint,
    metadata: MetadataMap,
    settings: OtlpEndpoint,
}

/// A failed attempt to send a message.
#[derive(Debug, thiserror::Error)]
enum GrpcError {
    #[error("no response within the timeout")]
    Timeout(#[from] tokio::time::error::Elapsed),
    #[error("connection failed")]
    Connection(#[from] tonic::transport::Error),
    #[error("the system refuses what a connection needs: {0}")]
    Runtime(#[from] io::Error),
    #[error("{0}")]
    Status(Box<Status>),
}

impl GrpcTransport {
    /// Creates a client. It connects only when a message is sent.
    pub fn new(settings: &OtlpEndpoint) -> Result<Self, ConnectionError> {
        let wrong = |error: tonic::transport::Error| ConnectionError::Grpc(innermost(&error).to_string());
        let endpoint = Endpoint::from_shared(settings.url.clone()).map_err(wrong)?;
        let endpoint = endpoint.user_agent(USER_AGENT).map_err(wrong)?;
        let endpoint =
            endpoint.connect_timeout(settings.timeout.min(CONNECT_TIMEOUT)).timeout(settings.timeout);
        let endpoint = if endpoint.uri().scheme_str() == Some("https") {
            endpoint.tls_config(tls_config(settings.certificates.as_deref())?).map_err(wrong)?
        } else {
            endpoint
        };
        Ok(Self { endpoint, metadata: metadata(settings)?, settings: settings.clone() })
    }

    /// Returns a connection that is opened at the first message. Must be called within a runtime.
    pub fn channel(&self) -> Channel {
        self.endpoint.connect_lazy()
    }

    /// Returns the headers of every request.
    pub fn metadata(&self) -> MetadataMap {
        self.metadata.clone()
    }

    /// Sends a message and returns the result. Blocks at most for the timeout of the endpoint. Must not be called
    /// within a runtime.
    pub fn send(&self, message: &Message) -> ExportResult {
        match self.export(message) {
            Ok((rejected, reason)) => ExportResult::accepted_except(rejected, &reason),
            Err(GrpcError::Status(status)) => classify(&status),
            Err(error) => ExportResult::RetryLater { reason: self.failure_reason(&error), after: None },
        }
    }

    /// Sends a message on a connection of its own. Messages are rare (one a minute when nothing is pending), and a
    /// connection that is kept needs a thread that answers the pings of the collector.
    fn export(&self, message: &Message) -> Result<(i64, String), GrpcError> {
        let runtime = runtime()?;
        let exported = runtime.block_on(async {
            tokio::time::timeout(self.settings.timeout, async {
                let channel = self.endpoint.connect().await?;
                self.call(channel, message).await.map_err(|status| GrpcError::Status(Box::new(status)))
            })
            .await?
        });
        // A name that is still being resolved on a thread of the runtime is not waited for.
        runtime.shutdown_background();
        exported
    }

    /// Returns the number of rejected spans or data points, and the reason.
    async fn call(&self, channel: Channel, message: &Message) -> Result<(i64, String), Status> {
        let is_compressed = self.settings.compression == Compression::Gzip;
        Ok(match message {
            Message::Traces(request) => {
                let client = TraceServiceClient::new(channel).accept_compressed(CompressionEncoding::Gzip);
                let mut client =
                    if is_compressed { client.send_compressed(CompressionEncoding::Gzip) } else { client };
                let response = client.export(self.request(request.clone())).await?.into_inner();
                response.partial_success.map(|partial| (partial.rejected_spans, partial.error_message))
            }
            Message::Metrics(request) => {
                let client = MetricsServiceClient::new(channel).accept_compressed(CompressionEncoding::Gzip);
                let mut client =
                    if is_compressed { client.send_compressed(CompressionEncoding::Gzip) } else { client };
                let response = client.export(self.request(request.clone())).await?.into_inner();
                response.partial_success.map(|partial| (partial.rejected_data_points, partial.error_message))
            }
        }
        .unwrap_or_default())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        Request::from_parts(self.metadata.clone(), tonic::Extensions::default(), message)
    }

    /// Returns the reason why a message was not sent, worded to follow the address of the collector.
    fn failure_reason(&self, error: &GrpcError) -> String {
        let GrpcError::Connection(error) = error else { return error.to_string() };
        let cause = innermost(error);
        match cause.downcast_ref::<io::Error>() {
            Some(cause) => connection::failure_reason(cause, &self.settings.url),
            None => cause.to_string(),
        }
    }
}

/// Returns a runtime on the calling thread.
///
/// # Errors
///
/// The error of the operating system.
pub fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Interprets the status of a call that was not accepted (OTLP 1.9, "OTLP/gRPC Response").
///
/// The data are rejected if the status is about them: `INVALID_ARGUMENT`, and `RESOURCE_EXHAUSTED` without the
/// information that a retry helps, which is how a message that is too large is refused. The specification asks for
/// a retry after `CANCELLED`, `DEADLINE_EXCEEDED`, `ABORTED`, `OUT_OF_RANGE`, `UNAVAILABLE`, `DATA_LOSS` and
/// `RESOURCE_EXHAUSTED` with that information. All other codes are not about the data but about the path to the
/// collector (a wrong token, another service), so the data stay pending as they do over HTTP.
fn classify(status: &Status) -> ExportResult {
    let reason = match truncated(status.message()) {
        text if text.is_empty() => format!("{:?}", status.code()),
        text => format!("{:?}: {text}", status.code()),
    };
    let retry = status.get_details_retry_info();
    match status.code() {
        Code::InvalidArgument => ExportResult::Rejected { reason },
        Code::ResourceExhausted if retry.is_none() => ExportResult::Rejected { reason },
        _ => {
            let after = retry.and_then(|retry| retry.retry_delay).map(|delay| delay.min(MAX_RETRY_AFTER));
            ExportResult::RetryLater { reason, after: after.filter(|delay| *delay > Duration::ZERO) }
        }
    }
}

fn tls_config(pem: Option<&[u8]>) -> Result<ClientTlsConfig, ConnectionError> {
    let config = ClientTlsConfig::new();
    Ok(match pem {
        None => config.with_webpki_roots(),
        Some(pem) => {
            connection::certificates(pem)?;
            config.ca_certificate(Certificate::from_pem(pem))
        }
    })
}

fn metadata(settings: &OtlpEndpoint) -> Result<MetadataMap, ConnectionError> {
    // The error does not quote a header, because it can be a secret.
    let wrong = || ConnectionError::Grpc("a header is invalid".to_owned());
    let mut headers = HeaderMap::new();
    for (name, value) in settings.headers.iter() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    Ok(MetadataMap::from_headers(headers))
}

/// Returns the last error in the chain of causes. The outer ones only say that a transport failed.
fn innermost<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn only_a_status_about_the_data_rejects_them() {
        for code in [
            Code::Cancelled,
            Code::DeadlineExceeded,
            Code::Aborted,
            Code::OutOfRange,
            Code::Unavailable,
            Code::DataLoss,
            Code::Unauthenticated,
            Code::PermissionDenied,
            Code::Unimplemented,
            Code::NotFound,
            Code::Internal,
            Code::Unknown,
        ] {
            let result = classify(&Status::new(code, "busy"));
            assert_eq!(result, ExportResult::RetryLater { reason: format!("{code:?}: busy"), after: None });
        }
        for code in [Code::InvalidArgument, Code::ResourceExhausted] {
            let result = classify(&Status::new(code, ""));
            assert_eq!(result, ExportResult::Rejected { reason: format!("{code:?}") });
        }
    }

    #[test]
    fn retry_info_makes_exhaustion_temporary_and_sets_the_delay() {
        let with_delay = |delay| {
            let details = ErrorDetails::with_retry_info(delay);
            classify(&Status::with_error_details(Code::ResourceExhausted, "slow down", details))
        };
        let later = |after| ExportResult::RetryLater { reason: "ResourceExhausted: slow down".into(), after };
        assert_eq!(with_delay(Some(Duration::from_secs(7))), later(Some(Duration::from_secs(7))));
        assert_eq!(with_delay(Some(Duration::from_secs(1_000_000))), later(Some(MAX_RETRY_AFTER)));
        assert_eq!(with_delay(None), later(None));
    }
}
