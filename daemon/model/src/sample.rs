//! Results of sampling: latency probe samples, slow calls and counter readings.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use super::{
    FreeSpaceReserve, Operation, RequestCounts, RequestTotals, Scale, TargetName, TcpCounters, Timestamp,
};
use crate::names::stored_names;

/// Duration in nanoseconds above which a call is stored individually as a [`SlowCall`].
pub const SLOW_CALL_NS: u64 = 1_000_000_000;

/// Duration of sleep in nanoseconds above which a measurement is void. It is not zero, because the clock that stops
/// in sleep and the one that counts it are read one after the other: a busy machine may seem to have slept for a
/// moment.
pub const SLEPT_NS: u64 = 1_000_000_000;

/// Kind of request that the latency probe sends to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ProbeKind {
    /// Attributes of a file that were requested a moment ago: mostly answered from the client's cache.
    Getattr,
    /// 4 KiB from a part of the pool file that was not read since it was last evicted: mostly answered by the
    /// server.
    Read,
    /// 4 KiB written and synced to stable storage.
    WriteSync,
}

/// Policy that says when the latency probe may access a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbePolicy {
    /// The probe never accesses the target.
    Never,
    /// The probe accesses the target only while a user or a run of longhaul uses it, so that an idle
    /// automounter or a sleeping NAS stays asleep.
    #[default]
    Active,
    /// The probe accesses the target all the time.
    Always,
}

/// Settings of the latency probe of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbePlan {
    /// Milliseconds between two slots.
    pub interval_ms: u64,
    /// Kinds of request, sent in rotation.
    pub kinds: Vec<ProbeKind>,
    /// Seed for the random phase of each hour's slots and for the order of reads.
    pub seed: u64,
    /// Mode at the start. With [`ProbeMode::DuringRuns`] the probe waits for a command or for a run.
    pub initial_mode: ProbeMode,
    /// Size of the pool file in bytes; see [`ProbePlan::read_file_bytes_at`].
    pub read_file_bytes: u64,
    /// Space that the probe leaves free on the target.
    pub reserve: FreeSpaceReserve,
}

impl ProbePlan {
    /// Returns the size of the pool file at a scale, in bytes. With one read every 15 seconds, 64 MiB last
    /// for at least 17 hours.
    pub const fn read_file_bytes_at(scale: Scale) -> u64 {
        match scale {
            Scale::Quick => 4 << 20,
            Scale::Standard | Scale::Large => 64 << 20,
        }
    }
}

/// Mode of the latency probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeMode {
    /// The probe sends requests all the time.
    On,
    /// The probe sends requests only during runs.
    DuringRuns,
}

/// Result of one slot of the probe's open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProbeSample {
    /// Kind of request.
    pub kind: ProbeKind,
    /// Scheduled time of the request, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub at_us: Timestamp,
    /// Latency from the scheduled time to the answer, in nanoseconds. A slot that passed while an earlier
    /// call was still running gets the time until that call returned. A delay because the machine woke the
    /// probe late is not included.
    pub latency_ns: u64,
    /// Duration of the call itself, in nanoseconds; `None` for a slot that passed without a call.
    pub call_ns: Option<u64>,
    /// Name of the system error; `None` if the call succeeded.
    pub error: Option<String>,
    /// Workload that ran in the same worker at that time; `None` if none did.
    pub during: Option<String>,
}

/// Call that took longer than [`SLOW_CALL_NS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SlowCall {
    /// Kind of call.
    pub operation: Operation,
    /// Start of the call, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub at_us: Timestamp,
    /// Duration of the call, in nanoseconds.
    pub duration_ns: u64,
    /// Name of the system error; `None` if the call succeeded.
    pub error: Option<String>,
    /// Workload that made the call; `None` for a call of the latency probe, or of the worker outside of
    /// workloads.
    pub workload: Option<String>,
}

/// Message from the sampler of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sample", rename_all = "kebab-case")]
pub enum WorkerSample {
    /// Results of the latency probe, in order of their scheduled times.
    Probes {
        /// Results, one for each slot.
        slots: Vec<ProbeSample>,
        /// CPU time in nanoseconds that the probe used since the previous message.
        cost_ns: u64,
    },
    /// Slow call.
    SlowCall(SlowCall),
    /// A user changed something in the target's folder, outside of the sandbox, as the system reported to
    /// this machine.
    FolderChanged {
        /// Time at which the latest change was noticed, in microseconds since 1970 UTC.
        at_us: Timestamp,
    },
    /// The latency probe cannot continue, for the given reason.
    ProbeDisabled {
        /// Message for the user: the problem, its meaning and the next step.
        reason: String,
    },
}

/// Source that counters are read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterSource {
    /// NFS counters in `/proc/self/mountstats`.
    Mountstats,
    /// SMB counters in `/proc/fs/cifs/Stats`.
    CifsStats,
    /// TCP connections to the server.
    Connections,
    /// Tool `smbutil` of macOS.
    Smbutil,
    /// Network interface of this machine, by name.
    Interface(String),
    /// Disk of a local file system; only the I/O of one process is counted.
    Disk,
}

/// Prefix of the stored name of a network interface.
const INTERFACE_PREFIX: &str = "interface ";

impl CounterSource {
    /// All sources except network interfaces, which are distinguished by name.
    const SINGLE: [CounterSource; 5] =
        [Self::Mountstats, Self::CifsStats, Self::Connections, Self::Smbutil, Self::Disk];

