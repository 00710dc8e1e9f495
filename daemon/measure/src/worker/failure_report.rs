//! Creates failure reports of runs, as they are stored.

use std::path::Path;

use super::message::FailureReport;
use crate::error::RunError;
use longhaul_model::{Failure, Outcome};

/// Returns the failure report for an error of a run.
pub fn from_error(error: &RunError) -> FailureReport {
    FailureReport { outcome: error.outcome(), failure: error.failure() }
}

/// Returns the failure report for an error of a run on a target, which is named if the error names no path.
pub fn from_run(error: &RunError, target: &Path) -> FailureReport {
    let FailureReport { outcome, mut failure } = from_error(error);
    if failure.path.is_none() {
        let path = target.display().to_string();
        failure.message = format!("{path}: {}", failure.message);
        failure.path = Some(path);
    }
    FailureReport { outcome, failure }
}

fn void_report(message: String) -> FailureReport {
    let failure = Failure { operation: None, path: None, error: None, message };
    FailureReport { outcome: Outcome::Void, failure }
}

/// Returns the failure report for a run during which the machine slept. `nanoseconds` is the duration of the
/// sleep.
pub fn from_sleep(nanoseconds: u64) -> FailureReport {
    void_report(format!(
        "the machine slept for {:.0} s during the run, so its times are not valid",
        nanoseconds as f64 / 1e9
    ))
}

/// Returns the failure report for a panic, which is a bug in longhaul.
pub fn from_panic(panic: &(dyn std::any::Any + Send)) -> FailureReport {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    void_report(format!(
        "longhaul itself failed: {}. Please report this",
        text.unwrap_or_else(|| "panic".to_owned())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StopReason;

    #[test]
    fn a_run_that_reached_its_cap_names_the_target() {
        let report = from_run(&RunError::Stopped(StopReason::Cap), Path::new("/nas"));
        assert_eq!((report.outcome, report.failure.path.as_deref()), (Outcome::Hung, Some("/nas")));
        let message = report.failure.message;
        assert!(message.starts_with("/nas: ") && message.contains("raise the cap"), "{message}");
    }
}
