//! Notices that another version was installed: the service exits so that it starts, or asks for a restart.

use longhaul_measure::worker::VERSION;

use crate::clock::ClockReading;
use crate::handle::ServiceHandle;
use crate::program_file::{ProgramFile, UpgradeAction};
use crate::round_stop::RoundStop;
use crate::schedule::skip::SkipReason;

/// Interval at which the program file is checked between rounds, in nanoseconds.
const CHECK_INTERVAL_NS: i64 = 180 * 1_000_000_000;
/// Code of the problem, and of the reason to skip or void a round, when the program file was replaced.
const REPLACED_CODE: &str = "program-replaced";

/// The service's program file, and what is known about another version.
pub(super) struct Upgrade {
    /// `None`: not checked.
    file: Option<ProgramFile>,
    /// Time of the last check of the program file, on the continuous clock in nanoseconds.
    checked_ns: Option<i64>,
    /// True if a worker of the last round had another version than the service.
    has_mismatch: bool,
    /// True if another version takes over.
    is_replaced: bool,
}

impl Upgrade {
    /// Starts to watch a program file.
    pub(super) fn of(file: Option<ProgramFile>) -> Self {
        Self { file, checked_ns: None, has_mismatch: false, is_replaced: false }
    }

    /// Returns whether another version takes over, so that the service exits.
    pub(super) fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Records that a worker of the current round has another version than the service.
    pub(super) fn record_mismatch(&mut self) {
        self.has_mismatch = true;
    }

    /// Forgets the mismatch of an earlier round.
    pub(super) fn forget_mismatch(&mut self) {
        self.has_mismatch = false;
    }

    /// Returns whether the last check is more than a few minutes old.
    pub(super) fn is_due(&self, now: &ClockReading) -> bool {
        self.checked_ns.is_none_or(|checked_ns| now.continuous_ns - checked_ns >= CHECK_INTERVAL_NS)
    }

    /// Checks the program file. Returns the reason not to start a round if the service exits for another version.
    pub(super) fn check(&mut self, now: &ClockReading, handle: &ServiceHandle) -> Option<SkipReason> {
        self.checked_ns = Some(now.continuous_ns);
        let file = self.file.as_ref()?;
        match if self.has_mismatch { file.on_version_mismatch() } else { file.check() } {
            UpgradeAction::Continue => handle.clear_problem(REPLACED_CODE),
            UpgradeAction::Warn => {
                handle.raise_problem(REPLACED_CODE, replacement_warning(file), now.wall);
            }
            UpgradeAction::Exit => {
                tracing::info!(path = %file.path().display(), "another version was installed: it takes over");
                self.is_replaced = true;
                return Some(SkipReason::new(
                    REPLACED_CODE,
                    "another version of longhauld was installed and takes over",
                ));
            }
        }
        None
    }
}

/// Returns the reason to void a round of which a worker has this other version.
pub(super) fn version_stop(version: &str) -> RoundStop {
    RoundStop::Void(format!(
        "{REPLACED_CODE}: another version was installed: a worker has version {version}, the service {VERSION}"
    ))
}

fn replacement_warning(file: &ProgramFile) -> String {
    format!(
        "longhauld was replaced by another version: restart it. Version {VERSION} is still running, and a round is \
         void if its workers, started from {}, have another version",
        file.path().display()
    )
}
