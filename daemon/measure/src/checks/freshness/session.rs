//! The data that supervisor and workers exchange about a session, and the names of its files.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use longhaul_corpus::names::plain_names;
use longhaul_model::{ChangeKind, Timestamp};

/// File that exists before a change.
pub const OLD: &CStr = c"old";
/// File that exists only after a change.
pub const NEW: &CStr = c"new";
/// All names of files.
pub const FILES: [&CStr; 2] = [OLD, NEW];
/// Name of the folder in a sandbox, and of its entry in the manifest.
pub const FOLDER: &str = "freshness";
/// Largest number of changes in a session. The folder with this number compares clocks.
pub const MAX_CHANGES: usize = 999;

/// Changes that are made and looked for together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreshnessSession {
    /// Random id.
    pub id: u64,
    /// Name of the writer's sandbox.
    pub sandbox: String,
    /// Kinds of the changes. Each change has the folder that is named with its place in this list.
    pub kinds: Vec<ChangeKind>,
}

impl FreshnessSession {
    /// Returns the name of the session's folder: 16 hexadecimal digits.
    pub fn folder_name(&self) -> String {
        format!("{:016x}", self.id)
    }
}

/// State of what a change affects, as seen through a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// State before the change.
    Before,
    /// State after the change.
    After,
    /// Neither state: partly visible, or altered by another program.
    Other,
}

/// A change that was made. Times are in nanoseconds of the monotonic clock, which is the same in all processes of a
/// machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeChange {
    /// Time before the first call of the change.
    pub began_ns: u64,
    /// Time after the last call of the change.
    pub ended_ns: u64,
    /// Wall clock at the change, as a label.
    pub at: Timestamp,
}

/// Limits of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchLimit {
    /// Limit of the whole watch.
    pub total: Duration,
    /// Limit of the time after the first change was seen; `None` if only the total counts.
    pub after_first: Option<Duration>,
}

/// Observation of one change by a watcher. Times are in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WatchedChange {
    /// Time before the last poll that did not show the change; `None` if every poll showed it.
    pub unseen_ns: Option<u64>,
    /// Time after the first poll that showed the change; `None` if none did.
    pub seen_ns: Option<u64>,
    /// Error of a poll, which ended the watch of this change; `None` if there was none.
    pub error: Option<String>,
}

/// Returns the name of the folder of a change in its session.
pub fn item_folder(place: usize) -> CString {
    CString::new(place.to_string()).expect("digits contain no NUL")
}

/// Returns whether a file in a sandbox belongs to a freshness session. `path` is relative to `folder`, which is a
/// folder in the sandbox.
pub fn owns(folder: &str, path: &Path) -> bool {
    if folder != FOLDER {
        return false;
    }
    let names = plain_names(path).unwrap_or_default();
    let [session, item, file] = names[..] else { return false };
    is_session_folder(session) && is_item_folder(item) && FILES.iter().any(|name| name.to_bytes() == file)
}

fn is_item_name(name: &str) -> bool {
    name.parse::<usize>().is_ok_and(|place| place <= MAX_CHANGES && name == place.to_string())
}

/// Returns whether a folder in [`FOLDER`] is that of a session.
pub fn is_session_folder(name: &[u8]) -> bool {
    name.len() == 16 && name.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a folder of a session is that of a change.
pub fn is_item_folder(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(is_item_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_sessions_are_recognized() {
        let is_ours = |path: &str| owns(FOLDER, Path::new(path));
        assert!(is_ours("00000000000000ff/5/new") && is_ours("00000000000000ff/999/old"));
        for foreign in [
            "new",
            "5/new",
            "00000000000000ff/new",
            "00000000000000fg/5/new",
            "00000000000000ff/1000/new",
            "00000000000000ff/05/new",
            "00000000000000ff/5/letter",
            "00000000000000ff/5/x/new",
            "../00000000000000ff/5/new",
        ] {
            assert!(!is_ours(foreign), "{foreign}");
        }
        assert!(!owns("tree", Path::new("00000000000000ff/5/new")));
    }
}
