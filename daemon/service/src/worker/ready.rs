//! The first message of a worker process: how its target is reached, and which version of longhaul it is. After an upgrade
//! that may be another one than its supervisor's.

use longhaul_measure::worker::{Ending, Message, VERSION};

use super::endings::{confused, other_version};
use super::link::{Answer, Link};
use super::waiting::{Limit, Wait};
use super::{State, TICK, Unanswered, Watch, Worker};

impl Worker {
    /// Waits until a process that was started has said how its target is reached.
    pub(super) fn await_ready(&mut self, mut link: Link, watch: &mut Watch<'_>) -> Result<Link, Unanswered> {
        let mut wait = Wait::new(Limit::PerOperation);
        loop {
            match link.receive(TICK) {
                Answer::Message(message) => match *message {
                    Message::Ready { version, .. } if version != VERSION => {
                        return Err(self.refuse(link, &version, watch).into());
                    }
                    message if self.is_ready(&message) => return Ok(link),
                    other => return Err(confused(&other).into()),
                },
                Answer::Ended => return Err(self.ended(link, vec![])),
                Answer::Silence => {}
            }
            if wait.is_hopeless(&mut link, watch) {
                return Err(self.abandon(link, wait, watch.cap));
            }
        }
    }

    /// Whether a message says how the target is reached; then that is known from now on. It comes first, and again when a
    /// question that was not answered at first is.
    pub(super) fn is_ready(&mut self, message: &Message) -> bool {
        let Message::Ready { protocol, negotiated, server, .. } = message else { return false };
        (self.protocol, self.negotiated) = (protocol.clone(), negotiated.clone());
        self.server = server.or(self.server);
        true
    }

    /// Lets a process of another version go. It did nothing wrong, and is not counted as one that ended by itself.
    pub(super) fn refuse(&mut self, mut link: Link, version: &str, watch: &mut Watch<'_>) -> Ending {
        tracing::warn!(target_name = %self.target.name, version, "a worker is another version of longhaul");
        watch.observer.other_version(&self.target.name, version);
        link.dismiss();
        self.state = State::Leaving(link);
        other_version(&self.target.name, version)
    }
}
