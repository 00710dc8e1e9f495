//! Checks after a full round which properties the targets keep: once in each epoch of a target. A check that fails is
//! repeated a day later.

use longhaul_model::{Hint, TargetFidelity};
use longhaul_store::{Reader, Writer};

use crate::checks::fidelity::FidelityCheck;
use crate::clock::Clock;
use crate::round::RoundObserver;
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
    /// Checks each target of a full round that was not checked in its present epoch. The round was admitted because the
    /// machine was idle, so the machine is taken to be idle still.
    pub(super) fn after_round(&self, workers: &mut [&mut Worker], observer: &mut dyn RoundObserver) {
        for index in 0..workers.len() {
            let (before, after) = workers.split_at_mut(index);
            let Some((worker, after)) = after.split_first_mut() else { return };
            if !self.interruption.is_requested() && !worker.is_stuck() && self.is_due(worker) {
                let mut others: Vec<&mut Worker> = usable(before).chain(usable(after)).collect();
                self.check(worker, &mut others, observer);
            }
        }
    }

    fn is_due(&self, worker: &Worker) -> bool {
        let now = self.clock.now().wall;
        let due = |reader: &Reader| reader.is_fidelity_due(&worker.target().name, now);
        self.reader.as_ref().is_some_and(|reader| due(reader).unwrap_or(false))
    }

    fn check(&self, worker: &mut Worker, others: &mut [&mut Worker], observer: &mut dyn RoundObserver) {
        let check = FidelityCheck {
            interruption: self.interruption,
            operations_per_second: self.operations_per_second,
            at: self.clock.now().wall,
        };
        match check.run(worker, others) {
            Ok(checked) => {
                if checked.bytes_written > 0 {
                    observer.corpus_prepared(worker.target(), checked.bytes_written);
                }
                let target_name = &worker.target().name;
                tracing::info!(%target_name, "the fidelity of a target was checked");
                self.store(worker, &checked.fidelity);
            }
            Err(failure) => {
                let (target_name, message) = (&worker.target().name, &failure.failure.message);
                tracing::warn!(%target_name, error = message, "the fidelity of a target could not be checked");
                // A request to stop says nothing about the target: the next full round checks it.
                if !self.interruption.is_requested() {
                    self.store(worker, &check.failed(worker, &failure));
                }
            }
        }
    }

    fn store(&self, worker: &Worker, fidelity: &TargetFidelity) {
        match self.writer.add_fidelity(worker.target(), fidelity) {
            Ok(()) => {}
            // The next full round checks again, because nothing is stored for the epoch.
            Err(error) => tracing::warn!(error = error.one_line(), "the fidelity could not be stored"),
        }
    }
}

fn usable<'a>(workers: &'a mut [&mut Worker]) -> impl Iterator<Item = &'a mut Worker> {
    workers.iter_mut().map(|worker| &mut **worker).filter_map(|worker| (!worker.is_stuck()).then_some(worker))
}
