//! Checks every file of a collection, and moves those that must not count out of the way.

use std::future::Future;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use longhaul_export::fleet::{FLEET_SCHEMA, FileLocation, FleetTable, inspect};
use longhaul_model::Timestamp;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};

use crate::Error;
use crate::error::text_of;
use crate::folder::ListedFile;
use crate::layout::{FileKey, MANIFESTS, MAX_FILE_BYTES, SCHEMA_PREFIX, template_path};
use crate::location::{Collection, Content};

/// Folder to which refused files are moved; no query reads it.
const REFUSED: &str = "refused";
/// Largest number of files in a collection: a hundred thousand machines write about a million in a week.
const MAX_LISTED: u64 = 10_000_000;
/// Largest number of files that must not count, all of which are reported.
const MAX_REFUSED: u64 = 100_000;
/// Longest time until a server lists the next file.
const LIST_TIMEOUT: Duration = Duration::from_mins(10);
/// Number of names that are tried for a refused file.
const MAX_NAMES: u32 = 1000;

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
/// values is refused with the reason; all others count. Files beside the tables are not longhaul's, and are not even read. A symbolic
/// link among the tables is refused, and neither followed nor moved.
///
/// # Errors
///
/// [`Error::Storage`], [`Error::Unreadable`], [`Error::TooMany`], [`Error::EndlessList`].
pub fn check(collection: &Collection, refused: RefusedFiles, now: Timestamp) -> Result<CheckReport, Error> {
    let checker = Checker { collection, refused, now, listed: 0, report: CheckReport::default() };
    crate::runtime::block_on(checker.run())
}

enum Checked {
    /// The file counts, with this number of rows.
    Counts(u64),
    /// The file belongs to the collection, but has no rows by design.
    Ignored,
    /// The file lies beside the tables, and longhaul did not write it.
    Foreign,
    /// The file does not count, and can be moved away.
    Refused(String),
    /// The file can be neither read nor moved.
    Unreadable(String),
}

struct Checker<'a> {
    collection: &'a Collection,
    refused: RefusedFiles,
    now: Timestamp,
    /// Number of files so far.
    listed: u64,
    report: CheckReport,
}

impl Checker<'_> {
    async fn run(mut self) -> Result<CheckReport, Error> {
        let collection = self.collection;
        match &collection.folder {
            Some(folder) => {
                let failed = |source| Error::Unreadable { folder: collection.name.clone(), source };
                for listed in folder.walk().map_err(failed)? {
                    self.visit(listed).await?;
                }
            }
            None => {
                let mut list = collection.store.list(Some(&collection.root));
                while let Some(found) = next_object(list.try_next(), &collection.name).await? {
                    let (path, size) = (found.location.to_string(), Some(found.size));
                    self.visit(ListedFile { path, location: Ok(found.location), size }).await?;
                }
            }
        }
        Ok(self.report)
    }

    async fn visit(&mut self, listed: ListedFile) -> Result<(), Error> {
        self.listed += 1;
        self.refuse_more_than(MAX_LISTED, self.listed, "files")?;
        match self.check(&listed).await? {
            Checked::Counts(rows) => {
                (self.report.files, self.report.rows) = (self.report.files + 1, self.report.rows + rows);
            }
            Checked::Ignored => {}
            Checked::Foreign => self.report.foreign += 1,
            Checked::Unreadable(reason) => {
                self.report.refused.push(RefusedFile { path: listed.path, reason });
            }
            Checked::Refused(reason) => {
                let reason = self.move_away(&listed, reason).await;
                self.report.refused.push(RefusedFile { path: listed.path, reason });
            }
        }
        self.refuse_more_than(MAX_REFUSED, self.report.refused.len() as u64, "files that must not count")
    }

    /// Moves a refused file away, if that is wanted. Returns the reason of the refusal, with that of a move that failed.
    async fn move_away(&self, listed: &ListedFile, reason: String) -> String {
        match (self.refused, &listed.location) {
            (RefusedFiles::Move, Ok(path)) => match move_refused(self.collection, path).await {
                Ok(()) => reason,
                Err(error) => format!("{reason}; it was not moved: {}", text_of(&error)),
            },
            (RefusedFiles::Keep, _) | (_, Err(_)) => reason,
        }
    }

    fn refuse_more_than(&self, limit: u64, found: u64, subject: &'static str) -> Result<(), Error> {
        let collection = self.collection.name.clone();
        if found > limit { Err(Error::TooMany { subject, limit, collection }) } else { Ok(()) }
    }

    async fn check(&self, listed: &ListedFile) -> Result<Checked, Error> {
        let root = &self.collection.root;
        let first = first_folder(root, &listed.path);
        let is_in_tables = first.starts_with(SCHEMA_PREFIX);
        if first == MANIFESTS || first == REFUSED {
            return Ok(Checked::Ignored);
        }
        let path = match &listed.location {
            Ok(path) => path,
            Err(_) if !is_in_tables => return Ok(Checked::Foreign),
            Err(reason) => return Ok(Checked::Unreadable(reason.clone())),
        };
        if is_template(root, path) {
            return Ok(Checked::Ignored);
        }
        let Some(key) = FileKey::of_path(root, path) else {
            return Ok(if is_in_tables { Checked::Refused(stray(first)) } else { Checked::Foreign });
        };
        let content = match listed.size {
            Some(size) if size > MAX_FILE_BYTES => Content::TooLarge,
            _ => self.collection.read(path).await?,
        };
        let place = FileLocation { table: key.table, source: &key.source, now: self.now };
        Ok(match content {
            Content::Whole(bytes) => inspect(&bytes, &place).map_or_else(Checked::Refused, Checked::Counts),
            Content::TooLarge => Checked::Refused("it is larger than any that longhaul exports".to_owned()),
            Content::Missing => Checked::Unreadable("it was removed during the check".to_owned()),
            Content::Unreadable(error) => Checked::Unreadable(format!("it cannot be read: {error}")),
        })
    }
}

