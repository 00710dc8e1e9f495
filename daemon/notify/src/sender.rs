//! Sends messages to one channel.

use crate::desktop;
use crate::email::EmailSender;
use crate::http::HttpSender;
pub use crate::http::ping;
use crate::message::Message;
use crate::outcome::{Delivery, SettingsError};
use crate::settings::{ChannelConfig, Receiver};

/// Sends messages to one channel.
#[derive(Debug)]
pub enum Sender {
    /// Over HTTP.
    Http(Box<HttpSender>),
    /// By e-mail.
    Email(Box<EmailSender>),
    /// To the desktop.
    Desktop,
}

impl Sender {
    /// Reads the secrets and certificates of a channel. Connects only when a message is sent.
    pub fn new(channel: &ChannelConfig) -> Result<Self, SettingsError> {
        Ok(match &channel.receiver {
            Receiver::Webhook(webhook) => Self::Http(Box::new(HttpSender::new(webhook)?)),
            Receiver::Email(email) => Self::Email(Box::new(EmailSender::new(email)?)),
            Receiver::Desktop => Self::Desktop,
        })
    }

    /// Sends a message. Returns within [`TIMEOUT`](crate::TIMEOUT), whatever the receiver does.
    pub fn send(&self, message: &Message) -> Delivery {
        match self {
            Self::Http(http) => http.send(message),
            Self::Email(email) => email.send(message),
            Self::Desktop => desktop::send(message),
        }
    }

    /// Tries to reach the receiver without sending a message. Returns the problem, without secrets, if there is one.
    ///
    /// # Errors
    ///
    /// The problem, for users.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Http(http) => http.check(),
            Self::Email(email) => email.check(),
            Self::Desktop => Ok(()),
        }
    }
}
