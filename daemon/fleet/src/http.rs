//! Requests of `object_store` through ureq, which longhaul uses for all HTTP but OTLP over gRPC: a second client would double the TLS code.

use std::io::Read as _;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};

use crate::layout::MAX_FILE_BYTES;

/// Longest duration of one request. A week of one machine has a few megabytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Largest part of the answer to a refused request that is read.
const MAX_ERROR_BYTES: u64 = 64 << 10;

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
    let read = if parts.status.is_success() { read_answer(&mut body) } else { read_refusal(&mut body) };
    let bytes = Bytes::from(read.map_err(http_error)?);
    Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes)))
}

/// Reads an answer that is not larger than a file of a collection; a list of a thousand objects has about a megabyte.
fn read_answer(body: &mut ureq::Body) -> Result<Vec<u8>, ureq::Error> {
    if body.content_length().is_some_and(|length| length > MAX_FILE_BYTES) {
        return Err(ureq::Error::BodyExceedsLimit(MAX_FILE_BYTES));
    }
    // The limit of ureq is an error also for an answer that ends just there.
    body.with_config().limit(MAX_FILE_BYTES + 1).read_to_vec()
}

/// Reads the beginning of the answer to a refused request, which says the reason.
fn read_refusal(body: &mut ureq::Body) -> Result<Vec<u8>, ureq::Error> {
    let mut bytes = vec![];
    body.as_reader().take(MAX_ERROR_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Sends a request to a server that answers with this and keeps the connection open until the client closes it.
    fn answered(answer: &'static [u8]) -> Result<HttpResponse, HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let lines = BufReader::new(client.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.is_empty()), "the request is complete");
            // The client closes the connection when it has read enough.
            let _ = client.write_all(answer).and_then(|()| client.read_to_end(&mut vec![]).map(drop));
        });
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        send(&agent, http::Request::get(address).body(Bytes::new()).unwrap())
    }

    #[test]
    fn answer_that_announces_a_gigabyte_is_not_read() {
        let error = answered(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n").unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(&MAX_FILE_BYTES.to_string()), "{source}");
    }

    #[test]
    fn refusal_is_read_up_to_its_limit() {
        static REFUSAL: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let head = b"HTTP/1.1 500 Oops\r\nContent-Length: 1073741824\r\n\r\n";
            head.iter().copied().chain(std::iter::repeat_n(b'a', 1 << 20)).collect()
        });
        let refused = answered(REFUSAL.as_slice()).unwrap();
        assert_eq!(refused.status(), 500);
        let body = crate::runtime::block_on(async {
            let bytes = refused.into_body().bytes().await;
            Ok(bytes.map(|bytes| bytes.len() as u64))
        });
        assert_eq!(body.unwrap().unwrap(), MAX_ERROR_BYTES);
    }
}
