//! The service's open database, and its repair when the file is removed, replaced or
//! damaged while the service runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_model::{Mount, Timestamp};
use longhaul_store::{Error, Reader, Result, SharedWriter, Store, Writer};

/// First bytes of every SQLite database (sqlite.org/fileformat.html, 1.3).
const SQLITE_HEADER: &[u8; 16] = b"SQLite format 3\0";

/// The open database, and the identity of its file for later checks.
pub struct Database {
    path: PathBuf,
    machine_id: String,
    writer: Arc<Writer>,
    shared: SharedWriter,
    file_identity: Option<(u64, u64)>,
}

/// The state of the database file since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseHealth {
    /// The file is the one that was opened.
    Healthy,
    /// The file no longer exists.
    Missing,
    /// Another file is now at the database's path.
    Replaced,
    /// The file no longer starts with the SQLite header.
    Damaged,
}

impl Database {
    /// Opens the database. A damaged one is moved aside and a new one is created; the
    /// second value is the path of the damaged file.
    ///
    /// # Errors
    ///
    /// Same as [`Store::open`], except for damage.
    pub fn open(path: &Path, mounts: &[Mount], now: Timestamp) -> Result<(Self, Option<PathBuf>)> {
        match Self::open_with_id(path, mounts, None) {
            Err(Error::Damaged { .. }) => {
                let aside = quarantine(path, now).map_err(|error| permission_error(path, &error))?;
                Ok((Self::open_with_id(path, mounts, None)?, Some(aside)))
            }
            other => other.map(|database| (database, None)),
        }
    }

    /// Opens the database. A new one gets the machine id `machine`, so that existing
    /// sandboxes are still recognized.
    fn open_with_id(path: &Path, mounts: &[Mount], machine: Option<&str>) -> Result<Self> {
        let mut store = Store::open(path, mounts)?;
        if let Some(machine) = machine {
            store.set_machine_id(machine)?;
        }
        let machine = store.machine_id().to_owned();
        let path = std::path::absolute(path).map_err(|error| permission_error(path, &error))?;
        let (writer, shared) = (Arc::new(Writer::spawn(store)), SharedWriter::default());
        shared.replace(&writer);
        Ok(Self { file_identity: file_identity(&path), path, machine_id: machine, writer, shared })
    }

    /// Returns the absolute path of the database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the random id of this installation.
    pub fn machine_id(&self) -> &str {
        &self.machine_id
    }

    /// Returns the database writer.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the database writer for another thread, which keeps it open until it has dropped it.
    pub fn writer_for_round(&self) -> Arc<Writer> {
        Arc::clone(&self.writer)
    }

    /// Returns a handle to the current writer that stays valid when the database is reopened.
    pub fn shared_writer(&self) -> SharedWriter {
        self.shared.clone()
    }

    /// Opens the database for reading.
    ///
    /// # Errors
    ///
    /// Same as [`Reader::open`].
    pub fn reader(&self) -> Result<Reader> {
        Reader::open(&self.path)
    }

    /// Returns the size of the database and its write-ahead log, in bytes. `None`: the file is missing.
    pub fn bytes(&self) -> Option<u64> {
        let [log, _] = wal_files(&self.path);
        let size = |path: &Path| std::fs::metadata(path).ok().map(|facts| facts.len());
        Some(size(&self.path)? + size(&log).unwrap_or(0))
    }

    /// Checks the database file by its inode and its first bytes.
    pub fn health(&self) -> DatabaseHealth {
        match file_identity(&self.path) {
            None => DatabaseHealth::Missing,
            now if now != self.file_identity => DatabaseHealth::Replaced,
            _ if has_sqlite_header(&self.path) => DatabaseHealth::Healthy,
            _ => DatabaseHealth::Damaged,
        }
    }

    /// Writes the database again after its file was removed. Nothing is lost, because
    /// SQLite still has the removed file open.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or opened.
    pub fn restore(&mut self, mounts: &[Mount]) -> Result<()> {
        let copy = sibling_path(&self.path, "restored");
        let _ = std::fs::remove_file(&copy);
        self.writer.copy_to(&copy)?;
        remove_wal_files(&self.path);
        std::fs::rename(&copy, &self.path).map_err(|error| permission_error(&self.path, &error))?;
        self.reopen(mounts)
    }

    /// Continues with a file that the user put in the database's place. Saves the old
    /// data in another file and returns its path.
    ///
    /// # Errors
    ///
    /// If the old data cannot be written or the new file cannot be opened.
    pub fn adopt_replacement(&mut self, mounts: &[Mount], now: Timestamp) -> Result<PathBuf> {
        let kept = sibling_path(&self.path, &format!("kept-{}", now.as_us()));
        self.writer.copy_to(&kept)?;
        self.reopen(mounts)?;
        Ok(kept)
    }

