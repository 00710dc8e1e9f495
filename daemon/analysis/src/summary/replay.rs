//! The times of a replayed recording beside those of the recording itself.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::window::AnalysisWindow;
use longhaul_model::{Outcome, TASKS, YOUR_DAY, median};

/// Times of the recording that `your-day` replays, beside the replay on the protocol on which it was recorded. They differ only
/// by errors of the replay and by changes of that mount.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReplayFidelity {
    /// Protocol of the mount on which it was recorded; `None` if unknown.
    pub recorded_on: Option<String>,
    /// Duration of the recording in seconds; `None` if the trace has no durations.
    pub recorded_seconds: Option<f64>,
    /// Median duration of the replays on that protocol in seconds, each with cold caches; `None` if there is none.
    pub replayed_seconds: Option<f64>,
    /// Number of these replays.
    pub replays: usize,
}

/// Returns the fidelity of the replays; `None` if no recording was replayed.
pub(super) fn replay_fidelity(scope: &AnalysisWindow<'_>) -> Option<ReplayFidelity> {
    let recorded = scope.history.recorded_day.as_ref()?;
    let protocol_of = |epoch: i64| {
        let epoch = scope.history.epochs.iter().find(|known| known.number == epoch)?;
        epoch.protocol.clone()
    };
    let is_there = |epoch: i64| recorded.recorded_on.is_some() && protocol_of(epoch) == recorded.recorded_on;
    let old_rounds = scope.history.rounds.iter().filter(|round| round.day() < scope.first_day);
    let old_rounds: BTreeSet<i64> = old_rounds.map(|round| round.number).collect();
    let replays = scope.history.runs.iter().filter(|run| {
        !old_rounds.contains(&run.round)
            && TASKS[run.workload].name() == YOUR_DAY.name()
            && run.outcome == Outcome::Ok
            && is_there(run.epoch)
    });
    let totals: Vec<f64> = replays.filter_map(|run| run.times.get(0)).collect();
    Some(ReplayFidelity {
        recorded_on: recorded.recorded_on.clone(),
        recorded_seconds: recorded.total.map(|total| total.as_secs_f64()),
        replayed_seconds: median(&totals),
        replays: totals.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use longhaul_model::{
        EpochRecord, History, MetricTimes, RecordedDay, Role, RoundRecord, RoundStatus, RunRecord, Scale,
        TargetRecord, Timestamp,
    };

    /// Returns a history with three replays on a target of this protocol.
    fn history(protocol: &str) -> History {
        let name: longhaul_model::TargetName = "nas".parse().unwrap();
        let (opened_us, scale) = (Timestamp::UNIX_EPOCH, Scale::Standard);
        let round = |number: i64| RoundRecord {
            number,
            started_us: opened_us,
            utc_offset_seconds: 0,
            scale,
            status: Some(RoundStatus::Ok),
            reason: None,
        };
        let run = |number: i64| RunRecord {
            number,
            round: number,
            epoch: 1,
            target: 0,
            workload: TASKS.len() - 1,
            scale,
            outcome: Outcome::Ok,
            started: opened_us,
            seconds: 50.0,
            times: MetricTimes::NONE.with(0, 42.0 + number as f64),
            rtt: None,
        };
        History {
            targets: vec![TargetRecord { name: name.clone(), role: Role::Share }],
            epochs: vec![EpochRecord {
                number: 1,
                target: name,
                opened_us,
                protocol: Some(protocol.to_owned()),
            }],
            rounds: (0..3).map(round).collect(),
            runs: (0..3).map(run).collect(),
            recorded_day: Some(RecordedDay {
                recorded_on: Some("NFS 4.2".to_owned()),
                total: Some(Duration::from_secs(41)),
            }),
            ..History::default()
        }
    }

    #[test]
    fn only_replays_on_the_recorded_protocol_are_compared() {
        let replayed = |history: &History| {
            let found = replay_fidelity(&AnalysisWindow::new(history, i64::MIN..=0, None)).unwrap();
            assert_eq!(found.recorded_seconds, Some(41.0));
            found.replayed_seconds
        };
        assert_eq!(replayed(&history("NFS 4.2")), Some(43.0));
        assert_eq!(replayed(&history("SMB 3.1.1")), None);
        let none = History { recorded_day: None, ..history("NFS 4.2") };
        assert_eq!(replay_fidelity(&AnalysisWindow::new(&none, i64::MIN..=0, None)), None);
    }
}
