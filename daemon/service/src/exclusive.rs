//! One measurement at a time on a machine: two at once would measure each other.

use std::path::Path;

use longhaul_measure::lock::{Held, LockError};

/// Held while measuring.
pub struct Exclusive {
    _held: Held,
}

/// Why measuring cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ExclusiveError {
    /// Another process measures.
    #[error(
        "another longhaul{} is measuring with this database (lock {}): two at once would measure each other. Wait for it, \
         or stop it",
        holder.as_ref().map_or(String::new(), |holder| format!(" ({holder})")),
        path.display()
    )]
    Taken {
        /// The lock file.
        path: std::path::PathBuf,
        /// Who holds it, as it says itself.
        holder: Option<String>,
    },
    /// The lock file cannot be made.
    #[error(transparent)]
    Lock(LockError),
}

impl From<LockError> for ExclusiveError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Taken { path, holder } => Self::Taken { path, holder },
            LockError::Io { .. } => Self::Lock(error),
        }
    }
}

impl Exclusive {
    /// Takes the lock that belongs to a database.
    ///
    /// # Errors
    ///
    /// Why measuring cannot begin.
    pub fn take(database: &Path) -> Result<Self, ExclusiveError> {
        Ok(Self { _held: Held::take(&database.with_extension("lock"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_measures_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("new/longhaul.sqlite");
        let first = Exclusive::take(&database).unwrap();
        assert!(matches!(Exclusive::take(&database), Err(ExclusiveError::Taken { holder: Some(_), .. })));
        drop(first);
        assert!(!folder.path().join("new/longhaul.lock").exists(), "nothing is left behind");
        assert!(Exclusive::take(&database).is_ok());
    }
}
