//! The archive: a history as one table.

use std::collections::BTreeMap;

use longhaul_measure::model::Event;
use longhaul_measure::summary::{History, KeptEpoch, KeptRound, KeptRun, KeptTarget, public};
use longhaul_measure::workloads::WORKLOADS;
use serde_json::{Map, Value, json};

use crate::archive::{Field, LAYOUT};
use crate::table::{Cell, moment};
use crate::write::{Output, Sink};
use crate::{Error, SCHEMA, Window};

/// What the premises call the file.
pub(crate) const NAME: &str = "longhaul runs";

/// Writes the archive of a history in its public form and gives the number of its rows. A round is in the window as a
/// whole or not at all, by its begin; targets and epochs are always in it, and keep their numbers as events do.
///
/// # Errors
///
/// [`Error::Write`], [`Error::WithoutParquet`].
pub fn runs(history: History, window: &Window, output: Output) -> Result<u64, Error> {
    let history = public(history);
    let archive = Archive::new(&history, window);
    output.write(&LAYOUT.columns, |sink| archive.write(sink))
}

type Row<'a> = Vec<Cell<'a>>;

struct Archive<'a> {
    history: &'a History,
    window: &'a Window,
    rounds: BTreeMap<i64, &'a KeptRound>,
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
        sink.row(&self.premises())?;
        for (place, target) in self.history.targets.iter().enumerate() {
            sink.row(&target_row(place, target))?;
        }
        for epoch in &self.history.epochs {
            sink.row(&epoch_row(epoch))?;
        }
        for round in self.rounds.values() {
            sink.row(&round_row(round))?;
        }
        for (place, event) in self.events() {
            sink.row(&event_row(place, event))?;
        }
        self.runs().try_for_each(|(run, round)| sink.row(&self.run_row(run, round)))
    }

    fn events(&self) -> impl Iterator<Item = (usize, &'a Event)> {
        self.history.events.iter().enumerate().filter(|(_, event)| self.window.contains(event.at_us))
    }

    fn runs(&self) -> impl Iterator<Item = (&'a KeptRun, &'a KeptRound)> {
        self.history.runs.iter().filter_map(|run| Some((run, *self.rounds.get(&run.round)?)))
    }

    fn premises(&self) -> Row<'a> {
        let mut row = row("premises");
        row[Field::Detail as usize] = Cell::Json(self.detail().to_string().into());
        row
    }

    /// The premises as they are, and beside them what a reader needs: a legend, and how much of everything there is, so
    /// that a file that was cut at the end of a row is recognised.
    fn detail(&self) -> Value {
        let mut detail = json!({
            "format": NAME,
            "schema": SCHEMA,
            "longhaul": env!("CARGO_PKG_VERSION"),
            "records": {
                "target": self.history.targets.len(),
                "epoch": self.history.epochs.len(),
                "round": self.rounds.len(),
                "event": self.events().count(),
                "run": self.runs().count(),
            },
            "columns": legend(),
        });
        let premises = serde_json::to_value(&self.history.premises).expect("premises are plain JSON");
        if let (Value::Object(detail), Value::Object(premises)) = (&mut detail, premises) {
            detail.extend(premises);
        }
        detail
    }

    fn run_row(&self, run: &KeptRun, round: &KeptRound) -> Row<'a> {
        let mut row = row("run");
        let target = self.history.targets.get(run.target).map(|target| target.name.as_str());
        for (field, cell) in [
            (Field::Number, run.number.into()),
            (Field::Round, run.round.into()),
            (Field::Epoch, run.epoch.into()),
            (Field::Target, target.into()),
            (Field::Protocol, self.protocols.get(&run.epoch).copied().flatten().into()),
            (Field::Workload, WORKLOADS.get(run.workload).map(|workload| workload.name()).into()),
            (Field::Scale, run.scale.name().into()),
            (Field::Outcome, run.outcome.name().into()),
            (Field::Started, moment(run.started_us, round.utc_offset_seconds)),
            (Field::StartedUs, run.started_us.into()),
            (Field::Seconds, run.seconds.into()),
        ] {
            row[field as usize] = cell;
        }
        for (place, column) in LAYOUT.endpoints.get(run.workload).into_iter().flatten().enumerate() {
            row[*column] = run.times.get(place).into();
        }
        row
    }
}

fn row(record: &'static str) -> Row<'static> {
    let mut row = vec![Cell::Null; LAYOUT.columns.len()];
    row[Field::Record as usize] = record.into();
    row
}

fn legend() -> Value {
    let entry = |column: &crate::table::Column| (column.name.to_string(), Value::from(column.about.as_ref()));
    Value::Object(LAYOUT.columns.iter().map(entry).collect::<Map<_, _>>())
}

fn place_number(place: usize) -> Cell<'static> {
    Cell::count(place as u64 + 1)
}

fn target_row(place: usize, target: &KeptTarget) -> Row<'_> {
    let KeptTarget { name, role } = target;
    let mut row = row("target");
    row[Field::Number as usize] = place_number(place);
    row[Field::Target as usize] = name.as_str().into();
    row[Field::Role as usize] = role.name().into();
    row
}

fn epoch_row(epoch: &KeptEpoch) -> Row<'_> {
    let KeptEpoch { number, target, opened_us, protocol } = epoch;
    let mut row = row("epoch");
    row[Field::Number as usize] = (*number).into();
    row[Field::Target as usize] = target.as_str().into();
    row[Field::Protocol as usize] = protocol.as_deref().into();
    row[Field::Started as usize] = moment(*opened_us, 0);
    row[Field::StartedUs as usize] = (*opened_us).into();
    row
}

fn round_row(round: &KeptRound) -> Row<'_> {
    let KeptRound { number, started_us, utc_offset_seconds, scale, status, reason } = round;
    let mut row = row("round");
    row[Field::Number as usize] = (*number).into();
    row[Field::Scale as usize] = scale.name().into();
    row[Field::Status as usize] = status.map(|status| status.name()).into();
    row[Field::Reason as usize] = reason.as_deref().into();
    row[Field::Started as usize] = moment(*started_us, *utc_offset_seconds);
    row[Field::StartedUs as usize] = (*started_us).into();
    row[Field::UtcOffsetSeconds as usize] = i64::from(*utc_offset_seconds).into();
    row
}

fn event_row(place: usize, event: &Event) -> Row<'_> {
    let Event { target, kind, detail, at_us } = event;
    let mut row = row("event");
    row[Field::Number as usize] = place_number(place);
    row[Field::Target as usize] = target.as_ref().map(|name| name.as_str()).into();
    row[Field::Started as usize] = moment(*at_us, 0);
    row[Field::StartedUs as usize] = (*at_us).into();
    row[Field::Kind as usize] = kind.as_str().into();
    row[Field::Detail as usize] = Cell::Json(detail.to_string().into());
    row
}
