//! Names of the objects in a collection: `schema=1/table=runs/week=2026-W47/machine=<source>/data.parquet`.

use longhaul_export::fleet::{FLEET_SCHEMA, FleetTable, Week};
use object_store::path::Path;

/// Name of the file in the folder of each table, week and machine. Queries read files of this name only, so that a stray copy
/// next to one never counts.
pub const FILE_NAME: &str = "data.parquet";
/// Folder of the files that say what each machine has exported.
pub(crate) const MANIFESTS: &str = "manifests";

/// Begin of the name of the folder of all tables; the version of the tables follows.
pub(crate) const SCHEMA_PREFIX: &str = "schema=";

/// Size of a file from which it is not read. A week of one machine has some hundred kilobytes.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;

/// Position of a file in a collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileKey {
    /// Table that the file belongs to.
    pub table: FleetTable,
    /// Week of its rows.
    pub week: Week,
    /// Source of its rows: one database of one machine.
    pub source: String,
}

impl FileKey {
    /// Returns the path of the file below the root of the collection.
    pub fn path(&self, root: &Path) -> Path {
        let Self { table, week, source } = self;
        let folders = [
            format!("{SCHEMA_PREFIX}{FLEET_SCHEMA}"),
            format!("table={}", table.name()),
            format!("week={week}"),
            format!("machine={source}"),
        ];
        folders.into_iter().fold(root.clone(), Path::join).join(FILE_NAME)
    }

    /// Returns the key of a path below the root of the collection; `None` if the path is not that of a table's file.
    pub fn of_path(root: &Path, path: &Path) -> Option<Self> {
        let parts: Vec<String> = path.prefix_match(root)?.map(|part| part.as_ref().to_owned()).collect();
        let [schema, table, week, machine, file] = parts.as_slice() else { return None };
        let schema = schema.strip_prefix(SCHEMA_PREFIX)?;
        if file != FILE_NAME || schema.parse() != Ok(FLEET_SCHEMA) {
            return None;
        }
        Some(Self {
            table: FleetTable::from_name(table.strip_prefix("table=")?)?,
            week: week.strip_prefix("week=")?.parse().ok()?,
            source: machine.strip_prefix("machine=")?.to_owned(),
        })
    }
}

/// Returns the path of the file without rows that shows queries the columns of a table.
pub(crate) fn template_path(root: &Path, table: FleetTable) -> Path {
    let folders = [
        format!("{SCHEMA_PREFIX}{FLEET_SCHEMA}"),
        format!("table={}", table.name()),
        "week=0000-W00".to_owned(),
        "machine=none".to_owned(),
    ];
    folders.into_iter().fold(root.clone(), Path::join).join(FILE_NAME)
}

/// Returns the path of the manifest of a source.
pub(crate) fn manifest_path(root: &Path, source: &str) -> Path {
    root.clone().join(MANIFESTS).join(format!("{source}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_file_leads_back_to_its_key() {
        let key = FileKey {
            table: FleetTable::Operations,
            week: "2026-W47".parse().unwrap(),
            source: "c0ffee-0001".to_owned(),
        };
        let root = Path::from("fleet/all");
        let path = key.path(&root);
        assert_eq!(
            path.as_ref(),
            "fleet/all/schema=1/table=operations/week=2026-W47/machine=c0ffee-0001/data.parquet"
        );
        assert_eq!(FileKey::of_path(&root, &path), Some(key));
    }

    #[test]
    fn stray_files_and_other_schemas_have_no_key() {
        let root = Path::from("fleet");
        for stray in [
            "fleet/schema=2/table=runs/week=2026-W47/machine=a/data.parquet",
            "fleet/schema=1/table=runs/week=2026-W47/machine=a/data (1).parquet",
            "fleet/schema=1/table=notes/week=2026-W47/machine=a/data.parquet",
            "fleet/manifests/a.json",
            "other/schema=1/table=runs/week=2026-W47/machine=a/data.parquet",
        ] {
            assert_eq!(FileKey::of_path(&root, &Path::from(stray)), None, "{stray}");
        }
    }
}
