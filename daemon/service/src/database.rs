//! The service's database: kept open, watched, and never silently begun anew over what was there.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_measure::model::Mount;
use longhaul_store::{Error, Reader, Result, SharedWriter, Store, Writer};

/// What SQLite writes at the begin of every database (sqlite.org/fileformat.html, 1.3).
const HEADER: &[u8; 16] = b"SQLite format 3\0";

/// The database, open.
pub struct Database {
    path: PathBuf,
    machine: String,
    writer: Arc<Writer>,
    shared: SharedWriter,
    identity: Option<(u64, u64)>,
}

/// What became of the file while it was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It is the file that was opened.
    Fine,
    /// There is no file of its name any more.
    Gone,
    /// Another file has its name.
    Replaced,
    /// It does not begin as a database any more.
    Damaged,
}

impl Database {
    /// Opens the database. One that is damaged is moved aside, and a new one is begun: where to is said.
    ///
    /// # Errors
    ///
    /// As [`Store::open`], but for damage.
    pub fn open(path: &Path, mounts: &[Mount], now_us: i64) -> Result<(Self, Option<PathBuf>)> {
        match Self::open_as(path, mounts, None) {
            Err(Error::Damaged { .. }) => {
                let aside = set_aside(path, now_us).map_err(|error| denied(path, &error))?;
                Ok((Self::open_as(path, mounts, None)?, Some(aside)))
            }
            other => other.map(|database| (database, None)),
        }
    }

    /// Opens it, and gives a new one this machine's id, by which arenas are found again.
    fn open_as(path: &Path, mounts: &[Mount], machine: Option<&str>) -> Result<Self> {
        let mut store = Store::open(path, mounts)?;
        if let Some(machine) = machine {
            store.adopt(machine)?;
        }
        let machine = store.machine_id().to_owned();
        let path = std::path::absolute(path).map_err(|error| denied(path, &error))?;
        let (writer, shared) = (Arc::new(Writer::spawn(store)), SharedWriter::default());
        shared.set(&writer);
        Ok(Self { identity: identity(&path), path, machine, writer, shared })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The machine's id.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// The one who writes.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The same for who lives longer than a writer.
    pub fn shared_writer(&self) -> SharedWriter {
        self.shared.clone()
    }

    /// Opens it for reading.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`].
    pub fn reader(&self) -> Result<Reader> {
        Reader::open(&self.path)
    }

    /// What it takes on disk with its log, in bytes; `None`: it is not there.
    pub fn bytes(&self) -> Option<u64> {
        let [log, _] = log_files(&self.path);
        let size = |path: &Path| std::fs::metadata(path).ok().map(|facts| facts.len());
        Some(size(&self.path)? + size(&log).unwrap_or(0))
    }

    /// What became of the file. A look at its name and its first bytes.
    pub fn health(&self) -> Health {
        match identity(&self.path) {
            None => Health::Gone,
            now if now != self.identity => Health::Replaced,
            _ if begins_as_a_database(&self.path) => Health::Fine,
            _ => Health::Damaged,
        }
    }

    /// Writes all that the open database holds to its name again, after the file was removed. SQLite still has it open,
    /// so that nothing is lost.
    ///
    /// # Errors
    ///
    /// Those of writing and opening it.
    pub fn restore(&mut self, mounts: &[Mount]) -> Result<()> {
        let copy = beside(&self.path, "restored");
        let _ = std::fs::remove_file(&copy);
        self.writer.copy_to(&copy)?;
        leave_logs(&self.path);
        std::fs::rename(&copy, &self.path).map_err(|error| denied(&self.path, &error))?;
        self.reopen(mounts)
    }

    /// Keeps all that the open database holds in a file of another name, after somebody put another file in its place,
    /// and goes on with that one.
    ///
    /// # Errors
    ///
    /// Those of writing and opening it.
    pub fn yield_to_other(&mut self, mounts: &[Mount], now_us: i64) -> Result<PathBuf> {
        let kept = beside(&self.path, &format!("kept-{now_us}"));
        self.writer.copy_to(&kept)?;
        self.reopen(mounts)?;
        Ok(kept)
    }

    /// Moves a damaged file aside and begins a new database of the same machine.
    ///
    /// # Errors
    ///
    /// Those of moving and opening it.
    pub fn begin_anew(&mut self, mounts: &[Mount], now_us: i64) -> Result<PathBuf> {
        let aside = set_aside(&self.path, now_us).map_err(|error| denied(&self.path, &error))?;
        self.reopen(mounts)?;
        Ok(aside)
    }

    fn reopen(&mut self, mounts: &[Mount]) -> Result<()> {
        let shared = self.shared.clone();
        let opened = Self::open_as(&self.path, mounts, Some(&self.machine))?;
        shared.set(&opened.writer);
        *self = Self { shared, ..opened };
        Ok(())
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

fn begins_as_a_database(path: &Path) -> bool {
    let mut header = [0; 16];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).is_ok_and(|()| header == *HEADER)
}

/// `longhaul.sqlite` becomes `longhaul.WORD.sqlite`.
fn beside(path: &Path, word: &str) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("{word}.{extension}"))
}

