//! Records, in whatever order they come, into a history.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul_measure::model::{Event, TargetName};
use longhaul_measure::summary::{History, KeptEpoch, KeptRound, KeptRun, KeptTarget, Premises};
use serde_json::Value;

use super::left_out::{Noun, Tally, shown};
use super::records::{Fields, NamedRun};
use super::settle::Settling;
use super::{Imported, ROW_BYTES};
use crate::archive::{Field, LAYOUT};
use crate::runs::NAME;
use crate::table::Cell;
use crate::{Error, SCHEMA};

/// A history in the making.
pub(super) struct Assembler<'p> {
    path: &'p Path,
    /// What rows are counted in: `line` or `row`.
    place: &'static str,
    left_out: Tally,
    premises: Numbered<Announced>,
    targets: Numbered<KeptTarget>,
    epochs: Numbered<KeptEpoch>,
    rounds: Numbered<KeptRound>,
    events: Numbered<Event>,
    runs: Numbered<KeptRun>,
    /// Every target that a run names, with the place that stands for it until all targets are known.
    named: BTreeMap<TargetName, usize>,
}

/// The premises, and how much the file says to hold.
#[derive(PartialEq)]
struct Announced {
    premises: Premises,
    records: BTreeMap<String, u64>,
}

/// Records of one kind with their numbers and places in the file.
pub(super) struct Numbered<T> {
    pub(super) rows: Vec<(i64, u64, T)>,
    /// How many more there were that were left out.
    pub(super) refused: u64,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { rows: vec![], refused: 0 }
    }
}

impl<'p> Assembler<'p> {
    pub(super) fn new(path: &'p Path, place: &'static str) -> Self {
        Self {
            path,
            place,
            left_out: Tally::default(),
            premises: Numbered::default(),
            targets: Numbered::default(),
            epochs: Numbered::default(),
            rounds: Numbered::default(),
            events: Numbered::default(),
            runs: Numbered::default(),
            named: BTreeMap::new(),
        }
    }

    /// A row in which nothing is known yet.
    pub(super) fn cells<'c>(&self) -> Vec<Cell<'c>> {
        vec![Cell::Null; LAYOUT.columns.len()]
    }

    pub(super) fn leave_out(&mut self, why: &str, at: u64) {
        self.left_out.note(Noun::Row, why, at);
    }

    pub(super) fn leave_out_value(&mut self, column: &str, at: u64) {
        let why = format!("in the column {}, which this longhaul does not know", shown(column));
        self.left_out.note(Noun::Value, &why, at);
    }

    pub(super) fn foreign(&self, why: &str) -> Error {
        Error::Foreign { path: self.path.to_owned(), why: why.to_owned() }
    }

    pub(super) fn damaged(&self, detail: &str) -> Error {
        Error::Damaged { path: self.path.to_owned(), detail: detail.to_owned() }
    }

    pub(super) fn too_large(&self) -> Error {
        self.foreign(&format!("a row in it is longer than {} MiB", ROW_BYTES >> 20))
    }

    pub(super) fn unread(&self, source: std::io::Error) -> Error {
        Error::Read { path: self.path.to_owned(), source }
    }

