//! Hands bodies to a collector over HTTP.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::write::GzEncoder;
use longhaul_measure::platform;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::answer::{self, Answer, Expected, PROTOBUF, Raw};
use crate::endpoint;
use crate::environment::Compression;
use crate::local_network;
use crate::settings::Route;

/// So much of an answer is read.
const MOST_ANSWER_BYTES: u64 = 64 << 10;
/// How long names and connections may take, within the time for the whole answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Fast and small enough: what is sent repeats itself.
const GZIP_LEVEL: u32 = 3;

/// A collector's address for one signal, and the way to it.
#[derive(Debug)]
pub struct Sender {
    agent: Agent,
    route: Route,
    expected: Expected,
}

/// Why no way to a collector can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SenderError {
    /// The file has no certificate.
    #[error("the file that `certificate` names holds no certificate in PEM form")]
    NoCertificate,
}

impl Sender {
    /// Makes the way. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`SenderError`].
    pub fn new(route: &Route, expected: Expected) -> Result<Self, SenderError> {
        let roots = route.certificates.as_deref().map_or(Ok(RootCerts::WebPki), roots)?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(route.timeout))
            .timeout_connect(Some(route.timeout.min(CONNECT_WITHIN)))
            .timeout_resolve(Some(route.timeout.min(CONNECT_WITHIN)))
            .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build()
            .into();
        Ok(Self { agent, route: route.clone(), expected })
    }

    /// The address as it may be shown.
    pub fn address(&self) -> String {
        endpoint::shown(&self.route.address)
    }

    /// Sends a message in OTLP's binary form, and says what came back. Takes no longer than the route allows.
    pub fn send(&self, message: &[u8]) -> Answer {
        match self.ask(message) {
            Ok(raw) => answer::read(&raw, self.expected, platform::wall_clock_us()),
            Err(error) => {
                let why = why(&error, &self.route.address, &platform::system_version());
                Answer::Later { why, after: None }
            }
        }
    }

    fn ask(&self, message: &[u8]) -> Result<Raw, ureq::Error> {
        let mut request = self.agent.post(&self.route.address).header("Content-Type", PROTOBUF);
        for (name, value) in self.route.headers.iter() {
            request = request.header(name, value);
        }
        let mut response = match self.route.compression {
            Compression::None => request.send(message)?,
            Compression::Gzip => request.header("Content-Encoding", "gzip").send(&zipped(message)?)?,
        };
        let text = |name| response.headers().get(name)?.to_str().ok().map(ToOwned::to_owned);
        let (media_type, retry_after) = (text("content-type"), text("retry-after"));
        let code = response.status().as_u16();
        let mut body = vec![];
        response.body_mut().as_reader().take(MOST_ANSWER_BYTES).read_to_end(&mut body)?;
        Ok(Raw { code, media_type, retry_after, body })
    }
}

fn zipped(message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(vec![], flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(message)?;
    encoder.finish()
}

fn roots(pem: &[u8]) -> Result<RootCerts, SenderError> {
    let items = parse_pem(pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<Certificate<'static>> = items.collect();
    if certificates.is_empty() {
        return Err(SenderError::NoCertificate);
    }
    Ok(RootCerts::Specific(Arc::new(certificates)))
}

/// What went wrong on the way to an address, in words that fit behind it.
fn why(error: &ureq::Error, address: &str, system: &str) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "its name is not known".to_owned(),
        ureq::Error::ConnectionFailed => "nobody listens there".to_owned(),
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "nobody listens there".to_owned()
        }
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::HostUnreachable => {
            let advice = local_network::advice(&local_network::addresses(address), system);
            let advice = advice.map_or(String::new(), |advice| format!(". {advice}"));
            format!("no route leads to it (EHOSTUNREACH){advice}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_collector_in_the_lan_leads_to_the_settings() {
        let error = ureq::Error::Io(std::io::ErrorKind::HostUnreachable.into());
        let said = |system: &str| why(&error, "http://192.168.0.103:4318/v1/traces", system);
        assert!(
            said("macOS 15.4 (24E248)").ends_with("may have to be allowed again"),
            "{}",
            said("macOS 15.4")
        );
        assert_eq!(said("Linux 6.1.0"), "no route leads to it (EHOSTUNREACH)");
    }
}
