//! The marker: the file that says which machine and target a sandbox belongs to.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use cap_std::fs::Dir;
use longhaul_model::{Operation, TargetName};
use serde::{Deserialize, Serialize};

use super::control_file;
use super::location::SandboxLocation;
use super::names::{MARKER_FILE, partial_name};
use crate::error::RunError;
use crate::platform::{SYSTEM, System};
use crate::timed_fs::TimedFs;
use longhaul_corpus::apple_double::owner_name;

/// Version of the layout of a sandbox, stored in its marker.
const LAYOUT_VERSION: u32 = 1;

/// Content of the marker: the owner of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    longhaul_sandbox: u32,
    machine: String,
    target: TargetName,
}

/// Checks that the marker of the sandbox is ours; writes the marker if the sandbox is empty.
pub(super) fn check_marker(
    location: &SandboxLocation<'_>,
    directory: &Dir,
    context: &TimedFs<'_>,
) -> Result<(), RunError> {
    match read_marker(location, directory, context)? {
        true => unshare_marker(location, directory, context),
        false => write_marker(location, directory, context),
    }
}

/// Replaces a marker that has further hard links with a separate copy.
fn unshare_marker(
    location: &SandboxLocation<'_>,
    directory: &Dir,
    context: &TimedFs<'_>,
) -> Result<(), RunError> {
    let failed =
        |error| RunError::operation(Operation::Write, &location.sandbox_path().join(MARKER_FILE), error);
    let read = || control_file::read_unshared(directory, MARKER_FILE);
    context.timed(Operation::Write, read).map(drop).map_err(failed)
}

/// Returns whether there is a marker; refuses a marker of another machine or target.
pub(super) fn read_marker(
    location: &SandboxLocation<'_>,
    directory: &Dir,
    context: &TimedFs<'_>,
) -> Result<bool, RunError> {
    let path = location.sandbox_path().join(MARKER_FILE);
    const ADVICE: &str = "It was not changed. Move it away, or choose another folder for this machine";
    let text = match context.timed(Operation::Read, || control_file::read(directory, MARKER_FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let reason = format!("it is not a marker file of longhaul ({error})");
            return Err(RunError::refused(&path, reason, ADVICE));
        }
        other => other.map_err(|error| {
            let error = RunError::operation(Operation::Read, &path, error);
            let name = CString::new(MARKER_FILE).expect("the name contains no NUL");
            context.detect_refusal(error, directory.as_fd(), &name)
        })?,
    };
    match serde_json::from_slice::<Marker>(&text) {
        Ok(marker) if marker.longhaul_sandbox > LAYOUT_VERSION => Err(RunError::refused(
            &path,
            "the sandbox was created by a newer version of longhaul",
            "Update longhaul",
        )),
        Ok(marker) if marker.machine != location.machine => Err(RunError::refused(
            &path,
            format!("the sandbox belongs to another machine ({})", marker.machine),
            ADVICE,
        )),
        // Possible on a case-insensitive server, where two target names that differ only in case lead to one
        // folder.
        Ok(marker) if marker.target != *location.target => Err(RunError::refused(
            &path,
            format!("the sandbox belongs to the target `{}`", marker.target),
            "Give the two targets names that differ in more than case",
        )),
        Ok(_) => Ok(true),
        Err(_) => Err(RunError::refused(&path, "it is not a marker file of longhaul", ADVICE)),
    }
}

/// Writes the marker of a new sandbox. Refuses a folder that is not empty, because longhaul did not create it.
fn write_marker(
    location: &SandboxLocation<'_>,
    directory: &Dir,
    context: &TimedFs<'_>,
) -> Result<(), RunError> {
    let path = location.sandbox_path();
    let failed = |error| RunError::operation(Operation::Write, &path.join(MARKER_FILE), error);
    let look = || has_foreign_entry(directory.entries()?.map(|entry| Ok(entry?.file_name())));
    let is_foreign = context
        .timed(Operation::Readdir, look)
        .map_err(|error| RunError::operation(Operation::Readdir, &path, error))?;
    if is_foreign {
        return Err(RunError::refused(
            &path,
            "it contains files, but no marker that shows that longhaul created it",
            "Check what they are and move them away",
        ));
    }
    let marker = Marker {
        longhaul_sandbox: LAYOUT_VERSION,
        machine: location.machine.to_owned(),
        target: location.target.clone(),
    };
    let text = serde_json::to_vec_pretty(&marker).expect("a marker is plain data");
    let written = context.timed(Operation::Write, || control_file::replace(directory, MARKER_FILE, &text));
    written.map_err(|error| match error.raw_os_error() {
        // On a Mac EPERM can only come from privacy protection: the folder was created by this user, as it is empty and its
        // name contains the id of this installation. Linux has no such protection.
        Some(libc::EPERM) if SYSTEM == System::MacOs => {
            RunError::PrivacyBlocked { operation: Operation::Create, path: path.join(MARKER_FILE) }
        }
        _ => failed(error),
    })
}

/// Returns whether a folder has an entry that is not an unfinished marker.
///
/// # Errors
///
/// If an entry cannot be listed: it may be anything.
fn has_foreign_entry(names: impl Iterator<Item = io::Result<OsString>>) -> io::Result<bool> {
    let is_unfinished = |name: &OsStr| {
        let name = owner_name(name.as_bytes()).map_or(name, OsStr::from_bytes);
        name == partial_name(MARKER_FILE).as_str()
    };
    for name in names {
        if !is_unfinished(&name?) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_cannot_be_listed_is_not_taken_for_empty() {
        let unfinished = || Ok(OsString::from("sandbox.json.partial"));
        assert!(!has_foreign_entry([unfinished()].into_iter()).unwrap());
        assert!(has_foreign_entry([unfinished(), Ok("letter.txt".into())].into_iter()).unwrap());
        let cut_off = [unfinished(), Err(ErrorKind::TimedOut.into())];
        assert_eq!(has_foreign_entry(cut_off.into_iter()).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
