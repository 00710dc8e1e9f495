//! Requests over HTTP to receivers that are not trusted: bounded in time and bytes, without redirects.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::parse::percent_decode;
use longhaul_measure::{local_network, platform};
use longhaul_model::Priority;
use longhaul_model::time::DAY;
use serde_json::{Value, json};
use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Timeout};

use crate::certificates::{self, TrustedCertificates};
use crate::http_service::HttpService;
use crate::message::{Message, shortened};
use crate::outcome::{Delivery, SettingsError, answer_text};
use crate::secret::{Secret, SecretSource};
use crate::settings::{Webhook, origin};
use crate::template::Template;
use crate::{CONNECT_TIMEOUT, TIMEOUT, USER_AGENT};

/// Maximum number of bytes that are read of an answer. Only its start is shown.
const MAX_ANSWER_BYTES: u64 = 4 << 10;
/// Maximum size of the head of an answer, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Longest message of ntfy in bytes is 4,096; a longer one would become an attached file.
const NTFY_TEXT_BYTES: usize = 3_500;

/// A webhook whose address and token are known.
#[derive(Debug)]
pub struct HttpSender {
    agent: Agent,
    service: HttpService,
    template: Template,
    url: Secret,
    token: Option<Secret>,
    /// Topic of ntfy. Empty for other services.
    topic: String,
    secrets: Secrets,
}

impl HttpSender {
    /// Reads the secrets of a webhook. Connects only when a message is sent.
    pub fn new(webhook: &Webhook) -> Result<Self, SettingsError> {
        let address = read_url(&webhook.url)?;
        let token = webhook.token.as_ref().map(read_token).transpose()?;
        let secrets = Secrets::of(&address, token.as_ref());
        let (url, topic) = match webhook.service {
            HttpService::Ntfy => split_topic(&address, &webhook.url)?,
            HttpService::Webhook
            | HttpService::Slack
            | HttpService::Discord
            | HttpService::Gotify
            | HttpService::HomeAssistant => (address, String::new()),
        };
        Ok(Self {
            agent: agent(&certificates::read(webhook.certificate.as_deref())?),
            service: webhook.service,
            template: webhook.template.clone().unwrap_or_else(|| Template::of(webhook.service)),
            url,
            token,
            topic,
            secrets,
        })
    }

    /// Sends a message. Returns within [`TIMEOUT`].
    pub fn send(&self, message: &Message) -> Delivery {
        let body = self.body(message).to_string();
        let mut request = self.agent.post(self.url.reveal()).header("Content-Type", "application/json");
        if let Some(token) = &self.token {
            request = match self.service {
                HttpService::Gotify => request.header("X-Gotify-Key", token.reveal()),
                HttpService::Ntfy
                | HttpService::Webhook
                | HttpService::Slack
                | HttpService::Discord
                | HttpService::HomeAssistant => {
                    request.header("Authorization", format!("Bearer {}", token.reveal()))
                }
            };
        }
        self.secrets.redact_delivery(delivery(request.send(&body)))
    }

    /// Tries to reach the server without sending a message. Returns the problem, if there is one.
    pub fn check(&self) -> Result<(), String> {
        let address = origin(self.url.reveal()).unwrap_or_default();
        match self.agent.get(format!("{address}/")).call() {
            Ok(_) => Ok(()),
            Err(error) => {
                let found = self.secrets.redact_delivery(failure(&error));
                Err(found.reason().unwrap_or_default().to_owned())
            }
        }
    }

    fn body(&self, message: &Message) -> Value {
        if self.service != HttpService::Ntfy {
            return self.template.fill(message, self.service);
        }
        json!({
            "topic": self.topic,
            "title": message.title,
            "message": shortened(&message.text, NTFY_TEXT_BYTES),
            "priority": ntfy_level(message.kind.priority()),
            "tags": [message.kind.name()],
        })
    }
}

/// The texts that a receiver could repeat in its answer, the longest first: the token, and the parts of an address that can be
/// secret.
#[derive(Debug)]
struct Secrets(Vec<Secret>);

impl Secrets {
    fn of(address: &Secret, token: Option<&Secret>) -> Self {
        let uri = address.reveal().parse::<Uri>().unwrap_or_default();
        let query = uri.query().unwrap_or_default();
        let whole = uri.path_and_query().map_or("", |both| both.as_str());
        let values = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        let parts = [whole, uri.path(), query].into_iter().chain(uri.path().split('/')).chain(values);
        let written: Vec<&str> = parts.chain([address.reveal()]).collect();
        let decoded = written.iter().map(|part| percent_decode(part));
        let all = decoded.chain(written.iter().map(|part| (*part).to_owned())).map(Secret::new);
        let mut secrets: Vec<Secret> = all.chain(token.cloned()).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.reveal().len()));
        Self(secrets)
    }

    /// Returns an outcome without the secrets.
    fn redact_delivery(&self, delivery: Delivery) -> Delivery {
        let hide = |text: String| self.0.iter().fold(text, |text, secret| secret.redact(&text));
        match delivery {
            Delivery::Accepted => Delivery::Accepted,
            Delivery::Failed { reason, after } => Delivery::Failed { reason: hide(reason), after },
            Delivery::Unanswered { reason } => Delivery::Unanswered { reason: hide(reason) },
            Delivery::Rejected { reason } => Delivery::Rejected { reason: hide(reason) },
        }
    }
}

