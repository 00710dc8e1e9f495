//! Events in words, as time axes and lists name them.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use longhaul_analysis::summary::EventLine;
use longhaul_model::{Event, KeepResult, NegotiatedOptions, Property, Protocol, SHARE_KEYS, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::screens::checks::{mismatch_details, property_words, result_word};
use crate::{redaction, time, units};

/// Kinds of events whose words do not depend on their details.
const PLAIN_WORDS: [(&str, &str); 18] = [
    ("clock-step", "clock set"),
    ("hang", "stopped responding"),
    ("mismatch", "data damaged"),
    ("missed-rounds", "rounds missed"),
    ("mount", "mounted"),
    ("other-computer", "another computer uses the database"),
    ("pause", "paused"),
    ("prepared", "test data made"),
    ("protocol", "protocol changed"),
    ("read-only", "became read-only"),
    ("reconnect", "reconnected"),
    ("recovered", "responds again"),
    ("remount", "mounted again"),
    ("resume", "resumed"),
    ("unmount", "unmounted"),
    ("usual-link", "another network link"),
    ("utc-offset", "time zone changed"),
    ("writable", "became writable"),
];

/// Returns an event in a few words, for example `macOS 26.1 installed`.
pub fn event_words(event: &Event) -> String {
    words(&event.kind, &event.detail)
}

/// Returns an event of a week in a few words, without its target: `stopped responding`.
pub fn words_without_target(event: &EventLine) -> String {
    words(&event.kind, &event.detail)
}

/// Returns an event of a week in a few words, after its target: `nfs stopped responding`.
pub fn line_words(event: &EventLine) -> String {
    let words = words(&event.kind, &event.detail);
    match &event.target {
        Some(target) => format!("{target} {words}"),
        None => words,
    }
}

/// Returns an event in a few words, from its kind and its details.
fn words(kind: &str, detail: &Value) -> String {
    match kind {
        "facts-changed" => facts_words(detail),
        "epoch" => epoch_words(detail),
        "fidelity" => fidelity_words(detail),
        "wake" => detail["slept_seconds"].as_f64().map_or_else(
            || "woke up".to_owned(),
            |seconds| format!("woke up after {}", units::duration(seconds)),
        ),
        _ => PLAIN_WORDS
            .iter()
            .find(|(known, _)| *known == kind)
            .map_or_else(|| kind.replace('-', " "), |(_, words)| (*words).to_owned()),
    }
}

fn facts_words(detail: &Value) -> String {
    let text = |name: &str, side: &str| Some(&detail[name][side]).filter(|value| !value.is_null()).map(value);
    if let Some(system) = text("system", "after") {
        return format!("{system} installed");
    }
    if let Some((before, after)) = text("mtu", "before").zip(text("mtu", "after")) {
        return format!("MTU changed from {before} to {after}");
    }
    if let Some(link) = text("link", "after") {
        return format!("network link changed to {link}");
    }
    match detail.as_object().map_or(0, Map::len) {
        0 | 1 => "a setting changed".to_owned(),
        count => format!("{count} settings changed"),
    }
}

/// Returns the words of a change of what a target keeps: that of the property, or the number of properties.
fn fidelity_words(detail: &Value) -> String {
    let change = |property: &Property| {
        let after = KeepResult::from_name(detail[property.name()]["after"].as_str()?)?;
        Some((property_words(*property), after))
    };
    let changes: Vec<_> = Property::ALL.iter().filter_map(change).collect();
    match changes[..] {
        [(property, KeepResult::Kept)] => format!("now keeps: {property}"),
        [(property, result)] => format!("no longer keeps: {property} ({})", result_word(result)),
        _ => format!("{} file properties are now kept differently", changes.len()),
    }
}

/// Returns the words of a new epoch: its protocol if that changed.
fn epoch_words(detail: &Value) -> String {
    let [before, after] = ["before", "after"].map(|side| &detail[side]);
    let (old, new) = (&before["protocol"], &after["protocol"]);
    let is_other_share = |key: &&str| {
        let [before, after] = [before, after].map(|side| &side["negotiated"][*key]);
        !before.is_null() && !after.is_null() && before != after
    };
    if !new.is_null() && old != new {
        format!("changed to {}", value(new))
    } else if SHARE_KEYS.iter().any(is_other_share) {
        "another share at the same path".to_owned()
    } else {
        "mount options or path changed".to_owned()
    }
}

/// Returns the details of an event, with the words that screens use for properties of files. Empty if [`event_words`] says all.
pub fn readable_details(kind: &str, detail: &Value, zone: &TimeZone) -> String {
    match kind {
        "wake" => String::new(),
        "fidelity" => fidelity_details(detail),
        "mismatch" => mismatch_details(detail),
        "mount" => mount_details(&detail["after"]),
        "unmount" => mount_details(&detail["before"]),
        _ => event_details(detail, zone),
    }
}

/// Returns what was mounted: its protocol and its place.
fn mount_details(mount: &Value) -> String {
    let text = |key: &str| mount[key].as_str();
    let place = text("point").map(|point| format!("at {point}"));
    text("protocol").map(str::to_owned).into_iter().chain(place).collect::<Vec<_>>().join(" ")
}

/// Returns the negotiated options in which a mount differs from an earlier one at the same place; empty if there are none. Names of
/// servers and other private options are left out.
pub fn changed_options(before: &Value, after: &Value) -> String {
    if before["point"] != after["point"] {
        return String::new();
    }
    let options = |mount: &Value| -> Value {
        let negotiated = NegotiatedOptions::deserialize(&mount["negotiated"]).unwrap_or_default();
        redaction::redact_negotiated(&negotiated).into_iter().collect()
    };
    changes(&options(before), &options(after))
}

/// Returns before and after of each property that a target keeps otherwise than before.
fn fidelity_details(detail: &Value) -> String {
    let word = |result: &Value| {
        let known = result.as_str().and_then(KeepResult::from_name);
        known.map_or_else(|| value(result), |known| result_word(known).to_owned())
    };
    let change = |property: &Property| {
        let change = detail[property.name()].as_object()?;
        let (before, after) = change.get("before").zip(change.get("after"))?;
        Some(format!("{}: {} → {}", property_words(*property), word(before), word(after)))
    };
    Property::ALL.iter().filter_map(change).collect::<Vec<_>>().join(", ")
}

/// Returns the details of an event: times and sizes with their units, and of two states only what differs.
pub fn event_details(detail: &Value, zone: &TimeZone) -> String {
    let fields = match detail {
        Value::Object(fields) => fields,
        Value::Null => return String::new(),
        _ => return value(detail),
    };
    let change = fields.get("before").zip(fields.get("after")).map(|(before, after)| changes(before, after));
    let other = |key: &str| change.is_none() || !matches!(key, "before" | "after");
    let others = fields.iter().filter(|(key, value)| other(key) && !value.is_null());
    let others = others.map(|(key, value)| field(key, value, zone));
    let parts: Vec<String> = change.iter().cloned().chain(others).filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

fn field(key: &str, of: &Value, zone: &TimeZone) -> String {
    match (key.strip_suffix("_us"), of) {
        (Some(name), Value::Number(at)) => {
            let at = Timestamp::from_us(at.as_i64().unwrap_or_default());
            format!("{} {}", name.replace('_', " "), time::timestamp(at, zone))
        }
        (None, Value::Number(bytes)) if key == "bytes" => units::bytes(bytes.as_f64().unwrap_or_default()),
        (_, Value::Object(_)) => format!("{key}: {}", event_details(of, zone)),
        _ => format!("{key}: {}", value(of)),
    }
}

/// Returns the differences of two states. Of two different private texts only that they differ is known.
fn changes(before: &Value, after: &Value) -> String {
    let is_protocol = |state: &Value| Protocol::deserialize(state).is_ok();
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        let is_hidden = |side: &Value| side.as_str().is_some_and(redaction::is_hidden);
        return match is_hidden(before) && is_hidden(after) {
            true => "changed".to_owned(),
            false => format!("{} → {}", value(before), value(after)),
        };
    };
    if is_protocol(before) && is_protocol(after) {
        return format!("{} → {}", value(before), value(after));
    }
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let of = |state: &Map<String, Value>, key: &str| state.get(key).cloned().unwrap_or_default();
    let differ = keys.into_iter().filter(|key| of(old, key) != of(new, key));
    let differences = differ.map(|key| format!("{key}: {}", changes(&of(old, key), &of(new, key))));
    differences.collect::<Vec<_>>().join(", ")
}

/// Returns a value without its name: a text without quotes, a protocol with its version, `none` for no value.
fn value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(_) => {
            Protocol::deserialize(value).map_or_else(|_| value.to_string(), |known| known.to_string())
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(kind: &str, detail: Value) -> String {
        event_words(&Event { target: None, kind: kind.to_owned(), detail, at_us: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn events_are_named_in_words() {
        let change = |before: &str, after: &str| json!({ "before": before, "after": after });
        let protocol =
            |version: &str| json!({ "path": "/m", "protocol": { "family": "smb", "version": version } });
        let epoch = json!({ "epoch": 2, "before": protocol("3.0.2"), "after": protocol("3.1.1") });
        let named = [
            (
                of("facts-changed", json!({ "system": change("macOS 26.0", "macOS 26.1") })),
                "macOS 26.1 installed",
            ),
            (of("facts-changed", json!({ "mtu": change("1500", "9000") })), "MTU changed from 1500 to 9000"),
            (
                of("facts-changed", json!({ "a": change("1", "2"), "b": change("1", "2") })),
                "2 settings changed",
            ),
            (of("facts-changed", json!({ "subsystem": change("1", "2") })), "a setting changed"),
            (of("epoch", epoch), "changed to SMB 3.1.1"),
            (
                of("fidelity", json!({ "colon": change("kept", "lost") })),
                "no longer keeps: colon in a name (lost)",
            ),
            (of("fidelity", json!({ "colon": change("lost", "kept") })), "now keeps: colon in a name"),
            (
                of(
                    "fidelity",
                    json!({ "colon": change("kept", "lost"), "hard-link": change("lost", "kept") }),
                ),
                "2 file properties are now kept differently",
            ),
            (of("wake", json!({ "slept_seconds": 7200 })), "woke up after 2 h"),
            (of("reconnect", json!({ "count": 1 })), "reconnected"),
            (of("other-computer", Value::Null), "another computer uses the database"),
            (of("something-new", Value::Null), "something new"),
        ];
        for (found, expected) in named {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn mounts_and_damage_have_no_raw_keys() {
        let details = |kind: &str, detail: Value| readable_details(kind, &detail, &TimeZone::UTC);
        let mount =
            json!({ "point": "/m/nas", "protocol": "SMB 3.1.1", "read_only": false, "negotiated": {} });
        assert_eq!(details("unmount", json!({ "before": mount, "after": null })), "SMB 3.1.1 at /m/nas");
        assert_eq!(details("mount", json!({ "before": null, "after": mount })), "SMB 3.1.1 at /m/nas");
        let damage = json!({
            "run": 7, "file": "photo-batch/a.jpg", "offset": 4096, "length": 1, "elsewhere": [],
            "pattern": { "bit-flips": { "bits": 22 } }, "reread": "same-damage", "protocol": "SMB 3.1.1",
        });
        let expected =
            "photo-batch/a.jpg; 1 byte from offset 4096; 22 flipped bits; read again: the same wrong bytes";
        assert_eq!(details("mismatch", damage), expected);
        assert_eq!(of("mismatch", Value::Null), "data damaged");
    }

    #[test]
    fn changed_settings_are_counted_after_their_names_are_removed() {
        let change = json!({ "before": 1, "after": 2 });
        let event = EventLine {
            at: "2026-11-14 08:00:00".to_owned(),
            target: None,
            kind: "facts-changed".to_owned(),
            detail: json!({ "net.a": change, "net.b": change, "net.c": change }),
        };
        assert_eq!(line_words(&redaction::redact_event(&event)), "3 settings changed");
    }

    #[test]
    fn details_have_units_and_only_differences() {
        let of = |detail: Value| event_details(&detail, &TimeZone::UTC);
        let state =
            |path: &str| json!({ "path": path, "protocol": { "family": "local", "version": "ext4" } });
        assert_eq!(
            of(json!({ "epoch": 6, "before": state("/a"), "after": state("/b") })),
            "path: /a → /b, epoch: 6"
        );
        let protocol = |version: &str| json!({ "protocol": { "family": "smb", "version": version } });
        assert_eq!(
            of(json!({ "before": protocol("3.0.2"), "after": protocol("3.1.1") })),
            "protocol: SMB 3.0.2 → SMB 3.1.1"
        );
        assert_eq!(of(json!({ "before": state("hidden-1"), "after": state("hidden-2") })), "path: changed");
        assert_eq!(of(json!({ "until_us": 60_000_000 })), "until 1970-01-01 00:01:00");
        assert_eq!(of(json!({ "bytes": 42_838_704 })), "42.8 MB");
        let system = json!({ "system": { "before": "macOS 26.0", "after": "macOS 26.1" } });
        assert_eq!(of(system), "system: macOS 26.0 → macOS 26.1");
        assert_eq!(of(json!({ "mtu": { "before": null, "after": 9000 } })), "mtu: none → 9000");
        assert_eq!((of(json!("text")), of(Value::Null)), ("text".to_owned(), String::new()));
    }
}
