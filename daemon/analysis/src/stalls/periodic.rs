//! Pauses at a fixed interval. The times of slow calls are compared with those of random calls of the same runs, so that
//! calls which are made at a fixed interval themselves do not look like pauses.

use std::collections::BTreeSet;
use std::time::Duration;

use longhaul_model::Timestamp;

use super::cause::{FALSE_NAME_RATE, Pattern, StallCause, StallEvidence};
use super::observations::{RunCalls, TimedCall, median};
use super::rhythm::{self, Group, Rhythm};

/// Smallest coherence of pauses that have a name.
const MIN_COHERENCE: f64 = 0.4;
/// Smallest number of pauses, and of random calls, in a window.
const MIN_CALLS: usize = 3;
/// Smallest number of different cycles with a pause.
const MIN_CYCLES: usize = 7;
/// Number of workloads that must show the pauses: a single one may make its own rhythm.
const MIN_WORKLOADS: usize = 2;

/// Longest interval of all bands, in seconds.
const LONGEST_PERIOD: f64 = 32.0;

/// Intervals of one cause.
pub(super) struct Band {
    cause: StallCause,
    /// Shortest and longest interval in seconds.
    periods: [f64; 2],
    /// Ranges of durations of slow calls that are looked at, in milliseconds: other slow calls would hide the pauses.
    durations: [[u64; 2]; 3],
    /// Largest number of windows: those with the most random calls, which are the longest, say enough.
    windows: usize,
    /// Longest window in which the interval must be kept, and longest gap in it, in seconds.
    window: f64,
    gap: f64,
}

/// All intervals that have a name.
pub(super) const BANDS: [Band; 3] = [
    Band {
        cause: StallCause::PeriodicPulses,
        periods: [0.9, 2.5],
        durations: [[20, 500], [50, 150], [100, 300]],
        window: 300.0,
        gap: 60.0,
        windows: 12,
    },
    // A journal's timer starts with the first change after the last commit, so the interval is five seconds and a bit.
    Band {
        cause: StallCause::Commit,
        periods: [4.85, 5.6],
        durations: [[50, 4_000], [150, 4_000], [400, 4_000]],
        window: 120.0,
        gap: 30.0,
        windows: 24,
    },
    Band {
        cause: StallCause::Commit,
        periods: [29.0, 32.0],
        durations: [[150, 15_000], [400, 15_000], [1_000, 15_000]],
        window: 900.0,
        gap: 120.0,
        windows: 48,
    },
];

/// Calls of a window in which an interval can be recognized.
#[derive(Default)]
struct Window<'a> {
    slow: Vec<&'a TimedCall<'a>>,
    random: Vec<&'a TimedCall<'a>>,
}

/// Slow calls that keep an interval best.
struct Fit<'a> {
    rhythm: Rhythm,
    groups: Vec<Group>,
    pauses: usize,
    cycles: usize,
    kept: Vec<&'a TimedCall<'a>>,
}

/// Returns the pauses of a band; `None` if there are none.
pub(super) fn find(calls: &RunCalls<'_>, band: &Band) -> Option<Pattern> {
    let fits = band.durations.iter().filter_map(|range| {
        let fit = Fit::best(&windows(calls, band, range.map(Duration::from_millis)), band)?;
        let chance = fit.chance(band) * band.durations.len() as f64;
        (chance <= FALSE_NAME_RATE).then_some((fit, chance))
    });
    let (fit, chance) = fits.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let lengths = fit.kept.iter().map(|call| call.duration).collect();
    let evidence = StallEvidence {
        matching: fit.kept.len() as u64,
        examined: fit.pauses as u64,
        typical_seconds: median(lengths).unwrap_or_default().as_secs_f64(),
        period_seconds: Some(fit.rhythm.period),
        coherence: Some(fit.rhythm.coherence),
        chance: Some(chance),
        ..StallEvidence::default()
    };
    Some(Pattern { cause: band.cause, evidence, times: fit.kept.iter().map(|call| call.at).collect() })
}

