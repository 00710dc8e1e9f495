//! Failure reports for runs that the supervisor ended.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use longhaul_measure::platform::{SYSTEM, System};
use longhaul_measure::recorder::InFlightCall;
use longhaul_measure::worker::{FailureReport, RunReport, VERSION, WorkerMessage};
use longhaul_model::{Conditions, Failure, Operation, Outcome, TargetName};

use super::phase_record::call_age;

/// Returns what to do about a call that does not return. On a Mac the first open of a share waits until the user has answered whether
/// the program may use it (public reports: bobmatnyc/trusty-tools#723, philgutowski/relay#43).
fn hang_advice(system: System, operation: Option<Operation>) -> &'static str {
    match (system, operation) {
        (System::MacOs, Some(Operation::Open)) => {
            "If macOS asks whether longhauld (for commands in a terminal: the terminal) may use files on a network volume, click Allow (the \
             question may be behind other windows). \
             If not, check the NAS and the network"
        }
        _ => "Check the NAS and the network",
    }
}

/// Returns the report of a run or preparation that hung.
pub fn hung_failure(path: &Path, flight: Option<InFlightCall>, cap: Duration) -> FailureReport {
    let cause = match flight {
        Some(flight) => format!(
            "`{}` on {} has not returned for {:.1} s",
            flight.operation,
            path.display(),
            call_age(flight).as_secs_f64()
        ),
        None => format!("the worker of {} does not respond", path.display()),
    };
    let message = format!(
        "{cause}; the cap is {:.0} s. {}. longhaul continues with the other targets, and with this one once the call returns",
        cap.as_secs_f64(),
        hang_advice(SYSTEM, flight.map(|flight| flight.operation))
    );
    FailureReport {
        outcome: Outcome::Hung,
        failure: Failure {
            operation: flight.map(|flight| flight.operation),
            path: Some(path.display().to_string()),
            error: None,
            message,
        },
    }
}

/// Returns the run report of a run that has no data except its failure.
pub fn failed_report(failure: FailureReport) -> RunReport {
    RunReport {
        failure: Some(failure),
        facts: Default::default(),
        conditions: Conditions::default(),
        mismatches: vec![],
    }
}

/// Returns the report of a run that says nothing about its target and is not used.
pub fn void_failure(message: String) -> FailureReport {
    FailureReport {
        outcome: Outcome::Void,
        failure: Failure { operation: None, path: None, error: None, message },
    }
}

/// Begins the message about a worker that could not be started. Such messages are stored, and [`is_worker_failure`] recognizes them:
/// with another text, those of earlier versions would no longer be recognized.
const NOT_STARTED: &str = "no worker process could be started";
/// Part of the message about a worker that crashed several times. As [`NOT_STARTED`].
const CRASHED: &str = "crashed";
/// Part of the message about a worker that crashed during a request. As [`NOT_STARTED`].
const ENDED: &str = "ended unexpectedly";

/// Returns whether a run is void because its worker could not be started or crashed: later rounds will probably fail the same way.
pub fn is_worker_failure(message: &str) -> bool {
    let has_crashed = message.contains(CRASHED) || message.contains(ENDED);
    message.starts_with(NOT_STARTED) || (message.starts_with("the worker of `") && has_crashed)
}

/// Returns the report of a worker that could not be started.
pub fn start_failure(target: &TargetName, error: &impl Display) -> FailureReport {
    void_failure(format!("{NOT_STARTED} for `{target}`: {error}"))
}

/// Returns the report of a worker that is not started for a number of seconds, because it crashed this often in a row.
pub fn backoff_failure(target: &TargetName, crashes: u32, seconds: u64) -> FailureReport {
    let restart = format!("it will be restarted in {seconds} s");
    void_failure(format!("the worker of `{target}` {CRASHED} {crashes} times in a row; {restart}"))
}

/// Returns the report of a worker that crashed during a request. `exit` describes its end.
pub fn crash_failure(target: &TargetName, exit: &str) -> FailureReport {
    void_failure(format!("the worker of `{target}` {ENDED} ({exit})"))
}

/// Returns the report of a worker of another version, which may measure differently.
pub fn version_mismatch_failure(target: &TargetName, version: &str) -> FailureReport {
    void_failure(format!(
        "the worker of `{target}` has version {version}, but this program has version {VERSION}: another version \
         was installed meanwhile. Restart this program"
    ))
}

/// Returns the report of a worker that sent a message out of turn.
pub fn unexpected_message_failure(message: &WorkerMessage) -> FailureReport {
    void_failure(format!("the worker sent an unexpected message ({message:?}). Please report this"))
}

/// Returns the report of a target on which an operation of an earlier run still hangs.
pub fn still_hung_failure(path: &Path, operation: Option<Operation>) -> FailureReport {
    let operation_text = operation.map_or("an operation".to_owned(), |operation| format!("`{operation}`"));
    FailureReport {
        outcome: Outcome::Hung,
        failure: Failure {
            operation,
            path: Some(path.display().to_string()),
            error: None,
            message: format!(
                "{operation_text} of an earlier run on {} has still not returned. {}; longhaul continues with this target when it does",
                path.display(),
                hang_advice(SYSTEM, operation)
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_that_hangs_may_wait_for_an_answer_on_a_mac() {
        assert!(hang_advice(System::MacOs, Some(Operation::Open)).contains("click Allow"));
        for (system, operation) in [
            (System::MacOs, Some(Operation::Read)),
            (System::MacOs, None),
            (System::Linux, Some(Operation::Open)),
        ] {
            assert_eq!(hang_advice(system, operation), "Check the NAS and the network");
        }
    }

    #[test]
    fn failures_of_a_worker_are_recognized_by_their_message() {
        let target: TargetName = "smb".parse().unwrap();
        let failures = [
            start_failure(&target, &"no such file"),
            backoff_failure(&target, 3, 20),
            crash_failure(&target, "signal 9"),
        ];
        assert!(failures.iter().all(|report| is_worker_failure(&report.failure.message)), "{failures:?}");
        let other = version_mismatch_failure(&target, "0.1.0").failure.message;
        assert!(!is_worker_failure(&other), "{other}");
    }
}