    /// Takes one row.
    pub(super) fn take(&mut self, at: u64, cells: &[Cell<'_>]) -> Result<(), Error> {
        let fields = Fields(cells);
        let refused = match fields.text(Field::Record) {
            Ok(Some("premises")) => return self.take_premises(at, &fields),
            Ok(Some("target")) => self.targets.take(at, &fields, fields.target()),
            Ok(Some("epoch")) => self.epochs.take(at, &fields, fields.epoch()),
            Ok(Some("round")) => self.rounds.take(at, &fields, fields.round()),
            Ok(Some("event")) => self.events.take(at, &fields, fields.event()),
            Ok(Some("run")) => self.take_run(at, &fields),
            Ok(Some(kind)) => Err(format!("of the kind {}, which this longhaul does not know", shown(kind))),
            Ok(None) => Err("without `record`".to_owned()),
            Err(why) => Err(why),
        };
        if let Err(why) = refused {
            self.leave_out(&why, at);
        }
        Ok(())
    }

    fn take_run(&mut self, at: u64, fields: &Fields<'_>) -> Result<(), String> {
        let run = fields.run().and_then(|run| Ok((fields.number()?, run)));
        let kept = run.map(|(number, run)| {
            for column in fields.foreign_times(run.workload) {
                let why = format!("in the column `{column}`, which their tasks do not have");
                self.left_out.note(Noun::Value, &why, at);
            }
            self.placed(number, run)
        });
        self.runs.take(at, fields, kept)
    }

    fn placed(&mut self, number: i64, run: NamedRun) -> KeptRun {
        let NamedRun { round, epoch, target, workload, scale, outcome, started_us, seconds, times } = run;
        let next = self.named.len();
        let target = *self.named.entry(target).or_insert(next);
        KeptRun { number, round, epoch, target, workload, scale, outcome, started_us, seconds, times }
    }

    /// What is wrong with the premises is wrong with everything, so it is not left out.
    fn take_premises(&mut self, at: u64, fields: &Fields<'_>) -> Result<(), Error> {
        let wrong = |why: &str| self.damaged(&format!("the premises in {} {at} {why}", self.place));
        let detail = fields.detail().map_err(|_| wrong("are not JSON"))?;
        if detail["format"] != NAME {
            return Err(self.foreign("its premises are of another kind of file"));
        }
        match detail["schema"].as_u64() {
            Some(found) if found > SCHEMA => {
                return Err(Error::Newer { path: self.path.to_owned(), found, known: SCHEMA });
            }
            Some(1..) => {}
            Some(0) | None => return Err(wrong("name no schema")),
        }
        let announced = Announced::of(detail).ok_or_else(|| wrong("are not complete"))?;
        self.premises.rows.push((1, at, announced));
        Ok(())
    }

    /// Puts everything in its place.
    pub(super) fn finish(self) -> Result<Imported, Error> {
        let Self { path, place, left_out, premises, targets, epochs, rounds, events, runs, named } = self;
        let mut settling = Settling { path, place, left_out, announced: BTreeMap::new() };
        let Some(Announced { premises, records }) = settling.settle("premises", premises)?.pop() else {
            let why = "no row in it holds the premises: it is another file, or a part of one".to_owned();
            return Err(Error::Foreign { path: path.to_owned(), why });
        };
        settling.announced = records;
        let targets = settling.settle("target", targets)?;
        settling.require_unique(&targets)?;
        let epochs = settling.settle_known("epoch", epochs, |epoch| of_target(&targets, &epoch.target))?;
        let rounds = settling.settle("round", rounds)?;
        let events = settling.settle("event", events)?;
        let places = named.iter().map(|(name, stand_in)| (*stand_in, place_of(&targets, name)));
        let places: BTreeMap<usize, Option<usize>> = places.collect();
        let owners: BTreeMap<i64, &TargetName> =
            epochs.iter().map(|epoch| (epoch.number, &epoch.target)).collect();
        let known: BTreeSet<i64> = rounds.iter().map(|round| round.number).collect();
        let mut runs = settling.settle_known("run", runs, |run| {
            let place = places[&run.target].ok_or(NO_TARGET)?;
            let owner = owners.get(&run.epoch).ok_or("of an epoch that the file does not hold")?;
            let is_of_owner = targets[place].name == **owner;
            is_of_owner.then_some(()).ok_or("of an epoch that is another target's")?;
            known.contains(&run.round).then_some(()).ok_or("of a round that the file does not hold")
        })?;
        for run in &mut runs {
            run.target = places[&run.target].expect("runs without a target were left out");
        }
        let history = History { premises, targets, epochs, rounds, runs, events };
        Ok(Imported { history, left_out: settling.left_out.list(place) })
    }
}

const NO_TARGET: &str = "of a target that the file does not hold";

fn place_of(targets: &[KeptTarget], name: &TargetName) -> Option<usize> {
    targets.iter().position(|target| target.name == *name)
}

fn of_target(targets: &[KeptTarget], name: &TargetName) -> Result<(), &'static str> {
    place_of(targets, name).map(|_| ()).ok_or(NO_TARGET)
}

impl Announced {
    /// From the detail of the premises; `None` where something is missing or makes no sense.
    fn of(detail: Value) -> Option<Self> {
        let counts = detail["records"].as_object()?.iter();
        let records =
            counts.map(|(record, count)| Some((record.clone(), count.as_u64()?))).collect::<Option<_>>()?;
        let premises: Premises = serde_json::from_value(detail).ok()?;
        let makes_sense = premises.threshold > 1.0
            && premises.threshold.is_finite()
            && premises.mix.values().all(|often| often.is_finite() && *often >= 0.0);
        makes_sense.then_some(Self { premises, records })
    }
}

impl<T> Numbered<T> {
    fn take(&mut self, at: u64, fields: &Fields<'_>, read: Result<T, String>) -> Result<(), String> {
        match read.and_then(|record| Ok((fields.number()?, record))) {
            Ok((number, record)) => {
                self.rows.push((number, at, record));
                Ok(())
            }
            Err(why) => {
                self.refused += 1;
                Err(why)
            }
        }
    }
}