impl<'a> Fit<'a> {
    /// Returns the interval of a band that fits best.
    fn best(windows: &[Window<'a>], band: &Band) -> Option<Self> {
        let groups: Vec<Group> = windows.iter().map(Window::group).collect();
        let rhythm = rhythm::best(&groups, band.periods[0]..=band.periods[1])?;
        let pauses = groups.iter().map(|group| group.marked).sum();
        let mut fit = Self { rhythm, groups: vec![], pauses, cycles: 0, kept: vec![] };
        for (window, group) in windows.iter().zip(&groups) {
            let kept = group.kept(rhythm.period);
            fit.cycles += kept.iter().map(|[_, cycle]| cycle).collect::<BTreeSet<_>>().len();
            fit.kept.extend(
                kept.iter().filter_map(|[number, _]| window.slow.get(usize::try_from(*number).ok()?)),
            );
        }
        Some(Self { groups, ..fit })
    }

    /// Returns the probability that chance alone makes such pauses; 1 if there are too few to tell. Random markings are
    /// tried only for those that could have a name.
    fn chance(&self, band: &Band) -> f64 {
        let workloads: BTreeSet<&str> = self.kept.iter().map(|call| call.workload).collect();
        let is_possible = self.rhythm.coherence >= MIN_COHERENCE
            && self.cycles >= MIN_CYCLES
            && workloads.len() >= MIN_WORKLOADS
            && !self.rhythm.is_fraction(&self.groups, LONGEST_PERIOD);
        if is_possible { self.rhythm.chance(&self.groups, band.periods[0]..=band.periods[1]) } else { 1.0 }
    }
}

/// Returns the windows of a band with the most pauses.
fn windows<'a>(calls: &'a RunCalls<'a>, band: &Band, range: [Duration; 2]) -> Vec<Window<'a>> {
    let is_meant = |call: &&TimedCall<'_>| (range[0]..=range[1]).contains(&call.duration);
    let slow = calls.slow.iter().filter(is_meant).map(|call| (call, true));
    let mut all: Vec<(&TimedCall<'_>, bool)> =
        slow.chain(calls.random.iter().map(|call| (call, false))).collect();
    all.sort_by_key(|(call, _)| call.at);
    let mut windows: Vec<Window<'_>> = vec![];
    let (mut origin, mut last) = (Timestamp::MIN, Timestamp::MIN);
    for (call, is_slow) in all {
        if call.at.seconds_since(origin) > band.window || call.at.seconds_since(last) > band.gap {
            origin = call.at;
            windows.push(Window::default());
        }
        last = call.at;
        if let Some(window) = windows.last_mut() {
            match is_slow {
                true => add_apart(&mut window.slow, call, band.periods[0] / 4.0),
                false => window.random.push(call),
            }
        }
    }
    windows.retain(|window| window.slow.len() >= MIN_CALLS && window.random.len() >= MIN_CALLS);
    windows.sort_by_key(|window| std::cmp::Reverse(window.random.len()));
    windows.truncate(band.windows);
    windows
}

/// Adds a call. Of several calls within some seconds, which may all wait for one pause, the longest stays.
fn add_apart<'a>(calls: &mut Vec<&'a TimedCall<'a>>, call: &'a TimedCall<'a>, seconds: f64) {
    match calls.last_mut() {
        Some(last) if call.at.seconds_since(last.at) < seconds => {
            if call.duration > last.duration {
                *last = call;
            }
        }
        _ => calls.push(call),
    }
}

impl Window<'_> {
    fn group(&self) -> Group {
        let all = self.slow.iter().chain(&self.random);
        let origin = all.clone().map(|call| call.at).min().unwrap_or_default();
        Group { times: all.map(|call| call.at.seconds_since(origin)).collect(), marked: self.slow.len() }
    }
}
