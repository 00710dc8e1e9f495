//! Requests of `object_store` through ureq, which longhaul uses for all HTTP but OTLP over gRPC: a second client would double the TLS code.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};

/// Longest duration of one request. A week of one machine has a few megabytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Largest answer that is read: a list of a thousand objects has half a megabyte, a table at most a few hundred.
const MAX_RESPONSE_BYTES: u64 = 1 << 30;

/// Makes HTTP clients for `object_store`.
#[derive(Debug)]
pub(crate) struct UreqConnector;

impl HttpConnector for UreqConnector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(REQUEST_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Ok(HttpClient::new(UreqService { agent: config.into() }))
    }
}

#[derive(Debug)]
struct UreqService {
    agent: ureq::Agent,
}

#[async_trait]
impl HttpService for UreqService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let agent = self.agent.clone();
        let sent = tokio::task::spawn_blocking(move || send(&agent, http::Request::from_parts(parts, body)));
        sent.await.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?
    }
}

fn send(agent: &ureq::Agent, request: http::Request<Bytes>) -> Result<HttpResponse, HttpError> {
    let (parts, body) = request.into_parts();
    let answer = agent.run(http::Request::from_parts(parts, body.as_ref())).map_err(http_error)?;
    let (parts, mut body) = answer.into_parts();
    let bytes = body.with_config().limit(MAX_RESPONSE_BYTES).read_to_vec().map_err(http_error)?;
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(Bytes::from(bytes))))
}

fn http_error(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => HttpErrorKind::Connect,
        // A connection that breaks off: the request may or may not have arrived, and repeating it changes nothing, because
        // every object is written whole under its own name.
        ureq::Error::Io(_) | ureq::Error::Protocol(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
