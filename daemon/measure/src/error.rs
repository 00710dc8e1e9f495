//! Errors that end a run.

use std::io;
use std::path::{Path, PathBuf};

use crate::platform::{self, System};
use longhaul_model::{DamagePattern, Failure, Operation, Outcome};

/// Reason why a run was stopped before it was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StopReason {
    /// The process that started the run stopped it: for its user, or because the round had to end.
    Supervisor = 1,
    /// The run reached its cap.
    Cap = 2,
    /// The supervisor process no longer exists.
    Orphaned = 3,
}

impl StopReason {
    fn description(self) -> &'static str {
        match self {
            Self::Supervisor => "stopped before the run was complete",
            Self::Cap => "the cap was reached before the run was complete",
            Self::Orphaned => "longhaul stopped before the run was complete",
        }
    }
}

/// Bytes of a damaged file, as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBytes {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Pattern of all these bytes, if the reader knows it; `None` if only a comparison can tell.
    pub pattern: Option<DamagePattern>,
}

/// Error that ends a run. It names the operation and the path.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Timed call on the target that failed.
    #[error("{operation} {}: {source}", path.display())]
    Operation {
        /// Kind of call that failed.
        operation: Operation,
        /// Path that the call was made on.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An operation on this machine's own disk failed, for example on the source tree of the backup workload.
    /// The target is not affected.
    #[error("{action} {}: {source}", path.display())]
    LocalDisk {
        /// Name of the operation, such as `mkdir`.
        action: &'static str,
        /// Path on the local disk.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// This user may not open the target's folder or, on Linux, a file of the sandbox: no failure of the share.
    #[error("{operation} {}: {source}", path.display())]
    AccessDenied {
        /// Kind of call that was denied.
        operation: Operation,
        /// Folder or file that was not opened.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The target, or the sandbox on it, may not be used.
    #[error("{0}")]
    Refused(Refusal),
    /// The privacy settings of a Mac deny access: the attributes of the file or folder can be read, but it cannot be opened.
    #[error("blocked by privacy: {operation} {}: the system denies access (EPERM), although it exists", path.display())]
    PrivacyBlocked {
        /// Kind of call that was denied.
        operation: Operation,
        /// File or folder that could not be opened.
        path: PathBuf,
    },
    /// The content that was read differs from the content that was written.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// Damaged file.
        path: PathBuf,
        /// Description of the difference.
        detail: String,
        /// Bytes that were read where it was found; `None` if it was not found by reading.
        found: Option<Box<FoundBytes>>,
    },
    /// A file in the sandbox does not belong to longhaul alone, for example because it has a second hard
    /// link, so it is not written in place.
    #[error("{} was not written: {reason}", path.display())]
    NotExclusive {
        /// File that is not written.
        path: PathBuf,
        /// Reason, as text for the user.
        reason: String,
    },
    /// The run was stopped; the target is not at fault.
    #[error("{}", .0.description())]
    Stopped(StopReason),
}

/// Reason why a target is not used, as text for the user, with advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}. {advice}", path.display())]
pub struct Refusal {
    /// Path that is not used.
    pub path: PathBuf,
    /// Reason why the path is not used.
    pub reason: String,
    /// Advice: the next step, such as a command to run.
    pub advice: &'static str,
}

impl RunError {
    /// Returns the error for a failed timed call.
    pub fn operation(operation: Operation, path: &Path, source: io::Error) -> Self {
        Self::Operation { operation, path: path.to_owned(), source }
    }

    /// Returns a function that converts a system error on this machine's own disk into an error of the run.
    pub fn local(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::LocalDisk { action, path, source }
    }

    /// Returns the error for a target that may not be used.
    pub fn refused(path: &Path, reason: impl Into<String>, advice: &'static str) -> Self {
        Self::Refused(Refusal { path: path.to_owned(), reason: reason.into(), advice })
    }

    /// Returns the error for a file with wrong content.
    pub fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), detail: detail.into(), found: None }
    }

    /// Adds the bytes that were read at an offset to the error for a file with wrong content.
    pub fn with_found(self, offset: u64, bytes: &[u8]) -> Self {
        self.with_pattern(FoundBytes { offset, bytes: bytes.to_vec(), pattern: None })
    }

    /// Adds what was read to the error for a file with wrong content. Other errors stay as they are.
    pub fn with_pattern(self, found: FoundBytes) -> Self {
        match self {
            Self::Damaged { path, detail, .. } => {
                Self::Damaged { path, detail, found: Some(Box::new(found)) }
            }
            other => other,
        }
    }

    /// Returns the outcome of a run that ends with this error.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Operation { .. } if self.is_unsupported() || self.is_key_error() => Outcome::Unavailable,
            Self::Operation { .. } | Self::Damaged { .. } => Outcome::Error,
            Self::AccessDenied { .. }
            | Self::Refused(_)
            | Self::NotExclusive { .. }
            | Self::PrivacyBlocked { .. } => Outcome::Unavailable,
            Self::LocalDisk { .. } => Outcome::Void,
            Self::Stopped(StopReason::Cap) => Outcome::Hung,
            Self::Stopped(StopReason::Supervisor | StopReason::Orphaned) => Outcome::Void,
        }
    }

    /// Returns whether the error means that a file or folder does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Operation { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether the error means that a folder is not removed because something is in it.
    pub fn is_not_empty(&self) -> bool {
        matches!(self, Self::Operation { source, .. } if source.kind() == io::ErrorKind::DirectoryNotEmpty)
    }

    /// Returns whether the error means that the file system does not support the operation.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Operation { source, .. } if source.raw_os_error().is_some_and(platform::is_unsupported))
    }

    /// Returns whether the user has no valid key for the server, as after a Kerberos ticket has expired.
    pub(crate) fn is_key_error(&self) -> bool {
        let is_known = |code| platform::KEY_ERRORS.contains(&code);
        matches!(self, Self::Operation { source, .. } if source.raw_os_error().is_some_and(is_known))
    }

    /// Returns whether another open file holds a lock that was asked for (fcntl(2), `F_SETLK`).
    pub fn is_lock_held_elsewhere(&self) -> bool {
        let is_held = |code| code == libc::EAGAIN || code == libc::EACCES;
        matches!(self, Self::Operation { operation: Operation::Lock, source, .. } if source.raw_os_error().is_some_and(is_held))
    }

    /// Returns whether the corpus may be at fault, so that it must be created again.
    pub fn invalidates_corpus(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::NotExclusive { .. } => true,
            Self::Operation { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::LocalDisk { .. }
            | Self::AccessDenied { .. }
            | Self::Refused(_)
            | Self::PrivacyBlocked { .. }
            | Self::Stopped(_) => false,
        }
    }

    /// Returns advice for the user: the next step after this error.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Operation { source, .. } | Self::AccessDenied { source, .. } => {
                error_advice(source.raw_os_error())
            }
            Self::LocalDisk { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "It is on this computer, not on the target. If it is a recording, choose another one: longhaul record use NAME; the next \
                 run creates other files again"
            }
            Self::LocalDisk { .. } => {
                "The problem is on the local disk, not on the target: check its free space and permissions"
            }
            Self::Refused(refusal) => refusal.advice,
            Self::PrivacyBlocked { .. } => CONSENT_ADVICE,
            Self::Damaged { .. } => {
                "Another program or the storage changed longhaul's own file; the next run creates it again"
            }
            Self::NotExclusive { .. } => {
                "Exclude `.longhaul-*` from tools that deduplicate files or make snapshots with hard links; the next run \
                 creates the file again"
            }
            Self::Stopped(StopReason::Cap) => {
                "The run was still in progress: raise the cap if the target is only slow. The results so far are kept"
            }
            Self::Stopped(StopReason::Supervisor | StopReason::Orphaned) => "The results so far are kept",
        }
    }

    /// Returns the failure in the form that is stored with the run.
    pub fn failure(&self) -> Failure {
        let (operation, path, error) = match self {
            Self::Operation { operation, path, source } | Self::AccessDenied { operation, path, source } => {
                (Some(*operation), Some(path), platform::error_name(source))
            }
            Self::LocalDisk { path, source, .. } => (None, Some(path), platform::error_name(source)),
            Self::Damaged { path, .. } => (Some(Operation::Read), Some(path), None),
            Self::NotExclusive { path, .. } => (Some(Operation::Write), Some(path), None),
            Self::Refused(refusal) => (None, Some(&refusal.path), None),
            Self::PrivacyBlocked { operation, path } => {
                (Some(*operation), Some(path), Some(Failure::BLOCKED.to_owned()))
            }
            Self::Stopped(_) => (None, None, None),
        };
        let message = match self {
            Self::Refused(refusal) => refusal.to_string(),
            other => format!("{other}. {}", other.advice()),
        };
        Failure { operation, path: path.map(|path| path.display().to_string()), error, message }
    }
}

