//! Slow times that begin at full hours, as scheduled tasks of a NAS do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longhaul_model::time::HOUR;
use longhaul_model::{Histogram, LoadContext, ProbeKind, ProbeStep, Resolution, Timestamp, midpoint_ns};

use super::cause::{FALSE_NAME_RATE, Pattern, StallCause, StallEvidence};
use super::observations::{TargetObservations, at_least, is_slow};

/// Requests of the probe from which a step of five minutes says something.
const MIN_REQUESTS: u64 = 10;
/// Number and share of slow requests from which a step is slow.
const MIN_SLOW: u64 = 3;
const MIN_SLOW_SHARE: f64 = 0.1;
/// Smallest number of slow times that begin at a full hour.
const MIN_ONSETS: u64 = 3;

/// Requests of the probe in one step.
#[derive(Default)]
struct Requests {
    all: u64,
    slow: u64,
    /// Total duration of the slow ones in seconds.
    seconds: f64,
}

/// Returns the slow times that begin at full hours; `None` if as many begin at other times.
pub(super) fn find(observations: &TargetObservations) -> Option<Pattern> {
    let steps = steps(observations);
    let slow: BTreeSet<Timestamp> =
        steps.iter().filter(|(_, requests)| requests.is_slow()).map(|(at, _)| *at).collect();
    let length = Resolution::FiveMinutes.length();
    // A slow time begins in a slow step after one that was observed and not slow.
    let may_begin: Vec<Timestamp> = steps
        .keys()
        .copied()
        .filter(|at| steps.contains_key(&(*at - length)) && !slow.contains(&(*at - length)))
        .collect();
    let is_hour = |at: &Timestamp| (*at + offset(observations)).floor(HOUR) == *at + offset(observations);
    let begun: Vec<Timestamp> = may_begin.iter().copied().filter(|at| slow.contains(at)).collect();
    let onsets: Vec<Timestamp> = begun.iter().copied().filter(is_hour).collect();
    let share = may_begin.iter().filter(|at| is_hour(at)).count() as f64 / may_begin.len().max(1) as f64;
    let (matching, examined) = (onsets.len() as u64, begun.len() as u64);
    let chance = at_least(matching, examined, share);
    (matching >= MIN_ONSETS && chance <= FALSE_NAME_RATE).then_some(())?;
    let at_onsets = onsets.iter().filter_map(|at| steps.get(at));
    let (count, seconds) =
        at_onsets.fold((0, 0.0), |(count, sum), step| (count + step.slow, sum + step.seconds));
    let typical_seconds = seconds / count.max(1) as f64;
    let evidence = StallEvidence {
        matching,
        examined,
        typical_seconds,
        chance: Some(chance),
        ..StallEvidence::default()
    };
    Some(Pattern { cause: StallCause::OnTheHour, evidence, times: onsets })
}

/// Returns the offset of local time as a length of time; only its part of an hour matters.
fn offset(observations: &TargetObservations) -> Duration {
    Duration::from_secs(u64::from(observations.utc_offset_seconds.rem_euclid(3600).cast_unsigned()))
}

/// Returns the requests of each step with enough of them. Those during rounds are left out: rounds make shares slow.
fn steps(observations: &TargetObservations) -> BTreeMap<Timestamp, Requests> {
    let mut steps: BTreeMap<Timestamp, Requests> = BTreeMap::new();
    for kind in ProbeKind::ALL {
        let is_meant = |step: &&ProbeStep| step.kind == kind && step.during == LoadContext::Idle;
        let mut all = Histogram::new();
        observations.probes.iter().filter(is_meant).for_each(|step| all.merge(&step.latency));
        let Some(median) = all.quantile_ns(0.5) else { continue };
        for step in observations.probes.iter().filter(is_meant) {
            steps.entry(step.at_us).or_default().add(&step.latency, Duration::from_nanos(median as u64));
        }
    }
    steps.retain(|_, requests| requests.all >= MIN_REQUESTS);
    steps
}

impl Requests {
    fn add(&mut self, latency: &Histogram, median: Duration) {
        let (first, counts) = latency.buckets();
        for (index, count) in (first..).zip(counts) {
            self.all += count;
            let length = Duration::from_nanos(midpoint_ns(index) as u64);
            if is_slow(length, median) {
                self.slow += count;
                self.seconds += length.as_secs_f64() * *count as f64;
            }
        }
    }

    fn is_slow(&self) -> bool {
        self.slow >= MIN_SLOW && self.slow as f64 >= MIN_SLOW_SHARE * self.all as f64
    }
}
