//! Assembles a history from rows in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul_model::{
    AnalysisSettings, EpochRecord, Event, FreshnessDay, History, RoundRecord, RunRecord, TargetName,
    TargetRecord,
};
use serde_json::Value;

use super::numbered_rows::{NumberedRow, NumberedRows};
use super::records::{Fields, UnresolvedRun};
use super::skipped::{SkipCounter, Skipped, SkippedUnit, quoted};
use super::validation::RecordValidator;
use crate::Error;
use crate::archive::{FORMAT_NAME, Field, LAYOUT, SCHEMA_VERSION};
use crate::table::Cell;

/// Maximum size of a row, in bytes. Rows written by longhaul are about a thousand times smaller.
pub(super) const MAX_ROW_BYTES: usize = 16 << 20;

/// The columns of a file in file order: the index in [`LAYOUT`] of a known column, or the name of an unknown
/// one.
pub(super) struct Columns(pub(super) Vec<Result<usize, String>>);

impl Columns {
    pub(super) fn from_names<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self(names.map(|name| LAYOUT.column_index(name).ok_or_else(|| name.to_owned())).collect())
    }
}

/// The content of an imported archive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportedArchive {
    /// The history, sorted by number regardless of the order of the rows.
    pub history: History,
    /// Rows and values that were skipped, with the reason.
    pub skipped: Vec<Skipped>,
}

/// A history that is being assembled from rows.
pub(super) struct Assembler<'p> {
    path: &'p Path,
    /// Unit of row positions in messages: `line` or `row`.
    position_unit: &'static str,
    skipped: SkipCounter,
    header: NumberedRows<ArchiveHeader>,
    targets: NumberedRows<TargetRecord>,
    epochs: NumberedRows<EpochRecord>,
    rounds: NumberedRows<RoundRecord>,
    events: NumberedRows<Event>,
    freshness: NumberedRows<FreshnessDay>,
    runs: NumberedRows<RunRecord>,
    /// Targets named by runs, each with a placeholder index. The real index is known only after all rows are
    /// read, because runs can come before targets.
    target_placeholders: BTreeMap<TargetName, usize>,
}

/// Content of the header row: the analysis settings, and the number of records of each kind in the file.
#[derive(PartialEq)]
struct ArchiveHeader {
    settings: AnalysisSettings,
    record_counts: BTreeMap<String, u64>,
}

impl<'p> Assembler<'p> {
    pub(super) fn new(path: &'p Path, position_unit: &'static str) -> Self {
        Self {
            path,
            position_unit,
            skipped: SkipCounter::default(),
            header: NumberedRows::default(),
            targets: NumberedRows::default(),
            epochs: NumberedRows::default(),
            rounds: NumberedRows::default(),
            events: NumberedRows::default(),
            freshness: NumberedRows::default(),
            runs: NumberedRows::default(),
            target_placeholders: BTreeMap::new(),
        }
    }

    /// Returns a row with [`Cell::Null`] in every column.
    pub(super) fn empty_row<'c>(&self) -> Vec<Cell<'c>> {
        vec![Cell::Null; LAYOUT.columns.len()]
    }

    pub(super) fn skip_row(&mut self, why: &str, at: u64) {
        self.skipped.count_at(SkippedUnit::Row, why, at);
    }

    pub(super) fn skip_value(&mut self, column: &str, at: u64) {
        let why = format!("in the column {}, which this longhaul does not know", quoted(column));
        self.skipped.count_at(SkippedUnit::Value, &why, at);
    }

    pub(super) fn not_an_archive(&self, why: &str) -> Error {
        Error::NotAnArchive { path: self.path.to_owned(), why: why.to_owned() }
    }

    pub(super) fn damaged_error(&self, detail: &str) -> Error {
        Error::Damaged { path: self.path.to_owned(), detail: detail.to_owned() }
    }

    pub(super) fn row_too_long(&self) -> Error {
        self.not_an_archive(&format!("it has a row longer than {} MiB", MAX_ROW_BYTES >> 20))
    }

    pub(super) fn read_error(&self, source: std::io::Error) -> Error {
        Error::Read { path: self.path.to_owned(), source }
    }

