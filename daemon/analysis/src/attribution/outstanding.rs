//! Requests of a phase that were sent and not answered yet: how long, how many at once, and over how many round trips.

use longhaul_model::{PhaseTimes, ProtocolFamily, RequestTimes};

/// Payload of one TCP segment on Ethernet, in bytes. With larger frames fewer segments carry the data, and round trips are
/// counted a little too low.
const SEGMENT_BYTES: u64 = 1448;
/// Least number of requests whose mean time is meaningful if the kernel counts it in ticks of 1 to 10 ms.
const MIN_TICKED_REQUESTS: u64 = 20;
/// Largest number of requests that the SMB client sends as one message: open, do something, close.
const CHAINED_REQUESTS: f64 = 3.0;

/// Requests of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outstanding {
    /// Number of messages that were answered: round trips, if none overlap.
    pub round_trips: f64,
    /// Least number of round trips that certainly followed each other.
    pub round_trips_low: f64,
    /// Number of messages for whose answer a thread waits before it sends the next.
    pub in_order: f64,
    /// Time in which requests waited before they were sent, in seconds; `None` if the source does not have it.
    pub queue_seconds: Option<f64>,
    /// Total time from sending to answer, in seconds; `None` if the source does not have it.
    pub answer_seconds: Option<f64>,
    /// Total time of requests in ticks of the kernel, in seconds: good for how many were outstanding at once, not for a part.
    pub ticked_seconds: Option<f64>,
}

impl Outstanding {
    /// Returns the requests of a phase; `None` if no source counts any.
    pub fn of(phase: &PhaseTimes) -> Option<Self> {
        let times = phase.times.as_ref()?;
        let seconds = |microseconds: Option<u64>| microseconds.map(|time| time as f64 / 1e6);
        let is_timed = times.requests.answer_us.is_some();
        let counted = if is_timed { times.requests.answered } else { messages(phase, times) }?;
        let round_trips = counted as f64;
        // Only reads, writes and syncs overlap: a thread waits for every other request.
        let ordered = round_trips - (phase.calls.data_calls as f64).min(round_trips);
        let chained = if is_timed || times.tcp.segments_sent.is_some() { 1.0 } else { chain(phase) };
        Some(Self {
            round_trips,
            round_trips_low: ordered / chained,
            in_order: ordered,
            queue_seconds: seconds(times.requests.queue_us),
            answer_seconds: seconds(times.requests.answer_us),
            ticked_seconds: seconds(times.requests.execute_us)
                .zip(times.requests.answered.filter(|answered| *answered >= MIN_TICKED_REQUESTS))
                .map(|(total, answered)| total / answered as f64 * round_trips),
        })
    }
}

fn chain(phase: &PhaseTimes) -> f64 {
    let is_smb = phase.protocol.as_ref().is_some_and(|protocol| protocol.to_string().starts_with("SMB"));
    if is_smb { CHAINED_REQUESTS } else { 1.0 }
}

/// Returns the number of messages that were sent: segments without those that carry file data, and at most the number of
/// requests.
fn messages(phase: &PhaseTimes, times: &RequestTimes) -> Option<u64> {
    let with_data = phase.wire_written.unwrap_or(0) / SEGMENT_BYTES;
    let segments = times.tcp.segments_sent.map(|sent| sent.saturating_sub(with_data));
    let is_local = phase.protocol.as_ref().is_some_and(|protocol| protocol.family() == ProtocolFamily::Local);
    match (segments, phase.wire_requests) {
        _ if is_local => None,
        (Some(segments), Some(requests)) => Some(segments.min(requests)),
        (one, other) => one.or(other),
    }
}
