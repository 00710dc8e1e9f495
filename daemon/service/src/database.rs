//! The service's open database, and its repair when the file is removed, replaced or
//! damaged while the service runs.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
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
    /// The file, for reading its header; `None` if it could not be opened. It stays open as long as the service
    /// uses the file: closing any handle of a file takes away all locks of this process on it (POSIX.1, fcntl; sqlite.org/howtocorrupt.html,
    /// 2.2). The next other program that closes the database would then take itself for the last one, and delete the log
    /// with runs that are not in the database yet.
    header: Option<File>,
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
    /// The file no longer starts with the SQLite header, or a write met a damaged page.
    Damaged,
}

impl Database {
    /// Opens the database. A damaged one is moved aside and a new one is created, with the same machine id if that can
    /// still be read; the second value is the path of the damaged file.
    ///
    /// # Errors
    ///
    /// Same as [`Store::open`], except for damage.
    pub fn open(path: &Path, mounts: &[Mount], now: Timestamp) -> Result<(Self, Option<PathBuf>)> {
        match Self::open_with_id(path, mounts, None) {
            Err(Error::Damaged { .. }) => {
                let machine = Reader::open(path).and_then(|reader| reader.machine_id()).ok().flatten();
                let aside = quarantine(path, now).map_err(|error| permission_error(path, &error))?;
                Ok((Self::open_with_id(path, mounts, machine.as_deref())?, Some(aside)))
            }
            other => other.map(|database| (database, None)),
        }
    }

    /// Opens the database. A new one gets the machine id `machine`, so that existing
    /// sandboxes are still recognized.
    fn open_with_id(path: &Path, mounts: &[Mount], machine: Option<&str>) -> Result<Self> {
        let mut database = Self::open_without_header(path, mounts, machine)?;
        database.header = File::open(path).ok();
        Ok(database)
    }

    fn open_without_header(path: &Path, mounts: &[Mount], machine: Option<&str>) -> Result<Self> {
        let mut store = Store::open(path, mounts)?;
        if let Some(machine) = machine {
            store.set_machine_id(machine)?;
        }
        let machine = store.machine_id().to_owned();
        let path = std::path::absolute(path).map_err(|error| permission_error(path, &error))?;
        let (writer, shared) = (Arc::new(Writer::spawn(store)), SharedWriter::default());
        shared.replace(&writer);
        let file_identity = file_identity(&path);
        Ok(Self { file_identity, path, machine_id: machine, writer, shared, header: None })
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

    /// Checks the database file by its inode, its first bytes, and the damage that writes met.
    pub fn health(&self) -> DatabaseHealth {
        match file_identity(&self.path) {
            None => DatabaseHealth::Missing,
            now if now != self.file_identity => DatabaseHealth::Replaced,
            _ if !self.has_sqlite_header() || self.writer.has_damaged_pages() => DatabaseHealth::Damaged,
            _ => DatabaseHealth::Healthy,
        }
    }

    fn has_sqlite_header(&self) -> bool {
        let mut header = [0; SQLITE_HEADER.len()];
        let read = |file: &File| file.read_exact_at(&mut header, 0).is_ok() && header == *SQLITE_HEADER;
        self.header.as_ref().is_none_or(read)
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
        if let Err(error) = self.writer.copy_to(&copy) {
            let _ = std::fs::remove_file(&copy);
            return Err(error);
        }
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
        if let Err(error) = self.writer.copy_to(&kept) {
            let _ = std::fs::remove_file(&kept);
            return Err(error);
        }
        self.reopen(mounts)?;
        Ok(kept)
    }

    /// Continues with the file that is in the database's place now, or with a new one, and gives up the data of the file that was
    /// opened.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn give_up(&mut self, mounts: &[Mount]) -> Result<()> {
        if self.health() == DatabaseHealth::Missing {
            remove_wal_files(&self.path);
        }
        self.reopen(mounts)
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
        let mut opened = Self::open_without_header(&self.path, mounts, Some(&self.machine_id))?;
        let is_same_file = opened.file_identity == self.file_identity;
        opened.header = if is_same_file { self.header.take() } else { File::open(&self.path).ok() };
        shared.replace(&opened.writer);
        *self = Self { shared, ..opened };
        Ok(())
    }
}

