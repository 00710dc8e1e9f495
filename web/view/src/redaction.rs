//! Removes private data from texts before they are shared. This is the second filter: a history is usually anonymized
//! already. Details of events pass an allow list: numbers, versions, known words of mounts and protocols, and
//! placeholders such as `hidden-1`. Everything else becomes `…`.

use std::collections::BTreeMap;

use longhaul_analysis::summary::{EventLine, WeeklySummary, is_private_key};
use longhaul_model::{History, NegotiatedOptions, SHARE_KEYS, TargetName};
use serde_json::{Map, Value};

/// Placeholder for removed text.
const PLACEHOLDER: &str = "…";

/// Allowed words: names of mount options, protocols and systems, which identify no user or machine.
const ALLOWED_WORDS: &[&str] = &[
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

/// Maximum length of a key or of a kind of event, in bytes.
const MAX_WORD_BYTES: usize = 32;

/// Returns the details of an event without private data.
pub fn redact_detail(detail: &Value) -> Value {
    match detail {
        Value::String(text) => Value::String(redact_words(text)),
        Value::Array(items) => items.iter().map(redact_detail).collect(),
        Value::Object(fields) => Value::Object(redact_fields(fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) => detail.clone(),
    }
}

/// Returns fields without private data. Removed keys are numbered, so that the number of fields stays the same.
fn redact_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut removed = 0;
    let mut redacted = Map::new();
    for (key, value) in fields {
        if is_private_key(key) && is_identifier(key) {
            redacted.insert(key.clone(), redact_private(value));
        } else if is_identifier(key) {
            redacted.insert(key.clone(), redact_detail(value));
        } else {
            removed += 1;
            let number = if removed == 1 { String::new() } else { removed.to_string() };
            redacted.insert(format!("{PLACEHOLDER}{number}"), Value::String(PLACEHOLDER.to_owned()));
        }
    }
    redacted
}

/// Returns a private value as a placeholder; one that was hidden already stays, because it shows whether a text changed.
fn redact_private(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::String(text) if is_hidden(text) => value.clone(),
        _ => Value::String(PLACEHOLDER.to_owned()),
    }
}

fn redact_words(text: &str) -> String {
    let shown = |word| if is_allowed(word) { word } else { PLACEHOLDER };
    let mut words: Vec<&str> = text.split_whitespace().map(shown).collect();
    words.dedup_by(|a, b| *a == PLACEHOLDER && *b == PLACEHOLDER);
    words.join(" ")
}

fn is_allowed(word: &str) -> bool {
    is_figure(word) || is_hidden(word) || ALLOWED_WORDS.contains(&word.to_ascii_lowercase().as_str())
}

/// Returns true for a placeholder such as `hidden-7`.
pub fn is_hidden(word: &str) -> bool {
    word.strip_prefix("hidden-").is_some_and(is_figure)
}

/// Returns true for a number or a version of at most three parts, with a unit or build of at most three letters. Four
/// parts could be an IP address.
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
    word.len() <= MAX_WORD_BYTES
        && word.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && word.bytes().all(follows)
}

/// Returns a week whose events and reasons contain no private data.
pub fn redact_week(weekly: &WeeklySummary) -> WeeklySummary {
    let mut weekly = weekly.clone();
    weekly.events = weekly.events.iter().map(redact_event).collect();
    weekly.excluded.iter_mut().for_each(|excluded| excluded.reason = redact_sentence(&excluded.reason));
    let reasons = std::mem::take(&mut weekly.rounds.reasons);
    for (reason, rounds) in reasons {
        *weekly.rounds.reasons.entry(redact_sentence(&reason)).or_default() += rounds;
    }
    weekly
}

/// Returns an event without private data.
pub fn redact_event(entry: &EventLine) -> EventLine {
    EventLine {
        kind: redact_kind(&entry.kind).to_owned(),
        detail: redact_detail(&entry.detail),
        ..entry.clone()
    }
}

/// Returns the kind of an event if it is an identifier as longhaul uses them (lower-case letters, digits, hyphens),
/// else `event`.
pub fn redact_kind(word: &str) -> &str {
    if is_identifier(word) { word } else { "event" }
}

/// Returns a sentence of longhaul without words that look like a path, a network address, a host or a user.
pub fn redact_sentence(text: &str) -> String {
    let shown = |word| if is_identifying(word) { PLACEHOLDER } else { word };
    text.split_whitespace().map(shown).collect::<Vec<_>>().join(" ")
}

fn is_identifying(word: &str) -> bool {
    let trimmed = word.trim_matches(|c: char| !c.is_alphanumeric());
    let parts = || trimmed.split('.');
    let is_host = parts().count() > 1 && trimmed.contains(|c: char| c.is_alphabetic());
    let is_address = parts().count() == 4 || trimmed.matches(':').count() > 1;
    is_host || is_address || word.contains(['/', '\\', '@', '~'])
}

/// Returns the negotiated options without private data. Options with a removed word are omitted, and the tags of shares.
pub fn redact_negotiated(all: &NegotiatedOptions) -> BTreeMap<String, String> {
    let is_public = |(key, _): &(&String, &String)| {
        is_identifier(key) && !is_private_key(key) && !SHARE_KEYS.contains(&key.as_str())
    };
    let shown = all.iter().filter(is_public).map(|(key, value)| (key.clone(), redact_words(value)));
    shown.filter(|(_, value)| !value.contains(PLACEHOLDER)).collect()
}

