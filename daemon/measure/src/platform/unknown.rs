//! Answers of the system's tools that no parser knows: a state to be shown, never a crash and never a zero.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// An answer that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownAnswer {
    /// The tool, with the words that say what it was asked: `nfsstat -m`.
    pub tool: String,
    /// The first line of its answer.
    pub first_line: String,
}

/// The latest of each tool in this process.
static LATEST: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// What the tools that this process asks have answered last, where that is not known.
pub fn unknown_answers() -> Vec<UnknownAnswer> {
    let latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = |(tool, first_line): (&String, &String)| UnknownAnswer {
        tool: tool.clone(),
        first_line: first_line.clone(),
    };
    latest.iter().map(answer).collect()
}

/// Keeps the first line of an answer that is not known, until one of the same tool is.
#[cfg(any(target_os = "macos", test))]
pub(super) fn note(tool: &str, first_line: Option<&str>) {
    let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
    match first_line {
        Some(line) => latest.insert(tool.to_owned(), line.to_owned()),
        None => latest.remove(tool),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_answer_is_forgotten_when_the_next_is_known() {
        let kept = || unknown_answers().into_iter().find(|answer| answer.tool == "made up");
        note("made up", Some("what is this"));
        assert_eq!(kept().map(|answer| answer.first_line).as_deref(), Some("what is this"));
        note("made up", None);
        assert_eq!(kept(), None);
    }
}
