//! Converts a file back to the history from which verdicts are computed.

use std::time::Duration;

use longhaul_model::time::{DAY, Timestamp};
use longhaul_model::{
    AnalysisSettings, EpochRecord, History, MetricTimes, RoundRecord, RunRecord, TASKS, TargetName,
    TargetRecord,
};

use crate::share::{SharedResults, SharedRound, SharedRun};

/// Returns the name of a target in a file: a letter, from the 27th on with a number.
pub fn target_name(index: usize) -> TargetName {
    let letter = char::from(b'a' + (index % 26) as u8);
    let number = if index < 26 { String::new() } else { (index / 26).to_string() };
    format!("{letter}{number}").parse().expect("a letter with digits is a name")
}

/// Returns the history of a file. Events are not shared, so a change of the ratio is found without them.
pub(crate) fn history(share: &SharedResults) -> History {
    let numbered = || share.rounds.iter().zip(1..);
    let of_round = |(round, number): (&SharedRound, i64)| -> Vec<RunRecord> {
        round.runs.iter().filter_map(|run| run_record(share, round, number, run)).collect()
    };
    let mut runs: Vec<RunRecord> = numbered().flat_map(of_round).collect();
    runs.iter_mut().zip(1..).for_each(|(run, number)| run.number = number);
    History {
        settings: AnalysisSettings { threshold: share.threshold, ..AnalysisSettings::default() },
        targets: (share.targets.iter().enumerate())
            .map(|(index, role)| TargetRecord { name: target_name(index), role: *role })
            .collect(),
        epochs: (share.epochs.iter().zip(1..))
            .map(|(epoch, number)| EpochRecord {
                number,
                target: target_name(epoch.target),
                opened_us: Timestamp::UNIX_EPOCH,
                protocol: Some(epoch.protocol.to_string()),
            })
            .collect(),
        rounds: numbered().map(|(round, number)| round_record(share, round, number)).collect(),
        runs,
        ..History::default()
    }
}

/// Returns the last day of a file, in days since 1970-01-01.
pub(crate) fn last_day(share: &SharedResults) -> i64 {
    share.rounds.iter().map(|round| day_of(share, round)).max().unwrap_or_default()
}

fn day_of(share: &SharedResults, round: &SharedRound) -> i64 {
    share.first_week.first_day() + i64::from(round.day)
}

fn start_of(share: &SharedResults, round: &SharedRound) -> Timestamp {
    let day = u32::try_from(day_of(share, round)).unwrap_or_default();
    Timestamp::UNIX_EPOCH + day * DAY + Duration::from_secs(u64::from(round.minute) * 60)
}

fn round_record(share: &SharedResults, round: &SharedRound, number: i64) -> RoundRecord {
    RoundRecord {
        number,
        started_us: start_of(share, round),
        utc_offset_seconds: 0,
        scale: round.scale,
        status: Some(round.status),
        reason: None,
    }
}

fn run_record(share: &SharedResults, round: &SharedRound, number: i64, run: &SharedRun) -> Option<RunRecord> {
    let times = run.times.iter().enumerate();
    let times = times.filter_map(|(index, time)| Some((index, (*time)?)));
    Some(RunRecord {
        number,
        round: number,
        epoch: run.epoch as i64 + 1,
        target: share.target_of(run),
        workload: TASKS.iter().position(|task| task.name() == run.task)?,
        scale: round.scale,
        outcome: run.outcome,
        started: start_of(share, round),
        seconds: run.seconds,
        times: times.fold(MetricTimes::NONE, |known, (index, time)| known.with(index, time)),
        rtt: run.rtt_us.map(Duration::from_micros),
    })
}
