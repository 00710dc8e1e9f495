//! The last door before something leaves the machine. A history is usually in its public form already; here details of
//! events are let through by what they are, not stopped by what they look like: numbers, versions, the known words of
//! mounts and protocols, and what was hidden before (`hidden-1`). Everything else becomes `…`.

use std::collections::BTreeMap;

use longhaul_measure::model::{Negotiated, TargetName};
use longhaul_measure::summary::{History, JournalEntry, is_private_key};

/// What stands for something that is not told.
const HIDDEN: &str = "…";

/// Words of mounts, protocols and systems that name nobody.
const KNOWN: &[&str] = &[
    "afp",
    "aes-128-ccm",
    "aes-128-cmac",
    "aes-128-gcm",
    "aes-256-ccm",
    "aes-256-gcm",
    "apfs",
    "battery",
    "btrfs",
    "cold",
    "darwin",
    "default",
    "disabled",
    "enabled",
    "ethernet",
    "exfat",
    "ext4",
    "false",
    "fuse",
    "hard",
    "hfs",
    "hmac-sha256",
    "krb5",
    "krb5i",
    "krb5p",
    "linux",
    "loose",
    "macos",
    "mains",
    "never",
    "nfs",
    "no",
    "none",
    "ntfs",
    "ntlmssp",
    "off",
    "on",
    "optional",
    "required",
    "ro",
    "rw",
    "sftp",
    "smb",
    "soft",
    "strict",
    "supported",
    "sys",
    "tcp",
    "tcp6",
    "throttled",
    "tmpfs",
    "true",
    "udp",
    "unknown",
    "warm",
    "webdav",
    "wi-fi",
    "wifi",
    "xfs",
    "yes",
    "zfs",
    "bytes",
    "days",
    "hours",
    "minutes",
    "seconds",
    "→",
    "->",
];

/// The longest word of a key or a kind.
const LONGEST: usize = 32;

/// The particulars of an event, as far as they name nobody.
pub fn detail(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
        let opens = rest[end..].starts_with('(');
        out += &piece(&rest[..end], opens);
        if let Some(delimiter) = rest[end..].chars().next() {
            out.push(delimiter);
        }
        rest = rest.get(end + 1..).unwrap_or("");
    }
    out.trim().to_owned()
}

/// What stands between two commas or brackets. What is followed by a bracket is the key of what is in it.
fn piece(text: &str, opens: bool) -> String {
    let words = text.trim();
    let lead = if text.starts_with(' ') { " " } else { "" };
    match words.split_once(": ") {
        Some((key, value)) if is_identifier(key) => {
            let value = if is_private_key(key) { HIDDEN.to_owned() } else { known_words(value) };
            format!("{lead}{key}: {value}")
        }
        None if opens && is_identifier(words) => format!("{lead}{words} "),
        Some(_) | None => format!("{lead}{}", known_words(words)),
    }
}

fn known_words(text: &str) -> String {
    let shown = |word| if is_known(word) { word } else { HIDDEN };
    let mut words: Vec<&str> = text.split_whitespace().map(shown).collect();
    words.dedup_by(|a, b| *a == HIDDEN && *b == HIDDEN);
    words.join(" ")
}

fn is_known(word: &str) -> bool {
    is_figure(word)
        || word.strip_prefix("hidden-").is_some_and(is_figure)
        || KNOWN.contains(&word.to_ascii_lowercase().as_str())
}

/// A number, a version of at most three parts (four are an address), with at most three letters of a unit or a build.
fn is_figure(word: &str) -> bool {
    let word = word.strip_prefix(['-', '+', '±', 'v']).unwrap_or(word);
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || matches!(c, '%' | 'µ'));
    let unit = &word[digits.len()..];
    let parts: Vec<&str> = digits.split('.').collect();
    let is_number =
        |part: &&str| (1..=12).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    unit.chars().count() <= 3 && parts.len() <= 3 && parts.iter().all(is_number)
}

fn is_identifier(word: &str) -> bool {
    let follows =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    word.len() <= LONGEST
        && word.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && word.bytes().all(follows)
}

/// An event, as far as it names nobody.
pub fn event(entry: &JournalEntry) -> JournalEntry {
    JournalEntry { kind: kind(&entry.kind).to_owned(), detail: detail(&entry.detail), ..entry.clone() }
}

/// What happened, in one word; longhaul's own words are lower-case letters and hyphens.
pub fn kind(word: &str) -> &str {
    if is_identifier(word) { word } else { "event" }
}

/// A sentence of longhaul's own without whatever looks like a path, an address, a machine or a user.
pub fn prose(text: &str) -> String {
    let shown = |word| if names_something(word) { HIDDEN } else { word };
    text.split_whitespace().map(shown).collect::<Vec<_>>().join(" ")
}

fn names_something(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let parts = || bare.split('.');
    let is_host = parts().count() > 1 && bare.contains(|c: char| c.is_alphabetic());
    let is_address = parts().count() == 4 || bare.matches(':').count() > 1;
    is_host || is_address || word.contains(['/', '\\', '@', '~'])
}

