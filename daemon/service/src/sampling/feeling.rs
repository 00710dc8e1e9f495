//! How a share feels: the probe's latency while it is calm, and just now while a round of ours goes on. Pure.

use std::collections::{BTreeMap, VecDeque};

use longhaul_measure::model::{Beside, ProbeKind, Probed, TargetName};
use longhaul_measure::stats::Histogram;

use crate::schedule::backoff::Felt;

/// Only reads tell: attributes mostly come from the client's memory.
const KIND: ProbeKind = ProbeKind::Read;
/// So many calm answers make a median.
const CALM_NEEDS: u64 = 20;
/// Calm answers after which the older half is forgotten: about two days.
const CALM_KEEPS: u64 = 10_000;
/// So many answers under load make a median.
const NOW_NEEDS: usize = 3;
/// Answers that were asked for longer ago do not tell of now, in microseconds.
const NOW_US: i64 = 60_000_000;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Feelings {
    targets: BTreeMap<TargetName, Feeling>,
}

#[derive(Debug, Clone, Default)]
struct Feeling {
    /// Calm answers: those before, and those now.
    calm: [Histogram; 2],
    /// Under load: when asked, in microseconds since 1970 UTC, and the latency in nanoseconds.
    loaded: VecDeque<(i64, u64)>,
}

impl Feelings {
    /// Takes in a slot of the probe.
    pub fn take(&mut self, target: &TargetName, slot: &Probed, beside: Beside) {
        if slot.kind != KIND || slot.error.is_some() {
            return;
        }
        let feeling = self.targets.entry(target.clone()).or_default();
        match beside {
            Beside::Calm => feeling.calm(slot.latency_ns),
            Beside::Round => {
                feeling.loaded.push_back((slot.at_us, slot.latency_ns));
                feeling.loaded.retain(|(at_us, _)| slot.at_us - at_us <= NOW_US);
            }
        }
    }

    /// How each target feels now, but for whether somebody works on it.
    pub fn felt(&self, now_us: i64) -> impl Iterator<Item = (&TargetName, Felt)> {
        self.targets.iter().map(move |(target, feeling)| (target, feeling.felt(now_us)))
    }
}

impl Feeling {
    fn calm(&mut self, latency_ns: u64) {
        self.calm[1].record(latency_ns);
        if self.calm[1].count() >= CALM_KEEPS / 2 {
            self.calm = [std::mem::take(&mut self.calm[1]), Histogram::new()];
        }
    }

    fn felt(&self, now_us: i64) -> Felt {
        let mut calm = self.calm[0].clone();
        calm.merge(&self.calm[1]);
        let calm_us =
            (calm.count() >= CALM_NEEDS).then(|| calm.quantile_ns(0.5)).flatten().map(|ns| ns / 1e3);
        let recent = self.loaded.iter().filter(|(at_us, _)| now_us - at_us <= NOW_US);
        let mut recent: Vec<u64> = recent.map(|(_, latency_ns)| *latency_ns).collect();
        recent.sort_unstable();
        let now_us = (recent.len() >= NOW_NEEDS).then(|| recent[recent.len() / 2] as f64 / 1e3);
        Felt { calm_us, now_us, is_user_active: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(kind: ProbeKind, at_us: i64, latency_ns: u64) -> Probed {
        Probed { kind, at_us, latency_ns, call_ns: None, error: None, beside: None }
    }

    #[test]
    fn calm_and_now_are_told_only_by_enough_reads() {
        let target: TargetName = "smb".parse().unwrap();
        let mut feelings = Feelings::default();
        let felt = |feelings: &Feelings, now_us| feelings.felt(now_us).next().map(|(_, felt)| felt);
        for at_us in 0..19 {
            feelings.take(&target, &slot(KIND, at_us, 1_000_000), Beside::Calm);
            feelings.take(&target, &slot(ProbeKind::Getattr, at_us, 9_000), Beside::Calm);
        }
        assert_eq!(felt(&feelings, 20), Some(Felt::default()));
        feelings.take(&target, &slot(KIND, 19, 1_000_000), Beside::Calm);
        for at_us in [20, 21, 22] {
            feelings.take(&target, &slot(KIND, at_us, 5_000_000), Beside::Round);
        }
        let now = felt(&feelings, 30).unwrap();
        assert!((now.calm_us.unwrap() - 1000.0).abs() < 6.0, "{now:?}");
        assert_eq!(now.now_us, Some(5000.0));
        assert_eq!(
            felt(&feelings, 23 + NOW_US).unwrap().now_us,
            None,
            "a minute later nothing is known of now"
        );
    }
}
