//! Operations of runs, with their histograms.

use longhaul_model::stored::StoredOperation;

use super::encode::{TableFile, encode};
use super::history_tables::{SITE, SOURCE};
use super::week::{WeekRecords, protocol_cell};
use crate::Error;
use crate::operations::buckets;
use crate::table::{Cell, Definition, Kind};

pub(super) const OPERATION_COLUMNS: &[Definition] = &[
    SOURCE,
    SITE,
    ("run", Kind::Integer, "number of the run"),
    ("target", Kind::Text, "name of the target"),
    ("protocol", Kind::Text, "protocol of the target without a version: smb"),
    ("workload", Kind::Text, "name of the workload"),
    ("outcome", Kind::Text, "outcome of the run: ok, error, hung, unavailable or void"),
    ("started_us", Kind::Integer, "start of the run, in microseconds since 1970 UTC"),
    ("phase", Kind::Text, "name of the phase"),
    ("cache", Kind::Text, "cache state: cold, warm or none; never pool different states"),
    ("operation", Kind::Text, "name of the operation"),
    ("calls", Kind::Integer, "number of calls, including failed ones"),
    ("errors", Kind::Integer, "number of failed calls"),
    ("sum_ns", Kind::Integer, "total time of all calls, in nanoseconds, exact"),
    ("min_ns", Kind::Integer, "time of the fastest call, in nanoseconds, exact"),
    ("max_ns", Kind::Integer, "time of the slowest call, in nanoseconds, exact"),
    ("bucket_index", Kind::Integers, "indexes of the non-empty buckets of scale 6"),
    ("bucket_count", Kind::Integers, "number of calls in each non-empty bucket"),
];

/// Encodes one operation. After its first error it must not be called again.
pub type EachOperation<'a> = &'a mut dyn FnMut(&StoredOperation) -> std::io::Result<()>;

impl WeekRecords<'_> {
    /// Encodes the operations of the week's runs, for which `read` calls the given function in the order of run numbers.
    /// Operations of other runs are left out.
    ///
    /// # Errors
    ///
    /// As [`Self::rounds`], and those of reading.
    pub fn operations(
        &self,
        read: impl FnOnce(EachOperation<'_>) -> Result<(), Error>,
    ) -> Result<TableFile, Error> {
        let mut read_result = Ok(());
        let written = encode(OPERATION_COLUMNS, |sink| {
            read_result = read(&mut |stored| {
                let is_in_week = self.runs.binary_search_by_key(&stored.run, |run| run.number).is_ok();
                if is_in_week { sink.row(&self.operation_row(stored)) } else { Ok(()) }
            });
            Ok(())
        });
        read_result.and(written)
    }

    fn operation_row<'a>(&'a self, stored: &'a StoredOperation) -> [Cell<'a>; OPERATION_COLUMNS.len()] {
        let latency = &stored.stats.latency;
        let (indexes, counts) = buckets(latency);
        let dialect = stored.protocol.as_ref().map(ToString::to_string);
        [
            self.origin.source.as_str().into(),
            self.origin.site.as_str().into(),
            stored.run.into(),
            stored.target.as_str().into(),
            protocol_cell(dialect.as_deref()),
            stored.workload.as_str().into(),
            stored.outcome.name().into(),
            stored.started.into(),
            stored.phase.as_str().into(),
            stored.cache.name().into(),
            stored.stats.operation.name().into(),
            Cell::count(latency.count()),
            Cell::count(stored.stats.errors),
            Cell::count(latency.sum_ns()),
            latency.min_ns().map_or(Cell::Null, Cell::count),
            latency.max_ns().map_or(Cell::Null, Cell::count),
            Cell::Integers(indexes.into()),
            Cell::Integers(counts.into()),
        ]
    }
}
