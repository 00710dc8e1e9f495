//! Example rounds for tests; the same number always gives the same round.

use std::time::Duration;

use longhaul_model::Histogram;
use longhaul_model::draw::draw_below;
use longhaul_model::time::HOUR;
use longhaul_model::{
    CacheState, ColdMethod, Conditions, Event, Failure, Figure, Operation, OperationStats, Outcome, Phase,
    Protocol, RoundStatus, Run, Scale, Timestamp, Unit,
};
use longhaul_store::{FinishedRound, NewRound, RoundEnd, StoredRound, StoredRun};

/// A microsecond.
const MICROSECOND: Duration = Duration::from_micros(1);
/// Number of rounds per UTC day: one per hour.
pub const ROUNDS_A_DAY: i64 = 24;
/// Start of the first day, 2026-11-09T00:00Z.
const BEGIN: Timestamp = Timestamp::from_us(1_794_182_400_000_000);

/// Returns a round with one successful and one hung run.
pub fn round(number: i64) -> FinishedRound {
    let scheduled = BEGIN + (number as u32 - 1) * HOUR;
    let started = scheduled + 123_457 * MICROSECOND;
    let round = NewRound {
        utc_offset_seconds: 3600,
        scheduled: Some(scheduled),
        ..NewRound::new(started, 1, Scale::Quick)
    };
    let ended = started + HOUR / 2 + MICROSECOND;
    let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended };
    let event = Event {
        target: Some("smb".parse().unwrap()),
        kind: "hang".to_owned(),
        detail: serde_json::Value::Null,
        at_us: started + 7 * MICROSECOND,
    };
    FinishedRound {
        runs: [Outcome::Ok, Outcome::Hung]
            .into_iter()
            .enumerate()
            .map(|(slot, outcome)| run((number, slot as u32), started, outcome))
            .collect(),
        events: vec![event],
        previous: (number > 1).then(|| (number - 1, started - HOUR)),
        stored: StoredRound { number, round, end: Some(end) },
    }
}

fn run((round, slot): (i64, u32), round_start: Timestamp, outcome: Outcome) -> StoredRun {
    let started = round_start + slot * Duration::from_mins(1);
    let is_ok = outcome == Outcome::Ok;
    let failure = Failure {
        operation: Some(Operation::Sync),
        path: Some("/Volumes/secret/file".to_owned()),
        error: None,
        message: "`sync` on /Volumes/secret/file has not returned".to_owned(),
    };
    let run = Run {
        slot,
        protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
        outcome,
        utc_offset_seconds: 3600,
        seconds: if is_ok { 3.75 } else { 900.0 },
        phases: (0..3u32)
            .map(|index| phase(round * 8 + i64::from(index), started + 1_000_001 * (index + 1) * MICROSECOND))
            .collect(),
        failure: (!is_ok).then_some(failure),
        conditions: Conditions { free_bytes: Some(5_000_000_000), ..Conditions::default() },
        ..Run::new(round, "smb".parse().unwrap(), "folder-index", started)
    };
    StoredRun {
        number: round * 2 + i64::from(slot),
        trace_id: format!("{round:016x}{slot:016x}"),
        epoch: 1,
        run,
    }
}

fn phase(seed: i64, began: Timestamp) -> Phase {
    let cache = if seed % 2 == 0 { CacheState::Cold } else { CacheState::Warm };
    Phase {
        cold_by: (cache == CacheState::Cold).then_some(ColdMethod::Evicted),
        began_us: Some(began),
        seconds: 0.5 + 0.000_001 * seed as f64,
        bytes_read: 1000,
        bytes_written: 10,
        figures: vec![Figure::new("walk", Unit::Seconds, 0.5)],
        operations: [Operation::Open, Operation::Read].map(|operation| stats(operation, seed)).into(),
        ..Phase::new(format!("phase-{}", seed % 8), cache)
    }
}

fn stats(operation: Operation, seed: i64) -> OperationStats {
    let mut latency = Histogram::new();
    let stream = operation as u64;
    (0..200)
        .for_each(|call| latency.record(1000 + draw_below(seed.cast_unsigned(), stream, call, 50_000_000)));
    OperationStats { operation, latency, errors: 1 }
}
