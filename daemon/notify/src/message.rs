//! A message as it is given to a receiver.

use longhaul_model::{NotificationKind, Timestamp};

/// A message: one notification, or several held back and sent as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Kind of the most urgent notification in it.
    pub kind: NotificationKind,
    /// Time of the newest notification in it.
    pub at: Timestamp,
    /// Title, one line.
    pub title: String,
    /// The message.
    pub text: String,
    /// The report of a week. `None`: the message is no weekly digest.
    pub report: Option<Report>,
}

/// The report of a week in two formats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// As Markdown.
    pub markdown: String,
    /// As a page of HTML without references to other files.
    pub html: String,
}

/// Returns the start of a text, up to this number of bytes, with a mark if something was cut off.
pub(crate) fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(CUT_MARK.len()));
    format!("{}{CUT_MARK}", &text[..end])
}

/// Marks a text that was cut off.
const CUT_MARK: &str = " …";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_two_characters() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("ääääää", 9), "ää …");
    }
}
