//! The event log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use longhaul_model::stored::StoredEpoch;
use longhaul_model::time::DAY;
use longhaul_model::{Event, TargetName, Timestamp};
use serde_json::Value;

use crate::document::Document;
use crate::event_words::{changed_options, event_words, readable_details};
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

    /// Returns the number of the epoch that an event reports, with what changed at its start.
    fn reported_epoch(&self) -> Option<i64> {
        match self {
            Self::Event(event) if event.kind == "epoch" => event.detail["epoch"].as_i64(),
            Self::Event(_) | Self::Epoch(_) => None,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Event(event) => event_words(event),
            Self::Epoch(_) => "new epoch".to_owned(),
        }
    }

    /// Returns true if test data were made, which changes no results.
    fn is_preparation(&self) -> bool {
        matches!(self, Self::Event(event) if event.kind == "prepared")
    }

    fn detail(&self, zone: &TimeZone) -> String {
        match self {
            Self::Event(event) => readable_details(&event.kind, &event.detail, zone),
            Self::Epoch(epoch) => {
                format!("protocol: {}, epoch: {}", protocol(epoch.protocol.as_ref()), epoch.number)
            }
        }
    }

    /// Returns the options in which a new mount of a target differs from its last one; empty if no entry has that one.
    fn changed_options(&self, unmounted: &UnmountedByTime<'_>) -> String {
        match self {
            Self::Event(event) if event.kind == "mount" => {
                let target = event.target.as_ref();
                let earlier = unmounted.range((target, Timestamp::MIN)..=(target, event.at_us)).next_back();
                earlier.map_or(String::new(), |(_, last)| changed_options(last, &event.detail["after"]))
            }
            Self::Event(_) | Self::Epoch(_) => String::new(),
        }
    }

    fn target(&self) -> Option<&TargetName> {
        match self {
            Self::Event(event) => event.target.as_ref(),
            Self::Epoch(epoch) => Some(&epoch.target),
        }
    }
}

/// The mounts that events report as unmounted, by target and time.
type UnmountedByTime<'e> = BTreeMap<(Option<&'e TargetName>, Timestamp), &'e Value>;

fn unmounted_by_time(entries: &[Entry]) -> UnmountedByTime<'_> {
    let unmounts = entries.iter().filter_map(|entry| match entry {
        Entry::Event(event) if event.kind == "unmount" => Some(event),
        Entry::Event(_) | Entry::Epoch(_) => None,
    });
    unmounts.map(|event| ((event.target.as_ref(), event.at_us), &event.detail["before"])).collect()
}

/// Returns the newest entries for a page. An epoch that an event reports is one entry.
pub fn event_log(mut entries: Vec<Entry>, zone: &TimeZone) -> Document {
    let reported: BTreeSet<i64> = entries.iter().filter_map(Entry::reported_epoch).collect();
    entries.retain(|entry| !matches!(entry, Entry::Epoch(epoch) if reported.contains(&epoch.number)));
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at()));
    let shown = &entries[..entries.len().min(MAX_SHOWN)];
    let mut document = Document::new();
    if !entries.is_empty() {
        let epochs = entries.iter().filter(|entry| matches!(entry, Entry::Epoch(_))).count();
        let events = units::count(entries.len() - epochs, "event");
        let all = format!("{events} and {}", units::count(epochs, "epoch"));
        let listed = match shown.len() < entries.len() {
            true => format!("The newest {} of {all}", shown.len()),
            false => format!("{all}, newest first"),
        };
        document.note(format!("{listed}. A time links to the ratios before and after that day."));
    }
    document.append(events(shown, zone));
    document
}

/// Returns the entries of a window that ends now, in the given order, without those about test data, which change no results.
pub fn recent_events(mut entries: Vec<Entry>, window: Duration, zone: &TimeZone) -> Document {
    let all = entries.len();
    entries.retain(|entry| !entry.is_preparation());
    let mut document = if entries.is_empty() { no_events(window) } else { events(&entries, zone) };
    let hidden = all - entries.len();
    if hidden > 0 {
        let number = if hidden == 1 { "1 entry".to_owned() } else { format!("{hidden} entries") };
        let note = Text::from(format!("Not shown: {number} about new test data. All: "));
        let days = window.as_secs_f64() / DAY.as_secs_f64();
        document.note(note.code(format!("longhaul events --since {}d --json", days.ceil())).plain("."));
    }
    document
}