    /// Moves a damaged file aside and creates a new database with the same machine id.
    /// Returns the path of the damaged file.
    ///
    /// # Errors
    ///
    /// If the file cannot be moved or the new database cannot be opened.
    pub fn start_new(&mut self, mounts: &[Mount], now: Timestamp) -> Result<PathBuf> {
        let aside = quarantine(&self.path, now).map_err(|error| permission_error(&self.path, &error))?;
        self.reopen(mounts)?;
        Ok(aside)
    }

    fn reopen(&mut self, mounts: &[Mount]) -> Result<()> {
        let shared = self.shared.clone();
        let opened = Self::open_with_id(&self.path, mounts, Some(&self.machine_id))?;
        shared.replace(&opened.writer);
        *self = Self { shared, ..opened };
        Ok(())
    }
}

fn file_identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

fn has_sqlite_header(path: &Path) -> bool {
    let mut header = [0; 16];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut header))
        .is_ok_and(|()| header == *SQLITE_HEADER)
}

/// Inserts a word before the extension: `longhaul.sqlite` becomes `longhaul.WORD.sqlite`.
fn sibling_path(path: &Path, word: &str) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("{word}.{extension}"))
}

fn wal_files(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

/// Removes the write-ahead log of a removed file: SQLite would apply it to the next file of that name.
fn remove_wal_files(path: &Path) {
    for log in wal_files(path) {
        let _ = std::fs::remove_file(log);
    }
}

/// Moves a damaged database aside together with its write-ahead log, which may hold data that the file lacks.
fn quarantine(path: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let aside = sibling_path(path, &format!("damaged-{}", now.as_us()));
    std::fs::rename(path, &aside)?;
    for (from, to) in wal_files(path).iter().zip(wal_files(&aside)) {
        match std::fs::rename(from, to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

fn permission_error(path: &Path, error: &io::Error) -> Error {
    Error::PermissionDenied {
        path: path.to_owned(),
        operation: "move the database",
        detail: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Scale;
    use longhaul_store::NewRound;

    fn round() -> NewRound {
        NewRound {
            started: Timestamp::from_us(1),
            utc_offset_seconds: 0,
            seed: 1,
            scale: Scale::Quick,
            planned: vec![],
            scheduled: None,
            before: None,
        }
    }

    fn opened() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let (database, aside) =
            Database::open(&folder.path().join("longhaul.sqlite"), &[], Timestamp::from_us(1)).unwrap();
        assert_eq!(aside, None);
        database.writer().begin_round(round()).unwrap();
        (folder, database)
    }

    fn rounds(database: &Database) -> usize {
        database.reader().unwrap().rounds().unwrap().len()
    }

    #[test]
    fn removed_database_is_written_again_with_all_its_data() {
        let (_folder, mut database) = opened();
        let machine = database.machine_id().to_owned();
        for file in wal_files(database.path()).iter().map(PathBuf::as_path).chain([database.path()]) {
            let _ = std::fs::remove_file(file);
        }
        assert_eq!(database.health(), DatabaseHealth::Missing);
        database.writer().begin_round(round()).unwrap();
        database.restore(&[]).unwrap();
        assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 2));
        assert_eq!(database.machine_id(), machine);
    }

    #[test]
    fn replacement_file_is_adopted_and_the_old_data_is_saved() {
        let (folder, mut database) = opened();
        let other = folder.path().join("other.sqlite");
        drop(Database::open(&other, &[], Timestamp::from_us(1)).unwrap());
        remove_wal_files(database.path());
        std::fs::rename(&other, database.path()).unwrap();
        assert_eq!(database.health(), DatabaseHealth::Replaced);
        let saved = database.adopt_replacement(&[], Timestamp::from_us(7)).unwrap();
        assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 0));
        assert_eq!(Reader::open(&saved).unwrap().rounds().unwrap().len(), 1);
    }

    #[test]
    fn damaged_database_is_moved_aside_and_machine_id_stays() {
        let (_folder, mut database) = opened();
        let machine = database.machine_id().to_owned();
        std::fs::write(database.path(), vec![7; 9000]).unwrap();
        assert_eq!(database.health(), DatabaseHealth::Damaged);
        let aside = database.start_new(&[], Timestamp::from_us(7)).unwrap();
        assert!(aside.ends_with("longhaul.damaged-7.sqlite") && aside.exists());
        assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 0));
        assert_eq!(database.machine_id(), machine);
    }

    #[test]
    fn database_damaged_before_the_start_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        std::fs::write(&path, vec![7; 9000]).unwrap();
        let (database, aside) = Database::open(&path, &[], Timestamp::from_us(3)).unwrap();
        assert!(aside.unwrap().exists());
        assert_eq!(database.health(), DatabaseHealth::Healthy);
    }
}
