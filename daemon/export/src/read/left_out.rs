//! What was left out of what was read, counted by reason.

use std::collections::BTreeMap;

/// So many reasons are told apart; a broken file may have one per row.
const MOST_REASONS: usize = 50;
/// So much of a text from a file is shown.
const MOST_SHOWN: usize = 40;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noun {
    /// Whole rows.
    Row,
    /// Single cells; the rest of their rows was taken.
    Value,
}

/// Something that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// How often.
    pub count: u64,
    /// Of what.
    pub noun: Noun,
    /// Why, to be read after "3 rows": "twice", "with a duration that is not a positive number".
    pub why: String,
    /// Where the first is, `line 17`; `None` where they are nowhere.
    pub first: Option<String>,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = match self.noun {
            Noun::Row => "row",
            Noun::Value => "value",
        };
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, "{} {noun}{plural} {}", self.count, self.why)?;
        match (&self.first, self.count) {
            (None, _) => Ok(()),
            (Some(place), 1) => write!(f, " ({place})"),
            (Some(place), _) => write!(f, " (the first in {place})"),
        }
    }
}

/// Counts while reading.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<(Noun, String), (u64, Option<u64>)>);

impl Tally {
    pub(super) fn note(&mut self, noun: Noun, why: &str, at: u64) {
        self.add(noun, why, (1, Some(at)));
    }

    pub(super) fn note_absent(&mut self, why: &str, count: u64) {
        self.add(Noun::Row, why, (count, None));
    }

    fn add(&mut self, noun: Noun, why: &str, what: (u64, Option<u64>)) {
        let key = (noun, why.to_owned());
        let is_told_apart = self.0.len() < MOST_REASONS || self.0.contains_key(&key);
        let key = if is_told_apart { key } else { (noun, "for other reasons".to_owned()) };
        let (count, first) = self.0.entry(key).or_insert((0, what.1));
        *count += what.0;
        *first = (*first).min(what.1);
    }

    pub(super) fn list(self, place: &str) -> Vec<LeftOut> {
        let entry = |((noun, why), (count, first)): ((Noun, String), (u64, Option<u64>))| LeftOut {
            count,
            noun,
            why,
            first: first.map(|first| format!("{place} {first}")),
        };
        self.0.into_iter().map(entry).collect()
    }
}

/// A text from a file as a message may show it.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST_SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
