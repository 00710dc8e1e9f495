//! Latency baselines of the shares: the probe's latency while idle, compared with its
//! recent latency during a round. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use longhaul_model::{Histogram, LoadContext, ProbeKind, ProbeSample, TargetName, Timestamp};

/// Kind of probe request that the baselines use. Attributes are useless here: clients
/// mostly answer them from their cache.
const BASELINE_KIND: ProbeKind = ProbeKind::Read;
/// Number of idle reads from which there is a median.
const MIN_IDLE_READS: u64 = 20;
/// Number of idle reads after which the older half is dropped: about two days.
const MAX_IDLE_READS: u64 = 10_000;
/// Number of recent reads during a round from which there is a median.
const MIN_RECENT_READS: usize = 3;
/// Age limit of reads that count as recent.
const RECENT_WINDOW: Duration = Duration::from_mins(1);

/// Latency baselines of all targets.
#[derive(Debug, Clone, Default)]
pub struct LatencyBaselines {
    targets: BTreeMap<TargetName, LatencyBaseline>,
}

#[derive(Debug, Clone, Default)]
struct LatencyBaseline {
    /// Latencies while idle, in two halves: older and newer.
    idle: [Histogram; 2],
    /// Recent reads during a round: scheduled time, and latency in nanoseconds.
    loaded: VecDeque<(Timestamp, u64)>,
}

impl LatencyBaselines {
    /// Records one sample of the latency probe. Failed requests and other kinds than
    /// [`BASELINE_KIND`] are ignored.
    pub fn record(&mut self, target: &TargetName, sample: &ProbeSample, load: LoadContext) {
        if sample.kind != BASELINE_KIND || sample.error.is_some() {
            return;
        }
        let baseline = self.targets.entry(target.clone()).or_default();
        match load {
            LoadContext::Idle => baseline.record_idle(sample.latency_ns),
            LoadContext::Round => {
                baseline.loaded.push_back((sample.at_us, sample.latency_ns));
                baseline.loaded.retain(|(at, _)| sample.at_us.since(*at) <= RECENT_WINDOW);
            }
        }
    }

    /// Forgets all targets but those for which this returns true.
    pub fn retain(&mut self, is_kept: impl Fn(&TargetName) -> bool) {
        self.targets.retain(|target, _| is_kept(target));
    }

    /// Returns the recent latency of each target relative to that while longhaul is idle, where both are known.
    pub fn slowdowns(&self, now: Timestamp) -> impl Iterator<Item = (&TargetName, f64)> {
        self.targets.iter().filter_map(move |(target, baseline)| Some((target, baseline.slowdown(now)?)))
    }
}

impl LatencyBaseline {
    fn record_idle(&mut self, latency_ns: u64) {
        self.idle[1].record(latency_ns);
        if self.idle[1].count() >= MAX_IDLE_READS / 2 {
            self.idle = [std::mem::take(&mut self.idle[1]), Histogram::new()];
        }
    }

    /// Returns the ratio of the medians. `None`: too few samples of one of them.
    fn slowdown(&self, now: Timestamp) -> Option<f64> {
        let mut idle = self.idle[0].clone();
        idle.merge(&self.idle[1]);
        let idle_ns = (idle.count() >= MIN_IDLE_READS).then(|| idle.quantile_ns(0.5)).flatten()?;
        let recent = self.loaded.iter().filter(|(at, _)| now.since(*at) <= RECENT_WINDOW);
        let mut recent: Vec<u64> = recent.map(|(_, latency_ns)| *latency_ns).collect();
        recent.sort_unstable();
        (recent.len() >= MIN_RECENT_READS).then(|| recent[recent.len() / 2] as f64 / idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(us: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_micros(us)
    }

    fn slot(kind: ProbeKind, at: u64, latency_ns: u64) -> ProbeSample {
        ProbeSample { kind, at_us: time(at), latency_ns, call_ns: None, error: None, during: None }
    }

    #[test]
    fn slowdown_needs_enough_idle_and_recent_reads() {
        let target: TargetName = "smb".parse().unwrap();
        let mut baselines = LatencyBaselines::default();
        let slowdown =
            |baselines: &LatencyBaselines, now| baselines.slowdowns(now).next().map(|(_, slowdown)| slowdown);
        for at in 0..19 {
            baselines.record(&target, &slot(BASELINE_KIND, at, 1_000_000), LoadContext::Idle);
            baselines.record(&target, &slot(ProbeKind::Getattr, at, 9_000), LoadContext::Idle);
        }
        for at in [20, 21, 22] {
            baselines.record(&target, &slot(BASELINE_KIND, at, 5_000_000), LoadContext::Round);
        }
        assert_eq!(slowdown(&baselines, time(30)), None, "too few reads while idle");
        baselines.record(&target, &slot(BASELINE_KIND, 19, 1_000_000), LoadContext::Idle);
        let now = slowdown(&baselines, time(30)).unwrap();
        assert!((now - 5.0).abs() < 0.03, "{now}");
        let later = time(23) + RECENT_WINDOW;
        assert_eq!(slowdown(&baselines, later), None, "reads older than a minute are not recent");
    }
}
