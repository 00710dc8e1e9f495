//! The settings of the channels, as the configuration gives them. Secrets are named, not contained.

use std::path::PathBuf;
use std::time::Duration;

use longhaul_model::NotificationKind;
use ureq::http::Uri;

use crate::http_service::HttpService;
use crate::secret::SecretSource;
use crate::template::Template;

/// A channel: a receiver, and the kinds of notifications that it gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelConfig {
    /// Name that the user chose.
    pub name: String,
    /// Receiver of the messages.
    pub receiver: Receiver,
    /// Kinds of notifications that are sent to it.
    pub kinds: Vec<NotificationKind>,
}

/// Receiver of messages.
#[derive(Debug, Clone, PartialEq)]
pub enum Receiver {
    /// A server that takes messages over HTTP.
    Webhook(Box<Webhook>),
    /// A mailbox.
    Email(Box<Email>),
    /// The desktop of the user who runs the service.
    Desktop,
}

/// A server that takes messages over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// Service, which determines the form of a message.
    pub service: HttpService,
    /// Address. It can contain a secret.
    pub url: SecretSource,
    /// Token. `None`: no token is sent.
    pub token: Option<SecretSource>,
    /// Form of the message. `None`: that of the service.
    pub template: Option<Template>,
    /// PEM file of certificates to trust instead of the public authorities. `None`: the public authorities.
    pub certificate: Option<PathBuf>,
}

/// A mailbox, and the mail server that takes messages for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Email {
    /// Host name of the mail server.
    pub server: String,
    /// Port of the mail server.
    pub port: u16,
    /// Encryption of the connection.
    pub encryption: Encryption,
    /// User name. `None`: without authentication.
    pub user: Option<String>,
    /// Password. `None`: without authentication.
    pub password: Option<SecretSource>,
    /// Address of the sender.
    pub from: String,
    /// Addresses of the recipients.
    pub to: Vec<String>,
    /// PEM file of certificates to trust instead of the public authorities. `None`: the public authorities.
    pub certificate: Option<PathBuf>,
}

/// Encryption of the connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encryption {
    /// The connection is encrypted after a first exchange; without that, nothing is sent.
    #[default]
    StartTls,
    /// The connection is encrypted from its start.
    Tls,
    /// The connection is not encrypted.
    None,
}

impl Encryption {
    /// Names in the configuration.
    pub const NAMES: &[(&str, Self)] =
        &[("starttls", Self::StartTls), ("tls", Self::Tls), ("none", Self::None)];

    /// Returns the usual port of a mail server.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Tls => 465,
            Self::None => 25,
        }
    }
}

/// An address that is requested as long as the service measures.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// Address. It can contain a secret.
    pub url: SecretSource,
    /// Time between two requests.
    pub interval: Duration,
}

impl ChannelConfig {
    /// Returns the kind of the channel as in the configuration.
    pub fn kind(&self) -> &'static str {
        match &self.receiver {
            Receiver::Webhook(webhook) => {
                let name = HttpService::NAMES.iter().find(|(_, service)| *service == webhook.service);
                name.map_or("webhook", |(name, _)| name)
            }
            Receiver::Email(_) => "email",
            Receiver::Desktop => "desktop",
        }
    }

    /// Returns the receiver for users: a host, never a secret. `None`: it is not known while its secret cannot be read.
    pub fn host(&self) -> Option<String> {
        match &self.receiver {
            Receiver::Webhook(webhook) => origin(webhook.url.read().ok()?.reveal()),
            Receiver::Email(email) => Some(format!("{}:{}", email.server, email.port)),
            Receiver::Desktop => Some("this computer".to_owned()),
        }
    }
}

/// Returns scheme, host and port of a URL. Its path and query can contain secrets. `None`: it is not a URL of http or
/// https, or contains a user name.
pub fn origin(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let is_usable = matches!(scheme, "http" | "https")
        && !authority.host().is_empty()
        && !authority.as_str().contains('@');
    is_usable.then(|| format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_shows_neither_path_nor_query() {
        assert_eq!(origin("https://hooks.a/T0/secret?x=y").as_deref(), Some("https://hooks.a"));
        assert_eq!(origin("http://[::1]:8080/up").as_deref(), Some("http://[::1]:8080"));
        for wrong in
            ["", "hooks.a/T0", "ftp://a/b", "https://", "https://me:secret@a/b", "file:///etc/passwd"]
        {
            assert_eq!(origin(wrong), None, "{wrong}");
        }
    }
}
