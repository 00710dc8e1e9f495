//! Measures freshness: one worker makes changes in its sandbox, and the workers of all other targets that lead to the
//! same folder look for them at the same time.
//!
//! ```text
//! writer:   Prepare -------------------> Make (each change at its time) -> Confirm -> Remove
//! watchers:         Find (state before)  Watch (all changes every 0.1 s)
//! ```

mod helper;
mod plan;
mod samples;
mod steps;

use std::panic::resume_unwind;
use std::thread::{ScopedJoinHandle, scope};
use std::time::Duration;

use longhaul_measure::checks::freshness::{FreshnessSession, MadeChange, WatchLimit};
use longhaul_measure::worker::{FailureReport, FreshnessAnswer, FreshnessCommand};
use longhaul_model::{FreshnessSample, Role, SLEPT_NS};

pub use helper::{HelperCheck, HelperPlan};
pub use plan::{FreshnessPlan, writer_of_round};
use samples::{SessionResult, WatcherResult};
use steps::random_number;
pub(super) use steps::{STEP_TIMEOUT, StepLimits, new_session};

use crate::clock::Clock;
use crate::worker::{Interruption, Worker, unexpected_answer_failure};

/// Pause before a session is looked for again, because a client may know its folder late.
const FIND_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which a request to stop is passed on.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// Measures freshness with workers that are idle.
pub struct FreshnessCheck<'a> {
    /// Changes and times.
    pub plan: FreshnessPlan,
    /// Source of the current time.
    pub clock: &'a dyn Clock,
    /// Request to stop early.
    pub interruption: &'a Interruption,
    /// Time that a worker may take to stop before it is abandoned.
    pub stop_timeout: Duration,
}

/// The changes, and the observations of all watchers.
type Measured = (Result<Vec<MadeChange>, FailureReport>, Vec<WatcherResult>);

