//! How long a worker is waited for.

use std::time::{Duration, Instant};

use longhaul_measure::model::{Phase, TargetName};
use longhaul_measure::platform;
use longhaul_measure::worker::{Command, Message};

use super::link::Link;
use super::{GRACE, Watch, recording};

/// The longest pause before a worker that keeps ending by itself is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// How long a worker may take between two calls of a preparation at least, whatever the cap: it makes content there.
const BETWEEN_CALLS: Duration = Duration::from_secs(60);

/// How often in a row a worker ended by itself. The first time it is started again at once, then after 1, 2, 4... seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Falls {
    /// How often.
    pub count: u32,
    last: Option<Instant>,
}

impl Falls {
    /// One more, just now.
    pub fn add(&mut self) {
        *self = Self { count: self.count + 1, last: Some(Instant::now()) };
    }

    /// How many seconds are left before it may be started again; `None`: it may be now.
    pub fn seconds_to_wait(&self) -> Option<u64> {
        let pause = match self.count {
            0 | 1 => Duration::ZERO,
            more => Duration::from_secs(1 << (more - 2).min(6)).min(LONGEST_PAUSE),
        };
        let left = pause.checked_sub(self.last?.elapsed())?;
        (left > Duration::ZERO).then(|| left.as_secs() + 1)
    }
}

/// What the limit of a task is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The task as a whole.
    InAll,
    /// Each operation, and what lies between two of them: a preparation may take as long as it makes headway.
    PerOperation,
}

/// That a worker was told to stop.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// When.
    pub at: Instant,
    /// Whether because its cap is over.
    pub capped: bool,
}

/// When a worker last came on.
struct Headway {
    finished: u64,
    at: Instant,
}

impl Headway {
    /// How long it has not come on, if so many of its calls have returned by now.
    fn still_for(&mut self, finished: u64, now: Instant) -> Duration {
        if finished != self.finished {
            *self = Self { finished, at: now };
        }
        now.duration_since(self.at)
    }
}

/// The waiting for one answer.
pub struct Wait {
    limit: Limit,
    began: Instant,
    headway: Headway,
    /// Whether the worker was told to stop.
    pub told: Option<Told>,
    /// The phases that ended so far.
    pub phases: Vec<Phase>,
    /// The phase that goes on.
    pub current: Option<recording::Begun>,
}

impl Wait {
    /// The waiting that begins now.
    pub fn new(limit: Limit) -> Self {
        let began = Instant::now();
        let headway = Headway { finished: 0, at: began };
        Self { limit, began, headway, told: None, phases: vec![], current: None }
    }

    /// Takes in a message; gives it back if it is the answer.
    pub fn hear(&mut self, message: Message, target: &TargetName, watch: &mut Watch<'_>) -> Option<Message> {
        match message {
            Message::Progress(progress) => {
                self.headway.at = Instant::now();
                watch.observer.progress(target, &progress);
            }
            Message::PhaseBegan { name, cache, cold_by } => {
                watch.observer.phase_began(target, &name);
                let (at, at_us) = (Instant::now(), platform::wall_clock_us());
                self.current = Some(recording::Begun { name, cache, cold_by, at, at_us });
            }
            Message::PhaseEnded(phase) => {
                self.current = None;
                self.phases.push(phase);
            }
            // It went another way.
            Message::Sampled(_) => {}
            answer => return Some(answer),
        }
        None
    }

    /// Tells the worker to stop when it is time, and says when waiting on has no sense.
    pub fn is_hopeless(&mut self, link: &mut Link, watch: &Watch<'_>) -> bool {
        if self.told.is_none() {
            let capped = self.is_over(link, watch.cap);
            if capped || (watch.interrupted)() {
                let _ = link.send(&Command::Stop { capped });
                self.told = Some(Told { at: Instant::now(), capped });
            }
        }
        match self.told {
            Some(Told { at, capped: true }) => at.elapsed() > GRACE,
            Some(Told { at, capped: false }) => at.elapsed() > watch.patience,
            None => false,
        }
    }

    fn is_over(&mut self, link: &Link, cap: Duration) -> bool {
        let recorder = link.recorder();
        match self.limit {
            Limit::InAll => self.began.elapsed() > cap,
            Limit::PerOperation => {
                let still = self.headway.still_for(recorder.finished(), Instant::now());
                let hangs = recorder.in_flight().is_some_and(|flight| recording::age(flight) > cap);
                hangs || still > cap.max(BETWEEN_CALLS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_stands_still_between_two_calls_is_seen_to() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut headway = Headway { finished: 0, at: begin };
        let mut still = |finished, seconds| headway.still_for(finished, after(seconds)).as_secs();
        assert_eq!([still(3, 10), still(3, 50), still(4, 70), still(4, 135)], [0, 40, 0, 65]);
    }
}
