//! Limits for waiting: for the response of a worker, and before a crashed worker is restarted.

use std::time::{Duration, Instant};

use longhaul_measure::platform;
use longhaul_measure::worker::{WorkerCommand, WorkerMessage};
use longhaul_model::{Phase, TargetName};

use super::phase_record;
use super::process::WorkerProcess;
use super::request::RequestOptions;

/// Time that a worker may take to respond after it was asked to stop, before its operation counts as hung.
pub const KILL_GRACE: Duration = Duration::from_secs(2);
/// Longest pause before a worker that keeps crashing is restarted.
const MAX_BACKOFF: Duration = Duration::from_secs(64);

/// Minimum time that a preparation may take between two operations, whatever the cap:
/// the worker generates content there.
const IDLE_BETWEEN_CALLS_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of consecutive crashes of a worker, and the resulting pause. After the first crash the worker is
/// restarted at once, then after 1, 2, 4... seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrashBackoff {
    /// Number of consecutive crashes.
    pub crash_count: u32,
    last_crash: Option<Instant>,
}

impl CrashBackoff {
    /// Records a crash that happened just now.
    pub fn record_crash(&mut self) {
        *self = Self { crash_count: self.crash_count + 1, last_crash: Some(Instant::now()) };
    }

    /// Returns the seconds until the worker may be restarted. `None`: it may be restarted now.
    pub fn seconds_to_wait(&self) -> Option<u64> {
        let pause = match self.crash_count {
            0 | 1 => Duration::ZERO,
            more => Duration::from_secs(1 << (more - 2).min(6)).min(MAX_BACKOFF),
        };
        let left = pause.checked_sub(self.last_crash?.elapsed())?;
        (left > Duration::ZERO).then(|| left.as_secs() + 1)
    }
}

/// The scope of a request's time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitScope {
    /// The request as a whole.
    Total,
    /// Each operation, and the time between two operations: a preparation may take any
    /// time as long as it makes progress.
    PerOperation,
}

/// A stop request that was sent to a worker.
#[derive(Debug, Clone, Copy)]
pub struct StopRequest {
    /// Time at which the stop request was sent.
    pub requested_at: Instant,
    /// True if the cap was the reason, false if the user was.
    pub is_over_cap: bool,
}

/// The last progress of a worker, measured in completed calls.
struct CallProgress {
    finished_calls: u64,
    changed_at: Instant,
}

impl CallProgress {
    /// Returns the time since the number of completed calls last changed.
    fn stalled_for(&mut self, finished: u64, now: Instant) -> Duration {
        if finished != self.finished_calls {
            *self = Self { finished_calls: finished, changed_at: now };
        }
        now.duration_since(self.changed_at)
    }
}

/// A request whose response has not arrived yet.
pub struct PendingRequest {
    limit: LimitScope,
    began: Instant,
    progress: CallProgress,
    /// The stop request, once it was sent.
    pub stop_request: Option<StopRequest>,
    /// Phases that have ended so far.
    pub phases: Vec<Phase>,
    /// The phase in progress.
    pub current_phase: Option<phase_record::PhaseStart>,
}

impl PendingRequest {
    /// Starts waiting for a response now.
    pub fn new(limit: LimitScope) -> Self {
        let began = Instant::now();
        let progress = CallProgress { finished_calls: 0, changed_at: began };
        Self { limit, began, progress, stop_request: None, phases: vec![], current_phase: None }
    }

    /// Handles a progress message. Returns the message if it is the response.
    pub fn handle_message(
        &mut self,
        message: WorkerMessage,
        target: &TargetName,
        options: &mut RequestOptions<'_>,
    ) -> Option<WorkerMessage> {
        match message {
            WorkerMessage::Progress(progress) => {
                self.progress.changed_at = Instant::now();
                options.observer.progress(target, &progress);
            }
            WorkerMessage::PhaseBegan { name, cache, cold_by } => {
                options.observer.phase_started(target, &name);
                let (at, wall) = (Instant::now(), platform::wall_clock());
                self.current_phase = Some(phase_record::PhaseStart {
                    name,
                    cache,
                    cold_method: cold_by,
                    started: at,
                    started_wall: wall,
                });
            }
            WorkerMessage::PhaseEnded(phase) => {
                self.current_phase = None;
                self.phases.push(*phase);
            }
            // Samples have their own channel and never arrive here.
            WorkerMessage::Sample(_) => {}
            answer => return Some(answer),
        }
        None
    }

    /// Asks the worker to stop when the cap is reached or the user wants to. Returns
    /// whether to abandon the worker.
    pub fn must_give_up(&mut self, link: &mut WorkerProcess, options: &RequestOptions<'_>) -> bool {
        if self.stop_request.is_none() {
            let capped = self.is_over_cap(link, options.cap);
            if capped || options.interruption.is_requested() {
                let _ = link.send(&WorkerCommand::Stop { capped });
                self.stop_request = Some(StopRequest { requested_at: Instant::now(), is_over_cap: capped });
            }
        }
        match self.stop_request {
            Some(StopRequest { requested_at: at, is_over_cap: true }) => at.elapsed() > KILL_GRACE,
            Some(StopRequest { requested_at: at, is_over_cap: false }) => at.elapsed() > options.stop_timeout,
            None => false,
        }
    }

    fn is_over_cap(&mut self, link: &WorkerProcess, cap: Duration) -> bool {
        let recorder = link.recorder();
        match self.limit {
            LimitScope::Total => self.began.elapsed() > cap,
            LimitScope::PerOperation => {
                let stalled = self.progress.stalled_for(recorder.finished_run_calls(), Instant::now());
                let hangs = recorder.in_flight().is_some_and(|flight| phase_record::call_age(flight) > cap);
                hangs || stalled > cap.max(IDLE_BETWEEN_CALLS_TIMEOUT)
            }
        }
    }

    /// Returns the time until a limit can be exceeded at the earliest, unless the worker makes progress meanwhile.
    pub fn time_to_limit(&self, link: &WorkerProcess, options: &RequestOptions<'_>) -> Duration {
        let cap = options.cap;
        let left = match (&self.stop_request, self.limit) {
            (Some(stop), _) => {
                let limit = if stop.is_over_cap { KILL_GRACE } else { options.stop_timeout };
                limit.saturating_sub(stop.requested_at.elapsed())
            }
            (None, LimitScope::Total) => cap.saturating_sub(self.began.elapsed()),
            (None, LimitScope::PerOperation) => {
                let age = link.recorder().in_flight().map_or(Duration::ZERO, phase_record::call_age);
                let stalled = self.progress.changed_at.elapsed();
                cap.saturating_sub(age).min(cap.max(IDLE_BETWEEN_CALLS_TIMEOUT).saturating_sub(stalled))
            }
        };
        // Limits are exceeded only after them, not at them.
        left + Duration::from_millis(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_completed_call_is_measured() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut progress = CallProgress { finished_calls: 0, changed_at: start };
        let mut stalled = |finished, seconds| progress.stalled_for(finished, after(seconds)).as_secs();
        assert_eq!([stalled(3, 10), stalled(3, 50), stalled(4, 70), stalled(4, 135)], [0, 40, 0, 65]);
    }
}
