//! Files that were changed after they were measured are refused, and those that were not are not.

use longhaul_model::draw::draw_below;
use longhaul_model::{CacheState, Outcome, RoundStatus};

use super::machines::{named, share};
use crate::{
    ProtocolLabel, SharedPhase, SharedResults, SharedRun, check, figures, machine_label, merge, read,
};

/// Seeds of each kind of forgery.
const SEEDS: std::ops::Range<u64> = 0..5;
/// Index of the target that a forger wants to win: the one over NFS.
const FAVOURED: usize = 1;

/// A way to change a file. Each forger computes all figures again, with the code that made the real ones.
type Forgery = fn(&mut SharedResults, u64);

const FORGERIES: [(&str, Forgery); 12] = [
    ("times scaled", scale_times),
    ("times, phases and histograms scaled", scale_everything),
    ("copied machine with another label", relabel),
    ("copied machine with another seed", reseed),
    ("slow rounds removed", remove_slow_rounds),
    ("slow runs replaced by fast ones", replace_slow_runs),
    ("order shuffled", shuffle_order),
    ("histograms edited", edit_histograms),
    ("figures edited", edit_figures),
    ("failures removed", remove_failures),
    ("traffic removed", remove_traffic),
    ("rounds repeated", repeat_rounds),
];

fn is_favoured(share: &SharedResults, run: &SharedRun) -> bool {
    share.target_of(run) == FAVOURED
}

/// Changes the runs of the favoured target.
fn change_runs(share: &mut SharedResults, change: impl Fn(&mut SharedRun)) {
    let epochs: Vec<usize> = share.epochs.iter().map(|epoch| epoch.target).collect();
    let runs = share.rounds.iter_mut().flat_map(|round| &mut round.runs);
    runs.filter(|run| epochs[run.epoch] == FAVOURED).for_each(change);
}

fn scale_times(share: &mut SharedResults, seed: u64) {
    let factor = 0.5 + 0.04 * seed as f64;
    change_runs(share, |run| {
        run.times.iter_mut().flatten().for_each(|time| *time *= factor);
        run.seconds *= factor;
    });
}

fn scale_everything(share: &mut SharedResults, seed: u64) {
    let factor = 0.4 + 0.05 * seed as f64;
    scale_times(share, seed);
    change_runs(share, |run| {
        for phase in &mut run.phases {
            phase.seconds *= factor;
            phase.call_ns = (phase.call_ns as f64 * factor) as u64;
        }
    });
    for histogram in share.histograms.iter_mut().filter(|histogram| histogram.target == FAVOURED) {
        histogram.sum_ns = (histogram.sum_ns as f64 * factor) as u64;
        histogram.first += (factor.log2() * 64.0) as i32;
    }
}

fn relabel(share: &mut SharedResults, seed: u64) {
    share.machine = machine_label(&format!("{seed:016x}"));
}

fn reseed(share: &mut SharedResults, seed: u64) {
    share.seed = format!("{:016x}", seed + 1);
    share.machine = machine_label(&share.seed);
}

fn remove_slow_rounds(share: &mut SharedResults, seed: u64) {
    let time = |share: &SharedResults, index: usize| -> f64 {
        let runs = share.rounds[index].runs.iter().filter(|run| is_favoured(share, run));
        runs.map(|run| run.seconds).sum()
    };
    let mut times: Vec<f64> = (0..share.rounds.len()).map(|index| time(share, index)).collect();
    let all = times.clone();
    times.sort_by(f64::total_cmp);
    let limit = times[times.len() * (70 + seed as usize) / 100];
    let mut index = 0;
    share.rounds.retain(|_| {
        index += 1;
        all[index - 1] < limit
    });
}

