//! Converts rows to records. The error of an invalid row is a reason worded to follow "3 rows".

use std::time::Duration;

use longhaul_model::TASKS;
use longhaul_model::time::DAY;
use longhaul_model::{ChangeKind, EpochRecord, FreshnessDay, RoundRecord, TargetRecord, Timestamp};
use longhaul_model::{Event, MetricTimes, Outcome, Role, RoundStatus, Scale, TargetName};
use serde_json::Value;

use super::skipped::quoted;
use crate::archive::{Field, LAYOUT};
use crate::table::Cell;

/// Largest number (2^53) up to which every integer can be represented exactly as `f64`.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
const INVALID_DURATION: &str = "with a duration that is not a positive number";

/// The cells of one row, in the order of the layout.
pub(super) struct Fields<'r>(pub(super) &'r [Cell<'r>]);

/// A run whose target is still a name and not yet an index.
pub(super) struct UnresolvedRun {
    pub(super) round: i64,
    pub(super) epoch: i64,
    pub(super) target: TargetName,
    pub(super) workload: usize,
    pub(super) scale: Scale,
    pub(super) outcome: Outcome,
    pub(super) started: Timestamp,
    pub(super) seconds: f64,
    pub(super) times: MetricTimes,
    pub(super) rtt: Option<Duration>,
}

impl Fields<'_> {
    pub(super) fn number(&self) -> Result<i64, String> {
        self.integer(Field::Number)
    }

    /// Returns the time of a round, run, epoch or event.
    fn time(&self) -> Result<Timestamp, String> {
        Ok(Timestamp::from_us(self.integer(Field::StartedUs)?))
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

    pub(super) fn target(&self) -> Result<TargetRecord, String> {
        Ok(TargetRecord { name: self.target_name()?, role: self.parsed(Field::Role, Role::from_name)? })
    }

    pub(super) fn epoch(&self) -> Result<EpochRecord, String> {
        Ok(EpochRecord {
            number: self.number()?,
            target: self.target_name()?,
            opened_us: self.time()?,
            protocol: self.text(Field::Protocol)?.map(ToOwned::to_owned),
        })
    }

    pub(super) fn round(&self) -> Result<RoundRecord, String> {
        let offset = self.integer(Field::UtcOffsetSeconds)?;
        let status = self.text(Field::Status)?;
        Ok(RoundRecord {
            number: self.number()?,
            started_us: self.time()?,
            utc_offset_seconds: i32::try_from(offset)
                .map_err(|_| invalid(Field::UtcOffsetSeconds, "an offset"))?,
            scale: self.parsed(Field::Scale, Scale::from_name)?,
            status: status.map(|name| parse_name(Field::Status, name, RoundStatus::from_name)).transpose()?,
            reason: self.text(Field::Reason)?.map(ToOwned::to_owned),
        })
    }

    pub(super) fn event(&self) -> Result<Event, String> {
        let parse = |name: &str| parse_name(Field::Target, name, |name| name.parse().ok());
        Ok(Event {
            target: self.text(Field::Target)?.map(parse).transpose()?,
            kind: self.text(Field::Kind)?.unwrap_or_default().to_owned(),
            detail: self.detail()?,
            at_us: self.time()?,
        })
    }

    pub(super) fn freshness(&self) -> Result<FreshnessDay, String> {
        let detail = self.detail()?;
        let count = |key: &str| detail[key].as_u64().ok_or_else(|| format!("without the count `{key}`"));
        let (changes, not_seen, slow) = (count("changes")?, count("not_seen")?, count("slow")?);
        let is_possible = not_seen.checked_add(slow).is_some_and(|sum| sum <= changes);
        is_possible.then_some(()).ok_or("with more changes not seen or slow than changes")?;
        Ok(FreshnessDay {
            target: self.target_name()?,
            epoch: self.integer(Field::Epoch)?,
            kind: self.parsed(Field::Kind, ChangeKind::from_name)?,
            day: self.time()?.as_us().div_euclid(DAY.as_micros() as i64),
            changes,
            not_seen,
            slow,
            limit: detail["limit_us"].as_u64().map(Duration::from_micros),
        })
    }

    pub(super) fn run(&self) -> Result<UnresolvedRun, String> {
        let workload =
            self.parsed(Field::Workload, |name| TASKS.iter().position(|workload| workload.name() == name))?;
        let outcome = self.parsed(Field::Outcome, Outcome::from_name)?;
        Ok(UnresolvedRun {
            round: self.integer(Field::Round)?,
            epoch: self.integer(Field::Epoch)?,
            target: self.target_name()?,
            workload,
            scale: self.parsed(Field::Scale, Scale::from_name)?,
            outcome,
            started: self.time()?,
            seconds: self.seconds(outcome)?,
            times: self.times(workload)?,
            rtt: self.round_trip()?,
        })
    }

    /// Returns the duration of a run in seconds. Zero is allowed for runs that measured nothing or were
    /// stopped.
    fn seconds(&self, outcome: Outcome) -> Result<f64, String> {
        let seconds = self.real(Field::Seconds as usize)?.ok_or(INVALID_DURATION)?;
        let is_duration = match outcome {
            Outcome::Ok | Outcome::Hung => seconds > 0.0,
            Outcome::Error | Outcome::Unavailable | Outcome::Void => seconds >= 0.0,
        };
        if is_duration && seconds.is_finite() { Ok(seconds) } else { Err(INVALID_DURATION.to_owned()) }
    }

    /// Returns the round trip time of a run; archives of earlier versions have none.
    fn round_trip(&self) -> Result<Option<Duration>, String> {
        if self.0[Field::RttUs as usize] == Cell::Null {
            return Ok(None);
        }
        let us = u64::try_from(self.integer(Field::RttUs)?);
        us.map(|us| Some(Duration::from_micros(us))).map_err(|_| invalid(Field::RttUs, "a duration"))
    }

    fn times(&self, workload: usize) -> Result<MetricTimes, String> {
        let mut times = MetricTimes::NONE;
        for (index, column) in LAYOUT.metric_columns[workload].iter().enumerate() {
            match self.real(*column)? {
                Some(seconds) if seconds > 0.0 && seconds.is_finite() => times = times.with(index, seconds),
                Some(_) => return Err(INVALID_DURATION.to_owned()),
                None => {}
            }
        }
        Ok(times)
    }

    /// Returns the names of non-empty metric columns that belong to other workloads.
    pub(super) fn unexpected_times(&self, workload: usize) -> impl Iterator<Item = &'static str> {
        let own = &LAYOUT.metric_columns[workload];
        let others = (Field::ALL.len()..self.0.len()).filter(|index| !own.contains(index));
        others.filter(|index| self.0[*index] != Cell::Null).map(|index| LAYOUT.columns[index].name.as_ref())
    }

    fn target_name(&self) -> Result<TargetName, String> {
        self.parsed(Field::Target, |name| name.parse().ok())
    }

    pub(super) fn text(&self, field: Field) -> Result<Option<&str>, String> {
        match &self.0[field as usize] {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Integer(_) | Cell::Real(_) | Cell::Json(_) | Cell::Integers(_) => {
                Err(invalid(field, "text"))
            }
        }
    }

    fn parsed<T>(&self, field: Field, from_name: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let name = self.text(field)?.ok_or_else(|| missing(field))?;
        parse_name(field, name, from_name)
    }

    fn integer(&self, field: Field) -> Result<i64, String> {
        let whole = match &self.0[field as usize] {
            Cell::Null => return Err(missing(field)),
            Cell::Integer(number) => Some(*number),
            // Spreadsheets and data frames turn an integer column with empty cells into floating-point numbers.
            Cell::Real(real) if real.fract() == 0.0 && real.abs() <= MAX_EXACT_INTEGER => Some(*real as i64),
            Cell::Text(text) => text.parse().ok(),
            Cell::Real(_) | Cell::Json(_) | Cell::Integers(_) => None,
        };
        whole.ok_or_else(|| invalid(field, "a whole number"))
    }

    fn real(&self, column: usize) -> Result<Option<f64>, String> {
        match &self.0[column] {
            Cell::Null => Ok(None),
            Cell::Real(real) => Ok(Some(*real)),
            Cell::Integer(whole) => Ok(Some(*whole as f64)),
            Cell::Text(text) => text.parse().map(Some).map_err(|_| INVALID_DURATION.to_owned()),
            Cell::Json(_) | Cell::Integers(_) => Err(INVALID_DURATION.to_owned()),
        }
    }
}

fn column_name(field: Field) -> &'static str {
    Field::ALL[field as usize].0
}

fn missing(field: Field) -> String {
    format!("without `{}`", column_name(field))
}

fn invalid(field: Field, what: &str) -> String {
    format!("with `{}` that is not {what}", column_name(field))
}

fn parse_name<T>(field: Field, text: &str, from_name: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let unknown =
        || format!("with the {} {}, which this longhaul does not know", column_name(field), quoted(text));
    from_name(text).ok_or_else(unknown)
}
