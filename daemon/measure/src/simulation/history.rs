//! Simulated rounds as a history, and the weekly summary's own looks at it.

use jiff::tz::TimeZone;

use super::{Look, SimulatedRound};
use crate::model::{Event, Outcome, Role, RoundStatus, Scale, TargetName, Times};
use crate::summary::{
    Comparison, History, KeptEpoch, KeptRound, KeptRun, KeptTarget, Question, Verdict, Week, Weekly, weekly,
};
use crate::workloads::WORKLOADS;

/// Day 0 of a simulation: Monday of 2026-W40, in days since 1970-01-01.
const FIRST_DAY: i64 = 20_724;
const HOUR_US: i64 = 3_600_000_000;

/// The history of rounds in which each target does the same workloads, given by their places in the table: column
/// `target · workloads + workload` of a round is that target's run of that workload, and the time of all its endpoints.
pub fn history<const COLUMNS: usize>(rounds: &[SimulatedRound<COLUMNS>], workloads: &[usize]) -> History {
    let names: Vec<TargetName> =
        (0..COLUMNS / workloads.len()).filter_map(|target| format!("target-{target}").parse().ok()).collect();
    let mut history = History {
        targets: names.iter().map(|name| KeptTarget { name: name.clone(), role: Role::Share }).collect(),
        epochs: (1..).zip(names).map(|(number, target)| epoch(number, target)).collect(),
        ..History::default()
    };
    for (round, number) in rounds.iter().zip(1..) {
        history.rounds.push(kept_round(number, round));
        let columns = (0..COLUMNS).map(|column| kept_run(round, (number, column), workloads));
        history.runs.extend(columns);
    }
    history
}

fn epoch(number: i64, target: TargetName) -> KeptEpoch {
    KeptEpoch { number, target, opened_us: started_us(0, 0), protocol: None }
}

fn started_us(day: i64, hour: i64) -> i64 {
    ((FIRST_DAY + day) * 24 + hour) * HOUR_US
}

fn kept_round<const COLUMNS: usize>(number: i64, round: &SimulatedRound<COLUMNS>) -> KeptRound {
    KeptRound {
        number,
        started_us: started_us(round.day, round.hour),
        utc_offset_seconds: 0,
        scale: Scale::Standard,
        status: Some(RoundStatus::Ok),
        reason: None,
    }
}

fn kept_run<const COLUMNS: usize>(
    round: &SimulatedRound<COLUMNS>,
    (number, column): (i64, usize),
    workloads: &[usize],
) -> KeptRun {
    let (target, workload) = (column / workloads.len(), workloads[column % workloads.len()]);
    let (seconds, hung) = (round.seconds[column], round.hung[column]);
    let endpoints = if hung { 0 } else { WORKLOADS[workload].endpoints().len() };
    KeptRun {
        number: number * COLUMNS as i64 + column as i64,
        round: number,
        epoch: target as i64 + 1,
        target,
        workload,
        scale: Scale::Standard,
        outcome: if hung { Outcome::Hung } else { Outcome::Ok },
        started_us: started_us(round.day, round.hour),
        seconds,
        times: (0..endpoints).fold(Times::NONE, |times, place| times.with(place, seconds)),
    }
}

/// Records that something happened on the whole machine at noon of a day.
pub fn record(history: &mut History, day: i64, kind: &str) {
    let (kind, detail) = (kind.to_owned(), serde_json::Value::Null);
    history.events.push(Event { target: None, kind, detail, at_us: started_us(day, 12) });
}

/// The summary that somebody sees in the evening of a day: of everything up to then.
pub fn evening(history: &History, day: i64) -> Weekly {
    let until = started_us(day + 1, 0);
    let seen = History {
        rounds: history.rounds.iter().filter(|round| round.started_us < until).cloned().collect(),
        runs: history.runs.iter().filter(|run| run.started_us < until).copied().collect(),
        premises: history.premises.clone(),
        targets: history.targets.clone(),
        epochs: history.epochs.clone(),
        events: history.events.clone(),
    };
    let week = Week::of_day(FIRST_DAY + day);
    weekly(&seen, &Question { week, scale: None, zone: TimeZone::UTC })
}

/// What a comparison shows: its interval as logarithms, and its verdict. `None` while anything fits.
pub fn shown(comparison: &Comparison) -> Option<(Look, Verdict)> {
    let ratio = comparison.ratio?;
    let look = Look { days: ratio.days, interval: (ratio.low.ln(), ratio.high.ln()) };
    Some((look, comparison.verdict))
}

/// Whether a verdict says that there is a difference.
pub fn claims_a_difference(verdict: Verdict) -> bool {
    match verdict {
        Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster | Verdict::TooSmall => true,
        Verdict::NotEnoughData | Verdict::NoRealDifference => false,
    }
}
