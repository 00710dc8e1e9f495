//! What sampling says of a window of time: how it felt, what moved, how long somebody had to wait. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{Beside, MachineStep, ProbeKind, ProbeStep, Stall, TargetName, TrafficStep};
use crate::samplers::seconds_waited;
use crate::stats::{Histogram, bucket_of, carries_quantile};

/// The answers that are waited for longer than this are counted, in milliseconds.
pub const FELT_MS: [u64; 3] = [100, 1_000, 10_000];
/// Every answer of the window is there, so no number of days is asked for; see [`carries_quantile`].
const ENOUGH_DAYS: usize = 5;

/// Samples of a window, as they are stored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// Its begin and its end, in microseconds since 1970 UTC.
    pub span_us: (i64, i64),
    /// Answers of the probe.
    pub probes: Vec<ProbeStep>,
    /// What was counted.
    pub traffic: Vec<TrafficStep>,
    /// The machine.
    pub machine: Vec<MachineStep>,
    /// The ledger of waits.
    pub stalls: Vec<Stall>,
}

/// What sampling says of a window of time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Sampled {
    /// Its begin and its end, in microseconds since 1970 UTC.
    pub span_us: (i64, i64),
    /// How each target felt, by what was asked and what else went on.
    pub felt: Vec<Felt>,
    /// What each source counted in all; the instant of each is that of its first step.
    pub traffic: Vec<TrafficStep>,
    /// The machine in all; `None`: it was not looked at.
    pub machine: Option<MachineStep>,
    /// How long each target kept somebody waiting.
    pub waited: Vec<WaitedFor>,
}

/// Answers of the probe of one target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Felt {
    /// The target.
    pub target: TargetName,
    /// What was asked.
    pub kind: ProbeKind,
    /// What else went on.
    pub beside: Beside,
    /// Answers.
    pub count: u64,
    /// Questions that were answered with an error.
    pub errors: u64,
    /// Questions that were not answered within thirty seconds.
    pub lost: u64,
    /// The median of the answers, in seconds.
    pub p50: Option<f64>,
    /// The 95th percentile in seconds; `None` below twenty answers beyond it.
    pub p95: Option<f64>,
    /// The 99th percentile in seconds; `None` below twenty answers beyond it.
    pub p99: Option<f64>,
    /// The longest, in seconds.
    pub max: Option<f64>,
    /// Answers that took longer than a tenth of a second, a second, ten seconds, to the width of a bucket (1.1 %).
    pub longer: [u64; 3],
}

/// How long a target kept somebody waiting.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WaitedFor {
    /// The target.
    pub target: TargetName,
    /// Stalls that the probe felt, as a person would have.
    pub stalls: u64,
    /// Seconds of them, each counted once.
    pub seconds: f64,
    /// Stalls of which only longhaul's own runs know: large writes may take seconds without a stall of the share.
    pub in_runs_only: u64,
}

/// See the module.
pub fn sampled(window: &Window) -> Sampled {
    Sampled {
        span_us: window.span_us,
        felt: felt(&window.probes),
        traffic: traffic(&window.traffic),
        machine: window.machine.iter().cloned().reduce(|mut all, more| {
            all.merge(&more);
            all
        }),
        waited: waited(&window.stalls, window.span_us),
    }
}

/// How each target felt, by what was asked and what else went on.
pub fn felt<'s>(probes: impl IntoIterator<Item = &'s ProbeStep>) -> Vec<Felt> {
    let mut merged: BTreeMap<(&TargetName, ProbeKind, Beside), ProbeStep> = BTreeMap::new();
    for step in probes {
        let place = (&step.target, step.kind, step.beside);
        merged.entry(place).and_modify(|all| all.merge(step)).or_insert_with(|| step.clone());
    }
    merged.into_values().map(|step| of_step(&step)).collect()
}

