//! What supervisor and worker say to each other: one JSON value a line.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::arena::{CleanReport, Mode};
use crate::model::{
    CacheState, ColdBy, Conditions, Failure, Negotiated, Outcome, Phase, ProbePlan, Probing, Progress,
    Protocol, Sampled, Scale, Target,
};
use crate::selfcheck::Check;
use crate::worker::Examined;
use crate::workloads::Settings;

/// The first line that a worker reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The only target that this worker may touch.
    pub target: Target,
    /// The random id of this installation.
    pub machine: String,
    /// A folder on the local disk for this target alone.
    pub local: PathBuf,
    /// The flight recorder's file.
    pub recorder: PathBuf,
    /// How the light probe goes; `None`: there is none.
    #[serde(default)]
    pub probe: Option<ProbePlan>,
}

/// Which run is meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The workload's name in the table.
    pub workload: String,
    /// How large.
    pub scale: Scale,
    /// What is set for all workloads.
    pub settings: Settings,
    /// How many times the target has been measured before: decides whose turn it is among slices.
    pub rotation: u64,
    /// The round's seed.
    pub seed: u64,
}

/// What a worker is told to do. It does one thing at a time, but hears [`Command::Stop`] at any time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Make what a run needs; answered by [`Message::Prepared`].
    Prepare(Assignment),
    /// Do a run; answered by [`Message::Ended`].
    Run(Assignment),
    /// Make an arena, empty as it is; answered by [`Message::Claimed`].
    Claim,
    /// Give back what the arena holds; answered by [`Message::Cleaned`].
    Clean {
        /// Remove, or only list.
        mode: Mode,
    },
    /// Do everything that a run needs once, with one small file; answered by [`Message::Examined`].
    Examine,
    /// Make one call of a self-check; answered by [`Message::SelfChecked`].
    SelfCheck {
        /// Its name.
        call: String,
    },
    /// Whether the light probe asks from now on. Heard at any time.
    Probe {
        /// Whether it does.
        probing: Probing,
    },
    /// End what is being done after the operation in flight.
    Stop {
        /// Whether the run's cap is over; otherwise the person wants no more.
        capped: bool,
    },
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Message {
    /// It has found out how its target is reached.
    Ready {
        /// The protocol with what was negotiated; `None` if no mount could be found.
        protocol: Option<Protocol>,
        /// What was negotiated.
        negotiated: Negotiated,
        /// The server's address, where it is known: the way to it is looked up. It stays on this machine.
        #[serde(default)]
        server: Option<IpAddr>,
        /// Its version of longhaul: [`VERSION`](super::VERSION). One from before this was told has an empty one.
        #[serde(default)]
        version: String,
    },
    /// A preparation has come this far.
    Progress(Progress),
    /// A phase begins.
    PhaseBegan {
        /// Its name.
        name: String,
        /// Whether it meets caches.
        cache: CacheState,
        /// How it was made cold.
        cold_by: Option<ColdBy>,
    },
    /// A phase ended.
    PhaseEnded(Phase),
    /// A preparation ended.
    Prepared {
        /// Why it failed, and what else was true; `None` if it did not.
        failed: Option<Report>,
    },
    /// What sampling brought. It comes at any time, and is no answer.
    Sampled(Sampled),
    /// A run ended.
    Ended(Report),
    /// An arena is there.
    Claimed {
        /// Why it is not; `None` if it is.
        failed: Option<Ending>,
    },
    /// The target was examined.
    Examined {
        /// What was found.
        found: Option<Examined>,
        /// Why it failed.
        failed: Option<Ending>,
    },
    /// A call of a self-check was made.
    SelfChecked {
        /// Its answer; `None` if there is no such call.
        check: Option<Check>,
    },
    /// An arena was cleaned.
    Cleaned {
        /// What was removed; `None` if there is no arena, or if it failed.
        report: Option<CleanReport>,
        /// Why it failed.
        failed: Option<Ending>,
    },
}

/// How something that failed ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The outcome to book.
    pub outcome: Outcome,
    /// Why.
    pub failure: Failure,
}

/// What a worker says of a run beside its phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How it failed; `None` if it did not.
    pub failed: Option<Ending>,
    /// Facts that the workload found.
    pub facts: BTreeMap<String, String>,
    /// What else was true.
    pub conditions: Conditions,
}
