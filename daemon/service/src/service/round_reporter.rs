//! Reports the progress of a round to the service's loop.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use longhaul_measure::recorder::Recorder;
use longhaul_model::{Hint, Progress, Target, TargetName};
use longhaul_store::StoredRun;

use super::upgrade::version_stop;
use crate::clock::Clock;
use crate::event::{RoundEvent, ServiceEvent};
use crate::round::RoundObserver;
use crate::round_stop::RoundStopRequest;
use crate::worker::WorkerObserver;

/// Sends the progress of a round as events.
pub(super) struct RoundReporter<'a> {
    pub(super) events: &'a Sender<ServiceEvent>,
    pub(super) clock: &'a dyn Clock,
    pub(super) stop: &'a RoundStopRequest,
}

impl RoundReporter<'_> {
    /// Sends an event. Does nothing after the service's loop has ended.
    pub(super) fn send(&self, event: RoundEvent) {
        let _ = self.events.send(ServiceEvent::Round(event));
    }
}

impl WorkerObserver for RoundReporter<'_> {
    fn progress(&mut self, target: &TargetName, progress: &Progress) {
        self.send(RoundEvent::Progress(target.clone(), progress.clone()));
    }

    fn phase_started(&mut self, target: &TargetName, name: &str) {
        self.send(RoundEvent::PhaseStarted { target: target.clone(), phase: name.to_owned() });
    }

    fn worker_started(&mut self, target: &TargetName, recorder: &Arc<Recorder>) {
        self.send(RoundEvent::WorkerStarted(target.clone(), Arc::clone(recorder)));
    }

    fn version_mismatch(&mut self, _: &TargetName, version: &str) {
        // Stopped here and not by the loop, so that no further run starts meanwhile.
        self.stop.request(version_stop(version));
        self.send(RoundEvent::VersionMismatch);
    }
}

impl RoundObserver for RoundReporter<'_> {
    fn run_started(&mut self, target: &Target, workload: &str) {
        let workload = workload.to_owned();
        self.send(RoundEvent::RunStarted { target: target.name.clone(), workload });
    }

    fn run_ended(&mut self, stored: &StoredRun) {
        let run = &stored.run;
        tracing::info!(
            run = stored.number,
            target_name = %run.target,
            workload = run.workload,
            outcome = run.outcome.name(),
            "a run ended"
        );
        self.send(RoundEvent::RunEnded(run.outcome));
    }

    fn corpus_prepared(&mut self, target: &Target, bytes: u64) {
        let at = self.clock.now().wall;
        self.send(RoundEvent::CorpusPrepared { target: target.name.clone(), bytes, at });
    }

    fn run_not_stored(&mut self, error: &longhaul_store::Error) {
        let at = self.clock.now().wall;
        self.send(RoundEvent::NotStored { error: error.one_line(), at });
    }
}
