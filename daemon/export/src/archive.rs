//! The columns of the archive: one table for records of six kinds, each of which uses some of the columns.

use std::sync::LazyLock;

use longhaul_measure::workloads::{WORKLOADS, endpoints};

use crate::table::{Column, Kind};

macro_rules! fields {
    ($($variant:ident = $name:literal, $kind:ident, $about:literal;)*) => {
        /// A column that is there whatever workloads there are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Field { $($variant,)* }

        impl Field {
            pub(crate) const ALL: &'static [(&'static str, Kind, &'static str)] =
                &[$(($name, Kind::$kind, $about)),*];
        }
    };
}

fields! {
    Record = "record", Text, "premises, target, epoch, round, event or run: what the row is";
    Number = "number", Integer, "of an epoch, a round, a run as in the database; of a target or event its place, from 1";
    Round = "round", Integer, "run: the number of its round, the block in which everything was done once on each target";
    Epoch = "epoch", Integer, "run: the number of its epoch, the target's life under one protocol and set of options";
    Target = "target", Text, "the target's name; event: not known means the whole machine";
    Role = "role", Text, "target: share or baseline";
    Protocol = "protocol", Text, "epoch: how the target was reached; run: the same, for reading only";
    Workload = "workload", Text, "run: the task";
    Scale = "scale", Text, "round, run: the size of the test data";
    Outcome = "outcome", Text, "run: ok, error, hung, unavailable or void; only ok has times";
    Status = "status", Text, "round: ok, void, cut-short or skipped; not known: it goes on";
    Reason = "reason", Text, "round: why it is not ok";
    Started = "started", Text, "as started_us, in RFC 3339 with the offset of local time, for reading only";
    StartedUs = "started_us", Integer, "microseconds since 1970 UTC: begin of the round or run, opening of the epoch, event";
    UtcOffsetSeconds = "utc_offset_seconds", Integer, "round: local time minus UTC at its begin, in seconds";
    Seconds = "seconds", Real, "run: how long it took, in seconds; of a hung run the cap at which it was given up";
    Kind = "kind", Text, "event: what happened, in one word";
    Detail = "detail", Json, "event: the particulars; premises: what was settled before the first run, and this legend";
}

/// The columns, in their order.
pub(crate) struct Layout {
    pub(crate) columns: Vec<Column>,
    /// For each workload, the column of each of its endpoints.
    pub(crate) endpoints: Vec<Vec<usize>>,
}

/// The layout that this program writes.
pub(crate) static LAYOUT: LazyLock<Layout> = LazyLock::new(Layout::new);

impl Layout {
    fn new() -> Self {
        let mut columns: Vec<Column> = Field::ALL.iter().map(Column::of).collect();
        for (_, endpoint) in endpoints() {
            let name = column_of(endpoint.name);
            if columns.iter().all(|column| column.name != name) {
                let about = format!("run: {} ({}), in seconds", endpoint.activity, endpoint.cache.name());
                columns.push(Column { name: name.into(), kind: Kind::Real, about: about.into() });
            }
        }
        let place = |name: &str| columns.iter().position(|column| column.name == column_of(name));
        let places = WORKLOADS.iter().map(|workload| {
            let places = workload.endpoints().iter().map(|endpoint| place(endpoint.name));
            places.collect::<Option<Vec<usize>>>().expect("a column was made for each endpoint")
        });
        let endpoints = places.collect();
        Self { columns, endpoints }
    }

    /// The place of the column with this name.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// `photos-cold` is in `photos_cold_seconds`, a name that needs no quotes in SQL.
fn column_of(endpoint: &str) -> String {
    format!("{}_seconds", endpoint.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own_that_needs_no_quotes_and_says_what_it_holds() {
        let mut names: Vec<&str> = LAYOUT.columns.iter().map(|column| column.name.as_ref()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
        assert!(LAYOUT.columns.iter().all(|column| column.about.len() > 10));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(LAYOUT.columns[Field::Detail as usize].name, "detail");
    }

    #[test]
    fn every_endpoint_has_a_column() {
        let photo = WORKLOADS.iter().position(|workload| workload.name() == "photo-batch").unwrap();
        let columns = LAYOUT.endpoints[photo].iter().map(|place| LAYOUT.columns[*place].name.as_ref());
        assert!(columns.eq([
            "photos_cold_seconds",
            "photos_warm_seconds",
            "switch_cold_seconds",
            "switch_warm_seconds"
        ]));
    }
}
