//! What sampling brings: answers of the light probe, long waits, readings of counters.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Operation, Scale, TargetName};

/// A wait that is longer is booked on its own, in nanoseconds.
pub const LONG_WAIT_NS: u64 = 1_000_000_000;

/// What the light probe asks of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeKind {
    /// The attributes of a file that were just asked for: mostly the client's memory.
    Getattr,
    /// 4 KiB at a place of the pool file that was not read since it was last evicted: mostly the server.
    Read,
    /// 4 KiB written and made durable.
    WriteSync,
}

impl ProbeKind {
    /// Every kind.
    pub const ALL: [ProbeKind; 3] = [Self::Getattr, Self::Read, Self::WriteSync];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Getattr => "getattr",
            Self::Read => "read",
            Self::WriteSync => "write-sync",
        }
    }

    /// The kind with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// When the probe may touch a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Never.
    Never,
    /// While somebody uses it, or a run of ours does: an idle automounter or a sleeping NAS is left asleep.
    #[default]
    Active,
    /// Always.
    Always,
}

/// How the probe of one target goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Milliseconds from slot to slot.
    pub interval_ms: u64,
    /// What is asked, in rotation.
    pub kinds: Vec<ProbeKind>,
    /// Where the phase of each hour is drawn from.
    pub seed: u64,
    /// Whether it begins at once; otherwise it waits for the word, or for a run.
    pub begins: Probing,
    /// Size of the pool file, in bytes: [`ProbePlan::pool_bytes_at`].
    pub pool_bytes: u64,
    /// Share of the target that stays free whatever happens, from 0 to 1.
    pub free_floor: f64,
}

impl ProbePlan {
    /// How large the pool file is at a scale, in bytes. At one read in 15 seconds, 64 MiB last for 17 hours and more.
    pub const fn pool_bytes_at(scale: Scale) -> u64 {
        match scale {
            Scale::Quick => 4 << 20,
            Scale::Standard | Scale::Large => 64 << 20,
        }
    }
}

/// Whether the probe asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probing {
    /// It does.
    On,
    /// Only while a run is made.
    DuringRuns,
}

/// One slot of the probe's open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Probed {
    /// What was asked.
    pub kind: ProbeKind,
    /// The instant at which it was meant to be asked, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// From that instant until the answer, in nanoseconds. A slot that passed while an earlier call had not returned gets
    /// the time until that call did. That the machine woke the probe late is not counted.
    pub latency_ns: u64,
    /// What the call itself took, in nanoseconds; `None` for a slot that passed without one.
    pub call_ns: Option<u64>,
    /// The name of the system's error, if it failed.
    pub error: Option<String>,
    /// The workload that ran in the same worker.
    pub beside: Option<String>,
}

/// A call that took longer than [`LONG_WAIT_NS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Waited {
    /// The call.
    pub operation: Operation,
    /// When it began, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// How long it took, in nanoseconds.
    pub nanoseconds: u64,
    /// The name of the system's error, if it failed.
    pub error: Option<String>,
    /// The workload that made it; `None`: the probe, or what a worker does before and between workloads.
    pub workload: Option<String>,
}

/// What a worker tells beside its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sample", rename_all = "kebab-case")]
pub enum Sampled {
    /// Slots of the probe, in the order of their instants.
    Probed {
        /// The slots.
        slots: Vec<Probed>,
        /// What the probe itself cost since the last time: processor time in nanoseconds.
        cost_ns: u64,
    },
    /// A long wait.
    Waited(Waited),
    /// Somebody changed something in the target's folder, outside of the arena, as the system told this machine.
    Changed {
        /// When the latest change was seen, in microseconds since 1970 UTC.
        at_us: i64,
    },
    /// The probe cannot go on, and why.
    Lame {
        /// What happened, what it means and what to do.
        reason: String,
    },
}

/// Where counters come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `/proc/self/mountstats`.
    Mountstats,
    /// `/proc/fs/cifs/Stats`.
    CifsStats,
    /// The TCP connections to the server.
    Connections,
    /// `nfsstat`.
    Nfsstat,
    /// `smbutil`.
    Smbutil,
    /// An interface of this machine.
    Interface(String),
    /// The disk below a local file system, as far as this process used it.
    Disk,
}

/// What the stored name of an interface begins with.
const INTERFACE: &str = "interface ";

impl Source {
    /// Those that are not one of several interfaces.
    const SINGLE: [Source; 6] =
        [Self::Mountstats, Self::CifsStats, Self::Connections, Self::Nfsstat, Self::Smbutil, Self::Disk];

