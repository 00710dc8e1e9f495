//! Removes private data (paths, server names, user names) from a history, so that it may be published.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use longhaul_model::{EpochRecord, Event, History, RoundRecord};

/// Prefix of the replacement for a private text in an event. A number follows; equal texts get equal numbers.
const HIDDEN_PREFIX: &str = "hidden-";
/// Replacement for the reason of a round that names a path, server or user.
const HIDDEN_REASON: &str = "not shown because it names a path, a server or a user";

/// Words in keys whose values are private, because they name a location or a user. A new event with private data must
/// use one of these words in its key.
const PRIVATE_KEY_WORDS: &[&str] = &[
    "addr",
    "address",
    "addresses",
    "bssid",
    "credential",
    "destination",
    "directory",
    "domain",
    "file",
    "folder",
    "host",
    "hostname",
    "ip",
    "login",
    "mac",
    "mountpoint",
    "owner",
    "password",
    "path",
    "paths",
    "point",
    "realm",
    "serial",
    "server",
    "servers",
    "share",
    "source",
    "ssid",
    "token",
    "url",
    "user",
    "username",
    "uuid",
    "volume",
    "workgroup",
];
/// Suffixes of host names in local networks.
const LOCAL_DOMAIN_SUFFIXES: &[&str] = &[".local", ".lan", ".home", ".internal", ".arpa", ".box"];

/// Returns the history without private data: paths, server names and user names. Verdicts are computed from this form,
/// so that the database and an export give the same verdicts. The function is idempotent.
///
/// A private text in an event becomes `hidden-1`, `hidden-2`, ... in the order of the event log, so that a change of
/// the text stays visible. Numbers are used because a hash of a common path could be found by hashing a list of common
/// paths. An empty text becomes `None`, because some formats cannot distinguish the two.
pub fn anonymize(history: History) -> History {
    let History { settings, targets, epochs, rounds, runs, events, freshness, recorded_day } = history;
    let mut anonymizer = Anonymizer::after_existing(&events);
    let events = events.into_iter().map(|event| Event { detail: anonymizer.strip(event.detail), ..event });
    History {
        settings,
        targets,
        epochs: epochs.into_iter().map(anonymize_epoch).collect(),
        rounds: rounds.into_iter().map(anonymize_round).collect(),
        runs,
        events: events.collect(),
        freshness,
        recorded_day,
    }
}

fn anonymize_epoch(epoch: EpochRecord) -> EpochRecord {
    EpochRecord { protocol: epoch.protocol.filter(|text| !text.is_empty()), ..epoch }
}

fn anonymize_round(round: RoundRecord) -> RoundRecord {
    let shown = |reason: String| if is_private(&reason) { HIDDEN_REASON.to_owned() } else { reason };
    RoundRecord { reason: round.reason.filter(|text| !text.is_empty()).map(shown), ..round }
}

/// Replaces private texts by numbered placeholders.
struct Anonymizer {
    /// Number of each private text.
    numbers: BTreeMap<String, u64>,
    /// Number of the next new private text.
    next_number: u64,
}

impl Anonymizer {
    /// Creates an anonymizer whose numbers start after the highest placeholder in the events. This makes
    /// [`anonymize`] idempotent.
    fn after_existing(events: &[Event]) -> Self {
        let taken = events.iter().filter_map(|event| highest_number(&event.detail)).max().unwrap_or(0);
        Self { numbers: BTreeMap::new(), next_number: taken.saturating_add(1) }
    }

    fn strip(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) if is_private(&text) => Value::String(self.hide(text)),
            Value::Array(items) => items.into_iter().map(|item| self.strip(item)).collect(),
            Value::Object(entries) => entries.into_iter().map(|entry| self.strip_entry(entry)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }

    fn strip_entry(&mut self, entry: (String, Value)) -> (String, Value) {
        let (key, value) = entry;
        let value = if is_private_key(&key) { self.hide_all(value) } else { self.strip(value) };
        (self.shown_key(key), value)
    }

    fn shown_key(&mut self, key: String) -> String {
        if is_private(&key) { self.hide(key) } else { key }
    }

    fn hide_all(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide(text)),
            Value::Number(number) => Value::String(self.hide(number.to_string())),
            Value::Array(items) => items.into_iter().map(|item| self.hide_all(item)).collect(),
            Value::Object(entries) => {
                let hidden = |(key, value)| (self.shown_key(key), self.hide_all(value));
                entries.into_iter().map(hidden).collect()
            }
            Value::Null | Value::Bool(_) => value,
        }
    }

    fn hide(&mut self, text: String) -> String {
        if hidden_number(&text).is_some() {
            return text;
        }
        let number = *self.numbers.entry(text).or_insert(self.next_number);
        self.next_number = self.next_number.max(number.saturating_add(1));
        format!("{HIDDEN_PREFIX}{number}")
    }
}

/// Returns the number in a placeholder such as `hidden-7`; `None` for any other text.
fn hidden_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(HIDDEN_PREFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn highest_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => hidden_number(text),
        Value::Array(items) => items.iter().filter_map(highest_number).max(),
        Value::Object(entries) => {
            entries.iter().filter_map(|(key, value)| hidden_number(key).max(highest_number(value))).max()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns true if values under this key are private, regardless of their content. The key is split into words at
/// characters that are not alphanumeric; case is ignored.
pub fn is_private_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| PRIVATE_KEY_WORDS.contains(&word))
}

