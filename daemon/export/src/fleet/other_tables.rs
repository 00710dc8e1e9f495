//! Samples, events, freshness and integrity.

use longhaul_model::stored::VerifiedRun;
use longhaul_model::{Event, FreshnessSample, ProbeStep, RunRecord};

use super::encode::{TableFile, encode};
use super::history_tables::{SITE, SOURCE};
use super::week::{WeekRecords, protocol_cell, week_of};
use crate::Error;
use crate::checks::outcome_cells;
use crate::operations::buckets;
use crate::table::{Cell, Definition, Kind};

const TARGET: Definition = ("target", Kind::Text, "name of the target");
const PROTOCOL: Definition = ("protocol", Kind::Text, "protocol of the target without a version: smb");
const AT: Definition = ("at_us", Kind::Integer, "time, in microseconds since 1970 UTC");

pub(super) const SAMPLE_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    TARGET,
    PROTOCOL,
    ("at_us", Kind::Integer, "start of the hour, in microseconds since 1970 UTC"),
    ("kind", Kind::Text, "kind of request of the latency probe"),
    ("during", Kind::Text, "load from longhaul's own rounds at that time"),
    ("calls", Kind::Integer, "number of answered requests"),
    ("errors", Kind::Integer, "number of failed requests"),
    ("timeouts", Kind::Integer, "number of requests without an answer within 30 s"),
    ("min_ns", Kind::Integer, "shortest latency, in nanoseconds, exact"),
    ("max_ns", Kind::Integer, "longest latency, in nanoseconds, exact"),
    ("bucket_index", Kind::Integers, "indexes of the non-empty buckets of scale 6"),
    ("bucket_count", Kind::Integers, "number of requests in each non-empty bucket"),
];

pub(super) const EVENT_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    AT,
    ("target", Kind::Text, "affected target; null: the whole machine"),
    ("kind", Kind::Text, "kind of event, in one word"),
    ("detail", Kind::Json, "details; `hidden-1`, `hidden-2`, ... replace paths, servers and users"),
];

pub(super) const FRESHNESS_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    TARGET,
    PROTOCOL,
    AT,
    ("kind", Kind::Text, "kind of the change that was made elsewhere"),
    (
        "shares_client",
        Kind::Integer,
        "1: made through the same client, so it says nothing about other machines",
    ),
    ("outcome", Kind::Text, "seen, not-seen or void (nothing is known)"),
    ("earliest_seconds", Kind::Real, "time until the change was visible, at least"),
    ("latest_seconds", Kind::Real, "seen: that time, at most; not-seen: how long it was looked for"),
];

pub(super) const INTEGRITY_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    ("run", Kind::Integer, "number of the run"),
    TARGET,
    PROTOCOL,
    ("bytes", Kind::Integer, "bytes that were compared with what was written"),
    ("wire_bytes", Kind::Integer, "those of them that are known to have come from the server or disk"),
    ("files", Kind::Integer, "number of times that a file was compared up to its end"),
    ("mismatches", Kind::Integer, "wrong ranges that this run was the first to find"),
];

impl WeekRecords<'_> {
    /// Encodes the hours of the latency probe that belong to the week.
    pub fn samples(&self, steps: &[ProbeStep]) -> Result<TableFile, Error> {
        let of_week = || steps.iter().filter(|step| week_of(step.at_us) == self.week);
        encode(SAMPLE_COLUMNS, |sink| of_week().try_for_each(|step| sink.row(&self.sample_row(step))))
    }

    /// Encodes the events of the week.
    pub fn events(&self) -> Result<TableFile, Error> {
        encode(EVENT_COLUMNS, |sink| {
            self.events.iter().try_for_each(|event| sink.row(&self.event_row(event)))
        })
    }

    /// Encodes the changes of the week that were made elsewhere.
    pub fn freshness(&self, samples: &[FreshnessSample]) -> Result<TableFile, Error> {
        let of_week = || samples.iter().filter(|sample| week_of(sample.at) == self.week);
        encode(FRESHNESS_COLUMNS, |sink| {
            of_week().try_for_each(|sample| sink.row(&self.freshness_row(sample)))
        })
    }

    /// Encodes the data that runs of the week compared with what was written.
    pub fn integrity(&self, verified: &[VerifiedRun]) -> Result<TableFile, Error> {
        let run_of = |verified: &VerifiedRun| {
            let position = self.runs.binary_search_by_key(&verified.run, |run| run.number).ok()?;
            Some(self.runs[position])
        };
        encode(INTEGRITY_COLUMNS, |sink| {
            let mut of_week = verified.iter().filter_map(|verified| Some((verified, run_of(verified)?)));
            of_week.try_for_each(|(verified, run)| sink.row(&self.integrity_row(verified, run)))
        })
    }

    fn sample_row<'a>(&'a self, step: &'a ProbeStep) -> [Cell<'a>; SAMPLE_COLUMNS.len()] {
        let (indexes, counts) = buckets(&step.latency);
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            step.target.as_str().into(),
            protocol_cell(self.dialect_at(&step.target, step.at_us)),
            step.at_us.into(),
            step.kind.name().into(),
            step.during.name().into(),
            Cell::count(step.latency.count()),
            Cell::count(step.errors),
            Cell::count(step.timeouts),
            step.latency.min_ns().map_or(Cell::Null, Cell::count),
            step.latency.max_ns().map_or(Cell::Null, Cell::count),
            Cell::Integers(indexes.into()),
            Cell::Integers(counts.into()),
        ]
    }

    fn event_row<'a>(&'a self, event: &'a Event) -> [Cell<'a>; EVENT_COLUMNS.len()] {
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            event.at_us.into(),
            event.target.as_ref().map(|name| name.as_str()).into(),
            event.kind.as_str().into(),
            Cell::Json(event.detail.to_string().into()),
        ]
    }

    fn freshness_row<'a>(&'a self, sample: &'a FreshnessSample) -> [Cell<'a>; FRESHNESS_COLUMNS.len()] {
        let [outcome, earliest, latest] = outcome_cells(&sample.outcome);
        let dialect = sample.protocol.as_ref().map(ToString::to_string);
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            sample.target.as_str().into(),
            protocol_cell(dialect.as_deref()),
            sample.at.into(),
            sample.kind.name().into(),
            i64::from(sample.shares_client).into(),
            outcome,
            earliest,
            latest,
        ]
    }

    fn integrity_row<'a>(
        &'a self,
        verified: &VerifiedRun,
        run: &RunRecord,
    ) -> [Cell<'a>; INTEGRITY_COLUMNS.len()] {
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            verified.run.into(),
            self.target(run).map(|(name, _)| name.as_str()).into(),
            protocol_cell(self.dialect(run.epoch)),
            Cell::count(verified.bytes),
            Cell::count(verified.wire_bytes),
            Cell::count(verified.files),
            Cell::count(verified.mismatches),
        ]
    }
}
