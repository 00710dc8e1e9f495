//! Ids of traces and spans. They are derived from the stored data, so that data sent twice have the same ids.

use longhaul_model::Timestamp;
use longhaul_model::draw::draw;
use longhaul_store::FinishedRound;
use opentelemetry::{SpanId, TraceId};

/// Random streams for the ids of each kind, so that ids of different kinds do not collide. A trace id uses two
/// consecutive streams.
const TRACE_STREAM: u64 = 0x7472_6163;
const ROOT_STREAM: u64 = TRACE_STREAM + 2;
const RUN_STREAM: u64 = TRACE_STREAM + 3;
const PHASE_STREAM: u64 = TRACE_STREAM + 4;
const CALL_STREAM: u64 = TRACE_STREAM + 5;

/// The ids of a round's trace and root span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrace {
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Id of the root span.
    pub root: SpanId,
}

impl RoundTrace {
    /// Returns the ids of a round, derived from the machine id, the number of the round and its start. The start is
    /// included because a database that is created again keeps the machine id but numbers its rounds from 1 again.
    pub fn new(machine: &str, round: i64, started: Timestamp) -> Self {
        let seed = draw(seed_of(machine), round.cast_unsigned(), started.as_us().cast_unsigned());
        Self { trace_id: trace_id(seed, TRACE_STREAM, 0), root: span_id(seed, ROOT_STREAM, 0) }
    }

    /// Returns the ids of a stored round.
    pub fn from_round(machine: &str, round: &FinishedRound) -> Self {
        Self::new(machine, round.stored.number, round.stored.round.started)
    }

    /// Returns the ids of the previous round. `None`: there is no previous round.
    pub fn from_previous_round(machine: &str, round: &FinishedRound) -> Option<Self> {
        round.previous.map(|(number, started)| Self::new(machine, number, started))
    }
}

/// Returns the span id of a run, derived from the random id of the run.
pub fn run_span_id(run: &str) -> SpanId {
    span_id(seed_of(run), RUN_STREAM, 0)
}

/// Returns the span id of a phase, from the id of the run and the index of the phase in the run.
pub fn phase_span_id(run: &str, index: usize) -> SpanId {
    span_id(seed_of(run), PHASE_STREAM, index as u64)
}

/// Returns the span id of a call, from the id of the run, the index of the phase in the run and the index of
/// the call in the phase.
pub fn call_span_id(run: &str, phase: usize, call: usize) -> SpanId {
    span_id(draw(seed_of(run), CALL_STREAM, phase as u64), CALL_STREAM, call as u64)
}

fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0, |seed, byte| draw(seed, 1, byte.into()))
}

/// Returns a 16-byte trace id, drawn from two consecutive streams.
fn trace_id(seed: u64, stream: u64, index: u64) -> TraceId {
    let half = |stream| u128::from(draw(seed, stream, index).max(1));
    TraceId::from((half(stream) << 64) | half(stream + 1))
}

/// Returns an 8-byte span id, which is never zero because OpenTelemetry does not allow that.
fn span_id(seed: u64, stream: u64, index: u64) -> SpanId {
    SpanId::from(draw(seed, stream, index).max(1))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn trace_ids_depend_on_machine_number_and_start() {
        let trace = |machine, number, us| RoundTrace::new(machine, number, Timestamp::from_us(us));
        assert_eq!(trace("a1", 7, 1000), trace("a1", 7, 1000));
        let ids: HashSet<TraceId> = ["a1", "a2"]
            .into_iter()
            .flat_map(|machine| (1..50).map(move |number| (machine, number)))
            .flat_map(|(machine, number)| {
                [1000, 1001].map(|started| trace(machine, number, started).trace_id)
            })
            .collect();
        assert_eq!(ids.len(), 2 * 49 * 2);
    }

    #[test]
    fn span_ids_of_a_run_are_unique() {
        let spans: HashSet<SpanId> = (0..100)
            .map(|index| phase_span_id("0f", index))
            .chain([run_span_id("0f"), run_span_id("0e")])
            .collect();
        let calls = (0..10).flat_map(|phase| (0..10).map(move |call| call_span_id("0f", phase, call)));
        assert_eq!(spans.into_iter().chain(calls).collect::<HashSet<_>>().len(), 202);
    }
}
