//! Times of requests and connections during a phase, from which its duration is attributed to layers.

use serde::{Deserialize, Serialize};

use crate::{CacheState, Protocol, ProtocolFamily, TargetName};

/// Total times of the requests of a mount or connection. The values never decrease until a reset. `None` means that the
/// source does not have the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestTotals {
    /// Number of answered requests. In a chain of requests that is sent as one message, each counts.
    pub answered: Option<u64>,
    /// Time that requests waited before they were sent, in microseconds.
    pub queue_us: Option<u64>,
    /// Time from sending to answer, in microseconds.
    pub answer_us: Option<u64>,
    /// Time from the start of a request to its end, both in the client, in microseconds.
    pub execute_us: Option<u64>,
}

/// State of the TCP connections to a server, from `tcp_info`. `None` means that the system does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpCounters {
    /// Number of segments with data that were sent, counted in 32 bits.
    pub segments_sent: Option<u64>,
    /// Shortest round-trip time of the last five minutes, in microseconds. A state, not a counter.
    pub min_rtt_us: Option<u64>,
    /// Time after which a lost segment is retransmitted, in microseconds. A state, not a counter.
    pub timeout_us: Option<u64>,
    /// Last rate of delivery in bytes per second at which there was always more to send; `None` if there was not. A
    /// state, not a counter.
    pub delivery_rate: Option<u64>,
}

/// Times of the requests of a phase. `None` means that no source has the value, never that it is zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestTimes {
    /// Totals of the requests that were answered during the phase.
    pub requests: RequestTotals,
    /// State of the connections: increases of the counters during the phase, and the states after it.
    pub tcp: TcpCounters,
    /// Number of retransmitted segments.
    pub retransmits: Option<u64>,
    /// Bytes sent on the connections, with requests and names, and confirmed.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
    /// Bytes received on the connections, with answers and names.
    #[serde(default)]
    pub received_bytes: Option<u64>,
    /// Processor time of the worker, in microseconds.
    pub processor_us: Option<u64>,
    /// Time in which the worker was ready and waited for a processor, in microseconds.
    pub processor_wait_us: Option<u64>,
    /// Time in which threads of the kernel that handle answers used a processor or waited for one, in microseconds.
    pub kernel_us: Option<u64>,
}

/// Totals of the calls of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallTotals {
    /// Number of calls on files and folders.
    pub calls: u64,
    /// Number of those that read, write or sync data, whose requests may overlap.
    pub data_calls: u64,
    /// Total time in calls on files and folders, in seconds, over all threads.
    pub seconds: f64,
    /// Total time of decoding images in memory, in seconds, over all threads.
    pub decode_seconds: f64,
}

/// Phase of a complete run in the few columns that attribution and prediction need.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseTimes {
    /// Number of the run.
    pub run: i64,
    /// Round of the run.
    pub round: i64,
    /// Target of the run.
    pub target: TargetName,
    /// Protocol of the target; `None` if it was unknown.
    pub protocol: Option<Protocol>,
    /// Name of the workload.
    pub workload: String,
    /// Times of the run's metrics by name, in seconds.
    pub metrics: Vec<MetricSeconds>,
    /// Round-trip time just before the run, in microseconds; `None` if it was not measured.
    pub round_trip_us: Option<u64>,
    /// Rate in bytes per second at which the network took data just before the run; `None` if it was faster than could be
    /// measured, or was not measured.
    pub send_rate: Option<u64>,
    /// Name of the phase.
    pub phase: String,
    /// Cache state of the phase.
    pub cache: CacheState,
    /// Duration of the phase in seconds.
    pub seconds: f64,
    /// Totals of its calls.
    pub calls: CallTotals,
    /// Bytes received on the wire; `None` if no counter counts them.
    pub wire_read: Option<u64>,
    /// Bytes sent on the wire; `None` if no counter counts them.
    pub wire_written: Option<u64>,
    /// Number of requests; `None` if no counter counts them.
    pub wire_requests: Option<u64>,
    /// Times of its requests; `None` if none were read.
    pub times: Option<RequestTimes>,
}

impl PhaseTimes {
    /// Returns whether the target is known to be on a network.
    pub fn is_on_network(&self) -> bool {
        self.protocol.as_ref().is_some_and(|protocol| protocol.family() == ProtocolFamily::Network)
    }
}

/// Time of a metric in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricSeconds {
    /// Name of the metric.
    pub metric: String,
    /// Time in seconds.
    pub seconds: f64,
}
