//! Which of the stored runs may be described together, and for what the others are left out.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{Outcome, Run, Scale, TargetName};

/// A stored run, with the epoch of its target that it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The epoch.
    pub epoch: i64,
    /// Whether its round is void, so that it says nothing.
    pub is_void: bool,
    /// The run.
    pub run: &'a Run,
}

/// Runs that are not in the figures.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LeftOut {
    /// How many.
    pub runs: usize,
    /// Why.
    pub reason: String,
}

/// Runs of one scale, of the newest epochs, of rounds that count, each workload either whole or by slices.
pub(super) struct Kept<'s, 'r> {
    pub(super) samples: Vec<&'s Sample<'r>>,
    /// The newest epoch of each target that was ever run.
    pub(super) newest: BTreeMap<TargetName, i64>,
    pub(super) left_out: Vec<LeftOut>,
}

impl<'s, 'r> Kept<'s, 'r> {
    pub(super) fn of(samples: &'s [Sample<'r>], scale: Option<Scale>) -> Self {
        let newest = newest_epochs(samples);
        let mut kept = Self { samples: samples.iter().collect(), newest: newest.clone(), left_out: vec![] };
        kept.leave_out("made at another scale", |sample| Some(sample.run.scale) == scale);
        kept.leave_out("made before the target's protocol, options or path changed", |sample| {
            newest.get(&sample.run.target) == Some(&sample.epoch)
        });
        kept.leave_out("of rounds that are void, as the machine slept", |sample| !sample.is_void);
        // Of what is left: a run at another scale does not say how this one is done.
        let last = kept.last_parts();
        kept.leave_out(
            "of a whole classic where the last run did a slice, or the other way round",
            |Sample { run, .. }| {
                run.outcome != Outcome::Ok || last.get(run.workload.as_str()) == Some(&run.did_a_slice())
            },
        );
        kept
    }

    fn leave_out(&mut self, reason: &str, keep: impl Fn(&Sample<'_>) -> bool) {
        let before = self.samples.len();
        self.samples.retain(|sample| keep(sample));
        let runs = before - self.samples.len();
        self.left_out.extend((runs > 0).then(|| LeftOut { runs, reason: reason.to_owned() }));
    }

    /// Whether the last run of each workload that went well did a slice of it.
    fn last_parts(&self) -> BTreeMap<&'r str, bool> {
        let done = self.samples.iter().filter(|sample| sample.run.outcome == Outcome::Ok);
        done.map(|sample| (sample.run.workload.as_str(), sample.run.did_a_slice())).collect()
    }
}

fn newest_epochs(samples: &[Sample<'_>]) -> BTreeMap<TargetName, i64> {
    let mut newest = BTreeMap::new();
    for sample in samples {
        let epoch = newest.entry(sample.run.target.clone()).or_insert(sample.epoch);
        *epoch = sample.epoch.max(*epoch);
    }
    newest
}
