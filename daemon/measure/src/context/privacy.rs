//! Telling a refusal by the system's privacy settings from other failures.
//!
//! On macOS a program without consent can list a share and look at attributes, and each open of a file answers EPERM.
//! Apple documents no call that tells of it before (public threads: anthropics/claude-code#88805, NixOS/nix-darwin#1334).

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use super::Context;
use crate::error::RunError;
use crate::model::Operation;
use crate::platform::{self, Access};

/// The answers of the system about a name that could not be opened.
#[derive(Debug, Clone, Copy)]
struct Refused {
    /// The error of opening it for reading; `None` if that works.
    reading: Option<i32>,
    /// Its owner; `None` if it cannot be looked at.
    owner: Option<u32>,
    /// The owner of the folder that it is in.
    folder: Option<u32>,
    /// The user of this process.
    user: u32,
}

impl Refused {
    /// Says that privacy settings are the only ordinary explanation.
    ///
    /// Missing permissions answer EACCES. EPERM of an open for writing has another cause on Linux: a file that was made
    /// immutable (chattr(1)), which can be read; so reading decides. Files of a sandbox belong to the user; where a
    /// server maps users (NFS with all users squashed), to the one that the folder belongs to, which longhaul made too.
    fn is_by_privacy(self) -> bool {
        let is_ours = self.owner == Some(self.user) || self.owner == self.folder;
        self.reading == Some(libc::EPERM) && self.owner.is_some() && is_ours
    }
}

impl Context<'_> {
    /// Makes the error of opening a name say so where privacy settings refuse. It asks the system only after EPERM.
    pub(crate) fn blocked_or(&self, error: RunError, folder: BorrowedFd<'_>, name: &CStr) -> RunError {
        match error {
            RunError::Operation { operation, path, source }
                if source.raw_os_error() == Some(libc::EPERM)
                    && self.refused(folder, name).is_by_privacy() =>
            {
                RunError::Blocked { operation, path }
            }
            other => other,
        }
    }

    fn refused(&self, folder: BorrowedFd<'_>, name: &CStr) -> Refused {
        let owner = |name: &CStr| self.timed(Operation::Getattr, || platform::owner_at(folder, name)).ok();
        let reading = self.timed(Operation::Open, || platform::open_at(folder, name, Access::Read));
        Refused {
            reading: reading.err().and_then(|error| error.raw_os_error()),
            owner: owner(name),
            folder: owner(c"."),
            user: platform::user_id(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKED: Refused =
        Refused { reading: Some(libc::EPERM), owner: Some(501), folder: Some(501), user: 501 };

    #[test]
    fn eperm_for_a_readable_file_of_ours_is_a_privacy_refusal() {
        assert!(BLOCKED.is_by_privacy());
        assert!(Refused { owner: Some(1024), folder: Some(1024), ..BLOCKED }.is_by_privacy(), "squashed");
    }

    #[test]
    fn other_refusals_are_no_privacy_refusal() {
        let others = [
            Refused { reading: Some(libc::EACCES), ..BLOCKED },
            Refused { reading: None, ..BLOCKED },
            Refused { owner: Some(0), ..BLOCKED },
            Refused { owner: None, folder: None, ..BLOCKED },
        ];
        assert!(others.into_iter().all(|refused| !refused.is_by_privacy()));
    }
}
