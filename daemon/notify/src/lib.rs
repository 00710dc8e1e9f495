//! Sends notifications: to an ntfy server, to a webhook (Slack, Discord, Gotify, Home Assistant or any other), by e-mail,
//! and to the desktop.
//!
//! A receiver is never trusted: each attempt has a limit of time and of bytes, and no redirect is followed. Secrets are read
//! from a file or an environment variable when a message is sent; nothing here prints them.
//!
//! ```
//! use longhaul_notify::template::Template;
//!
//! assert!(Template::parse(r#"{"text": "{{title}}: {{text}}"}"#).is_ok());
//! let error = Template::parse(r#"{"text": "{{headline}}"}"#).unwrap_err();
//! assert!(error.to_string().contains("text"), "{error}");
//! ```

mod certificates;
mod desktop;
mod email;
mod http;
mod http_service;
mod limited_stream;
mod message;
mod outcome;
mod secret;
mod sender;
mod settings;
pub mod template;

pub use email::is_email_address;
pub use http::read_url;
pub use http_service::HttpService;
pub use message::{Message, Report};
pub use outcome::{Delivery, SettingsError};
pub use secret::{Secret, SecretSource};
pub use sender::{Sender, ping};
pub use settings::{ChannelConfig, Email, Encryption, Heartbeat, Receiver, Webhook, origin};

use std::time::Duration;

/// Maximum time of one attempt, from the name resolution to the end of the answer.
pub const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time of name resolution and connection, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Name of this program in requests.
const USER_AGENT: &str = concat!("longhaul/", env!("CARGO_PKG_VERSION"));
