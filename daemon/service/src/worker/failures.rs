//! Failure reports for runs that the supervisor ended.

use std::path::Path;
use std::time::Duration;

use longhaul_measure::recorder::InFlightCall;
use longhaul_measure::worker::{FailureReport, RunReport, VERSION, WorkerMessage};
use longhaul_model::{Conditions, Failure, Operation, Outcome, TargetName};

use super::phase_record::call_age;

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
        "{cause}; the cap is {:.0} s. Check the NAS and the network. longhaul continues with the other targets, \
         and with this one once the call returns",
        cap.as_secs_f64()
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

/// Begins the message about a worker that could not be started.
pub const NO_WORKER: &str = "no worker process could be started";

/// Returns whether a run is void because its worker could not be started or crashed: later rounds will probably fail the same way.
pub fn is_of_worker(message: &str) -> bool {
    let has_crashed = message.contains("crashed") || message.contains("ended unexpectedly");
    message.starts_with(NO_WORKER) || (message.starts_with("the worker of `") && has_crashed)
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
                "{operation_text} of an earlier run on {} has still not returned. Check the NAS and the network; \
                 longhaul continues with this target when it does",
                path.display()
            ),
        },
    }
}