fn file_identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
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
    use std::collections::BTreeSet;

    use super::*;
    use longhaul_model::Event;
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

    #[test]
    fn damaged_database_that_was_moved_away_is_given_up_for_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        let (whole, machine) = filled(&path);
        let (mut database, _) = Database::open(&path, &[], Timestamp::from_us(3)).unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 4..].fill(0xA5);
        std::fs::write(&path, &damaged).unwrap();
        std::fs::rename(&path, folder.path().join("old.sqlite")).unwrap();
        assert!(matches!(database.restore(&[]), Err(Error::Damaged { .. })));
        database.give_up(&[]).unwrap();
        assert_eq!((database.health(), rounds(&database)), (DatabaseHealth::Healthy, 0));
        assert_eq!(database.machine_id(), machine, "the sandboxes are found again");
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().contains("restored")), "{left:?}");
    }

    /// Size of a page of a new database in bytes.
    const PAGE: usize = 4096;

    fn event(detail: &str) -> Event {
        Event {
            target: None,
            kind: "note".to_owned(),
            detail: serde_json::json!({ "what": detail }),
            at_us: Timestamp::from_us(1),
        }
    }

    /// Writes a database with tables and indexes of several levels, and long values, and returns its bytes and machine id.
    fn filled(path: &Path) -> (Vec<u8>, String) {
        let (database, _) = Database::open(path, &[], Timestamp::from_us(1)).unwrap();
        for number in 0..600 {
            database.writer().begin_round(round()).unwrap();
            database.writer().add_event(event(&format!("{number} {}", "long ".repeat(60)))).unwrap();
        }
        database.writer().add_event(event(&"x".repeat(3 * PAGE))).unwrap();
        let machine = database.machine_id().to_owned();
        drop(database);
        (std::fs::read(path).unwrap(), machine)
    }

    /// Uses a database as the service does: what writes find damaged is set aside. Returns the error of reading.
    fn use_database(database: &mut Database) -> Option<Error> {
        let write = |database: &Database| {
            database.writer().begin_round(round()).and(database.writer().add_event(event("new")).map(drop))
        };
        if write(database).is_err() {
            assert_eq!(database.health(), DatabaseHealth::Damaged);
            database.start_new(&[], Timestamp::from_us(7)).unwrap();
            write(database).unwrap();
        }
        let reader = database.reader().unwrap();
        reader.rounds().err().or_else(|| reader.events(None).err())
    }

    #[test]
    fn database_with_any_damaged_page_is_used_or_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        let (whole, machine) = filled(&path);
        let kinds: BTreeSet<u8> = whole.chunks(PAGE).skip(1).map(|page| page[0]).collect();
        assert!([0x02, 0x05, 0x0a, 0x0d].iter().all(|kind| kinds.contains(kind)), "{kinds:x?}");
        let (mut set_aside, mut kept) = (0, 0);
        for page in 0..whole.len() / PAGE {
            let mut damaged = whole.clone();
            damaged[page * PAGE..][..PAGE].fill(0xA5);
            std::fs::write(&path, &damaged).unwrap();
            let (mut database, mut aside) = Database::open(&path, &[], Timestamp::from_us(3)).unwrap();
            kept += usize::from(database.machine_id() == machine);
            let error = use_database(&mut database);
            let found_later = sibling_path(&path, "damaged-7");
            aside = aside.or_else(|| found_later.exists().then_some(found_later));
            assert!(matches!(error, None | Some(Error::Damaged { .. })), "page {page}: {error:?}");
            assert!(aside.is_none() || error.is_none(), "page {page}: the new database is whole");
            set_aside += usize::from(aside.is_some());
            drop(database);
            for file in std::fs::read_dir(folder.path()).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
        assert!(set_aside > 0, "pages that are written to are set aside");
        assert!(
            whole.len() / PAGE - kept < 10,
            "only damage of the schema and the id itself costs the machine id"
        );
    }
}
