//! The records of one week.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_analysis::summary::anonymize;
use longhaul_model::{EpochRecord, Event, History, Role, RoundRecord, RunRecord, TargetName, Timestamp, fnv};

pub use longhaul_analysis::summary::Week;

use super::origin::Origin;
use crate::table::Cell;

/// Returns the week of a time, by its day in UTC.
pub(super) fn week_of(at: Timestamp) -> Week {
    Week::of_day(at.local_day(0))
}

/// Returns the weeks in which a history has rounds or events, in chronological order.
pub fn weeks_of(history: &History) -> Vec<Week> {
    let rounds = history.rounds.iter().map(|round| Week::of_day(round.day()));
    let events = history.events.iter().map(|event| week_of(event.at_us));
    rounds.chain(events).collect::<BTreeSet<_>>().into_iter().collect()
}

/// History of one source, prepared for the export of one week after the other.
#[derive(Debug)]
pub struct WeekRecords<'h> {
    pub(super) origin: &'h Origin,
    pub(super) week: Week,
    /// Rounds of the week by number.
    pub(super) rounds: BTreeMap<i64, &'h RoundRecord>,
    /// Runs of these rounds, in the order of their numbers.
    pub(super) runs: Vec<&'h RunRecord>,
    /// Events of the week.
    pub(super) events: Vec<&'h Event>,
    epochs: BTreeMap<i64, &'h EpochRecord>,
    history: &'h History,
}

/// Returns the name of a protocol without its version, in lower case: `smb` for `SMB 3.1.1`.
pub(super) fn protocol_cell(dialect: Option<&str>) -> Cell<'static> {
    let first_word = |text: &str| text.split(' ').next().unwrap_or(text).to_lowercase();
    dialect.map(first_word).map(Cell::text).unwrap_or_default()
}

impl<'h> WeekRecords<'h> {
    /// Selects the records of a week. The history must be without private data: see [`WeekRecords::prepare`].
    pub fn new(origin: &'h Origin, history: &'h History, week: Week) -> Self {
        let rounds = history.rounds.iter().filter(|round| week.contains(round.day()));
        let rounds: BTreeMap<i64, &RoundRecord> = rounds.map(|round| (round.number, round)).collect();
        let runs = history.runs.iter().filter(|run| rounds.contains_key(&run.round)).collect();
        let events = history.events.iter().filter(|event| week_of(event.at_us) == week).collect();
        let epochs = history.epochs.iter().map(|epoch| (epoch.number, epoch)).collect();
        Self { origin, week, rounds, runs, events, epochs, history }
    }

    /// Removes private data from a history.
    pub fn prepare(history: History) -> History {
        anonymize(history)
    }

    /// Returns the week.
    pub fn week(&self) -> Week {
        self.week
    }

    /// Returns the smallest and the largest number of the week's runs; `None` without a run.
    pub fn run_numbers(&self) -> Option<std::ops::RangeInclusive<i64>> {
        let numbers = || self.runs.iter().map(|run| run.number);
        Some(numbers().min()?..=numbers().max()?)
    }

    /// Returns a number that changes with every record of the history that belongs to this week (64-bit FNV-1a).
    pub fn fingerprint(&self) -> u64 {
        let number = |number: u64| number.to_le_bytes().to_vec();
        let text = |text: &str| text.bytes().chain([0]).collect::<Vec<u8>>();
        let rounds = self.rounds.values().flat_map(|round| {
            let status = round.status.map_or_else(Vec::new, |status| text(status.name()));
            [number(round.number.cast_unsigned()), number(round.started_us.as_us().cast_unsigned()), status]
        });
        let runs = self.runs.iter().flat_map(|run| {
            [number(run.number.cast_unsigned()), number(run.seconds.to_bits()), text(run.outcome.name())]
        });
        let events = self
            .events
            .iter()
            .flat_map(|event| [number(event.at_us.as_us().cast_unsigned()), text(&event.detail.to_string())]);
        fnv(rounds.chain(runs).chain(events).flatten())
    }

    /// Returns the target of a run with its position in the history.
    pub(super) fn target(&self, run: &RunRecord) -> Option<(&'h TargetName, Role)> {
        self.history.targets.get(run.target).map(|target| (&target.name, target.role))
    }

    /// Returns the protocol of an epoch with the negotiated version: `SMB 3.1.1`.
    pub(super) fn dialect(&self, epoch: i64) -> Option<&'h str> {
        self.epochs.get(&epoch).and_then(|epoch| epoch.protocol.as_deref())
    }

    /// Returns the protocol of a target at a time, with the negotiated version.
    pub(super) fn dialect_at(&self, target: &TargetName, at: Timestamp) -> Option<&'h str> {
        let of_target = self.epochs.values().filter(|epoch| epoch.target == *target);
        let newest = of_target.filter(|epoch| epoch.opened_us <= at).max_by_key(|epoch| epoch.opened_us);
        newest.and_then(|epoch| epoch.protocol.as_deref())
    }
}
