//! Commands that a user or the system gives to the running service.

use std::sync::mpsc::SyncSender;

use crate::config::Config;
use crate::status::Check;

/// A command to the service.
#[derive(Debug)]
pub enum Command {
    /// Stop the service.
    Stop,
    /// Change the pause of scheduled rounds.
    SetPause(Pause),
    /// Run a round now.
    RunRound,
    /// Apply a validated configuration.
    Configure(Box<Config>),
    /// Run the checks of `longhaul doctor` and send them to this channel.
    Examine(SyncSender<Vec<Check>>),
}

/// The user's pause of scheduled rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pause {
    /// Rounds are not paused.
    #[default]
    Off,
    /// Rounds are paused until the user resumes them.
    On,
    /// Rounds are paused until this time.
    Until(longhaul_model::Timestamp),
}
