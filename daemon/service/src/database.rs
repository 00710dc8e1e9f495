//! The service's open database, and its repair when the file is removed, replaced or
//! damaged while the service runs.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_model::{Mount, Timestamp};
use longhaul_store::{Error, Reader, Result, SharedWriter, Store, Writer};
use longhaul_store::{database_bytes, has_sqlite_header, wal_files};

/// The open database, and the identity of its file for later checks.
pub struct Database {
    path: PathBuf,
    machine_id: String,
    writer: Arc<Writer>,
    shared: SharedWriter,
    file_identity: Option<(u64, u64)>,
    /// Identity of the write-ahead log, which stays the same file while the database is open.
    log_identity: Option<(u64, u64)>,
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
    /// The file or its write-ahead log no longer exists.
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
    /// Same as [`Store::open`]. A damaged file is moved aside only if its header or its name shows that it is a database of SQLite; any
    /// other file stays where it is, and is an error.
    pub fn open(path: &Path, mounts: &[Mount], now: Timestamp) -> Result<(Self, Option<PathBuf>)> {
        match Self::open_with_id(path, mounts, None) {
            Err(Error::Damaged { .. }) if may_be_sqlite(path) => {
                let machine = Reader::open(path).and_then(|reader| reader.own_machine_id()).ok().flatten();
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
        // SQLite keeps the log beside the file that a symbolic link leads to.
        let resolved = if path.is_symlink() { path.canonicalize() } else { std::path::absolute(path) };
        let path = resolved.map_err(|error| permission_error(path, &error))?;
        let (writer, shared) = (Arc::new(Writer::spawn(store)), SharedWriter::default());
        shared.replace(&writer);
        let [log, _] = wal_files(&path);
        let (file_identity, log_identity) = (file_identity(&path), file_identity(&log));
        Ok(Self { file_identity, log_identity, path, machine_id: machine, writer, shared, header: None })
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
    pub fn reader(&self) -> Result<Reader> {
        Reader::open(&self.path)
    }

    /// Returns the size of the database and its write-ahead log, in bytes. `None`: the file is missing.
    pub fn bytes(&self) -> Option<u64> {
        database_bytes(&self.path).ok()
    }

    /// Checks the database file by its inode and that of its log, its first bytes, and the damage that writes met.
    pub fn health(&self) -> DatabaseHealth {
        let [log, _] = wal_files(&self.path);
        match file_identity(&self.path) {
            None => DatabaseHealth::Missing,
            now if now != self.file_identity => DatabaseHealth::Replaced,
            _ if self.log_identity.is_some() && file_identity(&log) != self.log_identity => {
                DatabaseHealth::Missing
            }
            _ if !self.header.as_ref().is_none_or(has_sqlite_header) || self.writer.has_damaged_pages() => {
                DatabaseHealth::Damaged
            }
            _ => DatabaseHealth::Healthy,
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
        if let Err(error) = self.writer.copy_to(&copy) {
            let _ = std::fs::remove_file(&copy);
            return Err(error);
        }
        self.put_in_place(&copy)?;
        self.reopen(mounts)
    }

    /// Saves the data of the file that was opened in another file, and returns its path.
    ///
    /// # Errors
    ///
    /// If the data cannot be read or written.
    pub fn save_data(&self, now: Timestamp) -> Result<PathBuf> {
        let kept = sibling_path(&self.path, &format!("kept-{}", now.as_us()));
        match self.writer.copy_to(&kept) {
            Ok(()) => Ok(kept),
            Err(error) => {
                let _ = std::fs::remove_file(&kept);
                Err(error)
            }
        }
    }

    /// Continues with the file that is in the database's place now, or with a new one, without the data of the file that was opened.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn open_replacement(&mut self, mounts: &[Mount]) -> Result<()> {
        let now = file_identity(&self.path);
        if now == self.file_identity {
            // It was moved back meanwhile.
            return Ok(());
        }
        let [log, _] = wal_files(&self.path);
        let has_own_log = self.log_identity.is_none() || file_identity(&log) != self.log_identity;
        if now.is_none() {
            remove_wal_files(&self.path).map_err(|error| permission_error(&self.path, &error))?;
        } else if !has_own_log {
            // A reader of this process may have opened the replacement with the old log, and connections of a process to one file share
            // the index of its log. So the replacement gets a file of its own.
            let copy = sibling_path(&self.path, "restored");
            copy_file(&self.path, &copy).map_err(|error| permission_error(&copy, &error))?;
            self.put_in_place(&copy)?;
        }
        self.reopen(mounts)
    }

    /// Moves a copy to the path of the database, without the log that lies there: SQLite would apply it to the next file of that name.
    fn put_in_place(&self, copy: &Path) -> Result<()> {
        remove_wal_files(&self.path)
            .and_then(|()| std::fs::rename(copy, &self.path))
            .map_err(|error| permission_error(&self.path, &error))
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

/// Returns whether a file is a database of SQLite, by its first bytes or, as these may be damaged, by its name.
fn may_be_sqlite(path: &Path) -> bool {
    let is_named =
        path.extension().is_some_and(|extension| extension.as_encoded_bytes().starts_with(b"sqlite"));
    is_named || File::open(path).is_ok_and(|file| has_sqlite_header(&file))
}

fn file_identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Inserts a word before the extension: `longhaul.sqlite` becomes `longhaul.WORD.sqlite`.
fn sibling_path(path: &Path, word: &str) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("{word}.{extension}"))
}

/// Removes the write-ahead log of a file, and its index.
fn remove_wal_files(path: &Path) -> io::Result<()> {
    wal_files(path).iter().try_for_each(|log| match std::fs::remove_file(log) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
}

/// Copies a file to the disk, whether or not there is an older copy.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to)?;
    File::open(to)?.sync_all()
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
mod tests;
