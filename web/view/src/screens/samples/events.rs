//! The event log.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::detail_text;
use longhaul_model::stored::StoredEpoch;
use longhaul_model::{Event, TargetName, Timestamp};

use crate::document::Document;
use crate::screens::protocol;
use crate::table::Table;
use crate::text::Text;
use crate::time;

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

    fn detail(&self) -> String {
        match self {
            Self::Event(event) => detail_text(&event.detail),
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
            entry.detail().into(),
        ]);
    }
    document.table(table);
    document
}

fn comparison_link(entry: &Entry, zone: &TimeZone) -> String {
    let local = time::zoned(entry.at(), zone);
    local.map_or("/events".to_owned(), |local| format!("/events?at={}#around", local.date()))
}
