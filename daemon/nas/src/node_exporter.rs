//! Reads a NAS from a node_exporter of Prometheus.

use std::io::{self, Read};
use std::time::Instant;

use longhaul_measure::{local_network, platform};
use longhaul_model::{NasProblem, NasReading};
use ureq::http::StatusCode;
use ureq::{Agent, Error};

use crate::error::NasError;
use crate::parse::exposition;

/// Largest answer in bytes. A real one has about a hundred kilobytes.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
/// Largest head of an answer in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Asks for these collectors only, so that the NAS does not read its sensors and network.
const COLLECTORS: &str = "collect[]=cpu&collect[]=diskstats&collect[]=stat";

/// Reads a node_exporter until a deadline.
pub fn read(url: &str, deadline: Instant) -> Result<NasReading, NasError> {
    let filtered = format!("{url}?{COLLECTORS}");
    let body = match get(if url.contains('?') { url } else { &filtered }, deadline) {
        // A node_exporter without one of the collectors refuses the question.
        Err(error) if error.problem == NasProblem::InvalidAnswer && !url.contains('?') => get(url, deadline)?,
        other => other?,
    };
    exposition::read(&body).map_err(|error| {
        let next = "is it the address of a node_exporter, such as http://nas.local:9100/metrics?";
        NasError::new(error.problem, format!("{error}, from {url}: {next}"))
    })
}

fn get(url: &str, deadline: Instant) -> Result<Vec<u8>, NasError> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(MAX_HEAD_BYTES)
        .timeout_global(Some(deadline.saturating_duration_since(Instant::now())))
        .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
        .build();
    let unread = |error: Error| failure(&error, url);
    let mut answer = Agent::new_with_config(config).get(url).call().map_err(unread)?;
    let status = answer.status();
    if status != StatusCode::OK {
        return Err(refusal(status, url));
    }
    // The memory is reserved once and touched only as far as the answer reaches. A growing buffer took 10 MB for an
    // answer at the limit, because the old and the new buffer exist together while it is copied.
    let mut bytes = Vec::with_capacity(MAX_ANSWER_BYTES as usize + 1);
    let mut body = answer.body_mut().as_reader().take(MAX_ANSWER_BYTES + 1);
    body.read_to_end(&mut bytes).map_err(|error| unread(error.into()))?;
    if bytes.len() as u64 > MAX_ANSWER_BYTES {
        return Err(unread(Error::BodyExceedsLimit(MAX_ANSWER_BYTES)));
    }
    Ok(bytes)
}

fn refusal(status: StatusCode, url: &str) -> NasError {
    let (problem, next) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            (NasProblem::Refused, "let this computer read it without a password")
        }
        _ => (NasProblem::InvalidAnswer, "is it the address of a node_exporter?"),
    };
    NasError::new(problem, format!("{url} answers {status}: {next}"))
}

/// Reason and next step if the name of a host leads nowhere.
const UNKNOWN_HOST: &str = "the host name cannot be resolved: correct `url` in [nas]";

fn failure(error: &Error, url: &str) -> NasError {
    let (problem, text) = match error {
        Error::Timeout(_) => (NasProblem::Timeout, "no answer in time".to_owned()),
        Error::BodyExceedsLimit(_) => {
            (NasProblem::TooLarge, format!("the answer has more than {} MiB", MAX_ANSWER_BYTES >> 20))
        }
        Error::HostNotFound => (NasProblem::Unreachable, UNKNOWN_HOST.to_owned()),
        // The resolver of the system has no kind of error of its own.
        Error::Io(error) if error.to_string().contains("failed to lookup address") => {
            (NasProblem::Unreachable, UNKNOWN_HOST.to_owned())
        }
        Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            (NasProblem::Unreachable, "connection refused: is a node_exporter running there?".to_owned())
        }
        Error::Io(error) if error.kind() == io::ErrorKind::HostUnreachable => {
            (NasProblem::Unreachable, local_network::no_route(&platform::system_version()))
        }
        Error::Io(_) | Error::ConnectionFailed | Error::Rustls(_) => {
            (NasProblem::Unreachable, error.to_string())
        }
        other => (NasProblem::InvalidAnswer, format!("no valid HTTP answer: {other}")),
    };
    NasError::new(problem, format!("read {url}: {text}"))
}