fn log_files(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

/// The log of a file that is gone must not be taken for that of the file that takes its name.
fn leave_logs(path: &Path) {
    for log in log_files(path) {
        let _ = std::fs::remove_file(log);
    }
}

/// Moves a database aside with its log, which may hold what the file lacks.
fn set_aside(path: &Path, now_us: i64) -> io::Result<PathBuf> {
    let aside = beside(path, &format!("damaged-{now_us}"));
    std::fs::rename(path, &aside)?;
    for (from, to) in log_files(path).iter().zip(log_files(&aside)) {
        match std::fs::rename(from, to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

fn denied(path: &Path, error: &io::Error) -> Error {
    Error::Denied { path: path.to_owned(), operation: "move the database", detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_measure::model::Scale;
    use longhaul_store::NewRound;

    fn round() -> NewRound {
        NewRound {
            started_us: 1,
            utc_offset_seconds: 0,
            seed: 1,
            scale: Scale::Quick,
            planned: vec![],
            scheduled_us: None,
            before: None,
        }
    }

    fn opened() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let (database, aside) = Database::open(&folder.path().join("longhaul.sqlite"), &[], 1).unwrap();
        assert_eq!(aside, None);
        database.writer().begin_round(round()).unwrap();
        (folder, database)
    }

    fn rounds(database: &Database) -> usize {
        database.reader().unwrap().rounds().unwrap().len()
    }

    #[test]
    fn a_database_that_was_removed_is_written_again_with_all_that_it_held() {
        let (_folder, mut database) = opened();
        let machine = database.machine().to_owned();
        for file in log_files(database.path()).iter().map(PathBuf::as_path).chain([database.path()]) {
            let _ = std::fs::remove_file(file);
        }
        assert_eq!(database.health(), Health::Gone);
        database.writer().begin_round(round()).unwrap();
        database.restore(&[]).unwrap();
        assert_eq!((database.health(), rounds(&database)), (Health::Fine, 2));
        assert_eq!(database.machine(), machine);
    }

    #[test]
    fn a_database_that_took_its_place_is_gone_on_with_and_ours_is_kept() {
        let (folder, mut database) = opened();
        let other = folder.path().join("other.sqlite");
        drop(Database::open(&other, &[], 1).unwrap());
        leave_logs(database.path());
        std::fs::rename(&other, database.path()).unwrap();
        assert_eq!(database.health(), Health::Replaced);
        let kept = database.yield_to_other(&[], 7).unwrap();
        assert_eq!((database.health(), rounds(&database)), (Health::Fine, 0));
        assert_eq!(Reader::open(&kept).unwrap().rounds().unwrap().len(), 1);
    }

    #[test]
    fn a_damaged_database_is_moved_aside_and_the_machine_keeps_its_id() {
        let (_folder, mut database) = opened();
        let machine = database.machine().to_owned();
        std::fs::write(database.path(), vec![7; 9000]).unwrap();
        assert_eq!(database.health(), Health::Damaged);
        let aside = database.begin_anew(&[], 7).unwrap();
        assert!(aside.ends_with("longhaul.damaged-7.sqlite") && aside.exists());
        assert_eq!((database.health(), rounds(&database)), (Health::Fine, 0));
        assert_eq!(database.machine(), machine);
    }

    #[test]
    fn damage_that_is_found_at_the_start_is_moved_aside_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("longhaul.sqlite");
        std::fs::write(&path, vec![7; 9000]).unwrap();
        let (database, aside) = Database::open(&path, &[], 3).unwrap();
        assert!(aside.unwrap().exists());
        assert_eq!(database.health(), Health::Fine);
    }
}
