//! Runs rounds in the foreground, one after the other.

use std::time::Duration;

use longhaul_model::Target;
use longhaul_nas::NasSettings;
use longhaul_store::{RoundStatus, Writer};

use crate::clock::SystemClock;
use crate::nas::NasMonitor;
use crate::round::{RetryLimit, RoundError, RoundObserver, RoundRunner, RoundSpec, RoundTasks};
use crate::round_stop::{RoundStop, RoundStopRequest};
use crate::worker::{Interruption, Launcher, Worker};

/// Number of attempts to store a run in a locked or full database, before the runner gives up.
const STORE_ATTEMPTS: u32 = 5;
/// Time that an operation in flight may take after Ctrl-C, before its worker is abandoned.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// The targets, workloads and number of rounds of a foreground run.
#[derive(Debug, Clone)]
pub struct ForegroundPlan {
    /// Targets to measure.
    pub targets: Vec<Target>,
    /// Workloads to run and their settings.
    pub tasks: RoundTasks,
    /// Number of rounds.
    pub rounds: u32,
    /// The NAS to read before and after each run. `None`: none.
    pub nas: Option<NasSettings>,
}

/// Numbers of stored and failed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunTotals {
    /// Number of stored runs.
    pub runs: u32,
    /// Number of stored runs that failed. Runs stopped by the user do not count.
    pub failed_runs: u32,
    /// True if the user stopped the run of the plan.
    pub interrupted: bool,
}

/// Runs all rounds of a plan in the foreground.
pub struct ForegroundRunner<'a> {
    /// Targets, workloads and number of rounds.
    pub plan: &'a ForegroundPlan,
    /// The workers, one per target, in the order of the plan.
    pub workers: Vec<Worker>,
    /// The database writer.
    pub writer: &'a Writer,
    /// Request of the user to stop.
    pub interruption: &'a Interruption,
}

impl<'a> ForegroundRunner<'a> {
    /// Creates a runner with one worker per target.
    pub fn new(
        plan: &'a ForegroundPlan,
        launcher: &Launcher,
        writer: &'a Writer,
        interruption: &'a Interruption,
    ) -> Self {
        let worker = |target: &Target| Worker::new(target.clone(), launcher.clone());
        Self { plan, workers: plan.targets.iter().map(worker).collect(), writer, interruption }
    }

    /// Runs the rounds of the plan until all are done, the user stops, or the observer refuses another round.
    /// `rounds_before` is the number of rounds started earlier; the order of the runs depends on it.
    ///
    /// # Errors
    ///
    /// If a round or a run cannot be stored.
    pub fn run(
        &mut self,
        machine_seed: u64,
        rounds_before: u64,
        observer: &mut dyn RoundObserver,
    ) -> Result<RunTotals, RoundError> {
        let mut totals = RunTotals::default();
        for index in 0..self.plan.rounds {
            totals.interrupted = self.interruption.is_requested();
            if totals.interrupted || !observer.may_continue(index) {
                break;
            }
            let spec = RoundSpec {
                machine_seed,
                round_index: rounds_before + u64::from(index),
                ..RoundSpec::default()
            };
            self.run_round(&spec, index, observer, &mut totals)?;
        }
        Ok(totals)
    }

    fn run_round(
        &mut self,
        spec: &RoundSpec,
        index: u32,
        observer: &mut dyn RoundObserver,
        totals: &mut RunTotals,
    ) -> Result<(), RoundError> {
        let reason = RoundStop::CutShort("stopped by the user".to_owned());
        let nas = self.plan.nas.as_ref().map(NasMonitor::new);
        let runner = RoundRunner {
            tasks: &self.plan.tasks,
            writer: self.writer,
            clock: &SystemClock,
            stop: &RoundStopRequest::on(self.interruption.clone(), reason),
            stop_timeout: STOP_TIMEOUT,
            retry_limit: RetryLimit::Attempts(STORE_ATTEMPTS),
            nas: nas.as_ref(),
        };
        let mut workers: Vec<&mut Worker> = self.workers.iter_mut().collect();
        let started = runner.begin(spec, &workers)?;
        observer.round_started(started.number, index, self.plan.rounds);
        let result = runner.run(started, &mut workers, observer)?;
        totals.runs += result.runs;
        totals.failed_runs += result.failed_runs;
        totals.interrupted = result.status == RoundStatus::CutShort || self.interruption.is_requested();
        Ok(())
    }
}