fn of_step(step: &ProbeStep) -> Felt {
    let ProbeStep { latency, .. } = step;
    let quantile = |q: f64| {
        let carried = q <= 0.5 || carries_quantile(latency.count(), q, ENOUGH_DAYS);
        latency.quantile_ns(q).filter(|_| carried).map(|ns| ns / 1e9)
    };
    Felt {
        target: step.target.clone(),
        kind: step.kind,
        beside: step.beside,
        count: latency.count(),
        errors: step.errors,
        lost: step.lost,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: latency.max_ns().map(|ns| ns as f64 / 1e9),
        longer: FELT_MS.map(|ms| longer_than(latency, ms * 1_000_000)),
    }
}

/// How many values are in the buckets above that of this one, in nanoseconds.
pub fn longer_than(latency: &Histogram, nanoseconds: u64) -> u64 {
    let (first, counts) = latency.buckets();
    let from = (bucket_of(nanoseconds) + 1 - first).max(0);
    counts.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).sum()
}

fn traffic(steps: &[TrafficStep]) -> Vec<TrafficStep> {
    let mut merged: BTreeMap<_, TrafficStep> = BTreeMap::new();
    for step in steps {
        merged.entry(step.place()).and_modify(|all| all.merge(step)).or_insert_with(|| step.clone());
    }
    merged.into_values().collect()
}

fn waited(stalls: &[Stall], span_us: (i64, i64)) -> Vec<WaitedFor> {
    let is_felt = |stall: &&Stall| stall.who.iter().any(|who| who == "probe");
    let mut targets: Vec<&TargetName> = stalls.iter().map(|stall| &stall.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let of_target = |target: &TargetName| {
        let own = || stalls.iter().filter(|stall| stall.target == *target);
        let count = own().filter(is_felt).count() as u64;
        WaitedFor {
            target: target.clone(),
            stalls: count,
            seconds: seconds_waited(own().filter(is_felt), span_us),
            in_runs_only: own().count() as u64 - count,
        }
    };
    targets.into_iter().map(of_target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: ProbeKind, at_us: i64, latencies_ms: &[u64]) -> ProbeStep {
        let mut step = ProbeStep::new("smb".parse().unwrap(), at_us, kind, Beside::Calm);
        latencies_ms.iter().for_each(|ms| step.latency.record(ms * 1_000_000));
        step
    }

    #[test]
    fn a_percentile_is_told_only_with_twenty_answers_beyond_it() {
        let answers: Vec<u64> = (1..=399).collect();
        let few = felt(&[step(ProbeKind::Read, 0, &answers)]);
        assert_eq!((few[0].count, few[0].p95, few[0].p99), (399, None, None));
        let enough = felt(&[step(ProbeKind::Read, 0, &answers), step(ProbeKind::Read, 300, &[400])]);
        let p95 = enough[0].p95.unwrap();
        assert!((0.378..0.383).contains(&p95) && enough[0].p99.is_none(), "{p95}");
        assert_eq!(enough[0].max, Some(0.4));
    }

    #[test]
    fn kinds_are_never_pooled_and_long_answers_are_counted() {
        let steps =
            [step(ProbeKind::Read, 0, &[1, 99, 150, 2_000, 20_000]), step(ProbeKind::Getattr, 0, &[5])];
        let felt = felt(&steps);
        let found: Vec<_> = felt.iter().map(|felt| (felt.kind, felt.count, felt.longer)).collect();
        assert_eq!(found, [(ProbeKind::Getattr, 1, [0, 0, 0]), (ProbeKind::Read, 5, [3, 2, 1])]);
    }

    #[test]
    fn what_only_our_own_runs_waited_for_is_told_apart() {
        let stall = |who: &str, from: i64, to: i64| Stall {
            target: "smb".parse().unwrap(),
            opened_us: from,
            started_us: from,
            ended_us: Some(to),
            is_cut: false,
            operation: "sync".into(),
            calls: 1,
            longest_ns: 0,
            errors: BTreeMap::new(),
            who: vec![who.to_owned()],
            beside: None,
        };
        let stalls = [stall("probe", 0, 4_000_000), stall("time-machine", 9_000_000, 20_000_000)];
        let waited = waited(&stalls, (0, 100_000_000));
        assert_eq!((waited[0].stalls, waited[0].seconds, waited[0].in_runs_only), (1, 4.0, 1));
    }
}
