//! Summarizes the samples of a time window: latency, traffic, machine load and stalls. Pure functions.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use longhaul_model::{
    Histogram, LoadContext, MachineStep, ProbeKind, ProbeStep, Stall, TargetName, Timestamp, TrafficStep,
    bucket_of, stalled_seconds, supports_quantile,
};

/// Latency limits in milliseconds; probe requests that take longer are counted for each limit.
pub const LATENCY_LIMITS_MS: [u64; 3] = [100, 1_000, 10_000];
/// Number of days passed to [`supports_quantile`], so that its condition on days is always met: in a latency window
/// only the number of values counts (docs/methodology.md#histograms-and-quantiles).
const MIN_DAYS: usize = 5;

/// Stored samples of a time window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampledWindow {
    /// Start and end of the window.
    pub span: (Timestamp, Timestamp),
    /// Samples of the latency probe.
    pub probes: Vec<ProbeStep>,
    /// Samples of the traffic counters.
    pub traffic: Vec<TrafficStep>,
    /// Samples of the machine's load.
    pub machine: Vec<MachineStep>,
    /// Stalls that overlap the window.
    pub stalls: Vec<Stall>,
}

/// Summary of the samples of a time window.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WindowSummary {
    /// Start and end of the window, in microseconds since 1970 UTC.
    #[schema(value_type = (i64, i64))]
    pub span_us: (Timestamp, Timestamp),
    /// Latency of each target, by kind of request and load.
    pub rows: Vec<LatencyRow>,
    /// Total traffic of each source; the time of each total is the time of its first sample.
    pub traffic: Vec<TrafficStep>,
    /// Merged machine samples of the window; `None` if the window has no machine sample.
    pub machine: Option<MachineStep>,
    /// Stall totals of each target.
    pub stalls: Vec<StallTotals>,
}

/// Latencies of the probe on one target, for one kind of request and one load.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LatencyRow {
    /// Target that was probed.
    pub target: TargetName,
    /// Kind of request.
    pub kind: ProbeKind,
    /// Load at the time of the request: idle or during a round.
    pub during: LoadContext,
    /// Number of requests answered without an error, including late answers.
    pub count: u64,
    /// Number of requests that failed with an error.
    pub errors: u64,
    /// Number of requests without an answer within 30 seconds.
    pub timeouts: u64,
    /// Median latency in seconds; `None` without a successful request.
    pub p50: Option<f64>,
    /// 95th percentile of the latency in seconds; `None` with fewer than 20 requests beyond it.
    pub p95: Option<f64>,
    /// 99th percentile of the latency in seconds; `None` with fewer than 20 requests beyond it.
    pub p99: Option<f64>,
    /// Longest latency in seconds; `None` without a successful request.
    pub max: Option<f64>,
    /// Number of requests that took longer than 0.1, 1 and 10 seconds, accurate to one histogram bucket (1.1 %).
    pub slower_than: [u64; 3],
}

/// Stall totals of one target in a window.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StallTotals {
    /// Target that stalled.
    pub target: TargetName,
    /// Number of stalls that the latency probe observed; a user would have noticed them, too.
    pub stalls: u64,
    /// Total duration of these stalls in seconds; overlapping stalls count once.
    pub seconds: f64,
    /// Number of stalls that only longhaul's own runs observed. A large write may take seconds without a stall of
    /// the share.
    pub seen_only_by_runs: u64,
}

/// Summarizes the samples of a time window.
pub fn summarize_window(window: &SampledWindow) -> WindowSummary {
    WindowSummary {
        span_us: window.span,
        rows: latency_rows(&window.probes),
        traffic: merge_traffic(&window.traffic),
        machine: window.machine.iter().cloned().reduce(|mut all, more| {
            all.merge(&more);
            all
        }),
        stalls: stall_totals(&window.stalls, window.span),
    }
}

/// Returns the latency of each target, by kind of request and load.
pub fn latency_rows<'s>(probes: impl IntoIterator<Item = &'s ProbeStep>) -> Vec<LatencyRow> {
    let mut merged: BTreeMap<(&TargetName, ProbeKind, LoadContext), ProbeStep> = BTreeMap::new();
    for step in probes {
        let place = (&step.target, step.kind, step.during);
        merged.entry(place).and_modify(|all| all.merge(step)).or_insert_with(|| step.clone());
    }
    merged.into_values().map(|step| latency_row(&step)).collect()
}

