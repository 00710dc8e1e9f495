//! Splits the time of one phase.

use longhaul_model::{PhaseTimes, RequestTimes};

use super::bandwidth::Bandwidth;
use super::estimate::Estimate;
use super::outstanding::Outstanding;

/// Parts of the time of a phase, in seconds. `None` means that no source can separate the part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseParts {
    /// Time that was split: that of the phase, or that in calls if the task pauses on purpose.
    pub seconds: f64,
    /// This machine.
    pub client: Option<Estimate>,
    /// Requests before they are sent.
    pub queue: Option<Estimate>,
    /// The network.
    pub wire: Option<Estimate>,
    /// The NAS with its disk.
    pub server: Option<Estimate>,
    /// Round trips; `None` if no source counts them.
    pub round_trips: Option<f64>,
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
    let working = phase.calls.seconds + phase.calls.decode_seconds;
    // More time in calls than the phase took is the work of several threads at once.
    let threads = (working / phase.seconds.max(f64::MIN_POSITIVE)).max(1.0);
    let seconds = if input.is_paced { working / threads } else { phase.seconds };
    let unknown = PhaseParts {
        seconds,
        client: None,
        queue: None,
        wire: None,
        server: None,
        round_trips: None,
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
        None => PhaseParts { client: Some(Estimate::new(computing, computing, seconds)), ..unknown },
        Some(requests) => split_blocked(input, requests, Blocked { times, computing, blocked }, unknown),
    }
}

/// Time of the client, and the time in which it was blocked, in seconds.
#[derive(Clone, Copy)]
struct Blocked<'a> {
    times: &'a RequestTimes,
    computing: f64,
    blocked: f64,
}

fn split_blocked(
    input: PhaseInput<'_>,
    requests: Outstanding,
    Blocked { times, computing, blocked }: Blocked<'_>,
    unknown: PhaseParts,
) -> PhaseParts {
    // Without times of requests, the server must be what the worker was blocked for.
    let answers = requests.answer_seconds.unwrap_or(blocked).min(blocked);
    let queue = requests.queue_seconds.map(|queued| {
        let unexplained = blocked - answers;
        let most = queued / (queued + answers).max(f64::MIN_POSITIVE) * blocked;
        Estimate::new(queued.min(unexplained), 0.0, queued.min(most))
    });
    let local = (blocked - answers - queue.map_or(0.0, |queue| queue.value)).max(0.0);
    let wire = wire_seconds(input, requests, times, answers);
    PhaseParts {
        client: Some(Estimate::new(computing + local, computing, computing + local)),
        queue,
        wire,
        server: wire.map(|wire| wire.rest_of(answers)),
        round_trips: Some(requests.round_trips),
        ..unknown
    }
}

/// Returns the part of the answers that the network takes; `None` if no round-trip time is known.
fn wire_seconds(
    input: PhaseInput<'_>,
    requests: Outstanding,
    times: &RequestTimes,
    answers: f64,
) -> Option<Estimate> {
    let measured = input.phase.round_trip_us;
    let shortest = times.tcp.min_rtt_us.into_iter().chain(measured).min()? as f64 / 1e6;
    let longest = measured.map_or(shortest, |time| time as f64 / 1e6);
    let total = requests.answer_seconds.or(requests.ticked_seconds).unwrap_or(answers);
    let at_once = (total / answers.max(f64::MIN_POSITIVE)).max(1.0);
    let trips = requests.round_trips / at_once;
    let trips = Estimate::new(
        trips * shortest,
        requests.round_trips_low.min(trips) * shortest,
        requests.round_trips * longest,
    );
    let wire = trips.plus(transfer_seconds(input)).plus(retransmission_seconds(times, shortest));
    Some(wire.at_most(answers))
}

fn transfer_seconds(input: PhaseInput<'_>) -> Estimate {
    let bytes = bytes(input.phase);
    let at = |rate: Option<f64>| rate.map_or(0.0, |rate| bytes / rate);
    let known = at(input.bandwidth.known);
    Estimate::new(known, 0.0, known.max(at(input.bandwidth.reached)))
}

/// Returns the time until lost segments were retransmitted. This machine sees only its own: as many answers are taken
/// to be lost as requests.
fn retransmission_seconds(times: &RequestTimes, round_trip: f64) -> Estimate {
    let Some(lost) = times.retransmits.map(|lost| lost as f64) else { return Estimate::ZERO };
    let timeout = times.tcp.timeout_us.map_or(round_trip, |time| time as f64 / 1e6);
    Estimate::new(2.0 * lost * timeout, lost * round_trip, 4.0 * lost * timeout)
}

/// Returns the time in which this machine worked on the phase or waited for its own processor, over all threads.
fn computing_seconds(times: &RequestTimes) -> Option<f64> {
    let others = times.processor_wait_us.unwrap_or(0) + times.kernel_us.unwrap_or(0);
    times.processor_us.map(|used| (used + others) as f64 / 1e6)
}

fn bytes(phase: &PhaseTimes) -> f64 {
    (phase.wire_read.unwrap_or(0) + phase.wire_written.unwrap_or(0)) as f64
}
