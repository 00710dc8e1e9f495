//! What a profile will cost, as far as that is known beforehand.

use super::{Action, Amount, Choose, FileSet, Pick, Profile, Program, Step, Work};

/// The cost of one run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Bytes of the files that have to be there before the phases begin.
    pub prepared: u64,
    /// The most that its files take on the target.
    pub space: u64,
    /// Bytes that phases write, as far as their length is known.
    pub written: u64,
    /// Bytes that phases read, as far as their length is known.
    pub read: u64,
    /// Calls of phases, as far as their number is known.
    pub calls: u64,
    /// Seconds of phases that go on for a fixed time, in which they read and write as much as the target takes.
    pub seconds: f64,
}

/// Files of which the mean size is taken.
const SAMPLED: u64 = 1000;
/// What blogbench writes at most, to keep space free for it: somewhat more than the fastest run of the sources, 38 MB/s.
const BLOGBENCH_BYTES_A_SECOND: f64 = 50e6;

impl FileSet {
    /// The bytes of all its files, exactly where they are few.
    pub fn bytes(&self, seed: u64) -> u64 {
        let sampled = self.count.min(SAMPLED);
        let sum: u128 = (0..sampled).map(|number| u128::from(self.size.of(seed, number))).sum();
        u64::try_from(sum * u128::from(self.count) / u128::from(sampled.max(1))).unwrap_or(u64::MAX)
    }

    fn mean(&self) -> f64 {
        self.bytes(0) as f64 / self.count.max(1) as f64
    }
}

impl Profile {
    /// The cost of one run; for a quick one of [`Profile::at`].
    pub fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        for set in self.files.values() {
            let bytes = set.bytes(0);
            cost.space = cost.space.saturating_add(bytes);
            cost.prepared = cost.prepared.saturating_add((bytes as f64 * set.present) as u64);
        }
        for phase in &self.phases {
            if let (Some(Program::Blogbench), Some(seconds)) = (phase.program, phase.seconds) {
                cost.seconds += seconds;
                cost.space += (BLOGBENCH_BYTES_A_SECOND * seconds) as u64;
            }
            let longest = phase.work.iter().filter_map(|work| work.seconds).fold(0.0, f64::max);
            cost.seconds += longest;
            for work in &phase.work {
                self.add(work, &mut cost);
            }
        }
        cost
    }

    fn add(&self, work: &Work, cost: &mut Cost) {
        let Some(set) = self.files.get(&work.files) else { return };
        let Some(repetitions) = repetitions(work, set) else { return };
        let weights: f64 = work.steps.iter().map(|step| step.weight).sum();
        for step in &work.steps {
            let drawn = match work.choose {
                Choose::All => 1.0,
                Choose::One => step.weight / weights,
            };
            add_step(step, set, repetitions * drawn / step.every as f64, cost);
        }
        if let Some(rate) = work.per_second {
            cost.seconds += repetitions / work.threads as f64 / rate;
        }
    }
}

/// How often all threads together do the steps; `None` if a time ends them.
fn repetitions(work: &Work, set: &FileSet) -> Option<f64> {
    match (work.times, work.seconds) {
        (Some(times), _) => Some((times * work.threads) as f64),
        (None, Some(_)) => None,
        (None, None) if work.share == super::Share::All => Some((set.count * work.threads) as f64),
        (None, None) => Some(set.count as f64),
    }
}

fn add_step(step: &Step, set: &FileSet, times: f64, cost: &mut Cost) {
    let times = if step.pick == Some(Pick::All) { times * set.count as f64 } else { times };
    let mean = set.mean();
    let (calls, bytes) = match step.amount {
        Amount::Block => (times, times * (step.block.0 as f64).min(mean.max(1.0))),
        Amount::File => (times * (mean / step.block.0 as f64).ceil().max(1.0), times * mean),
    };
    cost.calls = cost.calls.saturating_add(calls as u64);
    match step.action {
        Action::Read => cost.read = cost.read.saturating_add(bytes as u64),
        Action::Write => cost.written = cost.written.saturating_add(bytes as u64),
        Action::Append => {
            let bytes = (times * step.block.0 as f64) as u64;
            cost.written = cost.written.saturating_add(bytes);
            cost.space = cost.space.saturating_add(bytes);
        }
        _ => {}
    }
}
