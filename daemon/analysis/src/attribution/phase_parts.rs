//! Splits the time of one phase.

use longhaul_model::{PhaseTimes, RequestTimes};

use super::bandwidth::Bandwidth;
use super::estimate::BoundedSeconds;
use super::outstanding::Outstanding;

/// Parts of the time of a phase, in seconds. `None` means that no source can separate the part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseParts {
    /// Time that was split: that of the phase, or that in calls if the task pauses on purpose.
    pub seconds: f64,
    /// This machine.
    pub client: Option<BoundedSeconds>,
    /// Requests before they are sent.
    pub queue: Option<BoundedSeconds>,
    /// The network.
    pub wire: Option<BoundedSeconds>,
    /// The NAS with its disk.
    pub server: Option<BoundedSeconds>,
    /// Round trips; `None` if no source counts them.
    pub round_trips: Option<f64>,
    /// Requests, also those that are sent as one message with others; `None` if no source counts them.
    pub requests: Option<f64>,
    /// Bytes on the wire.
    pub bytes: f64,
    /// Number of calls.
    pub calls: f64,
    /// Time of decoding images, in seconds: work that the task itself asks of this machine.
    pub decode_seconds: f64,
}

/// A phase, with what is known about its target.
#[derive(Clone, Copy)]
pub struct PhaseInput<'a> {
    /// The phase.
    pub phase: &'a PhaseTimes,
    /// True if the task pauses on purpose.
    pub is_paced: bool,
    /// Bandwidth of the network to its target.
    pub bandwidth: Bandwidth,
}

/// Splits the time of a phase.
pub fn phase_parts(input: PhaseInput<'_>) -> PhaseParts {
    let phase = input.phase;
    let threads = threads(phase);
    let seconds = if input.is_paced { working_seconds(phase) / threads } else { phase.seconds };
    let unknown = PhaseParts {
        seconds,
        client: None,
        queue: None,
        wire: None,
        server: None,
        round_trips: None,
        requests: phase.wire_requests.map(|requests| requests as f64),
        bytes: bytes(phase),
        calls: phase.calls.calls as f64,
        decode_seconds: phase.calls.decode_seconds / threads,
    };
    let Some(times) = &phase.times else { return unknown };
    let Some(computing) = computing_seconds(times).map(|time| (time / threads).min(seconds)) else {
        return unknown;
    };
    let blocked = seconds - computing;
    match Outstanding::of(phase) {
        None => PhaseParts { client: Some(BoundedSeconds::new(computing, computing, seconds)), ..unknown },
        Some(requests) => {
            split_blocked(input, requests, Blocked { times, computing, blocked, threads }, unknown)
        }
    }
}

/// Time of the client, and the time in which it was blocked, in seconds.
#[derive(Clone, Copy)]
struct Blocked<'a> {
    times: &'a RequestTimes,
    computing: f64,
    blocked: f64,
    /// Number of threads that worked at once, at least 1.
    threads: f64,
}

fn split_blocked(
    input: PhaseInput<'_>,
    requests: Outstanding,
    work: Blocked<'_>,
    unknown: PhaseParts,
) -> PhaseParts {
    let Blocked { times, computing, blocked, threads } = work;
    // Without times of requests, the server must be what the worker was blocked for.
    let answers = requests.answer_seconds.unwrap_or(blocked).min(blocked);
    let queue = requests.queue_seconds.map(|queued| {
        let unexplained = blocked - answers;
        let most = queued / (queued + answers).max(f64::MIN_POSITIVE) * blocked;
        BoundedSeconds::new(queued.min(unexplained), 0.0, queued.min(most))
    });
    let local = (blocked - answers - queue.map_or(0.0, |queue| queue.value)).max(0.0);
    let wire = wire_seconds(input, times, Answers { requests, seconds: answers, threads });
    PhaseParts {
        client: Some(BoundedSeconds::new(computing + local, computing, computing + local)),
        queue,
        wire,
        server: wire.map(|wire| wire.rest_of(answers)),
        round_trips: Some(requests.round_trips),
        ..unknown
    }
}

/// Requests, and the part of the phase's time in which answers were outstanding.
#[derive(Clone, Copy)]
struct Answers {
    requests: Outstanding,
    seconds: f64,
    threads: f64,
}

impl Answers {
    /// Returns how many requests were outstanding at once, on average. Only those that read, write or sync data overlap
    /// within a thread: a longer total time of others is time in which this machine was late to take the answer.
    fn at_once(&self) -> f64 {
        let requests = self.requests;
        let total = requests.answer_seconds.or(requests.ticked_seconds).unwrap_or(self.seconds);
        let ratio = (total / self.seconds.max(f64::MIN_POSITIVE)).max(1.0);
        let in_order = ratio.min(self.threads);
        in_order + (ratio - in_order) * (1.0 - requests.in_order / requests.round_trips.max(1.0))
    }
}