/// Advice for access that privacy settings denied. Consent belongs to a program and its code signature: after
/// an update of a program that is not signed with one identity the consent is void, although the list still
/// shows it as enabled (public threads: nix-darwin#1334, azure-pipelines-agent#3273).
const CONSENT_ADVICE: &str = "On a Mac: in System Settings, Privacy & Security, allow longhauld (for commands in a terminal: the terminal) Full \
                       Disk Access, or Network Volumes under Files & Folders. If it is already enabled there, switch it \
                       off and on again; under Full Disk Access remove it with -, then add it again with +";

/// Advice for a share that the user has no valid Kerberos ticket for. The ticket belongs to a session: the service may not see the
/// one of a terminal.
pub const KERBEROS_ADVICE: &str =
    "The Kerberos ticket of this user has expired, or the service cannot see it: run `klist`, then `kinit`";

/// Returns advice for EPERM. The NFS client of Linux turns NFS4ERR_WRONGSEC and NFS4ERR_WRONG_CRED into it (fs/nfs/nfs4proc.c,
/// `nfs4_map_errors`).
const fn permission_advice(system: System) -> &'static str {
    match system {
        System::Linux => {
            "The server or the file system refused it; a server may require another `sec=` option: check the options of the mount and \
             the folder's owner"
        }
        System::MacOs => "Check the folder's owner and, on a Mac, Privacy & Security > Files & Folders",
    }
}

