//! Ids of traces and spans. They follow from what is stored, so that whatever is sent twice can be told to be the same.

use longhaul_measure::corpus::draw::draw;
use longhaul_store::FinishedRound;

/// Streams of draws, so that ids of different kinds do not meet.
/// A trace takes two.
const TRACE: u64 = 0x7472_6163;
const ROOT: u64 = TRACE + 2;
const RUN: u64 = TRACE + 3;
const PHASE: u64 = TRACE + 4;
const CALL: u64 = TRACE + 5;

/// A round's trace: its 16 bytes, and the 8 bytes of its root span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundId {
    /// The trace.
    pub trace: [u8; 16],
    /// The root span.
    pub root: [u8; 8],
}

impl RoundId {
    /// The ids of a round, from the machine's id, its number, and its begin in microseconds since 1970 UTC. The begin is in
    /// it because a database that had to be begun anew keeps the machine's id and numbers its rounds from 1 again.
    pub fn of(machine: &str, round: i64, started_us: i64) -> Self {
        let seed = draw(seed_of(machine), round.cast_unsigned(), started_us.cast_unsigned());
        Self { trace: trace(seed, TRACE, 0), root: id(seed, ROOT, 0) }
    }

    /// The ids of a stored round.
    pub fn of_round(machine: &str, round: &FinishedRound) -> Self {
        Self::of(machine, round.stored.number, round.stored.round.started_us)
    }

    /// The ids of the round that was made before.
    pub fn of_previous(machine: &str, round: &FinishedRound) -> Option<Self> {
        round.previous.map(|(number, started_us)| Self::of(machine, number, started_us))
    }
}

/// The span of a run, from the run's own random id.
pub fn run_span(run: &str) -> [u8; 8] {
    id(seed_of(run), RUN, 0)
}

/// The span of a phase, by its place in the run.
pub fn phase_span(run: &str, place: usize) -> [u8; 8] {
    id(seed_of(run), PHASE, place as u64)
}

/// The span of a single call, by the places of its phase in the run and of itself in the phase.
pub fn call_span(run: &str, (phase, call): (usize, usize)) -> [u8; 8] {
    id(draw(seed_of(run), CALL, phase as u64), CALL, call as u64)
}

fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0, |seed, byte| draw(seed, 1, byte.into()))
}

/// The id of a trace, from two neighbouring streams.
pub(crate) fn trace(seed: u64, stream: u64, index: u64) -> [u8; 16] {
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&id(seed, stream, index));
    trace[8..].copy_from_slice(&id(seed, stream + 1, index));
    trace
}

/// The id of a span. Zero is no id in OpenTelemetry.
pub(crate) fn id(seed: u64, stream: u64, index: u64) -> [u8; 8] {
    draw(seed, stream, index).max(1).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_follow_from_what_is_stored_and_differ_where_that_differs() {
        assert_eq!(RoundId::of("a1", 7, 1000), RoundId::of("a1", 7, 1000));
        let ids: BTreeSet<[u8; 16]> = ["a1", "a2"]
            .into_iter()
            .flat_map(|machine| (1..50).map(move |number| (machine, number)))
            .flat_map(|(machine, number)| {
                [1000, 1001].map(|started_us| RoundId::of(machine, number, started_us).trace)
            })
            .collect();
        assert_eq!(ids.len(), 2 * 49 * 2);
    }

    #[test]
    fn the_spans_of_a_run_differ_from_each_other() {
        let spans: BTreeSet<[u8; 8]> =
            (0..100).map(|place| phase_span("0f", place)).chain([run_span("0f"), run_span("0e")]).collect();
        let calls = (0..10).flat_map(|phase| (0..10).map(move |call| call_span("0f", (phase, call))));
        assert_eq!(spans.into_iter().chain(calls).collect::<BTreeSet<_>>().len(), 202);
    }
}
