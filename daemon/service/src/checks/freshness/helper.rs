//! Measures freshness of changes that are made on the NAS itself, by a shell line that the user runs there.

use std::time::Duration;

use longhaul_measure::checks::freshness::{
    ClockOffset, FreshnessSession, WatchLimit, WatchedChange, shell_line,
};
use longhaul_measure::worker::{FailureReport, FreshnessAnswer, FreshnessCommand};
use longhaul_model::{FreshnessSample, SLEPT_NS};

use super::plan::FreshnessPlan;
use super::samples::{SessionResult, WatcherResult};
use super::steps::{STEP_TIMEOUT, StepLimits, new_session, random_number};
use crate::clock::Clock;
use crate::worker::{Interruption, Worker, unexpected_answer_failure, void_failure};

/// Time before the first change of the line.
const START: Duration = Duration::from_secs(2);

/// The changes on the NAS, and the time to wait for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperPlan {
    /// Changes and times; the watch of each change lasts at least `plan.watch - plan.spread`.
    pub plan: FreshnessPlan,
    /// Time that the user has to run the line.
    pub patience: Duration,
    /// Folder of the target on the NAS.
    pub folder: String,
}

/// Measures freshness of changes that are made on the NAS.
pub struct HelperCheck<'a> {
    /// Changes and times.
    pub plan: &'a HelperPlan,
    /// Source of the current time.
    pub clock: &'a dyn Clock,
    /// Request to stop early.
    pub interruption: &'a Interruption,
    /// Time that the worker may take to stop before it is abandoned.
    pub stop_timeout: Duration,
}

/// Observations of the changes, and the times at which the NAS made them.
struct HelperResult {
    observations: Vec<WatchedChange>,
    stamps_ns: Vec<Option<i64>>,
    offset: ClockOffset,
}

impl HelperCheck<'_> {
    /// Prepares the files, passes the shell line to `show_line`, and watches until the changes are seen.
    ///
    /// # Errors
    ///
    /// If the target cannot be used, no change was seen in time, or a clock was set meanwhile. Nothing is left in the
    /// sandbox, unless the worker died.
    pub fn run(
        &self,
        worker: &mut Worker,
        show_line: &mut dyn FnMut(&str),
    ) -> Result<Vec<FreshnessSample>, FailureReport> {
        let session = new_session(worker, self.plan.plan.kinds());
        let limits = self.limits(STEP_TIMEOUT);
        let asleep_ns = self.clock.peek().asleep_ns();
        limits.send(worker, FreshnessCommand::Prepare(session.clone()))?;
        let measured = self.measure(&session, worker, show_line);
        limits.remove(&session, worker);
        let HelperResult { observations, stamps_ns, offset } = measured?;
        let now = self.clock.peek();
        if now.asleep_ns() - asleep_ns > SLEPT_NS.cast_signed() {
            return Err(void_failure("the machine slept during the measurement; run it again".to_owned()));
        }
        let change = |stamp_ns: &Option<i64>| stamp_ns.map(|stamp_ns| offset.change(stamp_ns));
        let result = SessionResult {
            session,
            writer: None,
            writer_protocol: None,
            changes: Ok(stamps_ns.iter().map(change).collect()),
            confirmed: Ok(stamps_ns.iter().map(Option::is_some).collect()),
            void: None,
            ended: now.wall,
        };
        Ok(result.samples(&WatcherResult {
            target: worker.target().name.clone(),
            protocol: worker.protocol.clone(),
            observations: Ok(observations),
        }))
    }

    fn measure(
        &self,
        session: &FreshnessSession,
        worker: &mut Worker,
        show_line: &mut dyn FnMut(&str),
    ) -> Result<HelperResult, FailureReport> {
        let limits = self.limits(STEP_TIMEOUT);
        let before = clocks(limits.send(worker, FreshnessCommand::CompareClocks(session.clone()))?)?;
        limits.send(worker, FreshnessCommand::Find(session.clone()))?;
        let time = |time| START + time;
        let times: Vec<Duration> = self.plan.plan.times(random_number()).into_iter().map(time).collect();
        show_line(&shell_line(session, &times, &self.plan.folder));
        let observations = self.watch(session, worker)?;
        if observations.iter().all(|observation| observation.seen_ns.is_none()) {
            return Err(void_failure(format!(
                "no change was seen on {} within {} s. Was the line run on the NAS, with the folder of the target \
                 there, and did it print no error?",
                worker.target().path.display(),
                self.plan.patience.as_secs()
            )));
        }
        let stamps_ns = match limits.send(worker, FreshnessCommand::Stamps(session.clone()))? {
            FreshnessAnswer::Stamped(stamps_ns) => stamps_ns,
            other => return Err(unexpected_answer_failure(&other)),
        };
        let after = clocks(limits.send(worker, FreshnessCommand::CompareClocks(session.clone()))?)?;
        let set =
            || void_failure("the clock of the NAS was set during the measurement; run it again".to_owned());
        Ok(HelperResult { observations, stamps_ns, offset: before.hull(after).ok_or_else(set)? })
    }

    fn watch(
        &self,
        session: &FreshnessSession,
        worker: &mut Worker,
    ) -> Result<Vec<WatchedChange>, FailureReport> {
        let total = self.plan.patience + self.plan.plan.watch;
        let limit = WatchLimit { total, after_first: Some(START + self.plan.plan.watch) };
        let watch = FreshnessCommand::Watch(session.clone(), limit);
        match self.limits(total + STEP_TIMEOUT).send(worker, watch)? {
            FreshnessAnswer::Watched(observations) => Ok(observations),
            other => Err(unexpected_answer_failure(&other)),
        }
    }

    fn limits(&self, limit: Duration) -> StepLimits<'_> {
        StepLimits { interruption: self.interruption, limit, stop_timeout: self.stop_timeout }
    }
}

fn clocks(answer: FreshnessAnswer) -> Result<ClockOffset, FailureReport> {
    match answer {
        FreshnessAnswer::Clocks(offset) => Ok(offset),
        other => Err(unexpected_answer_failure(&other)),
    }
}
