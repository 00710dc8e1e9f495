//! Repairs or replaces the database when its file was removed, replaced or damaged.

use std::path::Path;
use std::time::Duration;

use longhaul_model::{Mount, Timestamp};
use longhaul_store::Error;

use crate::database::{Database, DatabaseHealth};
use crate::file_version::FileVersion;
use crate::target_path::real_path;

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
            // Only the log was removed, and without it the file is damaged.
            Err(Error::Damaged { .. }) if database.path().exists() => {
                database.start_new(mounts, now).map(|aside| quarantine_text(database.path(), &aside))
            }
            // Nothing can be written again; the removed file may still be somewhere.
            Err(Error::Damaged { .. }) => database.open_replacement(mounts).map(|()| {
                format!("the database {path} was removed while in use, and its data was damaged; a new one was created")
            }),
            restored => restored.map(|()| {
                format!("the database {path} or its log was removed while in use; longhaul wrote it again with all its data")
            }),
        },
        DatabaseHealth::Replaced => follow_replacement(database, mounts, now),
        DatabaseHealth::Damaged => {
            database.start_new(mounts, now).map(|aside| quarantine_text(database.path(), &aside))
        }
    };
    repaired
        .map(Some)
        .map_err(|error| format!("the database {path} is gone or damaged and could not be repaired: {error}"))
}

/// Continues with the file that was put in the database's place, after saving the previous data. Returns the message.
fn follow_replacement(database: &mut Database, mounts: &[Mount], now: Timestamp) -> Result<String, Error> {
    let path = database.path().to_owned();
    wait_until_settled(&path);
    // Nothing is saved again and again beside a file that cannot be used.
    if let Err(
        error @ (Error::Foreign { .. } | Error::SchemaTooNew { .. } | Error::PermissionDenied { .. }),
    ) = database.reader()
    {
        return Err(error);
    }
    let previous = match database.save_data(now) {
        Err(Error::Damaged { .. }) => "Its previous data was damaged and is not saved".to_owned(),
        saved => format!("Its previous data is saved in {}", saved?.display()),
    };
    let text = match database.open_replacement(mounts) {
        Err(Error::Damaged { .. }) => {
            let aside = database.start_new(mounts, now)?;
            format!("that file was damaged; it was moved to {} and a new one was created", aside.display())
        }
        opened => opened.map(|()| "longhaul continues with that file".to_owned())?,
    };
    Ok(format!("the database {} was replaced by another file; {text}. {previous}", path.display()))
}

/// Waits while a file is still being written, as a move from another disk does, but not for long.
fn wait_until_settled(path: &Path) {
    const INTERVAL: Duration = Duration::from_secs(1);
    const MAX_CHECKS: usize = 20;
    let mut last = FileVersion::of(path);
    for _ in 0..MAX_CHECKS {
        std::thread::sleep(INTERVAL);
        let now = FileVersion::of(path);
        if now == last {
            return;
        }
        last = now;
    }
}

/// Returns whether a path that a user has configured leads to another file than the database in use. Only links on local disks are
/// followed: the service must not wait for a share.
pub(super) fn is_other_file(named: &Path, own: &Path, mounts: &[Mount]) -> bool {
    named != own && real_path(named, mounts) != real_path(own, mounts)
}

/// Returns the message about a damaged database that was moved aside.
pub(super) fn quarantine_text(path: &Path, aside: &Path) -> String {
    let (path, aside) = (path.display(), aside.display());
    format!(
        "the database {path} was damaged; it was moved to {aside} and a new one was created. Its data can often be \
         recovered with `sqlite3 {aside} .recover`"
    )
}

#[cfg(test)]
mod tests {
    use longhaul_model::Protocol;
    use longhaul_store::NewRound;

    use super::*;

    #[test]
    fn configured_path_is_compared_without_a_look_at_a_share() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [link, share] = ["link", "share"].map(|name| root.join(name));
        std::fs::create_dir(&share).unwrap();
        std::os::unix::fs::symlink(&root, &link).unwrap();
        std::os::unix::fs::symlink(&root, share.join("link")).unwrap();
        let own = root.join("longhaul.sqlite");
        let disk = Mount::new("/", "disk", Protocol::Local("ext4".into()));
        let mounts = [disk, Mount::new(&share, "nas:/x", Protocol::Nfs(None))];
        let is_other = |named: &Path| is_other_file(named, &own, &mounts);
        assert!(!is_other(&own) && !is_other(&link.join("longhaul.sqlite")));
        assert!(is_other(&root.join("other.sqlite")));
        assert!(is_other(&share.join("link/longhaul.sqlite")), "its link on the share is not followed");
    }

    #[test]
    fn damaged_file_without_its_log_is_moved_aside_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        let round = NewRound::new(Timestamp::from_us(1), 1, longhaul_model::Scale::Quick);
        let (database, _) = Database::open(&path, &[], Timestamp::from_us(1)).unwrap();
        (0..600).for_each(|_| assert!(database.writer().begin_round(round.clone()).is_ok()));
        drop(database);
        let (mut database, _) = Database::open(&path, &[], Timestamp::from_us(2)).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let quarter = bytes.len() / 4;
        bytes[quarter..].fill(0xA5);
        std::fs::write(&path, &bytes).unwrap();
        std::fs::remove_file(folder.path().join("longhaul.sqlite-wal")).unwrap();
        let text = check_and_repair(&mut database, &[], Timestamp::from_us(3)).unwrap().unwrap();
        assert!(text.contains("it was moved to") && text.contains("longhaul.damaged-3.sqlite"), "{text}");
        assert_eq!(check_and_repair(&mut database, &[], Timestamp::from_us(4)), Ok(None));
    }
}
