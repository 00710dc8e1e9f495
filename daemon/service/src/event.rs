//! Everything that the service's loop reacts to, except the passage of time.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::{FailureReport, TargetExamination};
use longhaul_model::{Outcome, Progress, TargetName, Timestamp};
use parking_lot::Mutex;

use crate::command::Command;
use crate::round::{RoundError, RoundResult};
use crate::status::Check;
use crate::worker::Worker;

/// An event that the service's loop handles.
pub enum ServiceEvent {
    /// A user or the system gives a command.
    Command(Command),
    /// The mount table has changed.
    MountsChanged,
    /// The system unmounts a share by force, because its server does not respond.
    ShareDied,
    /// The round in progress reports something.
    Round(RoundEvent),
    /// A round has ended.
    RoundEnded(RoundEnd),
    /// The workers have examined their targets for `longhaul doctor`.
    Examined(ExaminationEnd),
    /// The thread of the task in progress has panicked, with this payload.
    TaskPanicked(Box<dyn Any + Send>),
}

/// A report of the round in progress.
pub enum RoundEvent {
    /// The round is stored, with its number in the database, and begins with this number of planned runs.
    Started { round: i64, runs: u32 },
    /// A preparation reports progress.
    Progress(TargetName, Progress),
    /// A phase of a run starts.
    PhaseStarted { target: TargetName, phase: String },
    /// A worker starts a request. Its flight recorder shows the progress.
    WorkerStarted(TargetName, Arc<Recorder>),
    /// A worker has another version of longhaul.
    VersionMismatch,
    /// A run starts.
    RunStarted { target: TargetName, workload: String },
    /// A run has ended with this outcome, and is stored.
    RunEnded(Outcome),
    /// A preparation wrote this number of bytes, at this time.
    CorpusPrepared { target: TargetName, bytes: u64, at: Timestamp },
    /// A run could not be stored yet, at this time.
    NotStored { error: String, at: Timestamp },
}

/// The end of a round: its workers come back.
pub struct RoundEnd {
    /// All workers of the service, in the order of the configuration.
    pub workers: Vec<Worker>,
    /// Result of the round.
    pub result: Result<RoundResult, RoundError>,
}

/// The end of an examination: its workers come back.
pub struct ExaminationEnd {
    /// All workers of the service, in the order of the configuration.
    pub workers: Vec<Worker>,
    /// Result for each target, in the order of the configuration.
    pub found: Vec<Result<TargetExamination, FailureReport>>,
    /// Checks of the channels of notifications, and of the NAS.
    pub channels: Vec<Check>,
}

/// The channel of the service's events.
pub struct EventChannel {
    sender: Sender<ServiceEvent>,
    /// `None`: the service's loop has taken it.
    receiver: Mutex<Option<Receiver<ServiceEvent>>>,
}

impl Default for EventChannel {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl EventChannel {
    /// Returns a sender of events.
    pub fn sender(&self) -> Sender<ServiceEvent> {
        self.sender.clone()
    }

    /// Sends an event. Does nothing after the service's loop has ended.
    pub fn send(&self, event: ServiceEvent) {
        let _ = self.sender.send(event);
    }

    /// Takes the receiver. If it was taken before, returns one that receives nothing.
    pub fn take_receiver(&self) -> Receiver<ServiceEvent> {
        self.receiver.lock().take().unwrap_or_else(|| channel().1)
    }

    /// Returns the next waiting event, for callers that answer in place of the service's loop.
    pub fn try_receive(&self) -> Option<ServiceEvent> {
        self.receiver.lock().as_mut()?.try_recv().ok()
    }
}
