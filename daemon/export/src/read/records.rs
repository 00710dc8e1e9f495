//! Rows into records. A row that is not one is refused with its reason, to be read after "3 rows".

use longhaul_measure::model::{Event, Outcome, Role, RoundStatus, Scale, TargetName, Times};
use longhaul_measure::summary::{KeptEpoch, KeptRound, KeptTarget};
use longhaul_measure::workloads::WORKLOADS;
use serde_json::Value;

use super::left_out::shown;
use crate::archive::{Field, LAYOUT};
use crate::table::Cell;

/// The largest whole number up to which every whole number is a float.
const EXACT: f64 = 9_007_199_254_740_992.0;
const NO_DURATION: &str = "with a duration that is not a positive number";

/// The cells of one row, each in the place of its column.
pub(super) struct Fields<'r>(pub(super) &'r [Cell<'r>]);

/// A run whose target is still a name.
pub(super) struct NamedRun {
    pub(super) round: i64,
    pub(super) epoch: i64,
    pub(super) target: TargetName,
    pub(super) workload: usize,
    pub(super) scale: Scale,
    pub(super) outcome: Outcome,
    pub(super) started_us: i64,
    pub(super) seconds: f64,
    pub(super) times: Times,
}

impl Fields<'_> {
    pub(super) fn number(&self) -> Result<i64, String> {
        self.integer(Field::Number)
    }

    pub(super) fn detail(&self) -> Result<Value, String> {
        match &self.0[Field::Detail as usize] {
            Cell::Null => Ok(Value::Null),
            Cell::Text(text) | Cell::Json(text) => {
                serde_json::from_str(text).map_err(|_| "with `detail` that is not JSON".to_owned())
            }
            Cell::Integer(_) | Cell::Real(_) | Cell::Integers(_) => {
                Err("with `detail` that is not JSON".to_owned())
            }
        }
    }

    pub(super) fn target(&self) -> Result<KeptTarget, String> {
        Ok(KeptTarget { name: self.target_name()?, role: self.named(Field::Role, Role::from_name)? })
    }

    pub(super) fn epoch(&self) -> Result<KeptEpoch, String> {
        Ok(KeptEpoch {
            number: self.number()?,
            target: self.target_name()?,
            opened_us: self.integer(Field::StartedUs)?,
            protocol: self.text(Field::Protocol)?.map(ToOwned::to_owned),
        })
    }

    pub(super) fn round(&self) -> Result<KeptRound, String> {
        let offset = self.integer(Field::UtcOffsetSeconds)?;
        let status = self.text(Field::Status)?;
        Ok(KeptRound {
            number: self.number()?,
            started_us: self.integer(Field::StartedUs)?,
            utc_offset_seconds: i32::try_from(offset)
                .map_err(|_| not(Field::UtcOffsetSeconds, "an offset"))?,
            scale: self.named(Field::Scale, Scale::from_name)?,
            status: status.map(|name| known(Field::Status, name, RoundStatus::from_name)).transpose()?,
            reason: self.text(Field::Reason)?.map(ToOwned::to_owned),
        })
    }

    pub(super) fn event(&self) -> Result<Event, String> {
        let parse = |name: &str| known(Field::Target, name, |name| name.parse().ok());
        Ok(Event {
            target: self.text(Field::Target)?.map(parse).transpose()?,
            kind: self.text(Field::Kind)?.unwrap_or_default().to_owned(),
            detail: self.detail()?,
            at_us: self.integer(Field::StartedUs)?,
        })
    }

    pub(super) fn run(&self) -> Result<NamedRun, String> {
        let workload = self
            .named(Field::Workload, |name| WORKLOADS.iter().position(|workload| workload.name() == name))?;
        let outcome = self.named(Field::Outcome, Outcome::from_name)?;
        Ok(NamedRun {
            round: self.integer(Field::Round)?,
            epoch: self.integer(Field::Epoch)?,
            target: self.target_name()?,
            workload,
            scale: self.named(Field::Scale, Scale::from_name)?,
            outcome,
            started_us: self.integer(Field::StartedUs)?,
            seconds: self.seconds(outcome)?,
            times: self.times(workload)?,
        })
    }

    /// A run that met nothing to measure, or was stopped, may have taken no time.
    fn seconds(&self, outcome: Outcome) -> Result<f64, String> {
        let seconds = self.real(Field::Seconds as usize)?.ok_or(NO_DURATION)?;
        let is_duration = match outcome {
            Outcome::Ok | Outcome::Hung => seconds > 0.0,
            Outcome::Error | Outcome::Unavailable | Outcome::Void => seconds >= 0.0,
        };
        if is_duration && seconds.is_finite() { Ok(seconds) } else { Err(NO_DURATION.to_owned()) }
    }

    fn times(&self, workload: usize) -> Result<Times, String> {
        let mut times = Times::NONE;
        for (place, column) in LAYOUT.endpoints[workload].iter().enumerate() {
            match self.real(*column)? {
                Some(seconds) if seconds > 0.0 && seconds.is_finite() => times = times.with(place, seconds),
                Some(_) => return Err(NO_DURATION.to_owned()),
                None => {}
            }
        }
        Ok(times)
    }

    /// The columns of endpoints that this workload does not have, and that hold something.
    pub(super) fn foreign_times(&self, workload: usize) -> impl Iterator<Item = &'static str> {
        let ours = &LAYOUT.endpoints[workload];
        let places = (Field::ALL.len()..self.0.len()).filter(|place| !ours.contains(place));
        places.filter(|place| self.0[*place] != Cell::Null).map(|place| LAYOUT.columns[place].name.as_ref())
    }

    fn target_name(&self) -> Result<TargetName, String> {
        self.named(Field::Target, |name| name.parse().ok())
    }

    pub(super) fn text(&self, field: Field) -> Result<Option<&str>, String> {
        match &self.0[field as usize] {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Integer(_) | Cell::Real(_) | Cell::Json(_) | Cell::Integers(_) => Err(not(field, "text")),
        }
    }

    fn named<T>(&self, field: Field, from_name: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let name = self.text(field)?.ok_or_else(|| without(field))?;
        known(field, name, from_name)
    }

    fn integer(&self, field: Field) -> Result<i64, String> {
        let whole = match &self.0[field as usize] {
            Cell::Null => return Err(without(field)),
            Cell::Integer(number) => Some(*number),
            // What a spreadsheet or a data frame makes of whole numbers beside empty cells.
            Cell::Real(real) if real.fract() == 0.0 && real.abs() <= EXACT => Some(*real as i64),
            Cell::Text(text) => text.parse().ok(),
            Cell::Real(_) | Cell::Json(_) | Cell::Integers(_) => None,
        };
        whole.ok_or_else(|| not(field, "a whole number"))
    }

    fn real(&self, place: usize) -> Result<Option<f64>, String> {
        match &self.0[place] {
            Cell::Null => Ok(None),
            Cell::Real(real) => Ok(Some(*real)),
            Cell::Integer(whole) => Ok(Some(*whole as f64)),
            Cell::Text(text) => text.parse().map(Some).map_err(|_| NO_DURATION.to_owned()),
            Cell::Json(_) | Cell::Integers(_) => Err(NO_DURATION.to_owned()),
        }
    }
}

fn name(field: Field) -> &'static str {
    Field::ALL[field as usize].0
}

fn without(field: Field) -> String {
    format!("without `{}`", name(field))
}

fn not(field: Field, what: &str) -> String {
    format!("with `{}` that is not {what}", name(field))
}

fn known<T>(field: Field, text: &str, from_name: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let unknown = || format!("with the {} {}, which this longhaul does not know", name(field), shown(text));
    from_name(text).ok_or_else(unknown)
}
