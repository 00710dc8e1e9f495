//! The outcome of an attempt to send a message, and the errors in the settings of a channel.

use std::path::PathBuf;
use std::time::Duration;

use crate::template::TemplateError;

/// Maximum number of characters that are kept of a receiver's answer.
const MAX_ANSWER_CHARS: usize = 200;

/// Outcome of an attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver accepted the message.
    Accepted,
    /// The receiver did not get the message, or refused it for now: it is sent once more later.
    Failed {
        /// Reason, without secrets.
        reason: String,
        /// Minimum delay that the receiver asks for. `None`: none.
        after: Option<Duration>,
    },
    /// The message was sent, and no answer came in time. It may have arrived, so it is not repeated.
    Unanswered {
        /// Description of what is missing, without secrets.
        reason: String,
    },
    /// The receiver refused the message for good.
    Rejected {
        /// Reason given by the receiver, without secrets.
        reason: String,
    },
}

impl Delivery {
    /// Creates a failure after which the message is repeated.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), after: None }
    }

    /// Returns the reason why the message was not accepted. `None`: it was.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Accepted => None,
            Self::Failed { reason, .. } | Self::Unanswered { reason } | Self::Rejected { reason } => {
                Some(reason)
            }
        }
    }
}

/// An error in the settings of a channel, found when they are used. No message contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An environment variable with a secret does not exist.
    #[error("the environment variable {name} (`{key}`) does not exist or is empty")]
    MissingVariable {
        /// Key of the configuration.
        key: String,
        /// Name of the variable.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read {} (`{key}`): {source}", path.display())]
    UnreadableFile {
        /// Key of the configuration.
        key: String,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file with a secret is empty.
    #[error("{} (`{key}`) is empty", path.display())]
    EmptyFile {
        /// Key of the configuration.
        key: String,
        /// Path of the file.
        path: PathBuf,
    },
    /// A secret contains a character that cannot be sent.
    #[error("the value of `{0}` contains a line break or another control character")]
    InvalidSecret(String),
    /// A token contains a character that an HTTP header cannot have.
    #[error("the value of `{0}` contains a character that is not ASCII: copy the token again")]
    InvalidToken(String),
    /// An address is not a URL of http or https.
    #[error("the value of `{0}` is not a URL: write https://host/path")]
    InvalidUrl(String),
    /// The address of an ntfy channel is not one of a topic alone.
    #[error(
        "the value of `{0}` names no topic, or more than a topic: write https://ntfy.sh/topic, and a token as `token-file`"
    )]
    NoTopic(String),
    /// The certificate file contains no certificate.
    #[error("{} (`certificate`) contains no certificate in PEM format", .0.display())]
    NoCertificate(PathBuf),
    /// A template is invalid.
    #[error("`template`: {0}")]
    Template(#[from] TemplateError),
    /// An e-mail address is invalid. Holds the key of the configuration.
    #[error("the value of `{0}` is not an e-mail address")]
    InvalidAddress(String),
}

/// Returns the printable start of a receiver's answer.
pub(crate) fn answer_text(bytes: &[u8]) -> String {
    let is_readable = |c: &char| *c == ' ' || c.is_alphanumeric() || c.is_ascii_punctuation();
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().filter(is_readable).take(MAX_ANSWER_CHARS).collect();
    text.trim().to_owned()
}
