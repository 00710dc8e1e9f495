//! The file that lets the command line find the running service. It is next to the
//! database and readable by its owner only.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use longhaul_measure::private_files;
use longhaul_model::Timestamp;
use serde::{Deserialize, Serialize};

/// The address and token of a running service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonAddress {
    /// Process id of the service.
    pub pid: u32,
    /// TCP port of the service on 127.0.0.1.
    pub port: u16,
    /// Token that every request to the service must carry.
    pub token: String,
    /// Version of the service.
    pub version: String,
    /// Wall-clock time at which the service started, in microseconds since 1970 UTC.
    pub started_us: Timestamp,
}

impl DaemonAddress {
    /// Returns the path of a database's address file.
    pub fn path(database: &Path) -> PathBuf {
        database.with_extension("daemon.json")
    }

    /// Reads the address file. `None`: it is missing or invalid.
    pub fn read(database: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(database)).ok()?).ok()
    }

    /// Writes the address file atomically, readable by its owner only.
    ///
    /// # Errors
    ///
    /// If the file system refuses the write or the rename.
    pub fn write(&self, database: &Path) -> io::Result<()> {
        let path = Self::path(database);
        let draft = path.with_extension("draft");
        let _ = std::fs::remove_file(&draft);
        let mut file = private_files::options().write(true).create_new(true).open(&draft)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(draft, path)
    }

    /// Removes the address file if this service wrote it: another service may have replaced it meanwhile.
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
    fn file_is_private_and_only_its_writer_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        let address = DaemonAddress {
            pid: 1,
            port: 2,
            token: "t".into(),
            version: "v".into(),
            started_us: Timestamp::from_us(3),
        };
        address.write(&database).unwrap();
        let mode = std::fs::metadata(DaemonAddress::path(&database)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(DaemonAddress::read(&database), Some(address.clone()));
        DaemonAddress { pid: 9, ..address.clone() }.remove(&database);
        assert!(DaemonAddress::read(&database).is_some());
        address.remove(&database);
        assert!(DaemonAddress::read(&database).is_none());
    }
}