    /// The name that is stored and shown.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Mountstats => "mountstats".into(),
            Self::CifsStats => "cifs-stats".into(),
            Self::Connections => "connections".into(),
            Self::Nfsstat => "nfsstat".into(),
            Self::Smbutil => "smbutil".into(),
            Self::Interface(name) => format!("{INTERFACE}{name}").into(),
            Self::Disk => "disk".into(),
        }
    }

    /// The source with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        let interface = || Some(Self::Interface(name.strip_prefix(INTERFACE)?.to_owned()));
        Self::SINGLE.into_iter().find(|source| source.name() == name).or_else(interface)
    }
}

/// What a source counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Covers {
    /// This mount alone.
    Mount,
    /// Everything between this machine and the server.
    Server,
    /// Everything that crosses the interface.
    Interface,
    /// What this process alone caused.
    Process,
    /// All mounts of this protocol.
    Protocol,
}

impl Covers {
    /// Every member.
    pub const ALL: [Covers; 5] = [Self::Mount, Self::Server, Self::Interface, Self::Process, Self::Protocol];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mount => "mount",
            Self::Server => "server",
            Self::Interface => "interface",
            Self::Process => "process",
            Self::Protocol => "protocol",
        }
    }

    /// The one with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|covers| covers.name() == name)
    }
}

/// One reading of one source. Counters grow until whatever keeps them begins anew; `None` is what it does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Where it comes from.
    pub source: Source,
    /// What it counts.
    pub covers: Covers,
    /// What tells this counter from others and from its successor after a remount or reconnect (a device number, ports).
    /// Equal texts of one source are one life of one counter, also where two targets are counted by it.
    pub life: String,
    /// Seconds since the counter began, where it says.
    pub age_seconds: Option<u64>,
    /// Bytes received.
    pub read_bytes: Option<u64>,
    /// Bytes sent.
    pub written_bytes: Option<u64>,
    /// Requests made, without those by which a client keeps its lease or connection alive.
    pub requests: Option<u64>,
    /// Requests or segments that had to be sent again.
    pub retransmissions: Option<u64>,
    /// Packets that were broken or dropped.
    pub errors: Option<u64>,
    /// Connections that had to be made again.
    pub reconnects: Option<u64>,
    /// Requests that were answered, and the microseconds that the answers took in all.
    pub round_trips: Option<(u64, u64)>,
    /// What a packet takes to the server and back, in microseconds, as TCP smooths it: a level, not a counter.
    pub packet_round_trip_us: Option<u64>,
    /// The server's address.
    pub server: Option<IpAddr>,
}

/// A source that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Which.
    pub source: Source,
    /// Why, for a person.
    pub why: String,
}

impl Counters {
    /// A counter that has counted nothing yet.
    pub fn of(source: Source, covers: Covers, life: String) -> Self {
        Self {
            source,
            covers,
            life,
            age_seconds: None,
            read_bytes: None,
            written_bytes: None,
            requests: None,
            retransmissions: None,
            errors: None,
            reconnects: None,
            round_trips: None,
            packet_round_trip_us: None,
            server: None,
        }
    }
}

/// What the sources said of one target, or of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The target; `None`: the machine.
    pub target: Option<TargetName>,
    /// Each source.
    pub counters: Vec<Result<Counters, Unread>>,
}

/// What went on between two readings of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Traffic {
    /// Where it comes from.
    pub source: Source,
    /// What it counts.
    pub covers: Covers,
    /// Seconds between the readings.
    pub seconds: f64,
    /// Bytes received by others than longhaul; where `own_read` is `None`, by anybody, because this source cannot tell.
    pub user_read: Option<u64>,
    /// Bytes sent by others than longhaul.
    pub user_written: Option<u64>,
    /// Bytes received by longhaul's own runs and probes.
    pub own_read: Option<u64>,
    /// Bytes sent by them.
    pub own_written: Option<u64>,
    /// Requests of everybody.
    pub requests: Option<u64>,
    /// What had to be sent again.
    pub retransmissions: Option<u64>,
    /// Packets that were broken or dropped.
    pub errors: Option<u64>,
    /// Connections that had to be made again.
    pub reconnects: Option<u64>,
    /// Requests that were answered, and the microseconds that the answers took in all.
    pub round_trips: Option<(u64, u64)>,
    /// What a packet takes to the server and back, in microseconds, as TCP smooths it, at the end of this time.
    pub packet_round_trip_us: Option<u64>,
}
