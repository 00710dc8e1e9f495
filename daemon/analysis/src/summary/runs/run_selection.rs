//! Selects the stored runs that may be summarized together, and counts the excluded ones by reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

use longhaul_model::{Outcome, Run, Scale, TargetName, YOUR_DAY};

/// A stored run with its epoch.
#[derive(Debug, Clone, Copy)]
pub struct EpochRun<'a> {
    /// Number of the target's epoch.
    pub epoch: i64,
    /// True if the run's round is void, so that its results are not used.
    pub is_void: bool,
    /// Stored run.
    pub run: &'a Run,
}

/// Runs that were excluded for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Excluded {
    /// Number of excluded runs.
    pub runs: usize,
    /// Reason for the exclusion, as a phrase that follows "N runs".
    pub reason: String,
}

/// Reasons for which both summaries and verdicts exclude runs.
pub(in crate::summary) const OTHER_SCALE: &str = "made at another scale";
pub(in crate::summary) const OLDER_EPOCH: &str = "made before the target's protocol, options or path changed";
pub(in crate::summary) const VOID_ROUNDS: &str = "of void rounds";

/// Keeps some of the runs, and returns the number of the others with the reason; `None` if there are none.
pub(in crate::summary) fn exclude<T>(
    runs: &mut Vec<T>,
    reason: &str,
    keep: impl Fn(&T) -> bool,
) -> Option<Excluded> {
    let before = runs.len();
    runs.retain(keep);
    let runs = before - runs.len();
    (runs > 0).then(|| Excluded { runs, reason: reason.to_owned() })
}

/// Runs that may be summarized together: one scale, only newest epochs, no void rounds, one recording, and each workload
/// either always whole or always sliced.
pub(super) struct RunSelection<'s, 'r> {
    pub(super) runs: Vec<&'s EpochRun<'r>>,
    /// Targets that were run, at any scale.
    pub(super) targets: BTreeSet<TargetName>,
    pub(super) excluded: Vec<Excluded>,
}

impl<'s, 'r> RunSelection<'s, 'r> {
    pub(super) fn select(samples: &'s [EpochRun<'r>], scale: Option<Scale>) -> Self {
        let mut selection = Self {
            runs: samples.iter().collect(),
            targets: samples.iter().map(|sample| sample.run.target.clone()).collect(),
            excluded: vec![],
        };
        selection.exclude(OTHER_SCALE, |sample| Some(sample.run.scale) == scale);
        // Only now: an epoch with runs at another scale alone must not hide those before it.
        let newest = newest_epochs(&selection.runs);
        selection.exclude(OLDER_EPOCH, |sample| newest.get(&sample.run.target) == Some(&sample.epoch));
        selection.exclude(VOID_ROUNDS, |sample| !sample.is_void);
        let replayed = |sample: &EpochRun<'_>| sample.run.facts.get(Run::RECORDING_FACT).cloned();
        let newest_recording = selection.runs.iter().rev().find_map(|sample| replayed(sample));
        selection.exclude("of another recording than the last one that was replayed", |sample| {
            // A replay that failed before it read its recording is a failure of any.
            let own = replayed(sample);
            sample.run.workload != YOUR_DAY.name() || own.is_none() || own == newest_recording
        });
        // Computed from the remaining runs: a run at another scale may be sliced differently.
        let last = selection.last_run_was_sliced();
        selection.exclude(
            "of the whole corpus although the last run used a slice, or the reverse",
            |EpochRun { run, .. }| {
                run.outcome != Outcome::Ok || last.get(run.workload.as_str()) == Some(&run.is_partial())
            },
        );
        selection
    }

    fn exclude(&mut self, reason: &str, keep: impl Fn(&EpochRun<'_>) -> bool) {
        self.excluded.extend(exclude(&mut self.runs, reason, |sample| keep(sample)));
    }

    /// Returns for each workload if its last successful run used only a slice of the corpus.
    fn last_run_was_sliced(&self) -> BTreeMap<&'r str, bool> {
        let successful = self.runs.iter().filter(|sample| sample.run.outcome == Outcome::Ok);
        successful.map(|sample| (sample.run.workload.as_str(), sample.run.is_partial())).collect()
    }
}

fn newest_epochs(samples: &[&EpochRun<'_>]) -> BTreeMap<TargetName, i64> {
    let mut newest = BTreeMap::new();
    for sample in samples {
        let epoch = newest.entry(sample.run.target.clone()).or_insert(sample.epoch);
        *epoch = sample.epoch.max(*epoch);
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::super::figures::summarize;
    use super::super::figures::tests::{figure, run, summary_of, tasks};
    use super::*;

    #[test]
    fn slices_are_not_pooled_with_whole_runs() {
        let (whole, mut slice, mut hung) = (run("smb", 1, 8.0), run("smb", 2, 1.0), run("smb", 3, 9.0));
        slice.facts.insert(Run::SLICE_FACT.to_owned(), "1 of 8".to_owned());
        hung.outcome = Outcome::Hung;
        let mut other_scale = run("smb", 4, 0.1);
        other_scale.scale = Scale::Large;
        let samples =
            [&whole, &slice, &hung, &other_scale].map(|run| EpochRun { epoch: 1, is_void: false, run });
        let summary = summarize(&samples, Some(slice.scale), &tasks());
        let spread = &figure(&summary, "run.total").by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.median, spread.n, spread.failed), (Some(1.0), 1, 1));
        assert_eq!(summary.excluded.iter().map(|excluded| excluded.runs).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn epoch_with_runs_at_another_scale_alone_hides_no_results() {
        let (first, second, mut other_scale) = (run("smb", 1, 8.0), run("smb", 2, 6.0), run("smb", 3, 0.1));
        other_scale.scale = Scale::Large;
        let sample = |epoch, run| EpochRun { epoch, is_void: false, run };
        let samples = [sample(1, &first), sample(1, &second), sample(2, &other_scale)];
        let summary = summarize(&samples, None, &tasks());
        assert_eq!(figure(&summary, "run.total").by_target[&"smb".parse().unwrap()].median, Some(7.0));
        assert_eq!(summary.excluded.iter().map(|excluded| excluded.runs).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn replays_of_two_recordings_are_not_pooled() {
        let replay = |round: i64, seconds: f64, recording: &str| {
            let mut run = run("smb", round, seconds);
            run.workload = YOUR_DAY.name().to_owned();
            run.facts.insert(Run::RECORDING_FACT.to_owned(), recording.to_owned());
            run
        };
        let mut failed = Run { outcome: Outcome::Hung, ..replay(4, 0.0, "") };
        failed.facts.clear();
        let runs = [replay(1, 0.1, "day"), replay(2, 0.2, "day"), replay(3, 6.0, "git"), failed];
        let summary = summary_of(&runs);
        let spread = &summary.workloads[0].figures[0].by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.median, spread.n, spread.failed), (Some(6.0), 1, 1), "no failure vanishes");
        assert_eq!(summary.excluded.iter().map(|excluded| excluded.runs).collect::<Vec<_>>(), [2]);
    }
}