fn replace_slow_runs(share: &mut SharedResults, _: u64) {
    let runs = || share.rounds.iter().flat_map(|round| &round.runs).filter(|run| is_favoured(share, run));
    let of_task = |task: &'static str| {
        let best = runs().filter(move |run| run.task == task && run.outcome == Outcome::Ok);
        best.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).cloned().unwrap()
    };
    let best = ["folder-index", "photo-batch"].map(of_task);
    change_runs(share, |run| {
        let fast = best.iter().find(|fast| fast.task == run.task).unwrap();
        if run.seconds > fast.seconds * 1.2 {
            *run = SharedRun { at_ms: run.at_ms, ..fast.clone() };
        }
    });
}

fn shuffle_order(share: &mut SharedResults, seed: u64) {
    for (index, round) in (0..).zip(&mut share.rounds) {
        if round.runs.len() >= 4 && draw_below(seed, 3, index, 10) == 0 {
            round.runs.swap(0, 1);
        }
    }
}

fn edit_histograms(share: &mut SharedResults, seed: u64) {
    let own = share.histograms.iter_mut().filter(|histogram| histogram.target == FAVOURED);
    for histogram in own {
        // The slowest tenth of the calls moves to the fastest bucket.
        let mut moved = 0;
        let limit = histogram.counts.iter().sum::<u64>() / (8 + seed);
        for count in histogram.counts.iter_mut().rev() {
            let taken = (*count).min(limit - moved);
            *count -= taken;
            moved += taken;
        }
        histogram.counts[0] += moved;
        while histogram.counts.last() == Some(&0) {
            histogram.counts.pop();
        }
    }
}

fn edit_figures(share: &mut SharedResults, seed: u64) {
    let figure = share.figures.iter_mut().find(|figure| figure.key == "overall").unwrap();
    figure.ln_ratio -= 0.02 + 0.01 * seed as f64;
    figure.ln_e += 2.0;
}

fn remove_failures(share: &mut SharedResults, _: u64) {
    let first = share.rounds.iter_mut().find(|round| round.runs.len() == 4).unwrap();
    first.runs[3].outcome = Outcome::Hung;
    for round in &mut share.rounds {
        round.runs.retain(|run| run.outcome == Outcome::Ok);
    }
}

fn remove_traffic(share: &mut SharedResults, seed: u64) {
    change_runs(share, |run| {
        run.phases
            .iter_mut()
            .for_each(|phase| phase.wire_read = phase.wire_read.map(|bytes| bytes / (3 + seed)));
    });
}

fn repeat_rounds(share: &mut SharedResults, seed: u64) {
    let last = share.rounds.last().map_or(0, |round| round.day);
    let again = share.rounds.iter().filter(|round| round.status == RoundStatus::Ok).cloned();
    let again: Vec<_> = again.skip(seed as usize).collect();
    share.rounds.extend(again.into_iter().map(|mut round| {
        round.day += last + 1;
        round
    }));
}

#[test]
fn traffic_of_a_local_disk_is_not_judged() {
    let mut share = share(5, 0.3);
    remove_traffic(&mut share, 0);
    let is_found = |share: &SharedResults| check(share).iter().any(|text| text.starts_with("traffic: "));
    assert!(is_found(&share));
    share.epochs.iter_mut().filter(|epoch| epoch.target == FAVOURED).for_each(|epoch| {
        epoch.protocol = ProtocolLabel::Local;
    });
    assert!(!is_found(&share));
}

/// Returns whether a file is refused, alone or next to the one that it was made from.
fn is_refused(original: &SharedResults, forged: &SharedResults) -> bool {
    if read(forged.to_json().as_bytes(), None).is_err() || !check(forged).is_empty() {
        return true;
    }
    merge(vec![named("original", original.clone()), named("forged", forged.clone())]).machines < 2
}

