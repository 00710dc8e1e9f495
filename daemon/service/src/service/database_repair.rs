//! Repairs or replaces the database when its file was removed, replaced or damaged.

use std::path::Path;

use longhaul_model::{Mount, Timestamp};
use longhaul_store::Error;

use crate::database::{Database, DatabaseHealth};

/// Checks that the database file is still the one that was opened, and repairs or replaces it if not. Returns the
/// message for the user. `None`: the file is healthy.
///
/// # Errors
///
/// If the database cannot be repaired: the message for the user.
pub(super) fn check_and_repair(
    database: &mut Database,
    mounts: &[Mount],
    now: Timestamp,
) -> Result<Option<String>, String> {
    let path = database.path().display().to_string();
    let repaired = match database.health() {
        DatabaseHealth::Healthy => return Ok(None),
        DatabaseHealth::Missing => match database.restore(mounts) {
            // Nothing can be written again; the removed file may still be somewhere.
            Err(Error::Damaged { .. }) => database.give_up(mounts).map(|()| {
                format!("the database {path} was removed while in use, and its data was damaged; a new one was created")
            }),
            restored => restored.map(|()| {
                format!("the database {path} was removed while in use; longhaul wrote it again with all its data")
            }),
        },
        DatabaseHealth::Replaced => match database.adopt_replacement(mounts, now) {
            Err(Error::Damaged { .. }) => database.give_up(mounts).map(|()| {
                format!(
                    "the database {path} was replaced by another file; longhaul continues with that file. Its previous data was \
                     damaged and is not saved"
                )
            }),
            adopted => adopted.map(|saved| {
                format!(
                    "the database {path} was replaced by another file; longhaul continues with that file \
                     and saved its previous data in {}",
                    saved.display()
                )
            }),
        },
        DatabaseHealth::Damaged => {
            database.start_new(mounts, now).map(|aside| quarantine_text(database.path(), &aside))
        }
    };
    repaired
        .map(Some)
        .map_err(|error| format!("the database {path} is gone or damaged and could not be repaired: {error}"))
}

/// Returns the message about a damaged database that was moved aside.
pub(super) fn quarantine_text(path: &Path, aside: &Path) -> String {
    let (path, aside) = (path.display(), aside.display());
    format!(
        "the database {path} was damaged; it was moved to {aside} and a new one was created. Its data can often be \
         recovered with `sqlite3 {aside} .recover`"
    )
}