fn latency_row(step: &ProbeStep) -> LatencyRow {
    let ProbeStep { latency, .. } = step;
    let quantile = |q: f64| {
        let is_supported = q <= 0.5 || supports_quantile(latency.count(), q, MIN_DAYS);
        latency.quantile_ns(q).filter(|_| is_supported).map(|ns| ns / 1e9)
    };
    LatencyRow {
        target: step.target.clone(),
        kind: step.kind,
        during: step.during,
        count: latency.count(),
        errors: step.errors,
        timeouts: step.timeouts,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: latency.max_ns().map(|ns| ns as f64 / 1e9),
        slower_than: LATENCY_LIMITS_MS.map(|ms| count_longer_than(latency, ms * 1_000_000)),
    }
}

/// Returns the number of values in the buckets above the bucket that contains `nanoseconds`.
pub fn count_longer_than(latency: &Histogram, nanoseconds: u64) -> u64 {
    let (first, counts) = latency.buckets();
    let from = (bucket_of(nanoseconds) + 1 - first).max(0);
    counts.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).sum()
}

fn merge_traffic(steps: &[TrafficStep]) -> Vec<TrafficStep> {
    let mut merged: BTreeMap<_, TrafficStep> = BTreeMap::new();
    for step in steps {
        merged.entry(step.key()).and_modify(|all| all.merge(step)).or_insert_with(|| step.clone());
    }
    merged.into_values().collect()
}

fn stall_totals(stalls: &[Stall], span: (Timestamp, Timestamp)) -> Vec<StallTotals> {
    // Slow calls of runs are no proof of a stall: a large write may take seconds on a share that works well.
    let seen_by_probe = |stall: &&Stall| stall.sources.iter().any(|source| source == "probe");
    let mut targets: Vec<&TargetName> = stalls.iter().map(|stall| &stall.target).collect();
    targets.sort_unstable();
    targets.dedup();
    let of_target = |target: &TargetName| {
        let own = || stalls.iter().filter(|stall| stall.target == *target);
        let count = own().filter(seen_by_probe).count() as u64;
        StallTotals {
            target: target.clone(),
            stalls: count,
            seconds: stalled_seconds(own().filter(seen_by_probe), span.0..span.1),
            seen_only_by_runs: own().count() as u64 - count,
        }
    };
    targets.into_iter().map(of_target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: ProbeKind, at: i64, latencies_ms: &[u64]) -> ProbeStep {
        let mut step =
            ProbeStep::new("smb".parse().unwrap(), Timestamp::from_us(at), kind, LoadContext::Idle);
        latencies_ms.iter().for_each(|ms| step.latency.record(ms * 1_000_000));
        step
    }

    #[test]
    fn percentile_needs_twenty_values_beyond_it() {
        let answers: Vec<u64> = (1..=399).collect();
        let few = latency_rows(&[step(ProbeKind::Read, 0, &answers)]);
        assert_eq!((few[0].count, few[0].p95, few[0].p99), (399, None, None));
        let enough = latency_rows(&[step(ProbeKind::Read, 0, &answers), step(ProbeKind::Read, 300, &[400])]);
        let p95 = enough[0].p95.unwrap();
        assert!((0.378..0.383).contains(&p95) && enough[0].p99.is_none(), "{p95}");
        assert_eq!(enough[0].max, Some(0.4));
    }

    #[test]
    fn kinds_are_not_pooled_and_slow_requests_are_counted() {
        let steps =
            [step(ProbeKind::Read, 0, &[1, 99, 150, 2_000, 20_000]), step(ProbeKind::Getattr, 0, &[5])];
        let rows = latency_rows(&steps);
        let found: Vec<_> = rows.iter().map(|row| (row.kind, row.count, row.slower_than)).collect();
        assert_eq!(found, [(ProbeKind::Getattr, 1, [0, 0, 0]), (ProbeKind::Read, 5, [3, 2, 1])]);
    }

    #[test]
    fn stalls_seen_only_by_runs_are_counted_separately() {
        let stall = |source: &str, from: i64, to: i64| Stall {
            ended_us: Some(Timestamp::from_us(to)),
            sources: vec![source.to_owned()],
            ..Stall::new("smb".parse().unwrap(), Timestamp::from_us(from), "sync")
        };
        let stalls = [stall("probe", 0, 4_000_000), stall("time-machine", 9_000_000, 20_000_000)];
        let totals = stall_totals(&stalls, (Timestamp::UNIX_EPOCH, Timestamp::from_us(100_000_000)));
        assert_eq!((totals[0].stalls, totals[0].seconds, totals[0].seen_only_by_runs), (1, 4.0, 1));
    }
}
