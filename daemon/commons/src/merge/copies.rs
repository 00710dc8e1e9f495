//! Files of the same machine, and copies of another one's.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use longhaul_model::fnv;

use super::values::RefusedFile;
use crate::share::{PhaseKey, SharedResults};

/// Least number of runs by which two machines are compared.
const MIN_RUNS: usize = 60;
/// Correlation of the durations of runs from which one file is a copy of the other. Machines of their own, on which evenings are
/// slow alike, stay far below.
const MAX_CORRELATION: f64 = 0.9;

/// Share of phases with the same time in calls, to the nanosecond, from which one file is a copy of the other, whatever was left
/// out of it. Two machines have a few in common by chance.
const MAX_REPEATED: f64 = 0.5;

/// A file with its name.
pub(super) type NamedShare = (String, SharedResults);

/// Returns the newest file of each machine, in the order of the labels of the machines.
pub(super) fn newest_of_each(files: Vec<NamedShare>, refused: &mut Vec<RefusedFile>) -> Vec<NamedShare> {
    let mut newest: BTreeMap<String, NamedShare> = BTreeMap::new();
    for file in files {
        let label = file.1.machine.clone();
        let kept = match newest.remove(&label) {
            None => file,
            Some(known) => {
                let (kept, left) = newer_first(known, file);
                let is_same = kept.1 == left.1;
                let what = if is_same { "the same as" } else { "an older file of the same machine as" };
                refused.push(RefusedFile { file: left.0, reason: format!("it is {what} {}", kept.0) });
                kept
            }
        };
        newest.insert(label, kept);
    }
    newest.into_values().collect()
}

/// Returns the file with the later last round first; of two with the same, the one with more rounds, or else the one whose content
/// comes first, so that the order of the files changes nothing.
fn newer_first(one: NamedShare, other: NamedShare) -> (NamedShare, NamedShare) {
    let last = |share: &SharedResults| {
        let last = share.rounds.last()?;
        Some((share.first_week.first_day() + i64::from(last.day), last.minute))
    };
    let rank = |share: &SharedResults| (last(share), share.rounds.len());
    let is_newer = match rank(&other.1).cmp(&rank(&one.1)) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => one.1 != other.1 && other.1.to_json() < one.1.to_json(),
    };
    if is_newer { (other, one) } else { (one, other) }
}

/// Returns the files without those that repeat the times of a file before them.
pub(super) fn without_copies(files: Vec<NamedShare>, refused: &mut Vec<RefusedFile>) -> Vec<SharedResults> {
    let mut kept: Vec<(NamedShare, MeasuredTimes)> = vec![];
    for (name, share) in files {
        let times = MeasuredTimes::of(&share);
        match kept.iter().find(|(_, known)| known.is_repeated_in(&times)) {
            Some(((original, _), _)) => {
                let reason = format!("its times repeat those of {original}: one of the two is a copy");
                refused.push(RefusedFile { file: name, reason });
            }
            None => kept.push(((name, share), times)),
        }
    }
    kept.into_iter().map(|((_, share), _)| share).collect()
}

/// The times of a file by which a copy is recognized.
struct MeasuredTimes {
    /// See [`scatter`].
    scatter: Vec<f64>,
    /// Hash of the key and time in calls of each phase, in order and each once.
    in_calls: Vec<(u64, u64)>,
}

impl MeasuredTimes {
    fn of(share: &SharedResults) -> Self {
        let phases = share.runs().flat_map(|(_, run)| &run.phases).filter(|phase| phase.call_ns > 0);
        // Not the index of the key: a copy may have them in another order.
        let keys: Vec<u64> = share.phases.iter().map(hash_of).collect();
        let mut in_calls: Vec<(u64, u64)> = phases.map(|phase| (keys[phase.key], phase.call_ns)).collect();
        in_calls.sort_unstable();
        in_calls.dedup();
        Self { scatter: scatter(share), in_calls }
    }

    fn is_repeated_in(&self, other: &Self) -> bool {
        correlation(&self.scatter, &other.scatter) > MAX_CORRELATION
            || self.repeated_share(other) > MAX_REPEATED
    }

    /// Returns the share of the phases of the smaller file whose time in calls is also in the other one; zero if one has few.
    fn repeated_share(&self, other: &Self) -> f64 {
        let (fewer, more) = match self.in_calls.len() < other.in_calls.len() {
            true => (&self.in_calls, &other.in_calls),
            false => (&other.in_calls, &self.in_calls),
        };
        if fewer.len() < MIN_RUNS {
            return 0.0;
        }
        fewer.iter().filter(|phase| more.binary_search(phase).is_ok()).count() as f64 / fewer.len() as f64
    }
}

fn hash_of(key: &PhaseKey) -> u64 {
    fnv(format!("{}/{}/{:?}", key.task, key.phase, key.cache).bytes())
}

/// Returns the logarithms of the durations of runs, in the order of rounds, tasks and targets, without the mean of each task and
/// target.
fn scatter(share: &SharedResults) -> Vec<f64> {
    let mut runs: Vec<(usize, &str, usize, f64)> = vec![];
    for (index, round) in share.rounds.iter().enumerate() {
        for run in &round.runs {
            let seconds: f64 = run.phases.iter().map(|phase| phase.seconds).sum();
            runs.push((index, &run.task, share.target_of(run), seconds.max(1e-6).ln()));
        }
    }
    runs.sort_by(|one, other| (one.0, one.1, one.2).cmp(&(other.0, other.1, other.2)));
    let mut sums: BTreeMap<(&str, usize), (f64, f64)> = BTreeMap::new();
    for (_, task, target, value) in &runs {
        let (sum, count) = sums.entry((task, *target)).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    let mean = |task: &str, target: usize| sums.get(&(task, target)).map_or(0.0, |(sum, count)| sum / count);
    runs.iter().map(|(_, task, target, value)| value - mean(task, *target)).collect()
}

/// Returns the correlation of two series over their common length; zero if they are short.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let length = one.len().min(other.len());
    if length < MIN_RUNS {
        return 0.0;
    }
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).take(length).map(|(a, b)| a * b).sum::<f64>();
    let scale =
        (product(&one[..length], &one[..length]) * product(&other[..length], &other[..length])).sqrt();
    if scale > 0.0 { product(one, other) / scale } else { 0.0 }
}
