//! Events in words, as time axes and lists name them.

use longhaul_analysis::summary::{EventLine, detail_text};
use longhaul_model::{Event, KeepResult, Property};

use crate::screens::checks::{property_words, result_word};
use crate::units;

/// Kinds of events whose words do not depend on their details.
const PLAIN_WORDS: [(&str, &str); 16] = [
    ("clock-step", "clock set"),
    ("hang", "stopped answering"),
    ("missed-rounds", "rounds missed"),
    ("mount", "mounted"),
    ("pause", "paused"),
    ("prepared", "test data made"),
    ("protocol", "protocol changed"),
    ("read-only", "became read-only"),
    ("reconnect", "reconnected"),
    ("recovered", "answers again"),
    ("remount", "mounted again"),
    ("resume", "resumed"),
    ("unmount", "unmounted"),
    ("usual-link", "another network link"),
    ("utc-offset", "time zone changed"),
    ("writable", "became writable"),
];

/// Returns an event in a few words, for example `macOS 26.1 installed`.
pub fn event_words(event: &Event) -> String {
    words(&event.kind, &detail_text(&event.detail))
}

/// Returns an event of a week in a few words, after its target: `nfs stopped answering`.
pub fn line_words(event: &EventLine) -> String {
    let words = words(&event.kind, &event.detail);
    match &event.target {
        Some(target) => format!("{target} {words}"),
        None => words,
    }
}

/// Returns an event in a few words, from its kind and its details as [`detail_text`] formats them.
fn words(kind: &str, detail: &str) -> String {
    match kind {
        "facts-changed" => facts_words(detail),
        "epoch" => epoch_words(detail),
        "fidelity" => fidelity_words(detail),
        "wake" => value(detail, "slept_seconds").and_then(|seconds| seconds.parse().ok()).map_or_else(
            || "woke up".to_owned(),
            |seconds: f64| format!("woke up after {}", units::duration(seconds)),
        ),
        _ => PLAIN_WORDS
            .iter()
            .find(|(known, _)| *known == kind)
            .map_or_else(|| kind.replace('-', " "), |(_, words)| (*words).to_owned()),
    }
}

fn facts_words(detail: &str) -> String {
    let after = |name: &str| value(group(detail, name)?, "after");
    let change = |name: &str| Some((value(group(detail, name)?, "before")?, after(name)?));
    if let Some(system) = after("system") {
        return format!("{system} installed");
    }
    if let Some((before, after)) = change("mtu") {
        return format!("MTU changed from {before} to {after}");
    }
    if let Some(link) = after("link") {
        return format!("network link changed to {link}");
    }
    match detail.matches(" (").count() {
        0 | 1 => "a setting changed".to_owned(),
        count => format!("{count} settings changed"),
    }
}

/// Returns the words of a change of what a target keeps: that of the property, or the number of properties.
fn fidelity_words(detail: &str) -> String {
    let change = |property: &Property| {
        let after = KeepResult::from_name(value(group(detail, property.name())?, "after")?)?;
        Some((property_words(*property), after))
    };
    let changes: Vec<_> = Property::ALL.iter().filter_map(change).collect();
    match changes[..] {
        [(property, KeepResult::Kept)] => format!("now keeps: {property}"),
        [(property, result)] => format!("no longer keeps: {property} ({})", result_word(result)),
        _ => format!("{} properties of files are kept otherwise than before", changes.len()),
    }
}

/// Returns the words of a new epoch: its protocol if that changed.
fn epoch_words(detail: &str) -> String {
    let protocol = |side: &str| value(group(detail, side)?, "protocol");
    match protocol("after") {
        Some(after) if protocol("before") != Some(after) => format!("changed to {after}"),
        Some(_) | None => "mount options or path changed".to_owned(),
    }
}

/// Returns the text in the parentheses after a name, for example `after: 2, before: 1` of `mtu (after: 2, before: 1)`. Inner
/// parentheses are part of it.
fn group<'d>(detail: &'d str, name: &str) -> Option<&'d str> {
    let start = position(detail, &format!("{name} ("))?;
    let inside = &detail[start + name.len() + 2..];
    let mut depth = 1;
    let end = inside.find(|character| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    Some(&inside[..end.unwrap_or(inside.len())])
}

/// Returns the value of a key, up to the next comma.
fn value<'d>(detail: &'d str, key: &str) -> Option<&'d str> {
    let start = position(detail, &format!("{key}: "))?;
    detail[start + key.len() + 2..].split(", ").next()
}

/// Returns the position of a text at the start of a part.
fn position(detail: &str, text: &str) -> Option<usize> {
    let starts_a_part = |at: &usize| *at == 0 || detail[..*at].ends_with([' ', '(']);
    detail.match_indices(text).map(|(at, _)| at).find(starts_a_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Timestamp;
    use serde_json::{Value, json};

    fn of(kind: &str, detail: Value) -> String {
        event_words(&Event { target: None, kind: kind.to_owned(), detail, at_us: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn events_are_named_in_words() {
        let change = |before: &str, after: &str| json!({ "before": before, "after": after });
        let protocol = |name: &str| json!({ "path": "/m (1)", "protocol": name });
        let epoch = json!({ "epoch": 2, "before": protocol("SMB 3.0.2"), "after": protocol("SMB 3.1.1") });
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
                "2 properties of files are kept otherwise than before",
            ),
            (of("wake", json!({ "slept_seconds": 7200 })), "woke up after 2 h"),
            (of("reconnect", json!({ "count": 1 })), "reconnected"),
            (of("something-new", Value::Null), "something new"),
        ];
        for (found, expected) in named {
            assert_eq!(found, expected);
        }
    }
}
