//! Writes the archive: a history as one table.

use std::collections::BTreeMap;

use longhaul_analysis::summary::anonymize;
use longhaul_model::Event;
use longhaul_model::TASKS;
use longhaul_model::time::DAY;
use longhaul_model::{EpochRecord, FreshnessDay, History, RoundRecord, RunRecord, TargetRecord, Timestamp};
use serde_json::{Map, Value, json};

use crate::archive::{FORMAT_NAME, Field, LAYOUT, SCHEMA_VERSION};
use crate::table::{Cell, timestamp_cell};
use crate::write::{Output, Sink};
use crate::{Error, Window};

/// Writes the archive of a history, without private data, and returns the number of rows. A round is exported
/// with all its runs if its start is in the window. All targets and epochs are exported. Targets, epochs and
/// events keep their numbers.
///
/// # Errors
///
/// [`Error::Write`], [`Error::ParquetDisabled`].
pub fn runs(history: History, window: &Window, output: Output<'_>) -> Result<u64, Error> {
    let history = anonymize(history);
    let archive = Archive::new(&history, window);
    output.write(&LAYOUT.columns, |sink| archive.write(sink))
}

type Row<'a> = Vec<Cell<'a>>;

struct Archive<'a> {
    history: &'a History,
    window: &'a Window,
    rounds: BTreeMap<i64, &'a RoundRecord>,
    protocols: BTreeMap<i64, Option<&'a str>>,
}

impl<'a> Archive<'a> {
    fn new(history: &'a History, window: &'a Window) -> Self {
        let rounds = history.rounds.iter().filter(|round| window.contains(round.started_us));
        let protocols = history.epochs.iter().map(|epoch| (epoch.number, epoch.protocol.as_deref()));
        Self {
            history,
            window,
            rounds: rounds.map(|round| (round.number, round)).collect(),
            protocols: protocols.collect(),
        }
    }

    fn write(&self, sink: &mut dyn Sink) -> std::io::Result<()> {
        sink.row(&self.header_row())?;
        for (index, target) in self.history.targets.iter().enumerate() {
            sink.row(&target_row(index, target))?;
        }
        for epoch in &self.history.epochs {
            sink.row(&epoch_row(epoch))?;
        }
        for round in self.rounds.values() {
            sink.row(&round_row(round))?;
        }
        for (index, event) in self.events() {
            sink.row(&event_row(index, event))?;
        }
        for (index, day) in self.freshness() {
            sink.row(&freshness_row(index, day))?;
        }
        self.runs().try_for_each(|(run, round)| sink.row(&self.run_row(run, round)))
    }

    fn events(&self) -> impl Iterator<Item = (usize, &'a Event)> {
        self.history.events.iter().enumerate().filter(|(_, event)| self.window.contains(event.at_us))
    }

    fn freshness(&self) -> impl Iterator<Item = (usize, &'a FreshnessDay)> {
        let days = self.history.freshness.iter().enumerate();
        days.filter(|(_, day)| self.window.contains(self.local_start_of(day)))
    }

    /// Returns the start of a local day of freshness, with the UTC offset of a round that day, or else of the next one or the last.
    fn local_start_of(&self, day: &FreshnessDay) -> Timestamp {
        let rounds = &self.history.rounds;
        let same_or_next = rounds.get(rounds.partition_point(|round| round.day() < day.day));
        let offset_seconds = same_or_next.or(rounds.last()).map_or(0, |round| round.utc_offset_seconds);
        Timestamp::from_us(start_of(day).as_us().saturating_sub(i64::from(offset_seconds) * 1_000_000))
    }

    fn runs(&self) -> impl Iterator<Item = (&'a RunRecord, &'a RoundRecord)> {
        self.history.runs.iter().filter_map(|run| Some((run, *self.rounds.get(&run.round)?)))
    }

