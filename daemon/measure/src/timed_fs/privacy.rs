//! Distinguishes refusals by the system's privacy settings from other errors. Linux has no such settings: there a server or the file
//! system refuses.
//!
//! On macOS, a program without the user's consent can read attributes on a share, but each open fails with EPERM: of files
//! (public threads: anthropics/claude-code#88805, NixOS/nix-darwin#1334), and of folders (macfuse/macfuse#690,
//! garrytan/gbrain#5014). Apple documents no call to query the consent in advance.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::context::TimedFs;
use crate::error::RunError;
use crate::platform::{self, Access, SYSTEM, System};
use longhaul_model::Operation;

/// The facts about a file that could not be opened.
#[derive(Debug, Clone, Copy)]
struct OpenRefusal {
    /// Error number of opening the file for reading; `None` if this works.
    read_error: Option<i32>,
    /// User id of the file's owner; `None` if its attributes cannot be read.
    owner: Option<u32>,
    /// User id of the owner of the file's folder; `None` if its attributes cannot be read.
    folder_owner: Option<u32>,
    /// User id of this process.
    user: u32,
}

impl OpenRefusal {
    /// Returns whether an existing file of longhaul is refused, which on a Mac only privacy settings are likely to do.
    ///
    /// Missing permissions cause EACCES. On Linux, opening an immutable file (chattr(1)) for writing also causes
    /// EPERM, but such a file can be read, so the open for reading decides. Files of a sandbox belong to the
    /// user. If a server maps all users to one (NFS `all_squash`), they belong to the owner of the folder, which
    /// longhaul also created.
    fn is_of_own_file(self) -> bool {
        let is_ours = self.owner == Some(self.user) || self.owner == self.folder_owner;
        self.read_error == Some(libc::EPERM) && self.owner.is_some() && is_ours
    }
}

/// Returns the error for a folder whose attributes could be read, but that could not be opened.
pub(crate) fn folder_open_error(path: &Path, error: io::Error) -> RunError {
    folder_open_error_on(SYSTEM, path, error)
}

/// Missing permissions are EACCES (open(2)). On a Mac EPERM comes from privacy settings, which Linux does not have: there it is
/// the refusal of a server (see `error.rs`).
fn folder_open_error_on(system: System, path: &Path, error: io::Error) -> RunError {
    match error.raw_os_error() {
        Some(libc::EPERM) if system == System::MacOs => {
            RunError::PrivacyBlocked { operation: Operation::Open, path: path.to_owned() }
        }
        _ => RunError::operation(Operation::Open, path, error),
    }
}

/// Returns the error for a file of longhaul that exists and that was refused with EPERM.
fn own_file_error_on(system: System, operation: Operation, path: PathBuf, source: io::Error) -> RunError {
    match system {
        System::MacOs => RunError::PrivacyBlocked { operation, path },
        System::Linux => RunError::AccessDenied { operation, path, source },
    }
}

impl TimedFs<'_> {
    /// Turns an EPERM error of opening a file into [`RunError::PrivacyBlocked`] if privacy settings are the
    /// likely cause, and on Linux into [`RunError::AccessDenied`].
    ///
    /// Other errors are returned unchanged and cause no additional calls.
    pub(crate) fn detect_refusal(&self, error: RunError, folder: BorrowedFd<'_>, name: &CStr) -> RunError {
        match error {
            RunError::Operation { operation, path, source }
                if source.raw_os_error() == Some(libc::EPERM)
                    && self.diagnose_refusal(folder, name).is_of_own_file() =>
            {
                own_file_error_on(SYSTEM, operation, path, source)
            }
            other => other,
        }
    }

    fn diagnose_refusal(&self, folder: BorrowedFd<'_>, name: &CStr) -> OpenRefusal {
        let owner = |name: &CStr| self.timed(Operation::Getattr, || platform::owner_at(folder, name)).ok();
        let reading = self.timed(Operation::Open, || platform::open_at(folder, name, Access::Read));
        OpenRefusal {
            read_error: reading.err().and_then(|error| error.raw_os_error()),
            owner: owner(name),
            folder_owner: owner(c"."),
            user: platform::user_id(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKED: OpenRefusal =
        OpenRefusal { read_error: Some(libc::EPERM), owner: Some(501), folder_owner: Some(501), user: 501 };

    #[test]
    fn eperm_for_a_file_of_the_user_is_a_refusal_of_an_own_file() {
        assert!(BLOCKED.is_of_own_file());
        assert!(
            OpenRefusal { owner: Some(1024), folder_owner: Some(1024), ..BLOCKED }.is_of_own_file(),
            "the server maps all users to one"
        );
    }

    #[test]
    fn privacy_settings_refuse_an_own_file_on_a_mac_only() {
        let failure = |system| {
            let source = io::Error::from_raw_os_error(libc::EPERM);
            let error = own_file_error_on(system, Operation::Open, "/m/nas/file".into(), source);
            assert_eq!(error.outcome(), longhaul_model::Outcome::Unavailable);
            error.failure()
        };
        let (on_a_mac, on_linux) = (failure(System::MacOs), failure(System::Linux));
        for part in ["blocked by privacy", "EPERM", "Full Disk Access", "remove it with -"] {
            assert!(on_a_mac.message.contains(part), "{part}: {}", on_a_mac.message);
        }
        assert!(on_linux.message.starts_with("open /m/nas/file: Operation not permitted"));
        assert!(!on_linux.message.contains("privacy"), "{}", on_linux.message);
        assert_eq!(on_linux.error, on_a_mac.error, "the service knows a refused target by it");
    }

    #[test]
    fn eperm_for_a_folder_is_a_privacy_refusal_on_a_mac_only() {
        let refused = |system| {
            folder_open_error_on(system, Path::new("/m/nas"), io::Error::from_raw_os_error(libc::EPERM))
        };
        assert!(matches!(refused(System::MacOs), RunError::PrivacyBlocked { .. }));
        let on_linux = refused(System::Linux);
        assert!(matches!(on_linux, RunError::Operation { operation: Operation::Open, .. }));
        assert_eq!(on_linux.outcome(), longhaul_model::Outcome::Error);
    }

    #[test]
    fn other_errors_are_no_refusals_of_an_own_file() {
        let others = [
            OpenRefusal { read_error: Some(libc::EACCES), ..BLOCKED },
            OpenRefusal { read_error: None, ..BLOCKED },
            OpenRefusal { owner: Some(0), ..BLOCKED },
            OpenRefusal { owner: None, folder_owner: None, ..BLOCKED },
        ];
        assert!(others.into_iter().all(|refused| !refused.is_of_own_file()));
    }
}