/// Returns the part of the answers that the network takes; `None` if no round-trip time is known.
fn wire_seconds(input: PhaseInput<'_>, times: &RequestTimes, answers: Answers) -> Option<BoundedSeconds> {
    let measured = input.phase.round_trip_us;
    let shortest = times.tcp.min_rtt_us.into_iter().chain(measured).min()? as f64 / 1e6;
    let longest = measured.map_or(shortest, |time| time as f64 / 1e6);
    let (requests, at_once) = (answers.requests, answers.at_once());
    let trips = requests.round_trips / at_once;
    let trips = BoundedSeconds::new(
        trips * shortest,
        requests.round_trips_low.min(trips) * shortest,
        requests.round_trips * longest,
    );
    let losses = retransmission_seconds(times, requests.in_order, shortest).times(1.0 / at_once);
    let wire = trips.plus(transfer_seconds(input)).plus(losses);
    Some(wire.at_most(answers.seconds))
}

fn transfer_seconds(input: PhaseInput<'_>) -> BoundedSeconds {
    let bytes = bytes(input.phase);
    let at = |rate: Option<f64>| rate.map_or(0.0, |rate| bytes / rate);
    // What was measured just before the run says more than the best of many rounds, unless the phase itself was faster.
    let measured = input
        .phase
        .send_rate
        .map(|rate| (rate as f64).max(bytes / input.phase.seconds.max(f64::MIN_POSITIVE)));
    let known = at(measured.or(input.bandwidth.known));
    BoundedSeconds::new(known, 0.0, known.max(at(input.bandwidth.reached)))
}

/// Timeouts until the answer to a message that was lost, or whose answer was: in the lab 1.2 to 1.9. A lost answer is seen
/// here, too, because it carries the confirmation of the message, which is then retransmitted.
const TIMEOUTS_OF_A_LOSS: f64 = 1.6;
/// The most timeouts that a loss takes on average.
const MOST_TIMEOUTS_OF_A_LOSS: f64 = 2.5;

/// Returns the time until lost segments were retransmitted, as if only one request was outstanding at a time. A segment
/// that others follow is missed by the receiver after a round trip (RFC 5681, fast retransmit); a message that nothing
/// follows until it is answered is retransmitted after a timeout. Losses are taken to hit all segments alike.
fn retransmission_seconds(times: &RequestTimes, messages: f64, round_trip: f64) -> BoundedSeconds {
    let Some(lost) = times.retransmits.map(|lost| lost as f64) else { return BoundedSeconds::ZERO };
    let timeout = times.tcp.timeout_us.map_or(round_trip, |time| time as f64 / 1e6);
    let sent = times.tcp.segments_sent.map_or(messages, |sent| sent as f64);
    let alone = lost * (messages / sent.max(1.0)).min(1.0);
    let value = alone * TIMEOUTS_OF_A_LOSS * timeout + (lost - alone) * round_trip;
    BoundedSeconds::new(value, lost * round_trip, lost * MOST_TIMEOUTS_OF_A_LOSS * timeout)
}

/// Returns the time in calls and in decoding, over all threads, in seconds.
fn working_seconds(phase: &PhaseTimes) -> f64 {
    phase.calls.seconds + phase.calls.decode_seconds
}

/// Returns the mean number of threads that worked at once, at least 1: more time in calls than the phase took is the work of several.
pub(super) fn threads(phase: &PhaseTimes) -> f64 {
    (working_seconds(phase) / phase.seconds.max(f64::MIN_POSITIVE)).max(1.0)
}

/// Returns the time in which this machine worked on the phase or waited for its own processor, over all threads.
pub(super) fn computing_seconds(times: &RequestTimes) -> Option<f64> {
    let others = times.processor_wait_us.unwrap_or(0) + times.kernel_us.unwrap_or(0);
    times.processor_us.map(|used| (used + others) as f64 / 1e6)
}

/// Returns the bytes on the wire. Counters of a mount may count those of files only, those of connections all.
fn bytes(phase: &PhaseTimes) -> f64 {
    let of_mount = phase.wire_read.unwrap_or(0) + phase.wire_written.unwrap_or(0);
    let of_connections =
        |times: &RequestTimes| times.sent_bytes.unwrap_or(0) + times.received_bytes.unwrap_or(0);
    of_mount.max(phase.times.as_ref().map_or(0, of_connections)) as f64
}
