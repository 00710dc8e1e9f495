//! Every operation of every run, with its histogram.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use longhaul_store::{Reader, StoredOperation};

use crate::table::{Cell, Column, Kind, moment};
use crate::write::{Output, Sink};
use crate::{Error, Window};

const COLUMNS: &[(&str, Kind, &str)] = &[
    ("run", Kind::Integer, "the run's number"),
    ("round", Kind::Integer, "the number of its round"),
    ("epoch", Kind::Integer, "the number of its epoch"),
    ("target", Kind::Text, "the target's name"),
    ("protocol", Kind::Text, "how the target was reached"),
    ("workload", Kind::Text, "the task"),
    ("scale", Kind::Text, "the size of the test data"),
    ("outcome", Kind::Text, "ok, error, hung, unavailable or void"),
    ("started", Kind::Text, "as started_us, in RFC 3339 with the offset of local time"),
    ("started_us", Kind::Integer, "when the run began, in microseconds since 1970 UTC"),
    ("phase", Kind::Text, "the part of the run"),
    ("cache", Kind::Text, "cold, warm or none; never pool them"),
    ("cold_by", Kind::Text, "how it was made cold: evicted, rotated-slice or unverified"),
    ("operation", Kind::Text, "the kind of call"),
    ("count", Kind::Integer, "calls, failed ones included"),
    ("errors", Kind::Integer, "calls that failed"),
    ("sum_ns", Kind::Integer, "time in all calls, in nanoseconds, exact"),
    ("min_ns", Kind::Integer, "the shortest call, in nanoseconds, exact"),
    ("max_ns", Kind::Integer, "the longest call, in nanoseconds, exact"),
    ("p50_ns", Kind::Real, "quantiles by nearest rank within 0.54 %, in nanoseconds"),
    ("p95_ns", Kind::Real, "as p50_ns; below 20 calls it is the longest"),
    ("p99_ns", Kind::Real, "as p50_ns; below 100 calls it is the longest"),
    (
        "histogram_scale",
        Kind::Integer,
        "bucket i holds what lies in (g^i, g^(i+1)] microseconds, g = 2^(2^-scale)",
    ),
    ("bucket_index", Kind::Integers, "the buckets that are not empty"),
    ("bucket_count", Kind::Integers, "how many calls each of them holds"),
];
/// The scale of every histogram that there is.
const SCALE: i64 = 6;

/// Writes one row for each operation of each phase of each run in a window, and gives the number of rows. A round is in
/// it as a whole or not at all, by its begin.
///
/// # Errors
///
/// [`Error::Write`], [`Error::WithoutParquet`], [`Error::Store`].
pub fn operations(reader: &Reader, window: &Window, output: Output) -> Result<u64, Error> {
    let rounds = reader.rounds()?.into_iter().map(|stored| (stored.number, stored.round));
    let rounds = rounds.filter(|(_, round)| window.contains(round.started_us));
    let offsets: BTreeMap<i64, i32> =
        rounds.map(|(number, round)| (number, round.utc_offset_seconds)).collect();
    let columns: Vec<Column> = COLUMNS.iter().map(Column::of).collect();
    let mut unread = None;
    let written = output.write(&columns, |sink| {
        let mut failed = Ok(());
        let read = reader.operations(|stored| match offsets.get(&stored.round) {
            Some(offset) => {
                failed = write(sink, &stored, *offset);
                if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            None => ControlFlow::Continue(()),
        });
        unread = read.err();
        failed
    });
    match unread {
        Some(error) => Err(error.into()),
        None => written,
    }
}

fn write(sink: &mut dyn Sink, stored: &StoredOperation, utc_offset_seconds: i32) -> std::io::Result<()> {
    let latency = &stored.stats.latency;
    let quantile = |q| Cell::from(latency.quantile_ns(q));
    let (indexes, counts) = buckets(stored);
    sink.row(&[
        stored.run.into(),
        stored.round.into(),
        stored.epoch.into(),
        stored.target.as_str().into(),
        stored.protocol.as_ref().map_or(Cell::Null, |protocol| Cell::text(protocol.to_string())),
        stored.workload.as_str().into(),
        stored.scale.name().into(),
        stored.outcome.name().into(),
        moment(stored.started_us, utc_offset_seconds),
        stored.started_us.into(),
        stored.phase.as_str().into(),
        stored.cache.name().into(),
        stored.cold_by.map(|way| way.name()).into(),
        stored.stats.operation.name().into(),
        Cell::count(latency.count()),
        Cell::count(stored.stats.errors),
        Cell::count(latency.sum_ns()),
        latency.min_ns().map_or(Cell::Null, Cell::count),
        latency.max_ns().map_or(Cell::Null, Cell::count),
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        SCALE.into(),
        Cell::Integers(indexes.into()),
        Cell::Integers(counts.into()),
    ])
}

/// The buckets that are not empty, and what they hold.
fn buckets(stored: &StoredOperation) -> (Vec<i64>, Vec<i64>) {
    let (first, counts) = stored.stats.latency.buckets();
    let indexed = (i64::from(first)..).zip(counts).filter(|(_, count)| **count > 0);
    indexed.map(|(index, count)| (index, i64::try_from(*count).unwrap_or(i64::MAX))).unzip()
}
