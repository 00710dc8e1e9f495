//! The manifest of a source: what it has exported, so that an export continues where the last one ended.

use std::collections::BTreeMap;

use longhaul_export::fleet::{FLEET_SCHEMA, FleetTable, Week};
use longhaul_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::layout::manifest_path;
use crate::location::{Collection, Content};

/// State of a source's export. It is written after the tables: if it is lost, they are written again, under the same names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of the tables.
    pub(crate) schema: u64,
    /// Last exported run. A database that does not have it is not the one that was exported before.
    pub(crate) last_run: Option<LastRun>,
    /// Exported weeks.
    pub(crate) weeks: BTreeMap<Week, ExportedWeek>,
}

/// A run by which a database is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastRun {
    pub(crate) number: i64,
    pub(crate) started_us: Timestamp,
}

/// State of one exported week.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ExportedWeek {
    /// Fingerprint of the history of the week, and of what else decides the content of its files.
    pub(crate) fingerprint: u64,
    /// True if the week was over for a day when it was exported, so that nothing is added to it.
    pub(crate) is_finished: bool,
    /// Hash of the content of each exported file, by table.
    pub(crate) files: BTreeMap<String, u64>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { schema: FLEET_SCHEMA, last_run: None, weeks: BTreeMap::new() }
    }
}

impl Manifest {
    /// Reads the manifest of a source; an empty one if there is none.
    pub(crate) async fn read(collection: &Collection, source: &str) -> Result<Self, Error> {
        let path = manifest_path(&collection.root, source);
        collection.refuse_link(&path)?;
        let damaged = |reason: String| Error::Manifest { path: path.to_string(), reason };
        let bytes = match collection.read(&path).await? {
            Content::Whole(bytes) => bytes,
            Content::Missing => return Ok(Self::default()),
            Content::TooLarge => {
                return Err(damaged("it is larger than any that longhaul writes".to_owned()));
            }
            Content::Unreadable(error) => return Err(damaged(error.to_string())),
        };
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if manifest.schema > FLEET_SCHEMA {
            return Err(damaged(format!("schema {}, known up to {FLEET_SCHEMA}", manifest.schema)));
        }
        Ok(manifest)
    }

    pub(crate) async fn write(&self, collection: &Collection, source: &str) -> Result<(), Error> {
        let path = manifest_path(&collection.root, source);
        let text = serde_json::to_vec(self).expect("a manifest is plain JSON");
        collection.write(&path, text).await
    }

    /// Returns the hash of an exported file; `None` if it was not exported.
    pub(crate) fn file(&self, week: Week, table: FleetTable) -> Option<u64> {
        self.weeks.get(&week)?.files.get(table.name()).copied()
    }
}
