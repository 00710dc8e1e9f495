//! The figures of one machine as they are pooled, and the pooling.

use longhaul_analysis::stats::{MachineEstimate, ln_e_above, pool};
use longhaul_analysis::summary::ALPHA;

use super::values::{Agreement, MachineRatio, MergedResult, PairKey};
use crate::family::{MachineFamily, ProtocolLabel};
use crate::share::{SharedFigure, SharedResults};

/// Number of valid days from which a machine counts.
const MIN_DAYS: usize = 5;

/// Figures of one machine for two protocols, in the direction of the pair.
#[derive(Debug, Clone)]
pub(super) struct MachineFigures {
    pub(super) machine: String,
    pub(super) family: MachineFamily,
    pub(super) figures: Vec<SharedFigure>,
}

impl MachineFigures {
    /// Returns the figure with a key; `None` if it has too few days.
    fn figure(&self, key: &str) -> Option<&SharedFigure> {
        self.figures.iter().find(|figure| figure.key == key && figure.days >= MIN_DAYS)
    }

    /// Returns the ratio over all tasks together; `None` if it has too few days.
    pub(super) fn ratio(&self) -> Option<MachineRatio> {
        let figure = self.figure("overall")?;
        let end = |sign: f64| figure.half_width.map(|width| (figure.ln_ratio + sign * width).exp());
        Some(MachineRatio {
            machine: self.machine.chars().take(8).collect(),
            ratio: figure.ln_ratio.exp(),
            low: end(-1.0),
            high: end(1.0),
            days: figure.days,
        })
    }
}

/// Returns the figures of a machine by protocols. Of several pairs of targets with the same protocols, the one with the most
/// rounds counts: a machine has one voice.
pub(super) fn by_protocols(share: &SharedResults) -> Vec<(PairKey, MachineFigures)> {
    let Some(scale) = share.scale() else { return vec![] };
    let protocols: Vec<ProtocolLabel> =
        (0..share.targets.len()).map(|target| share.protocol_of(target)).collect();
    let mut pairs: Vec<(usize, usize)> = share.figures.iter().map(|figure| (figure.a, figure.b)).collect();
    pairs.dedup();
    let rounds = |pair: &(usize, usize)| -> usize {
        share.figures.iter().filter(|figure| (figure.a, figure.b) == *pair).map(|figure| figure.rounds).sum()
    };
    pairs.sort_by_key(|pair| std::cmp::Reverse(rounds(pair)));
    let mut found: Vec<(PairKey, MachineFigures)> = vec![];
    for (a, b) in pairs {
        let (one, other) = (protocols[a], protocols[b]);
        let key = (one.min(other), one.max(other), scale.name());
        if one == other || found.iter().any(|(known, _)| *known == key) {
            continue;
        }
        let sign = if one < other { 1.0 } else { -1.0 };
        let figures = share.figures.iter().filter(|figure| (figure.a, figure.b) == (a, b));
        let directed =
            |figure: &SharedFigure| SharedFigure { ln_ratio: sign * figure.ln_ratio, ..figure.clone() };
        let machine = MachineFigures {
            machine: share.machine.clone(),
            family: share.family,
            figures: figures.map(directed).collect(),
        };
        found.push((key, machine));
    }
    found
}

/// Pools the figures of machines with a key; `None` if no machine has enough days.
pub(super) fn pooled(machines: &[&MachineFigures], key: &str) -> Option<MergedResult> {
    let figures: Vec<&SharedFigure> = machines.iter().filter_map(|machine| machine.figure(key)).collect();
    let estimate = |figure: &&SharedFigure| MachineEstimate {
        value: figure.ln_ratio,
        variance: figure.standard_error.powi(2),
    };
    let pooled = pool(&figures.iter().map(estimate).collect::<Vec<_>>(), ALPHA)?;
    let ln_ratios: Vec<f64> = figures.iter().map(|figure| figure.ln_ratio).collect();
    let agree = ln_ratios.iter().filter(|value| (**value < 0.0) == (pooled.mean < 0.0)).count();
    let end = |sign: f64| (pooled.mean + sign * pooled.half_width).exp();
    let has_interval = pooled.half_width.is_finite();
    Some(MergedResult {
        key: key.to_owned(),
        machines: pooled.machines,
        ratio: pooled.mean.exp(),
        low: has_interval.then(|| end(-1.0)),
        high: has_interval.then(|| end(1.0)),
        between: pooled.between,
        agreement: Agreement { agree, of: figures.len() },
        ln_e_all_in: figures.iter().map(|figure| figure.ln_e).sum(),
        // In the direction that the result states.
        ln_e_machines: ln_e_above(ln_ratios.iter().map(|value| value * pooled.mean.signum())),
        is_shown: false,
    })
}

#[cfg(test)]
mod tests {
    use longhaul_analysis::summary::Verdict;

    use super::*;

    /// Four machines on which one protocol is eight times as fast turn the mean, but not the evidence.
    #[test]
    fn evidence_is_for_the_direction_that_is_stated() {
        let machine = |ln_ratio: f64| MachineFigures {
            machine: String::new(),
            family: MachineFamily::default(),
            figures: vec![SharedFigure {
                a: 0,
                b: 1,
                key: "overall".to_owned(),
                days: 20,
                rounds: 60,
                ln_ratio,
                standard_error: 0.02,
                half_width: Some(0.1),
                ln_e: 5.0,
                verdict: Verdict::Faster,
            }],
        };
        let evidence = |low: f64| {
            let all: Vec<MachineFigures> =
                (0..29).map(|at| machine(if at < 4 { low } else { 0.16 })).collect();
            let result = pooled(&all.iter().collect::<Vec<_>>(), "overall").unwrap();
            (result.ratio > 1.0, result.ln_e_machines >= -ALPHA.ln())
        };
        assert_eq!(evidence(0.16), (true, true));
        assert_eq!(evidence(-(8f64.ln())), (false, false));
    }
}
