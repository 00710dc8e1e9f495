//! What a supervisor does for samples: it has a process there, says whether its probe asks, and never waits for either.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_measure::lock::Held;
use longhaul_measure::model::Probing;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::{Command, Ending};

use super::endings::{still_stuck, void};
use super::link::Link;
use super::{BETWEEN_LOOKS, Stance, State, Worker};

impl Worker {
    /// Has a process there, so that its probe can go on. Never waits: the process says what it is when it is first asked
    /// for something.
    ///
    /// # Errors
    ///
    /// Why there is none: the target must not be touched, an earlier process has not ended, or it keeps ending by itself.
    pub fn sample(&mut self) -> Result<(), Ending> {
        if let Some(ending) = &self.closed {
            return Err(ending.clone());
        }
        if let Stance::Stuck { operation, .. } = self.stance() {
            return Err(still_stuck(&self.target.path, operation));
        }
        if self.present().is_some_and(Link::has_ended) {
            self.falls.add();
            self.state = State::Absent;
        }
        match self.state {
            State::Absent if Held::is_taken(&self.lock) => {
                self.state = State::Inherited { since: Instant::now() };
                return Err(void(format!("an earlier worker of `{}` has not ended", self.target.name)));
            }
            State::Absent => self.state = State::Starting(self.launch()?),
            State::Leaving(_) | State::Inherited { .. } => {
                return Err(void(format!("the last worker of `{}` has not ended", self.target.name)));
            }
            State::Starting(_) | State::Idle(_) | State::Stuck { .. } => {}
        }
        Ok(())
    }

    /// Says whether the probe asks: to the process that is there, and to those that are started from now on.
    pub fn set_probing(&mut self, probing: Probing) {
        let Some(plan) = &mut self.launcher.probe else { return };
        plan.begins = probing;
        if let Some(link) = self.present() {
            // One that has ended is noticed when it is needed.
            let _ = link.send(&Command::Probe { probing });
        }
    }

    /// Whether it was dismissed, and its process is still there or has more to say.
    fn is_leaving(&mut self) -> bool {
        match &mut self.state {
            State::Leaving(link) => !(link.has_ended() && link.is_heard()),
            State::Absent
            | State::Inherited { .. }
            | State::Starting(_)
            | State::Idle(_)
            | State::Stuck { .. } => false,
        }
    }

    /// Waits until a process that was dismissed has ended and been heard, for so long at most.
    pub fn await_end(&mut self, limit: Duration) {
        let began = Instant::now();
        while self.is_leaving() && began.elapsed() < limit {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// The flight recorder of the process that is there.
    pub fn recorder(&self) -> Option<Arc<Recorder>> {
        match &self.state {
            State::Absent | State::Inherited { .. } => None,
            State::Starting(link) | State::Idle(link) | State::Leaving(link) | State::Stuck { link, .. } => {
                Some(Arc::clone(link.recorder()))
            }
        }
    }

    /// The process that is there and has nothing to do.
    fn present(&mut self) -> Option<&mut Link> {
        match &mut self.state {
            State::Starting(link) | State::Idle(link) => Some(link),
            State::Absent | State::Inherited { .. } | State::Leaving(_) | State::Stuck { .. } => None,
        }
    }
}