    /// Adds the row at position `at`. An invalid row is counted as skipped; only an invalid header row is an
    /// error.
    pub(super) fn add_row(&mut self, at: u64, cells: &[Cell<'_>]) -> Result<(), Error> {
        let fields = Fields(cells);
        let result = match fields.text(Field::Record) {
            Ok(Some("header")) => return self.add_header(at, &fields),
            Ok(Some("target")) => self.targets.add(at, &fields, fields.target()),
            Ok(Some("epoch")) => self.epochs.add(at, &fields, fields.epoch()),
            Ok(Some("round")) => self.rounds.add(at, &fields, fields.round()),
            Ok(Some("event")) => self.events.add(at, &fields, fields.event()),
            Ok(Some("freshness")) => self.freshness.add(at, &fields, fields.freshness()),
            Ok(Some("run")) => self.add_run(at, &fields),
            Ok(Some(kind)) => Err(format!("of the kind {}, which this longhaul does not know", quoted(kind))),
            Ok(None) => Err("without `record`".to_owned()),
            Err(why) => Err(why),
        };
        if let Err(why) = result {
            self.skip_row(&why, at);
        }
        Ok(())
    }

    fn add_run(&mut self, at: u64, fields: &Fields<'_>) -> Result<(), String> {
        let run = fields.run().and_then(|run| Ok((fields.number()?, run)));
        let resolved = run.map(|(number, run)| {
            for column in fields.unexpected_times(run.workload) {
                let why = format!("in the column `{column}`, which their workload does not have");
                self.skipped.count_at(SkippedUnit::Value, &why, at);
            }
            self.with_target_placeholder(number, run)
        });
        self.runs.add(at, fields, resolved)
    }

    fn with_target_placeholder(&mut self, number: i64, run: UnresolvedRun) -> RunRecord {
        let UnresolvedRun { round, epoch, target, workload, scale, outcome, started, seconds, times, rtt } =
            run;
        let next = self.target_placeholders.len();
        let target = *self.target_placeholders.entry(target).or_insert(next);
        RunRecord { number, round, epoch, target, workload, scale, outcome, started, seconds, times, rtt }
    }

    /// Adds the header row. An invalid header is an error and not skipped, because nothing can be interpreted
    /// without it.
    fn add_header(&mut self, at: u64, fields: &Fields<'_>) -> Result<(), Error> {
        let wrong =
            |why: &str| self.damaged_error(&format!("the header in {} {at} {why}", self.position_unit));
        let detail = fields.detail().map_err(|_| wrong("is not JSON"))?;
        if detail["format"] != FORMAT_NAME {
            return Err(self.not_an_archive("its `header` row belongs to another format"));
        }
        match detail["schema"].as_u64() {
            Some(found) if found > SCHEMA_VERSION => {
                return Err(Error::UnsupportedSchema {
                    path: self.path.to_owned(),
                    found,
                    known: SCHEMA_VERSION,
                });
            }
            Some(1..) => {}
            Some(0) | None => return Err(wrong("has no schema version")),
        }
        let announced =
            ArchiveHeader::from_detail(detail).ok_or_else(|| wrong("is incomplete or invalid"))?;
        self.header.rows.push(NumberedRow { number: 1, at, record: announced });
        Ok(())
    }

    /// Validates all records, resolves the references between them, and returns the history.
    pub(super) fn finish(self) -> Result<ImportedArchive, Error> {
        let Self {
            path,
            position_unit,
            skipped,
            header,
            targets,
            epochs,
            rounds,
            events,
            freshness,
            runs,
            target_placeholders,
        } = self;
        let mut validator =
            RecordValidator { path, position_unit, skipped, expected_counts: BTreeMap::new() };
        let Some(ArchiveHeader { settings, record_counts }) = validator.validate("header", header)?.pop()
        else {
            let why = "it has no `header` row: this is another file, or a part of an archive".to_owned();
            return Err(Error::NotAnArchive { path: path.to_owned(), why });
        };
        validator.expected_counts = record_counts;
        let targets = validator.validate("target", targets)?;
        validator.require_unique_names(&targets)?;
        let epochs = validator
            .validate_references("epoch", epochs, |epoch| require_target(&targets, &epoch.target))?;
        let rounds = validator.validate("round", rounds)?;
        let events = validator.validate("event", events)?;
        let indexes = target_placeholders
            .iter()
            .map(|(name, placeholder)| (*placeholder, target_index(&targets, name)));
        let indexes: BTreeMap<usize, Option<usize>> = indexes.collect();
        let owners: BTreeMap<i64, &TargetName> =
            epochs.iter().map(|epoch| (epoch.number, &epoch.target)).collect();
        let freshness = validator.validate_references("freshness", freshness, |day| {
            require_owner(owners.get(&day.epoch).copied(), &day.target)
        })?;
        let known: BTreeSet<i64> = rounds.iter().map(|round| round.number).collect();
        let mut runs = validator.validate_references("run", runs, |run| {
            let index = indexes[&run.target].ok_or(UNKNOWN_TARGET)?;
            require_owner(owners.get(&run.epoch).copied(), &targets[index].name)?;
            known.contains(&run.round).then_some(()).ok_or("of a round that is missing from the file")
        })?;
        for run in &mut runs {
            run.target = indexes[&run.target].expect("runs with an unknown target were skipped");
        }
        let history =
            History { settings, targets, epochs, rounds, runs, events, freshness, recorded_day: None };
        Ok(ImportedArchive { history, skipped: validator.skipped.into_list(position_unit) })
    }
}

const UNKNOWN_TARGET: &str = "of a target that is missing from the file";

fn target_index(targets: &[TargetRecord], name: &TargetName) -> Option<usize> {
    targets.iter().position(|target| target.name == *name)
}

fn require_target(targets: &[TargetRecord], name: &TargetName) -> Result<(), &'static str> {
    target_index(targets, name).map(|_| ()).ok_or(UNKNOWN_TARGET)
}

/// Checks that an epoch is in the file and belongs to a target.
fn require_owner(owner: Option<&TargetName>, target: &TargetName) -> Result<(), &'static str> {
    let owner = owner.ok_or("of an epoch that is missing from the file")?;
    (owner == target).then_some(()).ok_or("of an epoch that belongs to another target")
}

impl ArchiveHeader {
    /// Parses the `detail` of the header row. `None`: a key is missing or a value is invalid.
    fn from_detail(detail: Value) -> Option<Self> {
        let counts = detail["records"].as_object()?.iter();
        let record_counts =
            counts.map(|(record, count)| Some((record.clone(), count.as_u64()?))).collect::<Option<_>>()?;
        let settings: AnalysisSettings = serde_json::from_value(detail).ok()?;
        let is_valid = settings.threshold > 1.0
            && settings.threshold.is_finite()
            && settings.usage_profile.values().all(|frequency| frequency.is_finite() && *frequency >= 0.0)
            && settings.usage_counted_days.is_none_or(|days| days.is_finite() && days > 0.0);
        is_valid.then_some(Self { settings, record_counts })
    }
}
