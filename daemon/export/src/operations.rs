//! Exports the operations of every run with their histograms.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use longhaul_model::Histogram;
use longhaul_store::{Reader, StoredOperation};

use crate::table::{Cell, Column, Definition, Kind, timestamp_cell};
use crate::write::{Output, Sink};
use crate::{Error, Window};

const COLUMNS: &[Definition] = &[
    ("run", Kind::Integer, "number of the run"),
    ("round", Kind::Integer, "number of its round"),
    ("epoch", Kind::Integer, "number of its epoch"),
    ("target", Kind::Text, "name of the target"),
    ("protocol", Kind::Text, "protocol of the target"),
    ("workload", Kind::Text, "name of the workload"),
    ("scale", Kind::Text, "size of the test data"),
    ("outcome", Kind::Text, "outcome of the run: ok, error, hung, unavailable or void"),
    ("started", Kind::Text, "same time as started_us, in RFC 3339 with the offset of local time"),
    ("started_us", Kind::Integer, "start of the run, in microseconds since 1970 UTC"),
    ("phase", Kind::Text, "name of the phase"),
    ("cache", Kind::Text, "cache state: cold, warm or none; never pool different states"),
    ("cold_by", Kind::Text, "method that made the phase cold: evicted, rotated-slice or unverified"),
    ("operation", Kind::Text, "name of the operation"),
    ("count", Kind::Integer, "number of calls, including failed ones"),
    ("errors", Kind::Integer, "number of failed calls"),
    ("sum_ns", Kind::Integer, "total time of all calls, in nanoseconds, exact"),
    ("min_ns", Kind::Integer, "time of the fastest call, in nanoseconds, exact"),
    ("max_ns", Kind::Integer, "time of the slowest call, in nanoseconds, exact"),
    ("p50_ns", Kind::Real, "median in nanoseconds: nearest rank, accurate to 0.54 %"),
    ("p95_ns", Kind::Real, "95th percentile, as p50_ns; with fewer than 20 calls the slowest call"),
    ("p99_ns", Kind::Real, "99th percentile, as p50_ns; with fewer than 100 calls the slowest call"),
    (
        "histogram_scale",
        Kind::Integer,
        "bucket i counts times in (g^i, g^(i+1)] microseconds, g = 2^(2^-scale)",
    ),
    ("bucket_index", Kind::Integers, "indexes of the non-empty buckets"),
    ("bucket_count", Kind::Integers, "number of calls in each non-empty bucket"),
];
/// Scale of all histograms in the store.
const HISTOGRAM_SCALE: i64 = 6;

/// Writes one row for each operation of each phase of each run in a window, and returns the number of rows. A
/// round is exported with all its runs if its start is in the window.
///
/// # Errors
///
/// [`Error::Write`], [`Error::ParquetDisabled`], [`Error::Store`].
pub fn operations(reader: &Reader, window: &Window, output: Output<'_>) -> Result<u64, Error> {
    let rounds = reader.rounds()?.into_iter().map(|stored| (stored.number, stored.round));
    let rounds = rounds.filter(|(_, round)| window.contains(round.started));
    let offsets: BTreeMap<i64, i32> =
        rounds.map(|(number, round)| (number, round.utc_offset_seconds)).collect();
    let mut read_error = None;
    let written = output.write(&Column::all(COLUMNS), |sink| {
        // Reading and writing fail with different error types inside one callback, so each error is carried out of
        // it separately.
        let mut failed = Ok(());
        let read = reader.for_each_operation(1..=i64::MAX, |stored| match offsets.get(&stored.round) {
            Some(offset) => {
                failed = write_row(sink, &stored, *offset);
                if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            None => ControlFlow::Continue(()),
        });
        read_error = read.err();
        failed
    });
    match read_error {
        Some(error) => Err(error.into()),
        None => written,
    }
}

fn write_row(sink: &mut dyn Sink, stored: &StoredOperation, utc_offset_seconds: i32) -> std::io::Result<()> {
    let latency = &stored.stats.latency;
    let quantile = |q| Cell::from(latency.quantile_ns(q));
    let (indexes, counts) = buckets(latency);
    sink.row(&[
        stored.run.into(),
        stored.round.into(),
        stored.epoch.into(),
        stored.target.as_str().into(),
        stored.protocol.as_ref().map_or(Cell::Null, |protocol| Cell::text(protocol.to_string())),
        stored.workload.as_str().into(),
        stored.scale.name().into(),
        stored.outcome.name().into(),
        timestamp_cell(stored.started, utc_offset_seconds),
        stored.started.into(),
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
        HISTOGRAM_SCALE.into(),
        Cell::Integers(indexes.into()),
        Cell::Integers(counts.into()),
    ])
}

/// Returns the indexes of the non-empty buckets and their counts.
pub(crate) fn buckets(latency: &Histogram) -> (Vec<i64>, Vec<i64>) {
    let (first, counts) = latency.buckets();
    let indexed = (i64::from(first)..).zip(counts).filter(|(_, count)| **count > 0);
    indexed.map(|(index, count)| (index, i64::try_from(*count).unwrap_or(i64::MAX))).unzip()
}
