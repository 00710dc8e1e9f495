//! The times of a replayed recording beside those of the recording itself.

use serde::Serialize;
use utoipa::ToSchema;

use super::window::AnalysisWindow;
use longhaul_model::{Outcome, RunRecord, TASKS, TargetName, YOUR_DAY, median};

/// Times of the recording that `your-day` replays, and of its replays on the protocol on which it was recorded. They differ only
/// by errors of the replay and by changes of that mount.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ReplayFidelity {
    /// Protocol of the mount on which it was recorded; `None` if unknown.
    pub recorded_on: Option<String>,
    /// Duration of the recording in seconds; `None` if the trace has no durations.
    pub recorded_seconds: Option<f64>,
    /// Replays on each target with that protocol, in the order of the targets; empty if there are none.
    pub replays: Vec<TargetReplays>,
}

/// Replays of the recording on one target, in its newest epoch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TargetReplays {
    /// Name of the target.
    pub target: TargetName,
    /// Median duration of the replays in seconds, each with cold caches.
    pub seconds: f64,
    /// Number of the replays.
    pub count: usize,
}

/// Returns the fidelity of the replays; `None` if no recording was replayed.
pub(super) fn replay_fidelity(scope: &AnalysisWindow<'_>) -> Option<ReplayFidelity> {
    let recorded = scope.history.recorded_day.as_ref()?;
    let protocol_of = |target: usize| {
        let active = scope.active_epochs[target]?;
        let epoch = scope.history.epochs.iter().find(|known| known.number == active.epoch)?;
        epoch.protocol.clone()
    };
    let is_there =
        |target: &usize| recorded.recorded_on.is_some() && protocol_of(*target) == recorded.recorded_on;
    let targets = (0..scope.history.targets.len()).filter(is_there);
    Some(ReplayFidelity {
        recorded_on: recorded.recorded_on.clone(),
        recorded_seconds: recorded.total.map(|total| total.as_secs_f64()),
        replays: targets.filter_map(|target| replays_on(scope, target)).collect(),
    })
}

/// Returns the replays on a target; `None` if there are none.
fn replays_on(scope: &AnalysisWindow<'_>, target: usize) -> Option<TargetReplays> {
    let workload = TASKS.iter().position(|task| task.name() == YOUR_DAY.name())?;
    // With those of the warm-up: they describe the replay and compare nothing.
    let runs = scope.epoch_rounds_by_workload[workload].iter().filter_map(|round| round.runs[target]);
    let completed = runs.filter(|run: &&RunRecord| run.outcome == Outcome::Ok);
    let totals: Vec<f64> = completed.filter_map(|run| run.times.get(0)).collect();
    let target = scope.history.targets[target].name.clone();
    Some(TargetReplays { target, seconds: median(&totals)?, count: totals.len() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use longhaul_model::{
        EpochRecord, History, MetricTimes, RecordedDay, Role, RoundRecord, RoundStatus, Scale, TargetRecord,
        Timestamp,
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

    /// Returns the target, the median and the number of the replays up to a day.
    fn replayed(history: &History, last_day: i64) -> Vec<(String, f64, usize)> {
        let found = replay_fidelity(&AnalysisWindow::new(history, i64::MIN..=last_day, None)).unwrap();
        assert_eq!(found.recorded_seconds, Some(41.0));
        found.replays.into_iter().map(|on| (on.target.to_string(), on.seconds, on.count)).collect()
    }

    #[test]
    fn only_replays_on_the_recorded_protocol_are_compared() {
        assert_eq!(replayed(&history("NFS 4.2"), 0), [("nas".to_owned(), 43.0, 3)]);
        assert!(replayed(&history("SMB 3.1.1"), 0).is_empty());
        let none = History { recorded_day: None, ..history("NFS 4.2") };
        assert_eq!(replay_fidelity(&AnalysisWindow::new(&none, i64::MIN..=0, None)), None);
    }

    #[test]
    fn later_and_void_rounds_are_no_replays() {
        let mut history = history("NFS 4.2");
        assert!(replayed(&history, -1).is_empty());
        history.rounds[2].status = Some(RoundStatus::Void);
        assert_eq!(replayed(&history, 0), [("nas".to_owned(), 42.5, 2)]);
    }

    #[test]
    fn replays_before_a_change_of_the_mount_do_not_count() {
        let mut history = history("NFS 4.2");
        history.epochs.push(EpochRecord { number: 2, ..history.epochs[0].clone() });
        history.runs[2].epoch = 2;
        assert_eq!(replayed(&history, 0), [("nas".to_owned(), 44.0, 1)]);
    }
}