/// What was negotiated, as far as it names nobody.
pub fn negotiated(all: &Negotiated) -> BTreeMap<String, String> {
    let may_leave = |(key, _): &(&String, &String)| is_identifier(key) && !is_private_key(key);
    let shown = all.iter().filter(may_leave).map(|(key, value)| (key.clone(), known_words(value)));
    shown.filter(|(_, value)| !value.contains(HIDDEN)).collect()
}

/// A system's name and version. What a kernel's builder added to its release is left out.
pub fn system(text: &str) -> String {
    let mut words = text.split_whitespace();
    let name = words.next().filter(|name| KNOWN.contains(&name.to_ascii_lowercase().as_str()));
    [name, words.next().and_then(version)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The version at the begin of a text; `None` if there is none.
pub fn version(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some(text[..end].trim_end_matches('.')).filter(|version| is_figure(version))
}

/// A history in which targets that are called like a machine (`nas-1.local`) are called by their protocol. All other
/// names stay: the person chose them to be shown.
pub fn with_neutral_names(mut history: History) -> History {
    let mut taken: Vec<TargetName> = history.targets.iter().map(|target| target.name.clone()).collect();
    for place in 0..history.targets.len() {
        let old = history.targets[place].name.clone();
        if names_something(old.as_str()) && old.as_str().contains(|c: char| c.is_ascii_alphabetic()) {
            let new = neutral_name(&history, &old, &taken);
            taken.push(new.clone());
            rename(&mut history, place, (&old, &new));
        }
    }
    history
}

fn neutral_name(history: &History, old: &TargetName, taken: &[TargetName]) -> TargetName {
    let epochs = history.epochs.iter().filter(|epoch| epoch.target == *old);
    let protocol = epochs.filter_map(|epoch| epoch.protocol.as_deref()).next_back().unwrap_or("target");
    let family: String = protocol.chars().take_while(char::is_ascii_alphanumeric).take(16).collect();
    let base = if family.is_empty() { "target".to_owned() } else { family.to_ascii_lowercase() };
    let candidates = (1..).map(|number| if number == 1 { base.clone() } else { format!("{base}-{number}") });
    let mut free = candidates.filter_map(|name| name.parse().ok()).filter(|name| !taken.contains(name));
    free.next().unwrap_or_else(|| old.clone())
}

fn rename(history: &mut History, place: usize, (old, new): (&TargetName, &TargetName)) {
    history.targets[place].name = new.clone();
    for epoch in history.epochs.iter_mut().filter(|epoch| epoch.target == *old) {
        epoch.target = new.clone();
    }
    for event in history.events.iter_mut().filter(|event| event.target.as_ref() == Some(old)) {
        event.target = Some(new.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_epoch_is_told_without_its_path_and_server() {
        let said = detail(
            "after (negotiated (addr: 10.0.0.2, signing: on, username: anna, vers: 3.1.1), path: /Volumes/annas media, \
             protocol (family: smb, version: 3.1.1)), epoch: 3",
        );
        assert_eq!(
            said,
            "after (negotiated (addr: …, signing: on, username: …, vers: 3.1.1), path: …, protocol (family: smb, version: \
             3.1.1)), epoch: 3"
        );
    }

    #[test]
    fn figures_stay_and_names_go() {
        let shown = [
            ("before: 1500, after: 9000", "before: 1500, after: 9000"),
            ("before: 26.0, after: 26.0.1", "before: 26.0, after: 26.0.1"),
            ("build: 24E248", "build: …"),
            ("seconds: 12.5s", "seconds: 12.5s"),
            ("woke Annas-MacBook.local at 192.168.1.7", "…"),
            ("//anna@nas/media", "…"),
            ("smb://nas.local/media", "…"),
            ("path: 4711", "path: …"),
        ];
        for (text, expected) in shown {
            assert_eq!(detail(text).replace("… at …", "…"), expected, "{text}");
        }
    }

    #[test]
    fn a_sentence_loses_paths_addresses_and_machines() {
        let said = prose(
            "the folder /Volumes/media on nas.local (10.0.0.2) was full at 98.5 %, fe80::1%en0 says anna@nas",
        );
        assert_eq!(said, "the folder … on … … was full at 98.5 %, … says …");
    }

    #[test]
    fn a_system_is_its_name_and_version() {
        assert_eq!(system("Linux 6.1.0-13-annas-build"), "Linux 6.1.0");
        assert_eq!(system("macOS 26.1 (25B78)"), "macOS 26.1");
        assert_eq!(system("anna"), "");
    }

    proptest! {
        #[test]
        fn any_text_is_taken_without_panic_and_nothing_of_a_path_stays(text in "\\PC{0,40}", path in "/[a-z]{4,9}(/[A-Z]{4,9}){1,3}") {
            let _ = (detail(&text), prose(&text), system(&text));
            let told = detail(&format!("{text}, path: {path}, {path}"));
            prop_assert!(!told.contains('/') || text.contains('/'), "{told}");
        }
    }
}
