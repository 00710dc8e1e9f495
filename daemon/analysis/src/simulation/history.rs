//! Converts simulated rounds to a [`History`], and reads the weekly summary of it day by day.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::error_rates::IntervalAtDay;
use super::rounds::SimulatedRound;
use crate::summary::{
    Comparison, PairSummary, Verdict, Week, WeeklyQuery, WeeklySummary, pair_verdicts, summarize_week,
};
use longhaul_model::TASKS;
use longhaul_model::time::{HOUR, Timestamp};
use longhaul_model::{EpochRecord, History, RoundRecord, RunRecord, TargetRecord};
use longhaul_model::{Event, MetricTimes, Outcome, Role, RoundStatus, Scale, TargetName};

/// Day 0 of a simulation: Monday of 2026-W40, in days since 1970-01-01.
const FIRST_DAY: i64 = 20_724;

/// Converts simulated rounds to a history in which each target runs the same workloads. `workloads` holds indices in
/// [`TASKS`]. Column `target · workloads + workload` of a round is the run of that workload on that target; its
/// time is used for all metrics of the workload.
pub fn simulated_history<const COLUMNS: usize>(
    rounds: &[SimulatedRound<COLUMNS>],
    workloads: &[usize],
) -> History {
    let names: Vec<TargetName> =
        (0..COLUMNS / workloads.len()).filter_map(|target| format!("target-{target}").parse().ok()).collect();
    let mut history = History {
        targets: names.iter().map(|name| TargetRecord { name: name.clone(), role: Role::Share }).collect(),
        epochs: (1..).zip(names).map(|(number, target)| epoch(number, target)).collect(),
        ..History::default()
    };
    for (round, number) in rounds.iter().zip(1..) {
        history.rounds.push(round_record(number, round));
        let columns = (0..COLUMNS).map(|column| run_record(round, number, column, workloads));
        history.runs.extend(columns);
    }
    history
}

fn epoch(number: i64, target: TargetName) -> EpochRecord {
    EpochRecord { number, target, opened_us: time_of(0, 0), protocol: None }
}

fn time_of(day: i64, hour: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + ((FIRST_DAY + day) * 24 + hour) as u32 * HOUR
}

fn round_record<const COLUMNS: usize>(number: i64, round: &SimulatedRound<COLUMNS>) -> RoundRecord {
    RoundRecord {
        number,
        started_us: time_of(round.day, round.hour),
        utc_offset_seconds: 0,
        scale: Scale::Standard,
        status: Some(RoundStatus::Ok),
        reason: None,
    }
}

fn run_record<const COLUMNS: usize>(
    round: &SimulatedRound<COLUMNS>,
    number: i64,
    column: usize,
    workloads: &[usize],
) -> RunRecord {
    let (target, workload) = (column / workloads.len(), workloads[column % workloads.len()]);
    let (seconds, hung) = (round.seconds[column], round.hung[column]);
    let metrics = if hung { 0 } else { TASKS[workload].metrics().len() };
    RunRecord {
        number: number * COLUMNS as i64 + column as i64,
        round: number,
        epoch: target as i64 + 1,
        target,
        workload,
        scale: Scale::Standard,
        outcome: if hung { Outcome::Hung } else { Outcome::Ok },
        started: time_of(round.day, round.hour),
        seconds,
        times: (0..metrics).fold(MetricTimes::NONE, |times, place| times.with(place, seconds)),
        rtt: round.round_trip_ms[column].map(|ms| Duration::from_secs_f64(ms / 1000.0)),
    }
}

/// Adds an event of the whole machine at noon of a day.
pub fn add_event(history: &mut History, day: i64, kind: &str) {
    let (kind, detail) = (kind.to_owned(), serde_json::Value::Null);
    history.events.push(Event { target: None, kind, detail, at_us: time_of(day, 12) });
}

/// Returns the weekly summary that a user sees at the end of a day, from all data up to then.
pub fn weekly_at_end_of_day(history: &History, day: i64) -> WeeklySummary {
    let until = time_of(day + 1, 0);
    let known = History {
        rounds: history.rounds.iter().filter(|round| round.started_us < until).cloned().collect(),
        runs: history.runs.iter().filter(|run| run.started < until).copied().collect(),
        settings: history.settings.clone(),
        targets: history.targets.clone(),
        epochs: history.epochs.clone(),
        events: history.events.clone(),
        freshness: history.freshness.clone(),
        recorded_day: history.recorded_day.clone(),
    };
    let week = Week::of_day(FIRST_DAY + day);
    summarize_week(&known, &WeeklyQuery { week, scale: None, since: None, zone: TimeZone::UTC })
}

/// Returns the pairs of [`weekly_at_end_of_day`] alone, in a third of the time. Verdicts that are adjusted for the round trip
/// time are about the stated one; `None` for the median of the weeks.
pub fn pairs_at_end_of_day(history: &History, day: i64, round_trip: Option<Duration>) -> Vec<PairSummary> {
    pair_verdicts(history, FIRST_DAY + day, round_trip)
}

/// Returns the interval of a comparison as logarithms, and its verdict. `None` while the interval is infinite.
pub fn verdict_with_interval(comparison: &Comparison) -> Option<(IntervalAtDay, Verdict)> {
    let ratio = comparison.ratio?;
    let look = IntervalAtDay { days: ratio.days, interval: (ratio.low.ln(), ratio.high.ln()) };
    Some((look, comparison.verdict))
}

/// Returns true if a verdict claims that there is a difference.
pub fn claims_a_difference(verdict: Verdict) -> bool {
    match verdict {
        Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster | Verdict::TooSmall => true,
        Verdict::NotEnoughData | Verdict::NoRealDifference => false,
    }
}
