//! How a run ends that did not come to its own end.

use std::path::Path;
use std::time::Duration;

use longhaul_measure::model::{Conditions, Failure, Operation, Outcome, TargetName};
use longhaul_measure::recorder::InFlight;
use longhaul_measure::worker::{Ending, Message, Report, VERSION};

use super::recording::age;

/// A run, or a preparation, that hung.
pub fn hung(path: &Path, flight: Option<InFlight>, cap: Duration) -> Ending {
    let what = match flight {
        Some(flight) => format!(
            "`{}` on {} has not returned for {:.1} s",
            flight.operation,
            path.display(),
            age(flight).as_secs_f64()
        ),
        None => format!("the worker of {} does not answer", path.display()),
    };
    let message = format!(
        "{what}; the cap is {:.0} s. Check the NAS and the network; the other targets go on, and this one when the call \
         has returned",
        cap.as_secs_f64()
    );
    Ending {
        outcome: Outcome::Hung,
        failure: Failure {
            operation: flight.map(|flight| flight.operation),
            path: Some(path.display().to_string()),
            error: None,
            message,
        },
    }
}

/// What there is to book of a run of which there is nothing but how it ended.
pub fn failed(ending: Ending) -> Report {
    Report { failed: Some(ending), facts: Default::default(), conditions: Conditions::default() }
}

/// It says nothing of the target.
pub fn void(message: String) -> Ending {
    Ending { outcome: Outcome::Void, failure: Failure { operation: None, path: None, error: None, message } }
}

/// A worker of another version, which may measure in another way.
pub fn other_version(target: &TargetName, version: &str) -> Ending {
    void(format!(
        "the worker of `{target}` is longhaul {version}, and this program is {VERSION}: another version was installed \
         meanwhile. Start this program again"
    ))
}

/// A message that answers another question.
pub fn confused(message: &Message) -> Ending {
    void(format!("the worker gave an answer that does not belong here ({message:?}). Please report this"))
}

/// A call that was left behind has not returned.
pub fn still_stuck(path: &Path, operation: Option<Operation>) -> Ending {
    let operation_text = operation.map_or("an operation".to_owned(), |operation| format!("`{operation}`"));
    Ending {
        outcome: Outcome::Hung,
        failure: Failure {
            operation,
            path: Some(path.display().to_string()),
            error: None,
            message: format!(
                "{operation_text} of an earlier run on {} has still not returned. Check the NAS and the network; \
                 longhaul goes on with this target when it has",
                path.display()
            ),
        },
    }
}
