//! How the command line finds the service: a file beside the database that only its owner may read.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What has to be known to talk to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// Its process.
    pub pid: u32,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// What every order has to carry.
    pub token: String,
    /// Its version.
    pub version: String,
    /// Wall clock at its start, in microseconds since 1970 UTC.
    pub started_us: i64,
}

impl Contact {
    /// The file that belongs to a database.
    pub fn path(database: &Path) -> PathBuf {
        database.with_extension("daemon.json")
    }

    /// Reads the file; `None`: there is none, or it says nothing.
    pub fn read(database: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(database)).ok()?).ok()
    }

    /// Writes the file, complete or not at all, for its owner only.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn write(&self, database: &Path) -> io::Result<()> {
        let path = Self::path(database);
        let draft = path.with_extension("draft");
        let _ = std::fs::remove_file(&draft);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(draft, path)
    }

    /// Removes the file if it is still this service's.
    pub fn remove(&self, database: &Path) {
        if Self::read(database).as_ref() == Some(self) {
            let _ = std::fs::remove_file(Self::path(database));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_may_read_it_and_only_its_writer_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        let contact = Contact { pid: 1, port: 2, token: "t".into(), version: "v".into(), started_us: 3 };
        contact.write(&database).unwrap();
        let mode = std::fs::metadata(Contact::path(&database)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Contact::read(&database), Some(contact.clone()));
        Contact { pid: 9, ..contact.clone() }.remove(&database);
        assert!(Contact::read(&database).is_some());
        contact.remove(&database);
        assert!(Contact::read(&database).is_none());
    }
}
