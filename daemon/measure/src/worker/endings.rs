//! How a run ends that did not go well, as it is booked.

use super::Ending;
use crate::error::RunError;
use crate::model::{Failure, Outcome};

/// As the error says.
pub fn ending(error: &RunError) -> Ending {
    Ending { outcome: error.outcome(), failure: error.failure() }
}

fn void(message: String) -> Ending {
    let failure = Failure { operation: None, path: None, error: None, message };
    Ending { outcome: Outcome::Void, failure }
}

/// The clock stood still for a while.
pub fn slept_through(nanoseconds: u64) -> Ending {
    void(format!(
        "the machine slept for {:.0} s during the run, so its times say nothing",
        nanoseconds as f64 / 1e9
    ))
}

/// A fault of longhaul's own.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Ending {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    void(format!(
        "longhaul itself failed: {}. Please report this",
        text.unwrap_or_else(|| "panic".to_owned())
    ))
}
