//! Output of the system's tools that no parser recognizes. It is shown to users, and never causes a crash or
//! a zero.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Unrecognized output of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnrecognizedOutput {
    /// Tool with its first argument, such as `nfsstat -m`.
    pub tool: String,
    /// First line of the output.
    pub first_line: String,
}

/// First line of each tool's latest output in this process, if it was not recognized.
static LATEST: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Returns the tools whose latest output in this process was not recognized, with the first line of it.
pub fn unrecognized_outputs() -> Vec<UnrecognizedOutput> {
    let latest = LATEST.lock();
    let answer = |(tool, first_line): (&String, &String)| UnrecognizedOutput {
        tool: tool.clone(),
        first_line: first_line.clone(),
    };
    latest.iter().map(answer).collect()
}

/// Records the first line of an unrecognized output; `None` removes the record after a recognized output of
/// the same tool.
#[cfg(any(target_os = "macos", test))]
pub(super) fn record(tool: &str, first_line: Option<&str>) {
    let mut latest = LATEST.lock();
    match first_line {
        Some(line) => latest.insert(tool.to_owned(), line.to_owned()),
        None => latest.remove(tool),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recognized_output_removes_the_record() {
        let recorded = || unrecognized_outputs().into_iter().find(|answer| answer.tool == "made up");
        record("made up", Some("what is this"));
        assert_eq!(recorded().map(|answer| answer.first_line).as_deref(), Some("what is this"));
        record("made up", None);
        assert_eq!(recorded(), None);
    }
}
