//! What of a history may leave the machine: no path, no server, no user.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use super::{History, KeptEpoch, KeptRound};
use crate::model::Event;

/// What a private text of an event becomes, with a number behind it: the same text the same number.
const HIDDEN: &str = "hidden-";
/// What a reason becomes that names a place.
const HIDDEN_REASON: &str = "not shown, because it names a place or a person";

/// Words of keys whose values say where or who. A new event that knows such a thing calls it by one of these.
const PRIVATE: &[&str] = &[
    "addr",
    "address",
    "addresses",
    "bssid",
    "credential",
    "destination",
    "directory",
    "domain",
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
/// How names of machines in small networks end.
const LOCAL_NAMES: &[&str] = &[".local", ".lan", ".home", ".internal", ".arpa", ".box"];

/// The history without what says where the data is and whose it is. Verdicts are made from this form, so that they are
/// the same from the database and from an export. Doing it twice changes nothing.
///
/// A private text in an event becomes `hidden-1`, `hidden-2`, ... in the order of the journal: a change stays visible.
/// A number, not a hash: whoever has a list of usual paths would find a hash in it. A text without a character becomes
/// "not known": not every format can tell the two apart.
pub fn public(history: History) -> History {
    let History { premises, targets, epochs, rounds, runs, events } = history;
    let mut hiding = Hiding::beside(&events);
    let events = events.into_iter().map(|event| Event { detail: hiding.stripped(event.detail), ..event });
    History {
        premises,
        targets,
        epochs: epochs.into_iter().map(public_epoch).collect(),
        rounds: rounds.into_iter().map(public_round).collect(),
        runs,
        events: events.collect(),
    }
}

fn public_epoch(epoch: KeptEpoch) -> KeptEpoch {
    KeptEpoch { protocol: epoch.protocol.filter(|text| !text.is_empty()), ..epoch }
}

fn public_round(round: KeptRound) -> KeptRound {
    let shown = |reason: String| if is_private(&reason) { HIDDEN_REASON.to_owned() } else { reason };
    KeptRound { reason: round.reason.filter(|text| !text.is_empty()).map(shown), ..round }
}

/// The numbers that private texts have.
struct Hiding {
    known: BTreeMap<String, u64>,
    next: u64,
}

impl Hiding {
    /// Numbers beside those that are there already.
    fn beside(events: &[Event]) -> Self {
        let taken = events.iter().filter_map(|event| highest(&event.detail)).max().unwrap_or(0);
        Self { known: BTreeMap::new(), next: taken.saturating_add(1) }
    }

    fn stripped(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) if is_private(&text) => Value::String(self.hidden(text)),
            Value::Array(items) => items.into_iter().map(|item| self.stripped(item)).collect(),
            Value::Object(entries) => entries.into_iter().map(|entry| self.stripped_entry(entry)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }

    fn stripped_entry(&mut self, entry: (String, Value)) -> (String, Value) {
        let (key, value) = entry;
        let value = if is_private_key(&key) { self.all_hidden(value) } else { self.stripped(value) };
        (if is_private(&key) { self.hidden(key) } else { key }, value)
    }

    fn all_hidden(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hidden(text)),
            Value::Number(number) => Value::String(self.hidden(number.to_string())),
            Value::Array(items) => items.into_iter().map(|item| self.all_hidden(item)).collect(),
            Value::Object(entries) => {
                entries.into_iter().map(|(key, value)| (key, self.all_hidden(value))).collect()
            }
            Value::Null | Value::Bool(_) => value,
        }
    }

    fn hidden(&mut self, text: String) -> String {
        if number_of(&text).is_some() {
            return text;
        }
        let number = *self.known.entry(text).or_insert(self.next);
        self.next = self.next.max(number.saturating_add(1));
        format!("{HIDDEN}{number}")
    }
}

/// The number in `hidden-7`.
fn number_of(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(HIDDEN)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn highest(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => number_of(text),
        Value::Array(items) => items.iter().filter_map(highest).max(),
        Value::Object(entries) => {
            entries.iter().filter_map(|(key, value)| number_of(key).max(highest(value))).max()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Whether what stands under this key says where the data is or whose it is, whatever it looks like.
pub fn is_private_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| PRIVATE.contains(&word))
}

/// Whether a text looks like a path, a URL, an address, the name of a machine or of an account.
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
        || LOCAL_NAMES.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn details(details: &[Value]) -> Vec<Value> {
        let event =
            |detail: &Value| Event { target: None, kind: "x".into(), detail: detail.clone(), at_us: 0 };
        let history = History { events: details.iter().map(event).collect(), ..History::default() };
        public(history).events.into_iter().map(|event| event.detail).collect()
    }

    #[test]
    fn an_epoch_keeps_what_changed_and_loses_where_it_is() {
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
    fn where_and_who_is_hidden_under_any_key() {
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
    }

    #[test]
    fn what_explains_a_change_stays() {
        let detail = json!({
            "setting": "net.inet.tcp.delayed_ack", "before": "3", "after": 1, "system": "macOS 15.7.1 (24G231)",
            "link": "Ethernet 10 Gbit/s", "read/write": true, "interface": "en0",
        });
        assert_eq!(details(std::slice::from_ref(&detail)), [detail]);
    }

    #[test]
    fn a_reason_that_names_a_place_is_not_shown() {
        let round = |reason: &str| KeptRound {
            number: 1,
            started_us: 0,
            utc_offset_seconds: 0,
            scale: crate::model::Scale::Quick,
            status: None,
            reason: Some(reason.to_owned()),
        };
        let rounds = ["the machine slept", "/Volumes/nas was away", ""].map(round).to_vec();
        let shown = public(History { rounds, ..History::default() }).rounds;
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
        fn doing_it_twice_changes_nothing(values in proptest::collection::vec(value(), 0..5)) {
            let once = details(&values);
            prop_assert_eq!(details(&once), once);
        }

        #[test]
        fn later_events_change_nothing_before_them(values in proptest::collection::vec(value(), 1..5)) {
            // Unless an event holds what looks like our own numbers, which only a file that was public already does.
            prop_assume!(values.iter().all(|value| highest(value).is_none()));
            let all = details(&values);
            let fewer = details(&values[..values.len() - 1]);
            prop_assert_eq!(&all[..fewer.len()], &fewer[..]);
        }
    }
}
