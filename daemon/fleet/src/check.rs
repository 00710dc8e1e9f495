//! Checks every file of a collection, and moves those that must not count out of the way.

use futures_util::TryStreamExt as _;
use longhaul_export::fleet::{FLEET_SCHEMA, FleetTable, Place, inspect};
use longhaul_model::Timestamp;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use crate::Error;
use crate::layout::{FileKey, MANIFESTS, SCHEMA_PREFIX, template_path};
use crate::location::Collection;

/// Folder to which refused files are moved; no query reads it.
const REFUSED: &str = "refused";

/// Size of a file from which it is not read. A week of one machine has some hundred kilobytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Treatment of refused files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedFiles {
    /// They are reported only.
    Keep,
    /// They are moved to the folder `refused`, so that queries read only the others.
    Move,
}

/// A file that must not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFile {
    /// Path in the collection.
    pub path: String,
    /// Reason, as text for the user.
    pub reason: String,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Number of files that count.
    pub files: u64,
    /// Number of their rows.
    pub rows: u64,
    /// Number of files beside the tables that longhaul did not write. They are left alone.
    pub foreign: u64,
    /// Files that must not count.
    pub refused: Vec<RefusedFile>,
}

/// Reads every file of a collection. A file that is damaged, of a newer schema, copied from another machine or with impossible
/// values is refused with the reason; all others count. Files beside the tables are not longhaul's, and are not even read.
///
/// # Errors
///
/// [`Error::Storage`].
pub fn check(collection: &Collection, refused: RefusedFiles, now: Timestamp) -> Result<CheckReport, Error> {
    crate::runtime::block_on(async {
        let mut report = CheckReport::default();
        let listed = collection.store.list(Some(&collection.root)).try_collect::<Vec<_>>().await;
        let mut paths: Vec<Path> = listed
            .map_err(Error::storage("list", &collection.name))?
            .into_iter()
            .map(|found| found.location)
            .collect();
        paths.sort_unstable();
        for path in paths {
            match check_file(collection, &path, now).await? {
                Checked::Counts(rows) => (report.files, report.rows) = (report.files + 1, report.rows + rows),
                Checked::Ignored => {}
                Checked::Foreign => report.foreign += 1,
                Checked::Refused(reason) => {
                    if refused == RefusedFiles::Move {
                        move_refused(collection, &path).await?;
                    }
                    report.refused.push(RefusedFile { path: path.to_string(), reason });
                }
            }
        }
        Ok(report)
    })
}

enum Checked {
    /// The file counts, with this number of rows.
    Counts(u64),
    /// The file belongs to the collection, but has no rows by design.
    Ignored,
    /// The file lies beside the tables, and longhaul did not write it.
    Foreign,
    Refused(String),
}

async fn check_file(collection: &Collection, path: &Path, now: Timestamp) -> Result<Checked, Error> {
    let root = &collection.root;
    let parts: Vec<String> =
        path.prefix_match(root).into_iter().flatten().map(|part| part.as_ref().to_owned()).collect();
    let first = parts.first().map_or("", String::as_str);
    if first == MANIFESTS || first == REFUSED || is_template(root, path) {
        return Ok(Checked::Ignored);
    }
    let Some(key) = FileKey::of_path(root, path) else {
        let is_in_tables = first.starts_with(SCHEMA_PREFIX);
        return Ok(if is_in_tables { Checked::Refused(stray(first)) } else { Checked::Foreign });
    };
    let read = collection.store.get(path).await.map_err(Error::storage("read", path))?;
    if read.meta.size > MAX_FILE_BYTES {
        return Ok(Checked::Refused("it is larger than any that longhaul exports".to_owned()));
    }
    let bytes = read.bytes().await.map_err(Error::storage("read", path))?;
    let place = Place { table: key.table, source: &key.source, now };
    Ok(inspect(&bytes, &place).map_or_else(Checked::Refused, Checked::Counts))
}

fn is_template(root: &Path, path: &Path) -> bool {
    FleetTable::ALL.iter().any(|table| template_path(root, *table) == *path)
}

/// Returns why a file with an unknown place among the tables does not count.
fn stray(first_folder: &str) -> String {
    let schema = first_folder.strip_prefix(SCHEMA_PREFIX).and_then(|schema| schema.parse::<u64>().ok());
    match schema {
        Some(schema) if schema > FLEET_SCHEMA => {
            format!(
                "it was written by a newer longhaul (schema {schema}, this program supports up to {FLEET_SCHEMA})"
            )
        }
        _ => "it is not a file that `longhaul export fleet` writes".to_owned(),
    }
}

async fn move_refused(collection: &Collection, path: &Path) -> Result<(), Error> {
    let below: String = path
        .prefix_match(&collection.root)
        .into_iter()
        .flatten()
        .map(|part| format!("/{}", part.as_ref()))
        .collect();
    let to = Path::from(format!("{}/{REFUSED}{below}", collection.root));
    collection.store.rename(path, &to).await.map_err(Error::storage("move", path))
}
