//! Removes names, paths and addresses from text that is meant to be published.

use std::net::{IpAddr, SocketAddr};

/// Placeholder for a name.
const NAME: &str = "(name)";
/// Placeholder for a path.
const PATH: &str = "(path)";
/// Placeholder for a network address.
const ADDRESS: &str = "(address)";

/// System folders. A path below one of them is not replaced, because it contains nothing private.
const SYSTEM_FOLDERS: [&str; 6] = ["/proc/", "/sys/", "/usr/bin/", "/usr/sbin/", "/sbin/", "/bin/"];
/// Punctuation marks that may surround a word and are not part of it.
const PUNCTUATION: [char; 12] = [',', ';', '.', ':', '(', ')', '[', ']', '"', '\'', '`', '='];

/// Replaces private words in a text: known secrets, and words that look like a path or an address.
///
/// The answers of a self-check consist of fixed words, so redaction is a second line of defence.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    /// Known secrets, longest first, so that a path is replaced before a name that it contains.
    secrets: Vec<String>,
}

impl Redaction {
    /// Creates a redaction that knows these secrets. Secrets of one character are ignored, because replacing them
    /// would damage the text.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.chars().count() > 1).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// Returns the text with every private word replaced by a placeholder.
    pub fn apply(&self, text: &str) -> String {
        let known = self.secrets.iter().fold(text.to_owned(), |text, secret| replace_secret(&text, secret));
        known.split(' ').map(redact_word).collect::<Vec<_>>().join(" ")
    }
}

/// Replaces a secret in a text, ignoring case. Occurrences inside a longer word are not replaced.
fn replace_secret(text: &str, secret: &str) -> String {
    let (lower, secret) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let is_word = |c: char| c.is_alphanumeric();
    let mut result = String::new();
    let mut begin = 0;
    while let Some(found) = lower[begin..].find(&secret) {
        let (at, end) = (begin + found, begin + found + secret.len());
        let stands_alone = !lower[..at].chars().next_back().is_some_and(is_word)
            && !lower[end..].chars().next().is_some_and(is_word);
        result += &text[begin..at];
        result += if stands_alone { NAME } else { &text[at..end] };
        begin = end;
    }
    result + &text[begin..]
}

/// Replaces a word that looks like an address, a path or a user name; returns other words unchanged.
fn redact_word(word: &str) -> String {
    if holds_address(word) {
        let end = word.trim_end_matches([',', ';', '.']).len();
        return format!("{ADDRESS}{}", &word[end..]);
    }
    let core = word.trim_matches(PUNCTUATION);
    let is_system_path = SYSTEM_FOLDERS.iter().any(|folder| core.starts_with(folder));
    match core {
        core if core.contains('/') && !is_system_path => word.replacen(core, PATH, 1),
        core if core.contains('@') => word.replacen(core, NAME, 1),
        _ => word.to_owned(),
    }
}

/// Returns whether a word is a network address, or a setting such as `addr=10.0.0.7` with an address as its value.
fn holds_address(word: &str) -> bool {
    let core = word.trim_matches([',', ';', '.', '(', ')', '"', '\'', '`']);
    let mut parts = core.split(['=', '@']);
    parts.any(|part| is_address(part) || part.strip_suffix(':').is_some_and(is_address))
}

fn is_address(word: &str) -> bool {
    let bare = word.trim_matches(['[', ']']);
    let without_zone = bare.split('%').next().unwrap_or(bare);
    without_zone.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redacted(text: &str) -> String {
        let secrets = ["anna", "annas-mac", "nas.local", "/Volumes/media", "a"].map(str::to_owned);
        Redaction::new(secrets).apply(text)
    }

    #[test]
    fn known_secret_is_replaced_only_as_a_whole_word() {
        assert_eq!(redacted("the user Anna, again"), "the user (name), again");
        assert_eq!(redacted("annas-mac and nas.local:445"), "(name) and (name):445");
        assert_eq!(redacted("savanna has no a"), "savanna has no a");
        assert_eq!(redacted("/Volumes/media is full"), "(name) is full");
    }

    #[test]
    fn paths_and_addresses_are_replaced() {
        assert_eq!(redacted("open /Users/bob/x: EPERM"), "open (path): EPERM");
        assert_eq!(redacted("(smb://bob@host/share)"), "((path))");
        assert_eq!(redacted("from 192.168.1.5, port 445"), "from (address), port 445");
        assert_eq!(redacted("addr=10.0.0.7 x"), "(address) x");
        assert_eq!(redacted("[fe80::1%en0] 10.0.0.7:445; ::1"), "(address) (address); (address)");
        assert_eq!(redacted("(10.0.0.7), 10.0.0.7: bob@10.0.0.7"), "(address), (address) (address)");
        assert_eq!(redacted("bob@host"), "(name)");
    }

    #[test]
    fn system_paths_and_plain_words_are_unchanged() {
        for text in [
            "SMB 3.1.1; 12 keys in 3 ms: vers rsize",
            "/proc/fs/cifs/Stats cannot be read: ENOENT",
            "/usr/bin/smbutil is missing",
            "100 % in memory after reading, 0 % after eviction",
            "`lookup` failed: EACCES",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    proptest! {
        #[test]
        fn known_secret_is_never_left_as_a_word(before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let text = redacted(&format!("{before} nas.local {after}"));
            prop_assert!(!text.split(' ').any(|word| word == "nas.local"), "{text}");
        }
    }
}
