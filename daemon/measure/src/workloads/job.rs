//! The inputs of one run of a workload.

use std::ffi::CString;
use std::path::Path;

use super::settings::Settings;
use crate::error::RunError;
use crate::platform::{Access, Space};
use crate::sandbox::{MARKER_FILE, Sandbox};
use crate::timed_fs::{Session, TimedFs};
use longhaul_corpus::slices::slice_for_rotation;
use longhaul_model::{Scale, Timestamp};

/// The inputs of one run of one workload.
pub struct Job<'run> {
    /// Session that runs the phases and collects the facts of this run.
    pub session: &'run Session<'run>,
    /// Sandbox on the target; the only folder there that a workload writes to.
    pub sandbox: &'run Sandbox,
    /// Folder on the local disk that is reserved for this target.
    pub local_folder: &'run Path,
    /// Size of the test data.
    pub scale: Scale,
    /// Settings that all workloads share.
    pub settings: &'run Settings,
    /// Number of earlier measurements of the target. It decides which slice is used.
    pub rotation: u64,
    /// Seed for random samples. It changes from round to round and is the same for all targets of a round.
    pub seed: u64,
    /// Start of the run.
    pub now: Timestamp,
    /// True if the client keeps the listings of some folders of the target for as long as the server tells it of changes.
    pub keeps_listings: bool,
}

impl Job<'_> {
    /// Returns the number of the slice that this run uses, from 0.
    pub fn current_slice(&self) -> u64 {
        slice_for_rotation(self.rotation, self.settings.slices)
    }

    /// Returns a file-system handle for preparations; its operations are not part of any phase.
    pub fn untimed(&self) -> TimedFs<'_> {
        self.session.preparation()
    }

    /// Checks that this many bytes fit on the target while [`Settings::reserve`] stays free.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] if there is too little space.
    pub fn require_space(&self, bytes: u64) -> Result<(), RunError> {
        let Space { free_bytes, total_bytes } = self.sandbox.space(&self.untimed())?;
        let Some(reason) = self.settings.reserve.refusal(bytes, free_bytes, total_bytes) else {
            return Ok(());
        };
        let advice =
            "Free space on the target, or measure at a smaller scale if there is one (quick is the smallest)";
        Err(RunError::refused(self.sandbox.path(), reason, advice))
    }

    /// Returns the number of bytes that fit on the target while [`Settings::reserve`] stays free.
    ///
    /// # Errors
    ///
    /// If the space of the target cannot be read.
    pub fn spare_bytes(&self) -> Result<u64, RunError> {
        let Space { free_bytes, total_bytes } = self.sandbox.space(&self.untimed())?;
        Ok(free_bytes.saturating_sub(self.settings.reserve.bytes_of(total_bytes)))
    }

    /// Checks that existing files on the target can be opened for writing in place.
    ///
    /// gvfs can only replace a whole file. The check opens the sandbox's marker file, because it always exists,
    /// and does not change it.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] if the mount does not support writing in place.
    pub fn require_in_place_writes(&self) -> Result<(), RunError> {
        let context = self.untimed();
        let marker = CString::new(MARKER_FILE).expect("a file name without NUL");
        let opened = context.open(&self.sandbox.folder()?, &marker, Access::ReadWrite);
        let marker = opened.map_err(|error| in_place_write_error(self.sandbox.path(), error))?;
        context.close(marker)
    }
}

/// Turns "unsupported" from opening a file for writing in place into a refusal; returns other errors unchanged.
fn in_place_write_error(sandbox: &Path, error: RunError) -> RunError {
    match error.is_unsupported() {
        true => RunError::refused(
            sandbox,
            "this mount can only replace whole files, but this task writes in the middle of files",
            "Measure the other tasks here, or mount the share with another client",
        ),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{Operation, Outcome};

    #[test]
    fn only_unsupported_in_place_writes_are_unavailable() {
        let outcome_of = |code| {
            let source = std::io::Error::from_raw_os_error(code);
            let error = RunError::operation(Operation::Open, Path::new("/a/sandbox.json"), source);
            in_place_write_error(Path::new("/a"), error).outcome()
        };
        assert_eq!(outcome_of(libc::EOPNOTSUPP), Outcome::Unavailable);
        assert_eq!(outcome_of(libc::EIO), Outcome::Error);
    }
}
