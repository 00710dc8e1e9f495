//! The first message of a worker process: protocol, negotiated options and server of its target, and its
//! version of longhaul. After an upgrade, that version may differ from the supervisor's.

use std::time::Duration;

use longhaul_measure::worker::{FailureReport, VERSION, WorkerMessage};

use super::failures::{unexpected_message_failure, version_mismatch_failure};
use super::process::{ProcessEvent, WorkerProcess};
use super::wait::{LimitScope, PendingRequest};
use super::{RequestFailed, RequestOptions, State, Worker};

impl Worker {
    /// Waits for the first message of a process that was just started.
    pub(super) fn await_ready(
        &mut self,
        mut link: WorkerProcess,
        options: &mut RequestOptions<'_>,
    ) -> Result<WorkerProcess, RequestFailed> {
        let mut wait = PendingRequest::new(LimitScope::PerOperation);
        let _wake = options.interruption.wakes(link.event_sender());
        loop {
            match link.receive(wait.time_to_limit(&link, options)) {
                ProcessEvent::Message(message) => match *message {
                    WorkerMessage::Ready { version, .. } if version != VERSION => {
                        return Err(self.refuse_version(link, &version, options).into());
                    }
                    message if self.accept_ready(&message) => return Ok(link),
                    other => return Err(unexpected_message_failure(&other).into()),
                },
                ProcessEvent::Closed => return Err(self.handle_crash(link, vec![])),
                ProcessEvent::Interrupted | ProcessEvent::TimedOut => {}
            }
            if wait.must_give_up(&mut link, options) {
                return Err(self.give_up(link, wait, options.cap));
            }
        }
    }

    /// Takes the first message of a process that was just started if it arrives within `limit`. Returns whether the process has told
    /// what it knows, or never will: one that has ended, or that is of another version, which the next request reports.
    pub fn has_reported(&mut self, limit: Duration) -> bool {
        let event = match &mut self.state {
            State::Starting(link) => link.receive(limit),
            State::Idle(_) => return true,
            State::NotRunning | State::Exiting(_) | State::Orphaned { .. } | State::Stuck { .. } => {
                return false;
            }
        };
        match event {
            ProcessEvent::TimedOut | ProcessEvent::Interrupted => return false,
            ProcessEvent::Message(message) if is_of_this_version(&message) && self.accept_ready(&message) => {
                if let State::Starting(link) = std::mem::replace(&mut self.state, State::NotRunning) {
                    self.state = State::Idle(link);
                }
            }
            ProcessEvent::Message(_) | ProcessEvent::Closed => self.shut_down(),
        }
        true
    }

    /// Takes the target's facts from a `Ready` message. Returns false for any other message. `Ready` is the
    /// first message; it is repeated if a fact becomes known later.
    pub(super) fn accept_ready(&mut self, message: &WorkerMessage) -> bool {
        let WorkerMessage::Ready { protocol, negotiated, server, .. } = message else { return false };
        (self.protocol, self.negotiated) = (protocol.clone(), negotiated.clone());
        self.server = server.or(self.server);
        true
    }

    /// Dismisses a process of another version. This does not count as a crash.
    pub(super) fn refuse_version(
        &mut self,
        mut link: WorkerProcess,
        version: &str,
        options: &mut RequestOptions<'_>,
    ) -> FailureReport {
        tracing::warn!(target_name = %self.target.name, version, "a worker has another version of longhaul");
        options.observer.version_mismatch(&self.target.name, version);
        link.close_input();
        self.state = State::Exiting(link);
        version_mismatch_failure(&self.target.name, version)
    }
}

fn is_of_this_version(message: &WorkerMessage) -> bool {
    matches!(message, WorkerMessage::Ready { version, .. } if version == VERSION)
}
