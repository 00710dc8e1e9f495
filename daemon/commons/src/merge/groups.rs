//! Groups of machines that share a property.

use std::collections::BTreeSet;

use longhaul_analysis::stats::e_bh;
use longhaul_analysis::summary::ALPHA;
use longhaul_model::{Scale, all_metrics};

use super::pooled::{MachineFigures, pooled};
use super::values::{GroupKind, MachineRatio, MergedGroup, MergedPair, MergedResult, PairKey};

/// Least number of machines that a family has in the results.
const MIN_MACHINES: usize = 2;

/// Merges the machines that compare two protocols.
pub(super) fn merged_pair((a, b, scale): PairKey, machines: &[MachineFigures]) -> MergedPair {
    let kinds: BTreeSet<GroupKind> =
        machines.iter().flat_map(|machine| GroupKind::of(&machine.family)).collect();
    let group = |kind: GroupKind| {
        let has = |machine: &&MachineFigures| GroupKind::of(&machine.family).contains(&kind);
        let result = pooled(&machines.iter().filter(has).collect::<Vec<_>>(), "overall")?;
        let is_family = result.machines >= MIN_MACHINES && result.machines < machines.len();
        (kind == GroupKind::All || is_family).then_some(MergedGroup { kind, result })
    };
    let all: Vec<&MachineFigures> = machines.iter().collect();
    let keys = all_metrics().map(|(task, metric)| format!("{}/{}", task.name(), metric.name));
    let mut each: Vec<MachineRatio> = machines.iter().filter_map(MachineFigures::ratio).collect();
    each.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
    let mut pair = MergedPair {
        a,
        b,
        scale: Scale::from_name(scale).unwrap_or(Scale::Standard),
        machines: machines.len(),
        groups: kinds.into_iter().filter_map(group).collect(),
        metrics: keys.filter_map(|key| pooled(&all, &key)).collect(),
        each,
    };
    judge(&mut pair);
    pair
}

/// Decides which differences are shown. All machines together are the question that was asked first, so they have the whole
/// error rate; families and metrics share another 5 % among themselves.
fn judge(pair: &mut MergedPair) {
    let (groups, metrics) = (&mut pair.groups, &mut pair.metrics);
    let first = groups.len().min(1);
    let (all, families) = groups.split_at_mut(first);
    all.iter_mut().for_each(|group| group.result.is_shown = group.result.ln_e_machines >= -ALPHA.ln());
    let families = families.iter_mut().map(|group| &mut group.result);
    let mut others: Vec<&mut MergedResult> = families.chain(metrics).collect();
    let e_values: Vec<f64> = others.iter().map(|result| result.ln_e_machines).collect();
    for (result, is_shown) in others.iter_mut().zip(e_bh(&e_values, ALPHA)) {
        result.is_shown = is_shown;
    }
}
