//! Why a run could not go on.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::{Failure, Operation, Outcome};
use crate::platform;

/// Why a run was told to end before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StopReason {
    /// The person wants no more.
    Person = 1,
    /// The run's cap is over.
    Cap = 2,
    /// The supervisor is gone.
    Orphaned = 3,
}

impl StopReason {
    fn words(self) -> &'static str {
        match self {
            Self::Person => "stopped by the person before its end",
            Self::Cap => "the cap was over before its end",
            Self::Orphaned => "longhaul ended before its end",
        }
    }
}

/// An error of a run. It names the operation and the path.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A timed call on the target failed.
    #[error("{operation} {}: {source}", path.display())]
    Operation {
        /// The call.
        operation: Operation,
        /// What it was about.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something on this machine's own disk failed: the backup's source tree, not the target.
    #[error("{action} {}: {source}", path.display())]
    Local {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The target, or the arena on it, may not be used.
    #[error("{0}")]
    Refused(Refusal),
    /// The system's privacy settings refuse: what can be listed and looked at cannot be opened.
    #[error("blocked by privacy: {operation} {}: the system refuses (EPERM), though it can be listed", path.display())]
    Blocked {
        /// The call.
        operation: Operation,
        /// The file that it was to open.
        path: PathBuf,
    },
    /// What was read is not what had been written.
    #[error("{} is damaged: {detail}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is different.
        detail: String,
    },
    /// A file of the sandbox is not longhaul's alone, so it is not written in place.
    #[error("{} is not written to: {reason}", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// The run was told to stop; nothing is wrong with the target.
    #[error("{}", .0.words())]
    Stopped(StopReason),
}

/// Why a target is not used, in words for a person, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}. {advice}", path.display())]
pub struct Refusal {
    /// What is refused.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
    /// What to do.
    pub advice: &'static str,
}

impl RunError {
    /// A failed timed call.
    pub fn operation(operation: Operation, path: &Path, source: io::Error) -> Self {
        Self::Operation { operation, path: path.to_owned(), source }
    }

    /// Makes the error for something that failed on this machine's own disk.
    pub fn local(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Local { action, path, source }
    }

    /// A target that may not be used.
    pub fn refused(path: &Path, reason: impl Into<String>, advice: &'static str) -> Self {
        Self::Refused(Refusal { path: path.to_owned(), reason: reason.into(), advice })
    }

    /// A file whose content is not what it must be.
    pub fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), detail: detail.into() }
    }

    /// The outcome of a run that ended so.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Operation { .. } if self.is_unsupported() => Outcome::Unavailable,
            Self::Operation { .. } | Self::Damaged { .. } => Outcome::Error,
            Self::Refused(_) | Self::NotOurs { .. } | Self::Blocked { .. } => Outcome::Unavailable,
            Self::Local { .. } => Outcome::Void,
            Self::Stopped(StopReason::Cap) => Outcome::Hung,
            Self::Stopped(StopReason::Person | StopReason::Orphaned) => Outcome::Void,
        }
    }

    /// Whether the file system has no such operation at all.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Operation { source, .. } if source.raw_os_error().is_some_and(platform::is_unsupported))
    }

    /// Whether the corpus may be at fault, so that it has to be made anew.
    pub fn spoils_the_corpus(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::NotOurs { .. } => true,
            Self::Operation { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Local { .. } | Self::Refused(_) | Self::Blocked { .. } | Self::Stopped(_) => false,
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Operation { source, .. } => advice(source.raw_os_error()),
            Self::Local { .. } => {
                "This is on the local disk, not on the target: check its space and permissions"
            }
            Self::Refused(refusal) => refusal.advice,
            Self::Blocked { .. } => CONSENT,
            Self::Damaged { .. } => {
                "Something else changed longhaul's own file, or the storage did; the next run makes it anew"
            }
            Self::NotOurs { .. } => {
                "Keep tools that link equal files or make snapshots by hard links away from `.longhaul-*`; the next run \
                 makes the file anew"
            }
            Self::Stopped(StopReason::Cap) => {
                "It was still at work: raise the cap if the target is only slow. What was measured so far is kept"
            }
            Self::Stopped(StopReason::Person | StopReason::Orphaned) => "What was measured so far is kept",
        }
    }

    /// The stored form.
    pub fn failure(&self) -> Failure {
        let (operation, path, error) = match self {
            Self::Operation { operation, path, source } => {
                (Some(*operation), Some(path), platform::error_name(source))
            }
            Self::Local { path, source, .. } => (None, Some(path), platform::error_name(source)),
            Self::Damaged { path, .. } => (Some(Operation::Read), Some(path), None),
            Self::NotOurs { path, .. } => (Some(Operation::Write), Some(path), None),
            Self::Refused(refusal) => (None, Some(&refusal.path), None),
            Self::Blocked { operation, path } => {
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

/// The way out of a privacy refusal. Consent belongs to a program and its signature: after an update of a program that is not
/// signed with one identity it is void, though the list still shows it as on (public threads: nix-darwin#1334,
/// azure-pipelines-agent#3273).
const CONSENT: &str = "In System Settings, Privacy & Security, let longhauld (for commands in a terminal: the terminal) have Full \
                       Disk Access, or Network Volumes under Files & Folders. If it is already on in the list, remove it \
                       with -, then add it again";

/// What a person can do about a system error on a target.
fn advice(error: Option<i32>) -> &'static str {
    match error {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "The target is full: free space on it, or `longhaul clean` gives back what longhaul holds"
        }
        Some(error) if platform::is_unsupported(error) => {
            "This file system cannot do that, so this task cannot be measured here: measure the others"
        }
        Some(libc::EBUSY | libc::ETXTBSY) => {
            "It is in use: close what has it open, here or on another machine; the next round tries again"
        }
        Some(libc::EROFS) => "The target has become read-only: mount it for writing",
        Some(libc::EACCES | libc::EPERM) => {
            "Permission is missing: check the folder's owner and, on a Mac, Privacy & Security > Files & Folders"
        }
        Some(libc::ENOENT) => "It was removed by someone else: the next run makes it anew",
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
    fn an_operation_that_a_file_system_lacks_is_no_failure() {
        for code in [libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS] {
            assert_eq!(failed(code).outcome(), Outcome::Unavailable);
            assert!(failed(code).failure().message.contains("cannot be measured here"));
        }
        assert_eq!(failed(libc::EIO).outcome(), Outcome::Error);
    }
}