impl FreshnessCheck<'_> {
    /// Makes the changes through the worker at `writer`, and looks for them through all other shares that lead to its
    /// folder. Returns a sample for each change and watcher; none if no other share leads there.
    ///
    /// # Errors
    ///
    /// If the writer cannot prepare the changes.
    pub fn run(
        &self,
        workers: &mut [&mut Worker],
        writer: usize,
    ) -> Result<Vec<FreshnessSample>, FailureReport> {
        let (before, after) = workers.split_at_mut(writer);
        let Some((writer, after)) = after.split_first_mut() else { return Ok(vec![]) };
        let is_share = |worker: &&mut Worker| worker.target().role == Role::Share;
        let others = before.iter_mut().chain(after).map(|worker| &mut **worker).filter(is_share).collect();
        let asleep_ns = self.clock.peek().asleep_ns();
        let session = new_session(writer, self.plan.kinds());
        let limits = self.limits(self.interruption, STEP_TIMEOUT);
        limits.send(writer, FreshnessCommand::Prepare(session.clone()))?;
        let mut watchers = self.find_watchers(&session, others);
        let (changes, seen) = match watchers.is_empty() {
            true => (Ok(vec![]), vec![]),
            false => self.measure(&session, writer, &mut watchers),
        };
        let confirmed = self.finish(&session, writer);
        let now = self.clock.peek();
        let slept = now.asleep_ns() - asleep_ns > SLEPT_NS.cast_signed();
        let result = SessionResult {
            session,
            writer: Some(writer.target().name.clone()),
            writer_protocol: writer.protocol.clone(),
            changes: changes.map(|changes| changes.into_iter().map(Some).collect()),
            confirmed,
            void: self.void_reason(slept.then_some("the machine slept")),
            ended: now.wall,
        };
        Ok(seen.iter().flat_map(|watcher| result.samples(watcher)).collect())
    }

    fn void_reason(&self, slept: Option<&str>) -> Option<String> {
        let stopped = self.interruption.is_requested().then_some("it was stopped");
        slept.or(stopped).map(str::to_owned)
    }

    /// Returns the workers that find the session below the path of their target.
    fn find_watchers<'w>(
        &self,
        session: &FreshnessSession,
        mut others: Vec<&'w mut Worker>,
    ) -> Vec<&'w mut Worker> {
        let limits = self.limits(self.interruption, STEP_TIMEOUT);
        let mut found = vec![];
        for attempt in 0..2 {
            if attempt > 0 && !others.is_empty() {
                self.interruption.wait(FIND_INTERVAL);
            }
            for worker in std::mem::take(&mut others) {
                match limits.send(worker, FreshnessCommand::Find(session.clone())) {
                    Ok(FreshnessAnswer::Done) => found.push(worker),
                    Ok(_) => others.push(worker),
                    Err(report) => {
                        let message = report.failure.message;
                        tracing::info!(target_name = %worker.target().name, error = message, "freshness cannot be watched");
                    }
                }
            }
        }
        found
    }

    /// Lets the writer make the changes while all watchers look for them.
    fn measure(
        &self,
        session: &FreshnessSession,
        writer: &mut Worker,
        watchers: &mut [&mut Worker],
    ) -> Measured {
        // A request to stop wakes only one waiting thread, so each has one of its own.
        let writing = Interruption::default();
        let watching: Vec<_> = watchers.iter().map(|_| Interruption::default()).collect();
        scope(|scope| {
            let making = scope.spawn(|| {
                let made = self.make(session, writer, &writing);
                // Without changes there is nothing to look for.
                if made.is_err() {
                    watching.iter().for_each(Interruption::request);
                }
                made
            });
            let watchers = watchers.iter_mut().zip(&watching);
            let looking: Vec<_> = watchers
                .map(|(worker, interruption)| scope.spawn(|| self.watch(session, worker, interruption)))
                .collect();
            while !(making.is_finished() && looking.iter().all(ScopedJoinHandle::is_finished)) {
                if self.interruption.is_requested() {
                    watching.iter().chain([&writing]).for_each(Interruption::request);
                    break;
                }
                self.interruption.wait(STOP_INTERVAL);
            }
            let seen = looking.into_iter().map(joined).collect();
            (joined(making), seen)
        })
    }

    fn make(
        &self,
        session: &FreshnessSession,
        writer: &mut Worker,
        interruption: &Interruption,
    ) -> Result<Vec<MadeChange>, FailureReport> {
        let make = FreshnessCommand::Make(session.clone(), self.plan.times(random_number()));
        let limits = self.limits(interruption, self.plan.spread + STEP_TIMEOUT);
        match limits.send(writer, make)? {
            FreshnessAnswer::Made(changes) => Ok(changes),
            other => Err(unexpected_answer_failure(&other)),
        }
    }

    fn watch(
        &self,
        session: &FreshnessSession,
        worker: &mut Worker,
        interruption: &Interruption,
    ) -> WatcherResult {
        let watch = FreshnessCommand::Watch(
            session.clone(),
            WatchLimit { total: self.plan.watch, after_first: None },
        );
        let limits = self.limits(interruption, self.plan.watch + STEP_TIMEOUT);
        let observations = match limits.send(worker, watch) {
            Ok(FreshnessAnswer::Watched(observations)) => Ok(observations),
            Ok(other) => Err(unexpected_answer_failure(&other)),
            Err(report) => Err(report),
        };
        WatcherResult {
            target: worker.target().name.clone(),
            protocol: worker.protocol.clone(),
            observations,
        }
    }

    /// Looks whether the changes still exist, and removes all files of the session.
    fn finish(&self, session: &FreshnessSession, writer: &mut Worker) -> Result<Vec<bool>, FailureReport> {
        let limits = self.limits(self.interruption, STEP_TIMEOUT);
        let confirmed = limits.send_last(writer, FreshnessCommand::Confirm(session.clone()));
        limits.remove(session, writer);
        match confirmed? {
            FreshnessAnswer::Confirmed(confirmed) => Ok(confirmed),
            other => Err(unexpected_answer_failure(&other)),
        }
    }

    fn limits<'l>(&self, interruption: &'l Interruption, limit: Duration) -> StepLimits<'l> {
        StepLimits { interruption, limit, stop_timeout: self.stop_timeout }
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
