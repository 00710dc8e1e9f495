//! Checks after a full round which properties the targets keep: once in each epoch of a target.

use longhaul_model::{Hint, RoundStatus, TargetFidelity};
use longhaul_store::{Reader, Writer};

use crate::checks::fidelity::FidelityCheck;
use crate::clock::Clock;
use crate::round::{RoundObserver, RoundResult};
use crate::worker::{Interruption, Worker};

/// Everything that the checks after a round need.
pub(super) struct FidelityChecks<'a> {
    pub(super) writer: &'a Writer,
    /// Reader of the database. `None`: it cannot be read, and nothing is checked.
    pub(super) reader: Option<Reader>,
    pub(super) clock: &'a dyn Clock,
    pub(super) interruption: &'a Interruption,
    /// Maximum number of operations per second. `None`: no limit.
    pub(super) operations_per_second: Option<u32>,
}

impl FidelityChecks<'_> {
    /// Checks each target of a round that was not checked in its present epoch. The round was admitted because the
    /// machine was idle, so the machine is taken to be idle still.
    pub(super) fn after_round(
        &self,
        result: &RoundResult,
        workers: &mut [&mut Worker],
        observer: &mut dyn RoundObserver,
    ) {
        if result.status != RoundStatus::Ok {
            return;
        }
        for worker in workers {
            if !self.interruption.is_requested() && !worker.is_stuck() && self.is_due(worker) {
                self.check(worker, observer);
            }
        }
    }

    fn is_due(&self, worker: &Worker) -> bool {
        let due = |reader: &Reader| reader.is_fidelity_due(&worker.target().name);
        self.reader.as_ref().is_some_and(|reader| due(reader).unwrap_or(false))
    }

    fn check(&self, worker: &mut Worker, observer: &mut dyn RoundObserver) {
        let check = FidelityCheck {
            interruption: self.interruption,
            operations_per_second: self.operations_per_second,
            at: self.clock.now().wall,
        };
        match check.run(worker) {
            Ok(checked) => {
                if checked.bytes_written > 0 {
                    observer.corpus_prepared(worker.target(), checked.bytes_written);
                }
                self.store(worker, &checked.fidelity);
            }
            Err(failure) => {
                let (target_name, message) = (&worker.target().name, failure.failure.message);
                tracing::warn!(%target_name, message, "the fidelity of a target could not be checked");
            }
        }
    }

    fn store(&self, worker: &Worker, fidelity: &TargetFidelity) {
        match self.writer.add_fidelity(worker.target(), fidelity) {
            Ok(()) => {
                tracing::info!(target_name = %fidelity.target, "the fidelity of a target was checked");
            }
            // The next full round checks again, because nothing is stored for the epoch.
            Err(error) => tracing::warn!(error = error.one_line(), "the fidelity could not be stored"),
        }
    }
}
