//! Rounds, runs and readings: the tables that verdicts are made from.

use longhaul_model::{RoundRecord, RunRecord, TASKS};

use super::encode::{TableFile, encode};
use super::origin::FLEET_SCHEMA;
use super::week::{WeekRecords, protocol_cell};
use crate::Error;
use crate::table::{Cell, Definition, Kind};

/// Column that every table starts with.
pub(super) const SOURCE: Definition =
    ("source", Kind::Text, "one database of one machine: as `machine` in the path");
/// Column that every table has.
pub(super) const SITE: Definition = ("site", Kind::Text, "name of the site, from the configuration");

const DAY: Definition = ("day", Kind::Integer, "local day of the round, in days since 1970-01-01");
const TARGET: Definition = ("target", Kind::Text, "name of the target");
const PROTOCOL: Definition = ("protocol", Kind::Text, "protocol of the target without a version: smb");
const SCALE: Definition = ("scale", Kind::Text, "size of the test data");
const WORKLOAD: Definition = ("workload", Kind::Text, "name of the workload");
const OUTCOME: Definition =
    ("outcome", Kind::Text, "outcome of the run: ok, error, hung, unavailable or void");
const STARTED: Definition = ("started_us", Kind::Integer, "start, in microseconds since 1970 UTC");

pub(super) const ROUND_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    ("machine_id", Kind::Text, "random id of the machine"),
    ("label", Kind::Text, "name of the machine, from the configuration"),
    ("longhaul", Kind::Text, "version of longhaul that exported this"),
    ("schema", Kind::Integer, "version of the tables"),
    ("round", Kind::Integer, "number of the round"),
    DAY,
    STARTED,
    ("utc_offset_seconds", Kind::Integer, "local time minus UTC, in seconds"),
    SCALE,
    ("status", Kind::Text, "ok, void, cut-short or skipped; null: still running"),
    ("reason", Kind::Text, "reason for a status other than ok"),
];

pub(super) const RUN_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    ("run", Kind::Integer, "number of the run"),
    ("round", Kind::Integer, "number of its round"),
    DAY,
    ("epoch", Kind::Integer, "number of the target's epoch"),
    TARGET,
    ("role", Kind::Text, "share or baseline"),
    PROTOCOL,
    ("dialect", Kind::Text, "protocol with the negotiated version: SMB 3.1.1"),
    WORKLOAD,
    SCALE,
    OUTCOME,
    STARTED,
    ("seconds", Kind::Real, "duration; hung run: the cap after which it was stopped"),
    ("rtt_us", Kind::Integer, "round trip time just before the run, in microseconds"),
];

pub(super) const READING_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    ("run", Kind::Integer, "number of the run"),
    ("round", Kind::Integer, "number of its round"),
    DAY,
    ("round_status", Kind::Text, "status of the round"),
    ("epoch", Kind::Integer, "number of the target's epoch"),
    TARGET,
    ("target_number", Kind::Integer, "position of the target on its machine, from 1"),
    ("role", Kind::Text, "share or baseline"),
    PROTOCOL,
    ("metric", Kind::Text, "metric, as workload/name"),
    SCALE,
    OUTCOME,
    ("seconds", Kind::Real, "time of the metric; null: the run was not ok or did not report it"),
];

impl WeekRecords<'_> {
    /// Encodes the rounds of the week.
    ///
    /// # Errors
    ///
    /// [`Error::ParquetDisabled`], [`Error::Write`].
    pub fn rounds(&self) -> Result<TableFile, Error> {
        encode(ROUND_COLUMNS, |sink| {
            self.rounds.values().try_for_each(|round| sink.row(&self.round_row(round)))
        })
    }

    /// Encodes the runs of the week.
    pub fn runs(&self) -> Result<TableFile, Error> {
        encode(RUN_COLUMNS, |sink| self.runs.iter().try_for_each(|run| sink.row(&self.run_row(run))))
    }

    /// Encodes the readings of the week: one row for each run and metric of its task.
    pub fn readings(&self) -> Result<TableFile, Error> {
        encode(READING_COLUMNS, |sink| {
            self.runs.iter().try_for_each(|run| {
                let task = &TASKS[run.workload];
                let metrics = task.metrics().iter().enumerate();
                metrics.into_iter().try_for_each(|(place, metric)| {
                    let key = format!("{}/{}", task.name(), metric.name);
                    sink.row(&self.reading_row(run, &key, run.times.get(place)))
                })
            })
        })
    }

    fn round_row<'a>(&'a self, round: &'a RoundRecord) -> [Cell<'a>; ROUND_COLUMNS.len()] {
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            self.origin.machine_id.as_str().into(),
            self.origin.label.as_deref().into(),
            env!("CARGO_PKG_VERSION").into(),
            Cell::count(FLEET_SCHEMA),
            round.number.into(),
            round.day().into(),
            round.started_us.into(),
            i64::from(round.utc_offset_seconds).into(),
            round.scale.name().into(),
            round.status.map(|status| status.name()).into(),
            round.reason.as_deref().into(),
        ]
    }

    fn run_row<'a>(&'a self, run: &'a RunRecord) -> [Cell<'a>; RUN_COLUMNS.len()] {
        let dialect = self.dialect(run.epoch);
        let target = self.target(run);
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            run.number.into(),
            run.round.into(),
            self.rounds.get(&run.round).map(|round| round.day()).into(),
            run.epoch.into(),
            target.map(|(name, _)| name.as_str()).into(),
            target.map(|(_, role)| role.name()).into(),
            protocol_cell(dialect),
            dialect.into(),
            TASKS[run.workload].name().into(),
            run.scale.name().into(),
            run.outcome.name().into(),
            run.started.into(),
            run.seconds.into(),
            run.rtt.map(|time| Cell::count(time.as_micros() as u64)).unwrap_or_default(),
        ]
    }

    fn reading_row<'a>(
        &'a self,
        run: &'a RunRecord,
        metric: &'a str,
        seconds: Option<f64>,
    ) -> [Cell<'a>; READING_COLUMNS.len()] {
        let target = self.target(run);
        let round = self.rounds.get(&run.round);
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            run.number.into(),
            run.round.into(),
            round.map(|round| round.day()).into(),
            round.and_then(|round| round.status).map(|status| status.name()).into(),
            run.epoch.into(),
            target.map(|(name, _)| name.as_str()).into(),
            Cell::count(run.target as u64 + 1),
            target.map(|(_, role)| role.name()).into(),
            protocol_cell(self.dialect(run.epoch)),
            metric.into(),
            run.scale.name().into(),
            run.outcome.name().into(),
            seconds.into(),
        ]
    }
}