#[test]
fn forgeries_are_refused() {
    let mut accepted = vec![];
    for (number, (name, forge)) in (0..).zip(FORGERIES) {
        for seed in SEEDS {
            let original = share(1000 + 10 * number + seed, 0.05);
            let mut forged = original.clone();
            forge(&mut forged, seed);
            if name != "figures edited" {
                forged.figures = figures(&forged);
            }
            assert_ne!(forged, original, "{name} changes the file");
            if !is_refused(&original, &forged) {
                accepted.push(format!("{name} {seed}"));
            }
        }
    }
    let all = FORGERIES.len() * SEEDS.count();
    println!("{} of {all} forgeries were refused", all - accepted.len());
    assert!(accepted.len() * 20 <= all, "{} of {all} forgeries were accepted: {accepted:?}", accepted.len());
}

#[test]
#[ignore = "takes half a minute: .ci/run runs it by name"]
fn honest_files_are_accepted() {
    for number in 0..300 {
        let share = share(number, 0.04 * ((number % 5) as f64 - 2.0));
        let again = read(share.to_json().as_bytes(), None).unwrap();
        assert_eq!(again, share, "a file keeps every value");
        assert_eq!(check(&again), [""; 0], "machine {number}");
    }
}

#[test]
fn copy_with_noise_and_a_new_order_is_refused_next_to_the_original() {
    let original = share(1, 0.0);
    let other = share(2, 0.0);
    let mut copy = original.clone();
    copy.seed = other.seed.clone();
    copy.machine = other.machine.clone();
    let factors = |index: u64| 0.98 + 0.0004 * draw_below(5, 1, index, 100) as f64;
    for (index, run) in (0..).zip(copy.rounds.iter_mut().flat_map(|round| &mut round.runs)) {
        run.phases.iter_mut().for_each(|phase| phase.seconds *= factors(index));
    }
    let merged = merge(vec![named("one", original), named("copy", copy), named("other", share(3, 0.0))]);
    assert_eq!(merged.machines, 2);
    assert!(merged.refused[0].reason.contains("a copy"), "{:?}", merged.refused);
}

#[test]
fn copy_without_its_first_rounds_is_refused_next_to_the_original() {
    let original = share(1, 0.0);
    let mut copy = share(2, 0.0);
    copy.rounds = original.rounds[1..].to_vec();
    let merged = merge(vec![named("one", original), named("copy", copy), named("other", share(3, 0.0))]);
    assert_eq!(merged.machines, 2);
    assert!(merged.refused[0].reason.contains("a copy"), "{:?}", merged.refused);
}

#[test]
fn copy_with_another_order_of_its_phases_is_refused_next_to_the_original() {
    let original = share(1, 0.0);
    let mut copy = share(2, 0.0);
    copy.rounds = original.rounds[1..].to_vec();
    copy.phases = original.phases.iter().rev().cloned().collect();
    let last = original.phases.len() - 1;
    phases_of(&mut copy).for_each(|phase| phase.key = last - phase.key);
    let merged = merge(vec![named("one", original), named("copy", copy), named("other", share(3, 0.0))]);
    assert_eq!(merged.machines, 2);
    assert!(merged.refused[0].reason.contains("a copy"), "{:?}", merged.refused);
}

fn phases_of(share: &mut SharedResults) -> impl Iterator<Item = &mut SharedPhase> {
    share.rounds.iter_mut().flat_map(|round| &mut round.runs).flat_map(|run| &mut run.phases)
}

/// The traffic and the requests of one run alone do not make a median.
#[test]
fn single_odd_run_is_no_contradiction() {
    let mut odd = share(1, 0.0);
    let is_cold: Vec<bool> = odd.phases.iter().map(|key| key.cache == CacheState::Cold).collect();
    phases_of(&mut odd).for_each(|phase| (phase.wire_read, phase.requests) = (None, None));
    let read_cold = phases_of(&mut odd).find(|phase| is_cold[phase.key] && phase.read > 1 << 20).unwrap();
    read_cold.wire_read = Some(0);
    let listed = phases_of(&mut odd).find(|phase| phase.read == 0 && phase.written == 0).unwrap();
    listed.requests = Some(1_000_000);
    assert_eq!(check(&odd), [""; 0]);
}