/// Returns advice for a system error on a target.
fn error_advice(error: Option<i32>) -> &'static str {
    match error {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "The target is full: free some space, or delete longhaul's test data with `longhaul targets clean`"
        }
        Some(error) if platform::is_unsupported(error) => {
            "The file system does not support this operation, so this task cannot be measured here; other tasks can"
        }
        Some(libc::EBUSY | libc::ETXTBSY) => {
            "The file is in use: close the programs that have it open, here or on another machine; the next round tries again"
        }
        Some(libc::EROFS) => "The target is read-only: mount it with write access",
        // smbfs refuses every user but root and the one who mounted the share (SMBClient
        // kernel/smbfs/smbfs_vnops.c:13427).
        Some(libc::EACCES) => {
            "Check the folder's owner; on a Mac, only the user who mounted an SMB share can use it"
        }
        Some(libc::EPERM) => permission_advice(platform::SYSTEM),
        Some(error) if platform::KEY_ERRORS.contains(&error) => KERBEROS_ADVICE,
        Some(libc::ENOENT) => "Another program removed the file: the next run creates it again",
        Some(libc::ESTALE | libc::EIO | libc::ENOTCONN | libc::ETIMEDOUT) => {
            "The connection to the server broke: check the NAS and the network; the next round tries again"
        }
        _ => "Check the target; the next round tries again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32) -> RunError {
        RunError::operation(Operation::Lock, Path::new("/nas/file"), io::Error::from_raw_os_error(code))
    }

    #[test]
    fn an_unsupported_operation_is_not_a_failure() {
        for code in [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS] {
            assert_eq!(failed(code).outcome(), Outcome::Unavailable);
            assert!(failed(code).failure().message.contains("cannot be measured here"));
        }
        assert_eq!(failed(libc::EIO).outcome(), Outcome::Error);
    }

    #[test]
    fn an_expired_ticket_is_unavailable_with_advice() {
        let known = if platform::SYSTEM == System::Linux { 4 } else { 0 };
        assert_eq!(platform::KEY_ERRORS.len(), known, "only Linux has these errors");
        for code in platform::KEY_ERRORS {
            assert_eq!(failed(*code).outcome(), Outcome::Unavailable);
            assert!(failed(*code).failure().message.contains("klist"), "{code}");
        }
    }

    #[test]
    fn a_refusal_of_a_server_on_linux_has_no_advice_for_a_mac() {
        let advice = permission_advice(System::Linux);
        assert!(
            advice.contains("The server or the file system refused it") && !advice.contains("Mac"),
            "{advice}"
        );
        assert_eq!(failed(libc::EPERM).advice(), permission_advice(platform::SYSTEM));
    }

    #[test]
    fn a_missing_file_of_this_machine_is_no_lack_of_space() {
        let missing = RunError::local("read", Path::new("/day"))(io::ErrorKind::NotFound.into());
        assert!(missing.advice().contains("record use"));
        let full = RunError::local("write", Path::new("/day"))(io::ErrorKind::StorageFull.into());
        assert!(full.advice().contains("free space"));
    }
}
