//! The ways of the log and of the service's own spans.

use super::{Diagnostics, Queue, line, work};
use crate::Added;
use crate::answer::Expected;
use crate::gate::Gate;
use crate::outbox::{Attempts, Becomes};
use crate::sender::{Sender, SenderError};
use crate::settings::Diagnosed;

/// Both ways.
pub(crate) struct Lanes {
    lines: Lane,
    work: Lane,
}

struct Lane {
    sender: Sender,
    attempts: Attempts,
}

impl Lanes {
    /// Makes the ways. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// As [`Sender::new`].
    pub(crate) fn new(routes: &Diagnosed) -> Result<Self, SenderError> {
        let lane = |route, expected| {
            Ok(Lane { sender: Sender::new(route, expected)?, attempts: Attempts::default() })
        };
        Ok(Self { lines: lane(&routes.logs, Expected::Logs)?, work: lane(&routes.spans, Expected::Traces)? })
    }

    /// Sends what is there, if it is time to and the gate lets it through.
    pub(crate) fn advance(
        &mut self,
        diagnostics: &Diagnostics,
        gate: &Gate,
        (who, now): ((&str, &Added), (u64, f64)),
    ) {
        self.lines.advance(
            &diagnostics.lines,
            gate,
            (&|lines, dropped| line::message(who, lines, dropped), now),
        );
        self.work.advance(&diagnostics.work, gate, (&|all, dropped| work::message(who, all, dropped), now));
    }
}

/// What makes a message of what waits, and of how many are missing before it.
type Making<'a, T> = &'a dyn Fn(&[T], u64) -> Vec<u8>;

impl Lane {
    fn advance<T>(&mut self, queue: &Queue<T>, gate: &Gate, (message, now): (Making<'_, T>, (u64, f64))) {
        let (now_ns, chance) = now;
        let Some(_passing) = gate.pass().filter(|_| self.attempts.is_due(now_ns)) else { return };
        let (taken, dropped) = queue.take();
        if taken.is_empty() {
            return;
        }
        let answer = self.sender.send(&message(&taken, dropped));
        if self.attempts.learn(&answer, 1, (now_ns, chance)) == Becomes::Waiting {
            queue.give_back(taken, dropped);
        }
    }
}