    fn header_row(&self) -> Row<'a> {
        let mut row = empty_row("header");
        row[Field::Detail as usize] = Cell::Json(self.header_detail().to_string().into());
        row
    }

    /// Returns the `detail` of the header row: the analysis settings, the schema version, a legend of the
    /// columns, and the number of records of each kind, by which the import detects a file that was cut off at
    /// the end of a row.
    fn header_detail(&self) -> Value {
        let mut detail = json!({
            "format": FORMAT_NAME,
            "schema": SCHEMA_VERSION,
            "longhaul": env!("CARGO_PKG_VERSION"),
            "records": {
                "target": self.history.targets.len(),
                "epoch": self.history.epochs.len(),
                "round": self.rounds.len(),
                "event": self.events().count(),
                "freshness": self.freshness().count(),
                "run": self.runs().count(),
            },
            "columns": legend(),
        });
        let settings =
            serde_json::to_value(&self.history.settings).expect("the analysis settings are plain JSON");
        if let (Value::Object(detail), Value::Object(settings)) = (&mut detail, settings) {
            detail.extend(settings);
        }
        detail
    }

    fn run_row(&self, run: &RunRecord, round: &RoundRecord) -> Row<'a> {
        let mut row = empty_row("run");
        let target = self.history.targets.get(run.target).map(|target| target.name.as_str());
        for (field, cell) in [
            (Field::Number, run.number.into()),
            (Field::Round, run.round.into()),
            (Field::Epoch, run.epoch.into()),
            (Field::Target, target.into()),
            (Field::Protocol, self.protocols.get(&run.epoch).copied().flatten().into()),
            (Field::Workload, TASKS.get(run.workload).map(|workload| workload.name()).into()),
            (Field::Scale, run.scale.name().into()),
            (Field::Outcome, run.outcome.name().into()),
            (Field::Started, timestamp_cell(run.started, round.utc_offset_seconds)),
            (Field::StartedUs, run.started.into()),
            (Field::Seconds, run.seconds.into()),
            (Field::RttUs, run.rtt.map(|time| time.as_micros() as i64).into()),
        ] {
            row[field as usize] = cell;
        }
        for (index, column) in LAYOUT.metric_columns.get(run.workload).into_iter().flatten().enumerate() {
            row[*column] = run.times.get(index).into();
        }
        row
    }
}

fn empty_row(record: &'static str) -> Row<'static> {
    let mut row = vec![Cell::Null; LAYOUT.columns.len()];
    row[Field::Record as usize] = record.into();
    row
}

fn legend() -> Value {
    let entry =
        |column: &crate::table::Column| (column.name.to_string(), Value::from(column.description.as_ref()));
    Value::Object(LAYOUT.columns.iter().map(entry).collect::<Map<_, _>>())
}

fn index_cell(index: usize) -> Cell<'static> {
    Cell::count(index as u64 + 1)
}

fn target_row(index: usize, target: &TargetRecord) -> Row<'_> {
    let TargetRecord { name, role } = target;
    let mut row = empty_row("target");
    row[Field::Number as usize] = index_cell(index);
    row[Field::Target as usize] = name.as_str().into();
    row[Field::Role as usize] = role.name().into();
    row
}

fn epoch_row(epoch: &EpochRecord) -> Row<'_> {
    let EpochRecord { number, target, opened_us, protocol } = epoch;
    let mut row = empty_row("epoch");
    row[Field::Number as usize] = (*number).into();
    row[Field::Target as usize] = target.as_str().into();
    row[Field::Protocol as usize] = protocol.as_deref().into();
    row[Field::Started as usize] = timestamp_cell(*opened_us, 0);
    row[Field::StartedUs as usize] = (*opened_us).into();
    row
}

fn round_row(round: &RoundRecord) -> Row<'_> {
    let RoundRecord { number, started_us, utc_offset_seconds, scale, status, reason } = round;
    let mut row = empty_row("round");
    row[Field::Number as usize] = (*number).into();
    row[Field::Scale as usize] = scale.name().into();
    row[Field::Status as usize] = status.map(|status| status.name()).into();
    row[Field::Reason as usize] = reason.as_deref().into();
    row[Field::Started as usize] = timestamp_cell(*started_us, *utc_offset_seconds);
    row[Field::StartedUs as usize] = (*started_us).into();
    row[Field::UtcOffsetSeconds as usize] = i64::from(*utc_offset_seconds).into();
    row
}

fn event_row(index: usize, event: &Event) -> Row<'_> {
    let Event { target, kind, detail, at_us } = event;
    let mut row = empty_row("event");
    row[Field::Number as usize] = index_cell(index);
    row[Field::Target as usize] = target.as_ref().map(|name| name.as_str()).into();
    row[Field::Started as usize] = timestamp_cell(*at_us, 0);
    row[Field::StartedUs as usize] = (*at_us).into();
    row[Field::Kind as usize] = kind.as_str().into();
    row[Field::Detail as usize] = Cell::Json(detail.to_string().into());
    row
}

/// Returns the start of a local day of freshness as if it were a day in UTC, which is how the archive writes it.
fn start_of(day: &FreshnessDay) -> Timestamp {
    Timestamp::from_us(day.day.saturating_mul(DAY.as_micros() as i64))
}

fn freshness_row(index: usize, day: &FreshnessDay) -> Row<'_> {
    let detail = json!({
        "changes": day.changes, "not_seen": day.not_seen, "slow": day.slow,
        "limit_us": day.limit.map(|limit| limit.as_micros() as u64),
    });
    let mut row = empty_row("freshness");
    row[Field::Number as usize] = index_cell(index);
    row[Field::Epoch as usize] = day.epoch.into();
    row[Field::Target as usize] = day.target.as_str().into();
    row[Field::Started as usize] = timestamp_cell(start_of(day), 0);
    row[Field::StartedUs as usize] = start_of(day).into();
    row[Field::Kind as usize] = day.kind.name().into();
    row[Field::Detail as usize] = Cell::Json(detail.to_string().into());
    row
}