/// Returns true if a text looks like a path, a URL, a network address, a host name or an account name.
fn is_private(text: &str) -> bool {
    let marks = ["://", ":/", "\\\\", "@", "~/"];
    marks.iter().any(|mark| text.contains(mark)) || text.split_whitespace().any(is_private_word)
}

fn is_private_word(word: &str) -> bool {
    let is_socket = word.parse::<SocketAddr>().is_ok();
    let word = word.trim_matches(|c: char| "\"'`()[]{}<>,;:.!?=".contains(c));
    let address = word.split(['%', '/']).next().unwrap_or_default();
    let name = word.to_ascii_lowercase();
    word.starts_with('/')
        || address.parse::<IpAddr>().is_ok()
        || is_socket
        || LOCAL_DOMAIN_SUFFIXES.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    fn details(details: &[Value]) -> Vec<Value> {
        let event = |detail: &Value| Event {
            target: None,
            kind: "x".into(),
            detail: detail.clone(),
            at_us: Timestamp::UNIX_EPOCH,
        };
        let history = History { events: details.iter().map(event).collect(), ..History::default() };
        anonymize(history).events.into_iter().map(|event| event.detail).collect()
    }

    #[test]
    fn changed_options_stay_and_paths_are_hidden() {
        let before = json!({"path": "/Volumes/media", "protocol": {"family": "smb", "version": "3.0"}});
        let after = json!({"path": "/Volumes/media", "protocol": {"family": "smb", "version": "3.1.1"}});
        let moved = json!({"path": "/Volumes/other disk", "negotiated": {"rsize": "65536"}});
        let shown = details(&[json!({"before": before, "after": after}), json!({"after": moved})]);
        assert_eq!(shown[0]["before"]["path"], shown[0]["after"]["path"]);
        assert_eq!(
            shown[0]["after"],
            json!({"path": "hidden-1", "protocol": {"family": "smb", "version": "3.1.1"}})
        );
        assert_eq!(shown[1]["after"], json!({"path": "hidden-2", "negotiated": {"rsize": "65536"}}));
    }

    #[test]
    fn private_texts_are_hidden_under_any_key() {
        for private in [
            "/Users/ada/photos",
            "//ada@nas/media",
            "smb://nas/media",
            "nas:/volume1",
            "moved to /mnt/nas",
            "192.168.1.7",
            "fe80::1%en0",
            "[fe80::1]:445",
            "10.0.0.0/8",
            "nas.local",
            "server NAS.LOCAL.",
            "ada@example",
            "C:\\\\nas",
        ] {
            assert_eq!(details(&[json!({ "after": private })]), [json!({"after": "hidden-1"})], "{private}");
        }
        for private in ["server_name", "nas-address", "Time Machine destination", "SSID"] {
            assert_eq!(details(&[json!({ private: "nas" })]), [json!({ private: "hidden-1" })], "{private}");
        }
        assert_eq!(
            details(&[json!({"ip": [7, null], "/a": 1})]),
            [json!({"ip": ["hidden-2", null], "hidden-1": 1})]
        );
        assert_eq!(
            details(&[json!({"paths": {"/Users/me/x": 1, "count": 2}})]),
            [json!({"paths": {"hidden-1": "hidden-2", "count": "hidden-3"}})]
        );
    }

    #[test]
    fn system_settings_and_versions_stay() {
        let detail = json!({
            "setting": "net.inet.tcp.delayed_ack", "before": "3", "after": 1, "system": "macOS 15.7.1 (24G231)",
            "link": "Ethernet 10 Gbit/s", "read/write": true, "interface": "en0",
        });
        assert_eq!(details(std::slice::from_ref(&detail)), [detail]);
    }

    #[test]
    fn reason_that_names_a_path_is_hidden() {
        let round = |reason: &str| RoundRecord {
            number: 1,
            started_us: Timestamp::UNIX_EPOCH,
            utc_offset_seconds: 0,
            scale: longhaul_model::Scale::Quick,
            status: None,
            reason: Some(reason.to_owned()),
        };
        let rounds = ["the machine slept", "/Volumes/nas was away", ""].map(round).to_vec();
        let shown = anonymize(History { rounds, ..History::default() }).rounds;
        let reasons: Vec<_> = shown.iter().map(|round| round.reason.as_deref()).collect();
        assert_eq!(reasons, [Some("the machine slept"), Some(HIDDEN_REASON), None]);
        assert!(!is_private(HIDDEN_REASON));
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z/@.: ]{0,8}", "hidden-[0-9]{0,3}", "(path|server|x)", any::<String>()]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(text(), inner, 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn anonymizing_is_idempotent(values in proptest::collection::vec(value(), 0..5)) {
            let once = details(&values);
            prop_assert_eq!(details(&once), once);
        }

        #[test]
        fn later_events_do_not_change_earlier_placeholders(values in proptest::collection::vec(value(), 1..5)) {
            // Texts that look like placeholders shift the numbers. Only an already anonymized file contains them.
            prop_assume!(values.iter().all(|value| highest_number(value).is_none()));
            let all = details(&values);
            let fewer = details(&values[..values.len() - 1]);
            prop_assert_eq!(&all[..fewer.len()], &fewer[..]);
        }
    }
}