    /// Returns the name that is stored and shown to users.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Mountstats => "mountstats".into(),
            Self::CifsStats => "cifs-stats".into(),
            Self::Connections => "connections".into(),
            Self::Smbutil => "smbutil".into(),
            Self::Interface(name) => format!("{INTERFACE_PREFIX}{name}").into(),
            Self::Disk => "disk".into(),
        }
    }

    /// Returns the source with this stored name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Self> {
        let interface = || Some(Self::Interface(name.strip_prefix(INTERFACE_PREFIX)?.to_owned()));
        Self::SINGLE.into_iter().find(|source| source.name() == name).or_else(interface)
    }
}

/// Scope of a counter: the traffic that it includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CounterScope {
    /// Traffic of one mount.
    Mount,
    /// All traffic between this machine and the server.
    Server,
    /// All traffic over one network interface.
    Interface,
    /// Traffic of one process.
    Process,
    /// Traffic of all mounts with the same protocol.
    Protocol,
}

/// One reading of the counters of one source. Counters grow until the system resets them, for example at a
/// remount. `None` means that the source does not count this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Source of the counters.
    pub source: CounterSource,
    /// Scope of the counters.
    pub scope: CounterScope,
    /// Identity of the counter (a device number, ports). It distinguishes the counter from others, and from
    /// its successor after a remount or reconnect. Equal identities of one source mean the same counter, even
    /// if it is read for two targets.
    pub instance_id: String,
    /// Age of the counter in seconds; `None` if the source does not report it.
    pub age_seconds: Option<u64>,
    /// Bytes received.
    pub read_bytes: Option<u64>,
    /// Bytes sent.
    pub written_bytes: Option<u64>,
    /// Number of requests, without those that only keep a lease or connection alive.
    pub requests: Option<u64>,
    /// Number of requests by kind. Requests of other kinds are only part of `requests`.
    pub requests_by_kind: RequestCounts,
    /// Number of retransmitted requests or segments.
    pub retransmits: Option<u64>,
    /// Number of packets that were corrupt or dropped.
    pub errors: Option<u64>,
    /// Number of reconnects.
    pub reconnects: Option<u64>,
    /// Number of answered requests, and the total time until their answers in microseconds.
    pub round_trips: Option<(u64, u64)>,
    /// Smoothed TCP round-trip time of the fastest connection, in microseconds. It is a current value, not a counter.
    pub tcp_rtt_us: Option<u64>,
    /// Total times of the requests.
    #[serde(default)]
    pub request_totals: RequestTotals,
    /// State of the TCP connections; empty unless `source` is [`CounterSource::Connections`].
    #[serde(default)]
    pub tcp: TcpCounters,
    /// Address of the server.
    pub server: Option<IpAddr>,
}

/// Source that returned no counters, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterUnavailable {
    /// Source that was read.
    pub source: CounterSource,
    /// Reason, as text for the user.
    pub reason: String,
}

impl Counters {
    /// Returns a reading without any values.
    pub fn new(source: CounterSource, scope: CounterScope, instance_id: String) -> Self {
        Self {
            source,
            scope,
            instance_id,
            age_seconds: None,
            read_bytes: None,
            written_bytes: None,
            requests: None,
            requests_by_kind: RequestCounts::default(),
            retransmits: None,
            errors: None,
            reconnects: None,
            round_trips: None,
            tcp_rtt_us: None,
            request_totals: RequestTotals::default(),
            tcp: TcpCounters::default(),
            server: None,
        }
    }
}

/// Counters of one target, or of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterReading {
    /// Target that was read; `None` for the machine.
    pub target: Option<TargetName>,
    /// Counters of each source, or the reason why it returned none.
    pub counters: Vec<Result<Counters, CounterUnavailable>>,
}

/// Traffic between two readings of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Traffic {
    /// Source of the counters.
    pub source: CounterSource,
    /// Scope of the counters.
    pub scope: CounterScope,
    /// Seconds between the two readings.
    pub seconds: f64,
    /// Bytes received by programs other than longhaul. If `longhaul_read` is `None`, the source cannot
    /// separate longhaul's traffic, and all traffic is included here.
    pub user_read: Option<u64>,
    /// Bytes sent by programs other than longhaul.
    pub user_written: Option<u64>,
    /// Bytes received by longhaul's own runs and probes.
    pub longhaul_read: Option<u64>,
    /// Bytes sent by longhaul's own runs and probes.
    pub longhaul_written: Option<u64>,
    /// Number of requests of all programs, longhaul included.
    pub requests: Option<u64>,
    /// Number of retransmitted requests or segments.
    pub retransmits: Option<u64>,
    /// Number of packets that were corrupt or dropped.
    pub errors: Option<u64>,
    /// Number of reconnects.
    pub reconnects: Option<u64>,
    /// Number of answered requests, and the total time until their answers in microseconds.
    pub round_trips: Option<(u64, u64)>,
    /// Smoothed TCP round-trip time of the fastest connection, in microseconds: the largest value that was read in the period.
    pub tcp_rtt_us: Option<u64>,
}

impl Traffic {
    /// Returns traffic without any values.
    pub fn new(source: CounterSource, scope: CounterScope, seconds: f64) -> Self {
        Self {
            source,
            scope,
            seconds,
            user_read: None,
            user_written: None,
            longhaul_read: None,
            longhaul_written: None,
            requests: None,
            retransmits: None,
            errors: None,
            reconnects: None,
            round_trips: None,
            tcp_rtt_us: None,
        }
    }
}

stored_names! { ProbeKind CounterScope }
