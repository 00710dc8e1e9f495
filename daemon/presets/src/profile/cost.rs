//! The estimated cost of running a profile.

use super::schema::{FileSet, FileSharing, Profile, Program, StepChoice, ThreadGroup};
use super::step::{Action, Amount, FileChoice, Step};

/// The estimated cost of one run of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ProfileCost {
    /// Number of bytes in files that must exist before the phases start.
    pub setup_bytes: u64,
    /// Maximum space in bytes that the files need on the target.
    pub space_bytes: u64,
    /// Number of bytes that phases write. Excludes steps that are repeated for a fixed time.
    pub bytes_written: u64,
    /// Number of bytes that phases read. Excludes steps that are repeated for a fixed time.
    pub bytes_read: u64,
    /// Number of file operations in phases. Excludes steps that are repeated for a fixed time.
    pub calls: u64,
    /// Total seconds of work that runs for a fixed time or at a fixed rate.
    pub seconds: f64,
}

/// The maximum number of files whose sizes are added up; larger sets are extrapolated from their mean.
const MAX_SAMPLED_FILES: u64 = 1000;
/// The assumed maximum write rate of blogbench in bytes per second, for the estimate of its space.
///
/// It is somewhat more than the fastest published run, 38 MB/s (HFS+, malcont.net, September 2017).
const BLOGBENCH_BYTES_PER_SECOND: f64 = 50e6;

impl FileSet {
    /// Returns the total size of all files in bytes. Exact for up to 1000 files, otherwise extrapolated.
    pub fn total_bytes(&self, seed: u64) -> u64 {
        let sampled = self.count.min(MAX_SAMPLED_FILES);
        let sum: u128 = (0..sampled).map(|number| u128::from(self.size.file_bytes(seed, number))).sum();
        u64::try_from(sum * u128::from(self.count) / u128::from(sampled.max(1))).unwrap_or(u64::MAX)
    }

    fn mean_bytes(&self) -> f64 {
        self.total_bytes(0) as f64 / self.count.max(1) as f64
    }
}

impl Profile {
    /// Returns the cost of one run at standard scale. For a quick run, call it on the result of
    /// [`Profile::scaled_to`].
    pub fn cost(&self) -> ProfileCost {
        let mut cost = ProfileCost::default();
        for set in self.files.values() {
            let bytes = set.total_bytes(0);
            cost.space_bytes = cost.space_bytes.saturating_add(bytes);
            cost.setup_bytes = cost.setup_bytes.saturating_add((bytes as f64 * set.present) as u64);
        }
        for phase in &self.phases {
            if let (Some(Program::Blogbench), Some(seconds)) = (phase.program, phase.seconds) {
                cost.seconds += seconds;
                let bytes = (BLOGBENCH_BYTES_PER_SECOND * seconds) as u64;
                cost.space_bytes = cost.space_bytes.saturating_add(bytes);
            }
            let longest = phase.work.iter().filter_map(|work| work.seconds).fold(0.0, f64::max);
            cost.seconds += longest;
            for work in &phase.work {
                self.add_work(work, &mut cost);
            }
        }
        cost
    }

    fn add_work(&self, work: &ThreadGroup, cost: &mut ProfileCost) {
        let Some(set) = self.files.get(&work.files) else { return };
        let files_per_thread = match work.share {
            FileSharing::Own => set.count as f64 / work.threads as f64,
            FileSharing::All => set.count as f64,
        };
        let mut add = |step: &Step, times: f64| {
            let files = if step.pick == Some(FileChoice::All) { files_per_thread } else { 1.0 };
            add_step(step, set, times * files / step.every as f64, cost);
        };
        work.before.iter().chain(&work.after).for_each(|step| add(step, work.threads as f64));
        let Some(repetitions) = repetitions(work, set) else { return };
        let weights: f64 = work.steps.iter().map(|step| step.weight).sum();
        for step in &work.steps {
            let probability = match work.choose {
                StepChoice::All => 1.0,
                StepChoice::One => step.weight / weights,
            };
            add(step, repetitions * probability);
        }
        if let Some(rate) = work.per_second {
            cost.seconds += repetitions / work.threads as f64 / rate;
        }
    }
}

/// Returns the total number of repetitions of all threads.
///
/// `None` if the repetitions end after a fixed time.
fn repetitions(work: &ThreadGroup, set: &FileSet) -> Option<f64> {
    match (work.times, work.seconds) {
        (Some(times), _) => Some((times * work.threads) as f64),
        (None, Some(_)) => None,
        (None, None) if work.share == FileSharing::All => Some((set.count * work.threads) as f64),
        (None, None) => Some(set.count as f64),
    }
}

fn add_step(step: &Step, set: &FileSet, times: f64, cost: &mut ProfileCost) {
    let mean = set.mean_bytes();
    let (calls, bytes) = match step.amount {
        Amount::Block => (times, times * (step.block.0 as f64).min(mean.max(1.0))),
        Amount::File => (times * (mean / step.block.0 as f64).ceil().max(1.0), times * mean),
    };
    cost.calls = cost.calls.saturating_add(calls as u64);
    match step.action {
        Action::Read => cost.bytes_read = cost.bytes_read.saturating_add(bytes as u64),
        Action::Write => cost.bytes_written = cost.bytes_written.saturating_add(bytes as u64),
        Action::Append => {
            let bytes = (times * step.block.0 as f64) as u64;
            cost.bytes_written = cost.bytes_written.saturating_add(bytes);
            cost.space_bytes = cost.space_bytes.saturating_add(bytes);
        }
        _ => {}
    }
}
