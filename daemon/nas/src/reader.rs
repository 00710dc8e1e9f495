//! The thread that reads a NAS, so that a reading never delays anything for longer than its limit.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use longhaul_measure::platform::wall_clock;
use longhaul_model::{NasProblem, NasReading};

use crate::error::NasError;
use crate::settings::NasSource;
use crate::{node_exporter, snmp, ssh};

/// Reads a NAS once, in the way that the user chose. Only the resolution of its name can take longer than the limit.
///
/// # Errors
///
/// If the NAS does not answer within the limit, refuses, or answers something else.
pub fn read(source: &NasSource, limit: Duration) -> Result<NasReading, NasError> {
    let deadline = Instant::now() + limit;
    let reading = match source {
        NasSource::Snmp(settings) => snmp::read(settings, deadline),
        NasSource::NodeExporter(url) => node_exporter::read(url, deadline),
        NasSource::Ssh(host) => ssh::read(host, deadline),
    }?;
    Ok(NasReading { at: wall_clock(), ..reading })
}

/// A reading and the time at which it was complete.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedReading {
    /// The reading.
    pub reading: NasReading,
    /// Time on the monotonic clock.
    pub at: Instant,
}

type Answer = Result<TimedReading, NasError>;

/// A question for the thread.
struct Question {
    deadline: Instant,
    answer: SyncSender<Answer>,
}

/// Reads one NAS on a thread of its own, which ends with this value.
#[derive(Debug)]
pub struct NasReader {
    questions: SyncSender<Question>,
    address: String,
}

impl NasReader {
    /// Starts the thread. Nothing is read yet.
    pub fn start(source: NasSource) -> Self {
        let (questions, incoming) = sync_channel(1);
        let address = source.address().to_owned();
        // If the thread cannot be started, the channel is closed, and each reading fails with a reason.
        let _ = Builder::new().name("nas".to_owned()).spawn(move || answer_questions(&source, &incoming));
        Self { questions, address }
    }

    /// Reads the NAS, and waits for it up to the limit.
    ///
    /// # Errors
    ///
    /// As [`read`], and if an earlier reading has not ended yet.
    pub fn read(&self, limit: Duration) -> Answer {
        let (answer, found) = sync_channel(1);
        let deadline = Instant::now() + limit;
        self.questions.try_send(Question { deadline, answer }).map_err(|error| match error {
            TrySendError::Full(_) => {
                self.timeout("an earlier reading has not ended yet: its name is still being resolved")
            }
            TrySendError::Disconnected(_) => self.timeout("the thread that reads it cannot be started"),
        })?;
        let waited = found.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        waited.unwrap_or_else(|_| Err(self.timeout("it did not answer in time")))
    }

    fn timeout(&self, why: &str) -> NasError {
        NasError::new(NasProblem::Timeout, format!("read the NAS at {}: {why}", self.address))
    }
}

fn answer_questions(source: &NasSource, questions: &Receiver<Question>) {
    for question in questions {
        let left = question.deadline.saturating_duration_since(Instant::now());
        // The caller does not wait any longer, and a run may have begun.
        if left.is_zero() {
            continue;
        }
        let found = read(source, left).map(|reading| TimedReading { reading, at: Instant::now() });
        // Sending fails if the caller has stopped waiting.
        let _ = question.answer.try_send(found);
    }
}
