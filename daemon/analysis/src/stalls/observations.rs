//! Stored observations of one target, in the form in which the causes are looked for.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::stored::{StallRecords, StoredCalls};
use longhaul_model::{
    Call, Event, KeepReason, Operation, ProbeStep, Stall, TargetName, Timestamp, TrafficStep,
};

/// Duration by which a call must exceed the median of its operation to be slow.
const MIN_EXCESS: Duration = Duration::from_millis(20);
/// Multiple of the median of its operation that a slow call takes at least.
const MIN_RATIO: u32 = 3;

/// Everything that is stored about a target in a window of time and tells about its slow calls.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetObservations {
    /// Target that was observed.
    pub target: TargetName,
    /// Individually stored calls of its runs, phase by phase.
    pub calls: Vec<StoredCalls>,
    /// Results of the latency probe, in steps of five minutes.
    pub probes: Vec<ProbeStep>,
    /// Traffic of the target, in steps of five minutes.
    pub traffic: Vec<TrafficStep>,
    /// Stalls, oldest first.
    pub stalls: Vec<Stall>,
    /// Events of the target and of the machine.
    pub events: Vec<Event>,
    /// Offset of local time from UTC, in seconds: scheduled tasks begin at full hours of local time.
    pub utc_offset_seconds: i32,
}

/// One call of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimedCall<'a> {
    /// Start of the call.
    pub at: Timestamp,
    /// Duration of the call.
    pub duration: Duration,
    /// Time by which the call took longer than the median of its operation.
    pub excess: Duration,
    /// Workload that made the call.
    pub workload: &'a str,
}

/// Calls of all runs: the slow ones, and a random sample of all, which tells when calls were made at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RunCalls<'a> {
    /// Slow calls by start.
    pub slow: Vec<TimedCall<'a>>,
    /// Random calls by start, without those that are among the slowest.
    pub random: Vec<TimedCall<'a>>,
    /// Median duration of the random calls.
    pub median: Duration,
}

impl TargetObservations {
    /// Creates observations without any.
    pub fn new(target: TargetName) -> Self {
        Self {
            target,
            calls: vec![],
            probes: vec![],
            traffic: vec![],
            stalls: vec![],
            events: vec![],
            utc_offset_seconds: 0,
        }
    }

    /// Returns the observations of one target; events of the machine belong to all.
    pub fn of(target: &TargetName, records: &StallRecords) -> Self {
        let is_own = |name: &TargetName| name == target;
        Self {
            calls: records.calls.iter().filter(|phase| is_own(&phase.target)).cloned().collect(),
            probes: records.probes.iter().filter(|step| is_own(&step.target)).cloned().collect(),
            traffic: records
                .traffic
                .iter()
                .filter(|step| step.target.as_ref().is_some_and(is_own))
                .cloned()
                .collect(),
            stalls: records.stalls.iter().filter(|stall| is_own(&stall.target)).cloned().collect(),
            events: records
                .events
                .iter()
                .filter(|event| event.target.as_ref().is_none_or(is_own))
                .cloned()
                .collect(),
            ..Self::new(target.clone())
        }
    }

    /// Returns the calls of all runs, without those that failed.
    pub(super) fn run_calls(&self) -> RunCalls<'_> {
        let medians = self.medians();
        let (mut slow, mut random, mut durations) = (vec![], vec![], vec![]);
        for phase in &self.calls {
            for call in phase.calls.iter().filter(|call| is_answered_request(call)) {
                // An operation without a random call is rare; nothing says how long it usually takes.
                let Some(median) = medians.get(&(phase.workload.as_str(), call.operation)) else { continue };
                let duration = Duration::from_nanos(call.duration_ns);
                let timed = TimedCall {
                    at: phase.began + Duration::from_nanos(call.offset_ns),
                    duration,
                    excess: duration.saturating_sub(*median),
                    workload: &phase.workload,
                };
                match call.keep_reason {
                    KeepReason::Sample => {
                        durations.push(duration);
                        random.push(timed);
                    }
                    KeepReason::Slowest if is_slow(duration, *median) => slow.push(timed),
                    KeepReason::Slowest | KeepReason::Failed => {}
                }
            }
        }
        slow.sort_by_key(|call| call.at);
        random.sort_by_key(|call| call.at);
        RunCalls { slow, random, median: median(durations).unwrap_or_default() }
    }

    /// Returns the median duration of each operation of each workload, from the random calls.
    fn medians(&self) -> BTreeMap<(&str, Operation), Duration> {
        let mut durations: BTreeMap<(&str, Operation), Vec<Duration>> = BTreeMap::new();
        for phase in &self.calls {
            let is_random =
                |call: &&Call| call.keep_reason == KeepReason::Sample && is_answered_request(call);
            for call in phase.calls.iter().filter(is_random) {
                let all = durations.entry((phase.workload.as_str(), call.operation)).or_default();
                all.push(Duration::from_nanos(call.duration_ns));
            }
        }
        durations.into_iter().filter_map(|(key, all)| Some((key, median(all)?))).collect()
    }
}

/// Returns whether a call was answered by a server. A failed one says nothing about usual times, and decoding an image asks none.
fn is_answered_request(call: &Call) -> bool {
    !call.is_error && call.operation != Operation::Decode
}

/// Returns whether a call took much longer than calls of its kind do.
pub(super) fn is_slow(duration: Duration, median: Duration) -> bool {
    duration >= median * MIN_RATIO && duration >= median + MIN_EXCESS
}

/// Returns the median of some durations; `None` without any.
pub(super) fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied()
}

/// Returns the probability of at least `count` of `trials` if each has the probability `chance`.
pub(super) fn at_least(count: u64, trials: u64, chance: f64) -> f64 {
    match count {
        0 => 1.0,
        _ if chance >= 1.0 => 1.0,
        _ => statrs::function::beta::beta_reg(count as f64, (trials - count + 1) as f64, chance.max(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{CacheState, Scale};

    #[test]
    fn binomial_tail_matches_exact_values() {
        assert!((at_least(3, 3, 0.1) - 1e-3).abs() < 1e-12);
        assert!((at_least(1, 4, 0.5) - 0.9375).abs() < 1e-12);
        assert_eq!((at_least(0, 5, 0.5), at_least(2, 5, 1.0)), (1.0, 1.0));
    }

    #[test]
    fn failed_calls_do_not_make_others_slow() {
        let call = |milliseconds: u64, is_error, keep_reason| Call {
            operation: Operation::Open,
            offset_ns: 0,
            duration_ns: milliseconds * 1_000_000,
            is_error,
            keep_reason,
        };
        let answered = [call(100, false, KeepReason::Sample), call(120, false, KeepReason::Slowest)];
        let phase = StoredCalls {
            run: 1,
            target: "nas".parse().unwrap(),
            protocol: None,
            workload: "folder-index".to_owned(),
            scale: Scale::Quick,
            phase: "walk".to_owned(),
            cache: CacheState::Cold,
            began: Timestamp::UNIX_EPOCH,
            calls: [&[call(1, true, KeepReason::Sample); 3][..], &answered].concat(),
        };
        let observed =
            TargetObservations { calls: vec![phase], ..TargetObservations::new("nas".parse().unwrap()) };
        assert_eq!(observed.run_calls().slow, []);
    }

    #[test]
    fn slow_calls_exceed_three_medians_and_20_ms() {
        let ms = Duration::from_millis;
        assert!(is_slow(ms(85), ms(5)) && is_slow(ms(21), ms(1)));
        assert!(!is_slow(ms(85), ms(40)) && !is_slow(ms(20), ms(1)));
    }
}