/// Says that a window has no event, with a longer one to try.
fn no_events(window: Duration) -> Document {
    let text = Text::from(format!("No events in the last {}.", units::window(window.as_secs_f64())));
    let longer = [("30d", 30 * DAY), ("365d", 365 * DAY)].into_iter().find(|(_, longer)| *longer > window);
    let text = longer.iter().fold(text, |text, (name, _)| {
        text.plain(" Longer window: ").code(format!("longhaul events --since {name}")).plain(".")
    });
    let mut document = Document::new();
    document.paragraph(text);
    document
}

/// Returns the entries in the given order. On a page, a time links to the comparison before and after its day.
pub fn events(entries: &[Entry], zone: &TimeZone) -> Document {
    let mut document = Document::new();
    if entries.is_empty() {
        document.paragraph("No events recorded.");
    }
    let mut table = Table::new("Events and epochs").words(["time", "target", "event", "details"]);
    let unmounted = unmounted_by_time(entries);
    for entry in entries {
        let mut details = vec![entry.detail(zone), entry.changed_options(&unmounted)];
        details.retain(|part| !part.is_empty());
        table.row([
            Text::new().link(time::timestamp(entry.at(), zone), comparison_link(entry, zone)),
            entry.target().map_or_else(|| "machine".into(), Text::from),
            entry.words().into(),
            details.join(", ").into(),
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
    use crate::render::terminal;
    use serde_json::json;

    fn event(kind: &str, detail: serde_json::Value) -> Entry {
        Entry::Event(Event { target: None, kind: kind.to_owned(), detail, at_us: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn events_are_in_words_without_test_data() {
        let change = json!({ "access-control-list": { "before": "refused", "after": "kept" } });
        let entries = vec![event("fidelity", change), event("prepared", json!({ "bytes": 1 }))];
        let text = terminal::render(&recent_events(entries, 7 * DAY, &TimeZone::UTC));
        assert!(text.contains("now keeps: access control list"), "{text}");
        assert!(text.contains("access control list: refused → kept"), "{text}");
        assert!(!text.contains("access-control-list") && !text.contains("test data made"), "{text}");
        assert!(text.contains("Not shown: 1 entry about new test data."), "{text}");
    }

    #[test]
    fn new_mount_names_the_options_that_changed() {
        let mount = |rsize: &str, server: &str| {
            let negotiated = json!({ "addr": server, "rsize": rsize, "vers": "4.2" });
            json!({ "point": "/m/nas", "protocol": "NFS 4.2", "read_only": false, "negotiated": negotiated })
        };
        let (old, new) = (mount("1048576", "10.0.0.2"), mount("65536", "10.0.0.3"));
        let entries = [
            event("unmount", json!({ "before": old, "after": null })),
            event("mount", json!({ "before": null, "after": new })),
        ];
        let text = terminal::render(&events(&entries, &TimeZone::UTC));
        assert!(text.contains("NFS 4.2 at /m/nas, rsize: 1048576 → 65536"), "{text}");
        assert!(!text.contains("10.0.0") && !text.contains("vers"), "{text}");
        let alone = terminal::render(&events(&entries[1..], &TimeZone::UTC));
        assert!(!alone.contains("rsize"), "{alone}");
    }

    #[test]
    fn longer_window_is_offered_only_if_there_is_one() {
        let text = |window: Duration| terminal::render(&recent_events(vec![], window, &TimeZone::UTC));
        let week = text(7 * DAY);
        assert!(week.contains("No events in the last 7 days. Longer window: "), "{week}");
        assert!(week.contains("longhaul events --since 30d"), "{week}");
        assert!(!text(400 * DAY).contains("--since"));
    }

    #[test]
    fn epoch_that_an_event_reports_is_listed_once() {
        let target: TargetName = "smb".parse().unwrap();
        let epoch = |number: i64| StoredEpoch {
            number,
            target: target.clone(),
            protocol: None,
            negotiated: Default::default(),
            opened: Timestamp::UNIX_EPOCH,
            path: "/b".into(),
        };
        let event = Event {
            target: Some(target.clone()),
            kind: "epoch".to_owned(),
            detail: json!({ "epoch": 2, "before": { "path": "/a" }, "after": { "path": "/b" } }),
            at_us: Timestamp::UNIX_EPOCH,
        };
        let entries = vec![Entry::Event(event), Entry::Epoch(epoch(1)), Entry::Epoch(epoch(2))];
        let text = crate::render::terminal::render(&event_log(entries, &TimeZone::UTC));
        assert_eq!(text.matches("epoch: 2").count(), 1, "{text}");
        assert!(text.contains("path: /a → /b, epoch: 2"), "{text}");
        assert!(text.contains("protocol: not known, epoch: 1"), "{text}");
        assert!(text.contains("1 event and 1 epoch, newest first."), "{text}");
    }
}
