//! The event log.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use longhaul_analysis::summary::detail_text;
use longhaul_model::stored::StoredEpoch;
use longhaul_model::{Event, TargetName, Timestamp};
use serde_json::{Map, Value};

use crate::document::Document;
use crate::screens::protocol;
use crate::table::Table;
use crate::text::Text;
use crate::{time, units};

/// Maximum number of entries in [`event_log`].
const MAX_SHOWN: usize = 300;
/// Explains what an event and an epoch are.
pub const EXPLANATION: &str = "Events on the machine, the network or a target that may have changed results. An epoch is the \
     period of a target under one protocol, set of mount options and path; results of different epochs are never pooled.";

/// An entry of the event log.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Something happened that may have changed results.
    Event(Event),
    /// An epoch of a target started.
    Epoch(StoredEpoch),
}

impl Entry {
    /// Returns the time of the entry.
    fn at(&self) -> Timestamp {
        match self {
            Self::Event(event) => event.at_us,
            Self::Epoch(epoch) => epoch.opened,
        }
    }

    fn kind(&self) -> &str {
        match self {
            Self::Event(event) => &event.kind,
            Self::Epoch(_) => "epoch",
        }
    }

    fn detail(&self, zone: &TimeZone) -> String {
        match self {
            Self::Event(event) => details(&event.detail, zone),
            Self::Epoch(epoch) => {
                format!("number {}, protocol {}", epoch.number, protocol(epoch.protocol.as_ref()))
            }
        }
    }

    fn target(&self) -> Option<&TargetName> {
        match self {
            Self::Event(event) => event.target.as_ref(),
            Self::Epoch(epoch) => Some(&epoch.target),
        }
    }
}

/// Returns the details of an event: times and sizes with their units, and of two states only what differs.
fn details(detail: &Value, zone: &TimeZone) -> String {
    let Value::Object(fields) = detail else { return detail_text(detail) };
    let change = fields.get("before").zip(fields.get("after")).map(|(before, after)| changes(before, after));
    let other = |key: &str| change.is_none() || !matches!(key, "before" | "after");
    let others = fields.iter().filter(|(key, value)| other(key) && !value.is_null());
    change
        .iter()
        .cloned()
        .chain(others.map(|(key, value)| field(key, value, zone)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn field(key: &str, value: &Value, zone: &TimeZone) -> String {
    match (key.strip_suffix("_us"), value) {
        (Some(name), Value::Number(at)) => {
            let at = Timestamp::from_us(at.as_i64().unwrap_or_default());
            format!("{} {}", name.replace('_', " "), time::timestamp(at, zone))
        }
        (None, Value::Number(bytes)) if key == "bytes" => units::bytes(bytes.as_f64().unwrap_or_default()),
        (_, Value::Object(_)) => format!("{key}: {}", details(value, zone)),
        _ => format!("{key}: {}", detail_text(value)),
    }
}

/// Returns the differences of two states.
fn changes(before: &Value, after: &Value) -> String {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        let text = |value: &Value| if value.is_null() { "none".to_owned() } else { detail_text(value) };
        return format!("{} → {}", text(before), text(after));
    };
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let of = |state: &Map<String, Value>, key: &str| state.get(key).cloned().unwrap_or_default();
    let differ = keys.into_iter().filter(|key| of(old, key) != of(new, key));
    let differences = differ.map(|key| format!("{key}: {}", changes(&of(old, key), &of(new, key))));
    differences.collect::<Vec<_>>().join(", ")
}

/// Returns the newest entries for a page.
pub fn event_log(mut entries: Vec<Entry>, zone: &TimeZone) -> Document {
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at()));
    let shown = &entries[..entries.len().min(MAX_SHOWN)];
    let mut document = Document::new();
    if !entries.is_empty() {
        document.note(format!(
            "{} of {}, newest first. A time links to the ratios before and after that day.",
            shown.len(),
            entries.len()
        ));
    }
    document.append(events(shown, zone));
    document
}

/// Returns the entries of the last days or hours, such as `7d`, in the given order.
pub fn recent_events(entries: &[Entry], window: &str, zone: &TimeZone) -> Document {
    if !entries.is_empty() {
        return events(entries, zone);
    }
    let mut document = Document::new();
    document.paragraph(
        Text::from(format!("No events in the last {window}. Longer: ")).code("longhaul events --since 60d"),
    );
    document
}

/// Returns the entries in the given order. On a page, a time links to the comparison before and after its day.
pub fn events(entries: &[Entry], zone: &TimeZone) -> Document {
    let mut document = Document::new();
    if entries.is_empty() {
        document.paragraph("No events recorded.");
    }
    let mut table = Table::new("Events and epochs").words(["time", "target", "event", "details"]);
    for entry in entries {
        table.row([
            Text::new().link(time::timestamp(entry.at(), zone), comparison_link(entry, zone)),
            entry.target().map_or_else(|| "machine".into(), Text::from),
            entry.kind().into(),
            entry.detail(zone).into(),
        ]);
    }
    document.table(table);
    document
}

fn comparison_link(entry: &Entry, zone: &TimeZone) -> String {
    let local = time::zoned(entry.at(), zone);
    local.map_or("/events".to_owned(), |local| format!("/events?at={}#around", local.date()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn details_have_units_and_only_differences() {
        let of = |detail: Value| details(&detail, &TimeZone::UTC);
        let state =
            |path: &str| json!({ "path": path, "protocol": { "family": "local", "version": "ext4" } });
        assert_eq!(
            of(json!({ "epoch": 6, "before": state("/a"), "after": state("/b") })),
            "path: /a → /b, epoch: 6"
        );
        assert_eq!(of(json!({ "until_us": 60_000_000 })), "until 1970-01-01 00:01:00");
        assert_eq!(of(json!({ "bytes": 42_838_704 })), "42.8 MB");
        let system = json!({ "system": { "before": "macOS 26.0", "after": "macOS 26.1" } });
        assert_eq!(of(system), "system: macOS 26.0 → macOS 26.1");
        assert_eq!(of(json!({ "mtu": { "before": null, "after": 9000 } })), "mtu: none → 9000");
        assert_eq!((of(json!("text")), of(Value::Null)), ("text".to_owned(), String::new()));
    }
}
