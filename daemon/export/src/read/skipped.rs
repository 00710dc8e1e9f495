//! Counts skipped rows and values by reason.

use std::collections::BTreeMap;

/// Maximum number of different reasons; a damaged file can have a different reason in every row.
const MAX_REASONS: usize = 50;
/// Maximum number of characters shown of a text from the file.
const MAX_QUOTED_CHARS: usize = 40;

/// Unit of the skipped parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkippedUnit {
    /// Complete rows.
    Row,
    /// Single cells; the rest of their row was imported.
    Value,
}

/// Parts of a file that were skipped for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Number of skipped rows or values.
    pub count: u64,
    /// Unit of `count`.
    pub unit: SkippedUnit,
    /// Reason, worded to follow "3 rows": "repeated", "with a duration that is not a positive number".
    pub reason: String,
    /// Position of the first occurrence, such as `line 17`. `None`: the skipped parts are missing from the
    /// file.
    pub first: Option<String>,
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = match self.unit {
            SkippedUnit::Row => "row",
            SkippedUnit::Value => "value",
        };
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, "{} {noun}{plural} {}", self.count, self.reason)?;
        match (&self.first, self.count) {
            (None, _) => Ok(()),
            (Some(place), 1) => write!(f, " ({place})"),
            (Some(place), _) => write!(f, " (the first in {place})"),
        }
    }
}

/// Counts skipped rows and values during the import.
#[derive(Debug, Default)]
pub(super) struct SkipCounter(BTreeMap<(SkippedUnit, String), SkipCount>);

/// Number of the parts that were skipped for one reason, and position of the first one.
#[derive(Debug)]
struct SkipCount {
    count: u64,
    /// `None`: at least one of the parts is missing from the file.
    first: Option<u64>,
}

impl SkipCounter {
    pub(super) fn count_at(&mut self, unit: SkippedUnit, why: &str, at: u64) {
        let entry = self.entry(unit, why);
        entry.count += 1;
        entry.first = entry.first.min(Some(at));
    }

    pub(super) fn count_missing(&mut self, why: &str, count: u64) {
        let entry = self.entry(SkippedUnit::Row, why);
        entry.count += count;
        entry.first = None;
    }

    fn entry(&mut self, unit: SkippedUnit, why: &str) -> &mut SkipCount {
        let key = (unit, why.to_owned());
        let has_own_entry = self.0.len() < MAX_REASONS || self.0.contains_key(&key);
        let key = if has_own_entry { key } else { (unit, "for other reasons".to_owned()) };
        self.0.entry(key).or_insert(SkipCount { count: 0, first: Some(u64::MAX) })
    }

    pub(super) fn into_list(self, position_unit: &str) -> Vec<Skipped> {
        let entry = |((unit, reason), SkipCount { count, first })| Skipped {
            count,
            unit,
            reason,
            first: first.map(|first| format!("{position_unit} {first}")),
        };
        self.0.into_iter().map(entry).collect()
    }
}

/// Returns a text from the file for use in a message: in backquotes, escaped and truncated.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
