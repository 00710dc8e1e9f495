//! The source of a configuration: a file, or an address that is asked once. Its answer is not trusted.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use longhaul_measure::private_files;
use ureq::http::Uri;
use ureq::{Agent, Error};

use crate::errors::UsageError;

/// Maximum time of a download, from the name resolution to its last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time of name resolution and connection, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the head of an answer, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Place that a configuration is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file on this machine.
    File(PathBuf),
    /// An address of https, or of http on this machine.
    Address(String),
}

impl Source {
    /// Parses the argument of `--from`.
    ///
    /// # Errors
    ///
    /// If it is an address that would not be safe to read from.
    pub fn parse(text: &str) -> Result<Self, UsageError> {
        let Some((scheme, _)) = text.split_once("://") else { return Ok(Self::File(text.into())) };
        let refused = |reason: &str| Err(UsageError(format!("read a configuration from {scheme}: {reason}")));
        if !["https", "http"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return refused("only https is supported; download the file and give its path");
        }
        let Ok(uri) = text.parse::<Uri>() else { return refused("it is not a valid address; correct it") };
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return refused("an address needs a host, and no user name or password");
        }
        match uri.scheme_str() {
            Some("https") => Ok(Self::Address(text.to_owned())),
            Some("http") if is_loopback(uri.host().unwrap_or_default()) => Ok(Self::Address(text.to_owned())),
            _ => Err(UsageError(format!("{} is not encrypted; use https", without_query(text)))),
        }
    }

    /// Returns the name of the source for messages: the path, or the address without its query, which can be a secret.
    pub fn name(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Address(url) => Path::new(without_query(url)),
        }
    }

    /// Reads the text, at most 1 MiB.
    ///
    /// # Errors
    ///
    /// If it cannot be read completely within the timeout, or is not text.
    pub fn read(&self) -> anyhow::Result<String> {
        let bytes = match self {
            Self::File(path) => return private_files::read_text(path).with_context(|| self.operation()),
            Self::Address(url) => self.download(url)?,
        };
        String::from_utf8(bytes).map_err(|_| {
            anyhow::anyhow!("{}: the answer is not UTF-8 text: is it the right address?", self.operation())
        })
    }

    fn operation(&self) -> String {
        format!("read a configuration from {}", self.name().display())
    }

    fn download(&self, url: &str) -> anyhow::Result<Vec<u8>> {
        let fail = |text: String| anyhow::anyhow!("{}: {text}", self.operation());
        let mut answer = agent().get(url).call().map_err(|error| fail(reason(&error)))?;
        let status = answer.status();
        if status.is_redirection() {
            return Err(fail(format!(
                "{}: the server redirects to another address, which is not followed; give the final address",
                status.as_u16()
            )));
        }
        if status.as_u16() != 200 {
            return Err(fail(format!("the server answers {status}: is it the right address?")));
        }
        let body = answer.body_mut().with_config().limit(private_files::MAX_BYTES);
        body.read_to_vec().map_err(|error| fail(reason(&error)))
    }
}

/// Returns an address without its query, which can be a secret.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(MAX_HEAD_BYTES)
        .timeout_global(Some(TIMEOUT))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Returns whether a host is this machine, which needs no encryption.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn reason(error: &Error) -> String {
    match error {
        Error::Timeout(_) => format!("no complete answer within {} s; try again later", TIMEOUT.as_secs()),
        Error::BodyExceedsLimit(_) => "it is larger than 1 MiB: is it the right address?".to_owned(),
        Error::HostNotFound => "the host name cannot be resolved; correct it".to_owned(),
        Error::Rustls(_) => format!("{error}; the server needs a certificate of a public authority"),
        Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            "connection refused: is the server running?".to_owned()
        }
        Error::Io(error) if error.to_string().contains("certificate") => {
            format!("{error}; the server needs a certificate of a public authority")
        }
        Error::Io(_) | Error::ConnectionFailed => error.to_string(),
        other => format!("no valid answer: {other}; is it the right address?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_safe_addresses_are_accepted() {
        assert_eq!(Source::parse("site.toml").unwrap(), Source::File("site.toml".into()));
        for url in [
            "https://example.com/site.toml",
            "http://127.0.0.1:8080/a",
            "http://localhost/a",
            "http://[::1]:1/a",
        ] {
            assert_eq!(Source::parse(url).unwrap(), Source::Address(url.to_owned()));
        }
    }

    #[test]
    fn addresses_that_are_not_safe_are_refused() {
        for (url, expected) in [
            ("http://example.com/site.toml", "use https"),
            ("http://127.0.0.1.example.com/a", "use https"),
            ("http://localhost.example.com/a", "use https"),
            ("http://0x7f000001/a", "use https"),
            ("file:///etc/passwd", "only https is supported"),
            ("ftp://example.com/a", "only https is supported"),
            ("https://me:secret@example.com/a", "no user name or password"),
            ("http://localhost@example.com/a", "no user name or password"),
            ("https:///a", "not a valid address"),
        ] {
            let error = Source::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected) || error.contains("needs a host"), "{url}: {error}");
            assert!(!error.contains("secret") && !error.contains("passwd"), "{error}");
        }
    }

    #[test]
    fn name_has_no_query() {
        let source = Source::parse("https://example.com/site.toml?token=secret#x").unwrap();
        assert_eq!(source.name(), Path::new("https://example.com/site.toml"));
        let refused = Source::parse("http://example.com/site.toml?token=secret").unwrap_err().to_string();
        assert_eq!(refused, "http://example.com/site.toml is not encrypted; use https");
    }

    #[test]
    fn endless_files_are_refused() {
        let error = Source::File("/dev/zero".into()).read().unwrap_err();
        assert!(format!("{error:#}").contains("not a regular file"), "{error:#}");
    }
}
