//! The tables by name.

use strum::{IntoStaticStr, VariantArray};

use super::{history_tables, operations, other_tables};
use crate::table::Definition;

/// A table of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum FleetTable {
    /// Rounds, including skipped and void ones.
    Rounds,
    /// Runs.
    Runs,
    /// One row for each run and metric of its task: what verdicts are made from.
    Readings,
    /// Operations of each phase of each run, with their histograms.
    Operations,
    /// Hours of the latency probe, with their histograms.
    Samples,
    /// Events that may change results.
    Events,
    /// Changes that were made elsewhere.
    Freshness,
    /// Data that runs compared with what was written.
    Integrity,
}

impl FleetTable {
    /// All tables, in the order in which they are written.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name of the table in paths and queries.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the table with this name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|table| table.name() == name)
    }

    /// Returns the names of the columns that this program writes.
    pub fn column_names(self) -> Vec<&'static str> {
        self.definitions().iter().map(|(name, ..)| *name).collect()
    }

    /// Returns the names of the columns that tell rows apart. Every file of the table has them; others may have been added after
    /// it was written.
    pub fn key_columns(self) -> &'static [&'static str] {
        match self {
            Self::Rounds => &["source", "round"],
            Self::Runs | Self::Integrity => &["source", "run"],
            Self::Readings => &["source", "run", "metric"],
            Self::Operations => &["source", "run", "phase", "cache", "operation"],
            Self::Samples => &["source", "target", "at_us", "kind", "during"],
            Self::Events => &["source", "at_us", "kind"],
            Self::Freshness => &["source", "target", "at_us", "kind"],
        }
    }

    fn definitions(self) -> &'static [Definition] {
        match self {
            Self::Rounds => history_tables::ROUND_COLUMNS,
            Self::Runs => history_tables::RUN_COLUMNS,
            Self::Readings => history_tables::READING_COLUMNS,
            Self::Operations => operations::OPERATION_COLUMNS,
            Self::Samples => other_tables::SAMPLE_COLUMNS,
            Self::Events => other_tables::EVENT_COLUMNS,
            Self::Freshness => other_tables::FRESHNESS_COLUMNS,
            Self::Integrity => other_tables::INTEGRITY_COLUMNS,
        }
    }
}