/// Returns the next object of a list. A server may send empty parts of a list without end.
async fn next_object(
    next: impl Future<Output = object_store::Result<Option<ObjectMeta>>>,
    collection: &str,
) -> Result<Option<ObjectMeta>, Error> {
    match tokio::time::timeout(LIST_TIMEOUT, next).await {
        Ok(next) => next.map_err(Error::storage("list", &collection)),
        Err(_) => Err(Error::EndlessList(collection.to_owned())),
    }
}

/// Returns the first part of a path below the root of a collection.
fn first_folder<'p>(root: &Path, path: &'p str) -> &'p str {
    let root: &str = root.as_ref();
    let below = path.strip_prefix(root).unwrap_or(path).trim_start_matches('/');
    below.split('/').next().unwrap_or("")
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

/// Moves a file to the folder `refused`, and replaces nothing there.
async fn move_refused(collection: &Collection, path: &Path) -> Result<(), Error> {
    let below: String = path
        .prefix_match(&collection.root)
        .into_iter()
        .flatten()
        .map(|part| format!("/{}", part.as_ref()))
        .collect();
    let wanted = format!("{}/{REFUSED}{below}", collection.root);
    collection.refuse_link(&Path::from(wanted.as_str()))?;
    let to = free_name(collection, &wanted).await?;
    let moved = match &collection.folder {
        Some(folder) => folder.move_file(path, &to).map_err(in_folder),
        None => collection.store.rename(path, &to).await,
    };
    moved.map_err(Error::storage("move", path))
}

/// Returns a path that no file has: this one, or this one with a number.
async fn free_name(collection: &Collection, wanted: &str) -> Result<Path, Error> {
    for number in 0..MAX_NAMES {
        let suffix = if number == 0 { String::new() } else { format!(".{number}") };
        let name = Path::from(format!("{wanted}{suffix}"));
        if !is_taken(collection, &name).await? {
            return Ok(name);
        }
    }
    let full = std::io::Error::other(format!("{MAX_NAMES} files of this name are there"));
    Err(Error::storage("move a file to", &wanted)(in_folder(full)))
}

async fn is_taken(collection: &Collection, name: &Path) -> Result<bool, Error> {
    if let Some(folder) = &collection.folder {
        return Ok(folder.is_taken(name));
    }
    match collection.store.head(name).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(Error::storage("look for", name)(error)),
    }
}

fn in_folder(source: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "folder", source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::{BucketEnvironment, MissingCollection};

    #[test]
    fn collection_with_too_many_files_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one"), "").unwrap();
        let (address, missing) = (folder.path().to_str().unwrap(), MissingCollection::Begin);
        let collection = Collection::open(address, None, missing, BucketEnvironment::All).unwrap();
        let checked = |listed: u64| {
            let (now, report) = (Timestamp::from_us(0), CheckReport::default());
            let checker =
                Checker { collection: &collection, refused: RefusedFiles::Keep, now, listed, report };
            crate::runtime::block_on(checker.run())
        };
        assert_eq!(checked(MAX_LISTED - 1).unwrap().foreign, 1);
        let error = checked(MAX_LISTED).unwrap_err().to_string();
        assert!(error.starts_with("there are more than 10000000 files in "), "{error}");
    }
}