/// Requests an address once, for a service that watches whether requests keep coming.
pub fn ping(source: &SecretSource) -> Result<Delivery, SettingsError> {
    let url = read_url(source)?;
    Ok(Secrets::of(&url, None).redact_delivery(delivery(agent(&None).get(url.reveal()).call())))
}

/// Reads a token and checks that a header can have it.
fn read_token(source: &SecretSource) -> Result<Secret, SettingsError> {
    let token = source.read()?;
    let is_sendable = token.reveal().bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_sendable { Ok(token) } else { Err(SettingsError::InvalidToken(source.key())) }
}

/// Reads an address and checks that it is a URL.
pub fn read_url(source: &SecretSource) -> Result<Secret, SettingsError> {
    let url = source.read()?;
    if origin(url.reveal()).is_none() { Err(SettingsError::InvalidUrl(source.key())) } else { Ok(url) }
}

/// Splits the address of a topic into the server's address, which takes JSON, and the topic.
fn split_topic(url: &Secret, source: &SecretSource) -> Result<(Secret, String), SettingsError> {
    let uri: Uri = url.reveal().parse().map_err(|_| SettingsError::InvalidUrl(source.key()))?;
    let topic = uri.path().trim_matches('/');
    if topic.is_empty() || topic.contains('/') || uri.query().is_some() {
        return Err(SettingsError::NoTopic(source.key()));
    }
    Ok((Secret::new(format!("{}/", origin(url.reveal()).unwrap_or_default())), topic.to_owned()))
}

const fn ntfy_level(priority: Priority) -> u8 {
    match priority {
        Priority::Low => 2,
        Priority::Normal => 3,
        Priority::High => 4,
    }
}

fn agent(trusted: &TrustedCertificates) -> Agent {
    let roots = match trusted {
        None => RootCerts::WebPki,
        Some(certificates) => {
            let owned = certificates.iter().map(|found| Certificate::from_der(found).to_owned());
            RootCerts::Specific(Arc::new(owned.collect()))
        }
    };
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(MAX_HEAD_BYTES)
        .timeout_global(Some(TIMEOUT))
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_send_request(Some(CONNECT_TIMEOUT))
        .timeout_send_body(Some(CONNECT_TIMEOUT))
        // An idle connection would be closed by the server long before the next message.
        .max_idle_connections(0)
        .user_agent(USER_AGENT)
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .build()
        .into()
}

fn delivery(answer: Result<Response<Body>, ureq::Error>) -> Delivery {
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => return failure(&error),
    };
    let status = response.status().as_u16();
    if (200..300).contains(&status) {
        return Delivery::Accepted;
    }
    if (300..400).contains(&status) {
        return Delivery::failed(format!(
            "{status}: the server redirects to another address, which is not followed; set the final address"
        ));
    }
    let header = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
    let after = header.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let reason = reason(status, &mut response);
    match status {
        400 | 413 | 422 => Delivery::Rejected { reason },
        _ => Delivery::Failed { reason, after: after.map(|after| after.min(DAY)) },
    }
}

fn reason(status: u16, response: &mut Response<Body>) -> String {
    let mut start = vec![];
    // The answer is read only to be shown, so a failure to read it changes nothing.
    let _ = response.body_mut().as_reader().take(MAX_ANSWER_BYTES).read_to_end(&mut start);
    let text = answer_text(&start);
    if text.is_empty() { status.to_string() } else { format!("{status}: {text}") }
}

/// Returns the outcome of a request without a usable answer. Only if the server may have taken the whole message is it
/// not repeated.
fn failure(error: &ureq::Error) -> Delivery {
    match error {
        ureq::Error::Timeout(Timeout::Resolve) => Delivery::failed("the name server does not respond"),
        ureq::Error::Timeout(Timeout::Connect | Timeout::SendRequest | Timeout::SendBody) => {
            Delivery::failed("no connection within the timeout")
        }
        ureq::Error::Timeout(_) => {
            Delivery::Unanswered { reason: format!("no answer within {} s", TIMEOUT.as_secs()) }
        }
        ureq::Error::HostNotFound => Delivery::failed("the host name cannot be resolved"),
        ureq::Error::ConnectionFailed => Delivery::failed("connection failed"),
        ureq::Error::Rustls(error) => Delivery::failed(tls_text(error)),
        ureq::Error::Io(error) => Delivery::failed(io_text(error)),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            Delivery::failed("the address or the token cannot be used")
        }
        // The server answered, but not with HTTP; it has the message.
        ureq::Error::Protocol(error) => {
            Delivery::Unanswered { reason: format!("no valid HTTP answer: {error}") }
        }
        other => Delivery::failed(other.to_string()),
    }
}

/// Describes an error of the connection.
pub fn io_text(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (tls, error.kind()) {
        (Some(error), _) => tls_text(error),
        (None, io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        (None, io::ErrorKind::HostUnreachable) => local_network::no_route(&platform::system_version()),
        (None, io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe) => {
            "the server closed the connection without an answer".to_owned()
        }
        // The standard library has no kind of its own for a name that is not known.
        (None, _) if error.to_string().starts_with("failed to lookup address") => {
            "the host name cannot be resolved".to_owned()
        }
        (None, _) => error.to_string(),
    }
}

/// Describes an error of the encryption, with the next step if a certificate is not trusted.
pub fn tls_text(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(_) => format!(
            "{error}: the certificate is not trusted for this host; set `certificate` if the server has its own authority"
        ),
        other => format!("encryption failed: {other}"),
    }
}
