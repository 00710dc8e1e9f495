//! Output of a report, and the exit code that it ends with.

use std::path::Path;
use std::process::ExitCode;

use longhaul_analysis::summary::{PairSummary, WeeklySummary};

use crate::{exit, result_file};

/// Prints a report, or writes it to a file.
pub fn print_or_write(path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => result_file::write_text(path, text),
        None => {
            crate::output::print!("{text}");
            Ok(())
        }
    }
}

/// Returns the exit code of a report: 5 if there is no data.
pub fn exit_code(weekly: &WeeklySummary) -> ExitCode {
    if weekly.table.is_empty() { ExitCode::from(exit::NO_DATA) } else { exit::OK }
}

/// Returns the exit code of a report with `--exit-code`: 5 if there is no data, or a pair is undecided.
pub fn decision_exit_code(weekly: &WeeklySummary) -> ExitCode {
    let is_decided = !weekly.pairs.is_empty() && weekly.pairs.iter().all(PairSummary::is_decided);
    if is_decided { exit::OK } else { ExitCode::from(exit::NO_DATA) }
}
