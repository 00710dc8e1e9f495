//! Selects the stored runs that may be summarized together, and counts the excluded ones by reason.

use std::collections::BTreeMap;

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

/// Runs that may be summarized together: one scale, only newest epochs, no void rounds, one recording, and each workload
/// either always whole or always sliced.
pub(super) struct RunSelection<'s, 'r> {
    pub(super) runs: Vec<&'s EpochRun<'r>>,
    /// Newest epoch of each target that was run.
    pub(super) newest_epochs: BTreeMap<TargetName, i64>,
    pub(super) excluded: Vec<Excluded>,
}

impl<'s, 'r> RunSelection<'s, 'r> {
    pub(super) fn select(samples: &'s [EpochRun<'r>], scale: Option<Scale>) -> Self {
        let newest = newest_epochs(samples);
        let mut selection =
            Self { runs: samples.iter().collect(), newest_epochs: newest.clone(), excluded: vec![] };
        selection.exclude("made at another scale", |sample| Some(sample.run.scale) == scale);
        selection.exclude("made before the target's protocol, options or path changed", |sample| {
            newest.get(&sample.run.target) == Some(&sample.epoch)
        });
        selection.exclude("of void rounds", |sample| !sample.is_void);
        let replayed = |sample: &EpochRun<'_>| sample.run.facts.get(Run::RECORDING_FACT).cloned();
        let newest_recording = selection.runs.iter().rev().find_map(|sample| replayed(sample));
        selection.exclude("of another recording than the last one that was replayed", |sample| {
            sample.run.workload != YOUR_DAY.name()
                || newest_recording.is_none()
                || replayed(sample) == newest_recording
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
        let before = self.runs.len();
        self.runs.retain(|sample| keep(sample));
        let runs = before - self.runs.len();
        self.excluded.extend((runs > 0).then(|| Excluded { runs, reason: reason.to_owned() }));
    }

    /// Returns for each workload if its last successful run used only a slice of the corpus.
    fn last_run_was_sliced(&self) -> BTreeMap<&'r str, bool> {
        let successful = self.runs.iter().filter(|sample| sample.run.outcome == Outcome::Ok);
        successful.map(|sample| (sample.run.workload.as_str(), sample.run.is_partial())).collect()
    }
}

fn newest_epochs(samples: &[EpochRun<'_>]) -> BTreeMap<TargetName, i64> {
    let mut newest = BTreeMap::new();
    for sample in samples {
        let epoch = newest.entry(sample.run.target.clone()).or_insert(sample.epoch);
        *epoch = sample.epoch.max(*epoch);
    }
    newest
}
