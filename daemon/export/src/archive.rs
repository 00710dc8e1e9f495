//! The columns of the archive: one table for seven kinds of records, each of which uses some of the columns.

use std::sync::LazyLock;

use longhaul_model::{TASKS, all_metrics};

use crate::table::{Column, Definition, Kind};

/// Name of the file format, stored in the header row.
pub(crate) const FORMAT_NAME: &str = "longhaul runs";
/// Archive schema version that this program writes, and the newest that it reads. New columns and kinds of
/// records do not change the version, because the import skips and reports unknown ones. A change of meaning
/// does.
pub const SCHEMA_VERSION: u64 = 1;

macro_rules! fields {
    ($($variant:ident = $name:literal, $kind:ident, $about:literal;)*) => {
        /// A fixed column of the archive, which does not depend on the workloads.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Field { $($variant,)* }

        impl Field {
            pub(crate) const ALL: &'static [Definition] = &[$(($name, Kind::$kind, $about)),*];
        }
    };
}

fields! {
    Record = "record", Text, "kind of the row: header, target, epoch, round, event, freshness or run";
    Number = "number", Integer, "epoch, round, run: number in the database; target, event, freshness: position in the list, from 1";
    Round = "round", Integer, "run: number of its round, in which every workload ran once on every target";
    Epoch = "epoch", Integer, "run, freshness: number of its epoch, the period of a target under one protocol and set of mount options";
    Target = "target", Text, "name of the target; event: empty means the whole machine";
    Role = "role", Text, "target: share or baseline";
    Protocol = "protocol", Text, "epoch: protocol of the target; run: copied from its epoch, ignored by the import";
    Workload = "workload", Text, "run: name of the workload";
    Scale = "scale", Text, "round, run: size of the test data";
    Outcome = "outcome", Text, "run: ok, error, hung, unavailable or void; only ok runs have times";
    Status = "status", Text, "round: ok, void, cut-short or skipped; empty: still running";
    Reason = "reason", Text, "round: reason for a status other than ok";
    Started = "started", Text, "same time as started_us, in RFC 3339 with the offset of local time; ignored by the import";
    StartedUs = "started_us", Integer, "start of the round, run, epoch or day (freshness), or time of the event, in microseconds since 1970 UTC";
    UtcOffsetSeconds = "utc_offset_seconds", Integer, "round: local time minus UTC at its start, in seconds";
    Seconds = "seconds", Real, "run: duration in seconds; hung run: the cap after which it was stopped";
    Kind = "kind", Text, "event: kind of event, in one word; freshness: kind of the changes made elsewhere";
    Detail = "detail", Json, "event: details; freshness: counts of changes; header: analysis settings, row counts and this legend";
    RttUs = "rtt_us", Integer, "run: round trip time of the network just before it, in microseconds; empty: not measured";
}

/// All columns of the archive.
pub(crate) struct Layout {
    /// Fixed columns first, then one column per metric.
    pub(crate) columns: Vec<Column>,
    /// For each workload, the index of the column of each of its metrics.
    pub(crate) metric_columns: Vec<Vec<usize>>,
}

/// Layout that this program writes.
pub(crate) static LAYOUT: LazyLock<Layout> = LazyLock::new(Layout::new);

impl Layout {
    fn new() -> Self {
        let mut columns = Column::all(Field::ALL);
        for (_, metric) in all_metrics() {
            let name = metric_column(metric.name);
            if columns.iter().all(|column| column.name != name) {
                let about = format!("run: {} ({}), in seconds", metric.activity, metric.cache.name());
                columns.push(Column { name: name.into(), kind: Kind::Real, description: about.into() });
            }
        }
        let index = |name: &str| columns.iter().position(|column| column.name == metric_column(name));
        let metric_columns = TASKS.iter().map(|workload| {
            let indexes = workload.metrics().iter().map(|metric| index(metric.name));
            indexes.collect::<Option<Vec<usize>>>().expect("every metric has a column")
        });
        let metric_columns = metric_columns.collect();
        Self { columns, metric_columns }
    }

    /// Returns the index of the column with this name. `None`: this version has no such column.
    pub(crate) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Returns the column name of a metric: `photos_cold_seconds` for `photos-cold`, so that it needs no quotes in
/// SQL.
fn metric_column(metric: &str) -> String {
    format!("{}_seconds", metric.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_unique_plain_names_and_descriptions() {
        let mut names: Vec<&str> = LAYOUT.columns.iter().map(|column| column.name.as_ref()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
        assert!(LAYOUT.columns.iter().all(|column| column.description.len() > 10));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(LAYOUT.columns[Field::Detail as usize].name, "detail");
    }

    #[test]
    fn every_metric_has_a_column() {
        let photo = TASKS.iter().position(|workload| workload.name() == "photo-batch").unwrap();
        let columns = LAYOUT.metric_columns[photo].iter().map(|index| LAYOUT.columns[*index].name.as_ref());
        assert!(columns.eq([
            "photos_cold_seconds",
            "photos_warm_seconds",
            "switch_cold_seconds",
            "switch_warm_seconds"
        ]));
    }
}
