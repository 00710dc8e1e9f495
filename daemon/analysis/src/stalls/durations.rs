//! Waits of one typical length: TCP timers make the same wait again and again. Compared with waits that are a little
//! shorter or longer, of which chance makes as many.

use std::time::Duration;

use longhaul_model::{Histogram, ProbeKind, Timestamp, midpoint_ns};

use super::cause::{FALSE_NAME_RATE, Pattern, StallCause, StallEvidence};
use super::observations::{RunCalls, TargetObservations, TimedCall, at_least, is_slow, median};

/// Baseline latency up to which a wait of 40 ms says something: beyond, it is a few round trips or a disk.
const MAX_BASELINE: Duration = Duration::from_millis(8);

/// Typical length of one cause, in milliseconds above the usual duration.
struct Timer {
    cause: StallCause,
    /// Waits that the timer makes.
    band: [f64; 2],
    /// Band with the waits around it.
    around: [f64; 2],
    /// Share of the waits around that may lie in the band by chance. A smooth distribution has about half of it.
    share: f64,
    /// Smallest number of waits in the band.
    at_least: u64,
}

/// Linux waits 200 ms and a round trip until it sends a packet again, and acknowledges after 40 ms at the latest if
/// nothing goes back earlier. Both end at a tick of the kernel's clock, up to 10 ms later.
const TIMERS: [Timer; 2] = [
    Timer {
        cause: StallCause::RetransmissionTimeout,
        band: [195.0, 240.0],
        around: [130.0, 330.0],
        share: 0.4,
        at_least: 6,
    },
    Timer {
        cause: StallCause::DelayedAck,
        band: [38.0, 52.0],
        around: [26.0, 74.0],
        share: 0.55,
        at_least: 10,
    },
];

/// Returns the waits that TCP's timers made.
pub(super) fn find(observations: &TargetObservations, calls: &RunCalls<'_>) -> Vec<Pattern> {
    let retransmits = retransmits(observations);
    let waits = waits(observations, calls);
    let found = TIMERS.iter().filter_map(|timer| {
        let is_possible = match timer.cause {
            StallCause::RetransmissionTimeout => retransmits != Some(0),
            _ => usual_latency(observations, calls) <= MAX_BASELINE,
        };
        let (evidence, times) = is_possible.then(|| timer.evidence(&waits))??;
        let retransmits = retransmits.filter(|_| timer.cause == StallCause::RetransmissionTimeout);
        Some(Pattern { cause: timer.cause, evidence: StallEvidence { retransmits, ..evidence }, times })
    });
    found.collect()
}

/// One wait, or several of the same length.
struct Wait<'a> {
    milliseconds: f64,
    count: u64,
    call: Option<&'a TimedCall<'a>>,
}

impl Timer {
    fn evidence(&self, waits: &[Wait<'_>]) -> Option<(StallEvidence, Vec<Timestamp>)> {
        let within = |range: [f64; 2]| {
            move |wait: &&Wait<'_>| range[0] <= wait.milliseconds && wait.milliseconds < range[1]
        };
        let count = |range| waits.iter().filter(within(range)).map(|wait| wait.count).sum::<u64>();
        let (matching, examined) = (count(self.band), count(self.around));
        let chance = at_least(matching, examined, self.share);
        (matching >= self.at_least && chance <= FALSE_NAME_RATE).then_some(())?;
        let lengths = waits.iter().filter(within(self.band)).flat_map(|wait| {
            std::iter::repeat_n(
                Duration::from_secs_f64(wait.milliseconds / 1e3),
                wait.count.min(1000) as usize,
            )
        });
        let typical_seconds = median(lengths.collect())?.as_secs_f64();
        let evidence = StallEvidence {
            matching,
            examined,
            typical_seconds,
            chance: Some(chance),
            ..StallEvidence::default()
        };
        let calls = waits.iter().filter(within(self.band)).filter_map(|wait| wait.call);
        Some((evidence, calls.map(|call| call.at).collect()))
    }
}

/// Returns all waits: of runs, one for calls that overlap, and of the probe.
fn waits<'a>(observations: &TargetObservations, calls: &'a RunCalls<'a>) -> Vec<Wait<'a>> {
    let mut waits: Vec<Wait<'a>> = vec![];
    for call in &calls.slow {
        let milliseconds = call.excess.as_secs_f64() * 1e3;
        let before = waits.last().and_then(|wait| wait.call);
        match before.filter(|before| call.at < before.at + before.duration) {
            Some(before) if call.duration <= before.duration => {}
            Some(_) => {
                waits.pop();
                waits.push(Wait { milliseconds, count: 1, call: Some(call) });
            }
            None => waits.push(Wait { milliseconds, count: 1, call: Some(call) }),
        }
    }
    for kind in ProbeKind::ALL {
        waits.extend(probe_waits(&probe_histogram(observations, kind)));
    }
    waits
}

fn probe_histogram(observations: &TargetObservations, kind: ProbeKind) -> Histogram {
    observations.probes.iter().filter(|step| step.kind == kind).fold(Histogram::new(), |mut all, step| {
        all.merge(&step.latency);
        all
    })
}

fn probe_waits<'a>(latency: &Histogram) -> Vec<Wait<'a>> {
    let Some(median) = latency.quantile_ns(0.5) else { return vec![] };
    let (first, counts) = latency.buckets();
    let waits = (first..).zip(counts).filter(|(_, count)| **count > 0).filter_map(|(index, count)| {
        let length = midpoint_ns(index);
        let is_wait = is_slow(Duration::from_nanos(length as u64), Duration::from_nanos(median as u64));
        is_wait.then(|| Wait { milliseconds: (length - median) / 1e6, count: *count, call: None })
    });
    waits.collect()
}

/// Returns the usual latency of a request to the server: the slowest of the medians of runs and the probe.
fn usual_latency(observations: &TargetObservations, calls: &RunCalls<'_>) -> Duration {
    let probe = ProbeKind::ALL.into_iter().filter_map(|kind| {
        let median = probe_histogram(observations, kind).quantile_ns(0.5)?;
        Some(Duration::from_nanos(median as u64))
    });
    probe.chain([calls.median]).max().unwrap_or_default()
}

/// Returns how much was retransmitted in the window; `None` if this was not counted.
fn retransmits(observations: &TargetObservations) -> Option<u64> {
    observations.traffic.iter().filter_map(|step| step.traffic.retransmits).reduce(|one, other| one + other)
}
