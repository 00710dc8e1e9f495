//! The experimental design: the order in which a round runs workloads and targets. Pure.
//!
//! A round is a randomised complete block: every workload on every target once, the targets adjacent in time.
//! The order of targets comes from permuted Williams blocks (Williams, "Experimental designs balanced for the
//! estimation of residual effects of treatments", Australian Journal of Scientific Research A 2, 1949): over a
//! block of rounds each target runs in each position, and follows each other target, equally often. An
//! advantage of running second therefore benefits all targets alike.

use crate::draw::shuffled_indices;

/// Order of a round: for each workload, in order, the targets in the order in which they run it. All values are
/// indices into the given lists.
pub type RunOrder = Vec<(usize, Vec<usize>)>;

/// Draws the order of a round. The same seed and round number give the same order.
pub fn run_order(seed: u64, round: u64, workloads: usize, targets: usize) -> RunOrder {
    shuffled_indices(seed, round, workloads as u64)
        .into_iter()
        .map(|workload| {
            (workload as usize, target_order(seed ^ workload.wrapping_mul(0x9e37), round, targets))
        })
        .collect()
}

/// Returns the row of the Williams block for a round. The rows of each block are shuffled again.
fn target_order(seed: u64, round: u64, targets: usize) -> Vec<usize> {
    let rows = williams_square(targets);
    if rows.is_empty() {
        return vec![];
    }
    let (block, row_index) = (round / rows.len() as u64, (round % rows.len() as u64) as usize);
    let row = shuffled_indices(seed, !block, rows.len() as u64)[row_index];
    rows[row as usize].clone()
}

/// Returns a Williams design for `targets` treatments: as many rows as targets if
/// their number is even, otherwise twice as many.
fn williams_square(targets: usize) -> Vec<Vec<usize>> {
    // 0, 1, k-1, 2, k-2, ...: each distance between neighbours occurs once.
    let zigzag: Vec<usize> = (0..targets)
        .map(|place| if place % 2 == 1 { place.div_ceil(2) } else { (targets - place / 2) % targets })
        .collect();
    let shifted =
        (0..targets).map(|shift| zigzag.iter().map(|target| (target + shift) % targets).collect::<Vec<_>>());
    let mut rows: Vec<Vec<usize>> = shifted.collect();
    if targets % 2 == 1 {
        let mirrored: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_targets_alternate_and_three_use_all_six_orders() {
        let sorted = |targets| {
            let mut rows = williams_square(targets);
            rows.sort();
            rows
        };
        assert_eq!(sorted(2), [[0, 1], [1, 0]]);
        assert_eq!(sorted(3), [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]);
    }

    proptest! {
        #[test]
        fn positions_and_successions_are_balanced_over_a_block(targets in 1usize..7, block in 0u64..20, seed: u64) {
            let rows = williams_square(targets).len() as u64;
            let mut positions: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            let mut successions: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for round in block * rows..(block + 1) * rows {
                let row = target_order(seed, round, targets);
                row.iter().enumerate().for_each(|at| *positions.entry((at.0, *at.1)).or_default() += 1);
                row.windows(2).for_each(|pair| *successions.entry((pair[0], pair[1])).or_default() += 1);
            }
            let equal = |counts: &BTreeMap<(usize, usize), usize>| counts.values().all(|n| Some(n) == counts.values().next());
            prop_assert!(positions.len() == targets * targets && equal(&positions));
            prop_assert!(successions.len() == targets * (targets - 1) && equal(&successions));
        }

        #[test]
        fn a_round_has_every_workload_on_every_target_once(seed: u64, round: u64, workloads in 1usize..6, targets in 1usize..5) {
            let mut cells: Vec<(usize, usize)> = run_order(seed, round, workloads, targets)
                .into_iter()
                .flat_map(|(workload, targets)| targets.into_iter().map(move |target| (workload, target)))
                .collect();
            cells.sort_unstable();
            let all: Vec<_> = (0..workloads).flat_map(|w| (0..targets).map(move |t| (w, t))).collect();
            prop_assert_eq!(cells, all);
        }
    }
}