/// Returns the name and version of an operating system, without suffixes that the builder of a kernel added.
pub fn redact_system(text: &str) -> String {
    let mut words = text.split_whitespace();
    let name = words.next().filter(|name| ALLOWED_WORDS.contains(&name.to_ascii_lowercase().as_str()));
    [name, words.next().and_then(version)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the version at the start of a text; `None` if there is none.
pub fn version(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some(text[..end].trim_end_matches('.')).filter(|version| is_figure(version))
}

/// Removes the id of the machine, and renames targets to the name of their protocol, unless their name says no more than that
/// (`nfs4`, `smb-2`): any other name may be that of a person or a machine.
pub fn with_neutral_names(mut history: History) -> History {
    let mut taken = target_names(&history);
    for old in taken.clone() {
        if !is_neutral(old.as_str()) {
            let new = neutral_name(&history, &old, &taken);
            rename(&mut history, &old, &new);
            taken.push(new);
        }
    }
    history.settings.machine = None;
    history
}

/// Returns the names of all targets. Events also name targets that were never measured.
fn target_names(history: &History) -> Vec<TargetName> {
    let mut names: Vec<TargetName> = history.targets.iter().map(|target| target.name.clone()).collect();
    for name in history.events.iter().filter_map(|event| event.target.as_ref()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns whether a name has only words that longhaul itself uses, and numbers.
fn is_neutral(name: &str) -> bool {
    let mut parts = name.split(['-', '_']).map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
    parts.all(|part| {
        part.is_empty() || part == "local" || ALLOWED_WORDS.contains(&part.to_ascii_lowercase().as_str())
    })
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

/// Renames a target wherever a history names it. `new` is the name of no other target, so a renamed one is not renamed again.
fn rename(history: &mut History, old: &TargetName, new: &TargetName) {
    let names = history.targets.iter_mut().map(|target| &mut target.name);
    let names = names.chain(history.epochs.iter_mut().map(|epoch| &mut epoch.target));
    let names = names.chain(history.freshness.iter_mut().map(|day| &mut day.target));
    let names = names.chain(history.events.iter_mut().filter_map(|event| event.target.as_mut()));
    names.filter(|name| **name == *old).for_each(|name| *name = new.clone());
    for reason in history.rounds.iter_mut().filter_map(|round| round.reason.as_mut()) {
        *reason = rename_quoted(reason, old, new);
    }
    for event in &mut history.events {
        rename_in_detail(&mut event.detail, old, new);
    }
}

/// Renames a target in a sentence. Sentences have names between backticks, which also tell `nas` from `nas2`.
fn rename_quoted(text: &str, old: &TargetName, new: &TargetName) -> String {
    text.replace(&format!("`{old}`"), &format!("`{new}`"))
}

fn rename_in_detail(detail: &mut Value, old: &TargetName, new: &TargetName) {
    match detail {
        Value::String(text) if text.as_str() == old.as_str() => *text = new.to_string(),
        Value::String(text) => *text = rename_quoted(text, old, new),
        Value::Array(items) => items.iter_mut().for_each(|item| rename_in_detail(item, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|value| rename_in_detail(value, old, new)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn epoch_details_lose_path_and_server() {
        let negotiated = json!({ "addr": "10.0.0.2", "signing": "on", "username": "anna", "vers": "3.1.1" });
        let protocol = json!({ "family": "smb", "version": "3.1.1" });
        let state = json!({ "negotiated": negotiated, "path": "/Volumes/annas media", "protocol": protocol });
        let shown = json!({ "addr": "…", "signing": "on", "username": "…", "vers": "3.1.1" });
        assert_eq!(
            redact_detail(&json!({ "after": state, "epoch": 3 })),
            json!({ "after": { "negotiated": shown, "path": "…", "protocol": protocol }, "epoch": 3 })
        );
        let hidden = json!({ "path": "hidden-2" });
        assert_eq!(redact_detail(&hidden), hidden);
    }

    #[test]
    fn numbers_stay_and_names_are_removed() {
        let shown = [
            (json!({ "before": 1500, "after": "9000" }), json!({ "before": 1500, "after": "9000" })),
            (json!({ "before": "26.0", "after": "26.0.1" }), json!({ "before": "26.0", "after": "26.0.1" })),
            (json!({ "build": "24E248" }), json!({ "build": "…" })),
            (json!({ "seconds": "12.5s" }), json!({ "seconds": "12.5s" })),
            (json!(["woke Annas-MacBook.local at 192.168.1.7"]), json!(["…"])),
            (json!("//anna@nas/media"), json!("…")),
            (json!({ "path": 4711 }), json!({ "path": "…" })),
            (json!({ "/Volumes/media": 4711 }), json!({ "…": "…" })),
            (json!({ "/a": 1, "/b": 2, "c": 3 }), json!({ "…": "…", "…2": "…", "c": 3 })),
        ];
        for (detail, expected) in shown {
            assert_eq!(redact_detail(&detail), expected, "{detail}");
        }
    }

    #[test]
    fn sentence_loses_paths_addresses_and_hosts() {
        let redacted = redact_sentence(
            "the folder /Volumes/media on nas.local (10.0.0.2) was full at 98.5 %, fe80::1%en0 says anna@nas",
        );
        assert_eq!(redacted, "the folder … on … … was full at 98.5 %, … says …");
    }

    #[test]
    fn system_is_reduced_to_name_and_version() {
        assert_eq!(redact_system("Linux 6.1.0-13-annas-build"), "Linux 6.1.0");
        assert_eq!(redact_system("macOS 26.1 (25B78)"), "macOS 26.1");
        assert_eq!(redact_system("anna"), "");
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_and_no_path_remains(text in "\\PC{0,40}", path in "/[a-z]{4,9}(/[A-Z]{4,9}){1,3}") {
            let _ = (redact_sentence(&text), redact_system(&text));
            let redacted = redact_detail(&json!({ "path": &path, "text": &path, &text: &path, "inner": [&path, { &path: &text }] }));
            prop_assert!(!redacted.to_string().contains('/'), "{redacted}");
        }
    }
}
