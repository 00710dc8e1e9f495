//! Samples in steps of time: what is kept of them, how finely, and for how long.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Covers, ProbeKind, Source, TargetName, Traffic};
use crate::stats::Histogram;

/// An answer that takes longer counts as lost as well, in nanoseconds.
pub const LOST_NS: u64 = 30_000_000_000;
/// A look in which others moved more bytes a second than this was one in which they used the share.
const BUSY_BYTES_PER_SECOND: f64 = 1000.0;

/// So many steps of a window are read in a few milliseconds.
const MOST_STEPS: i64 = 400;

/// How finely samples are kept. The three steps are SmokePing's: 300 s for 100 days, an hour for 400, half a day for 1200.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Five minutes.
    FiveMinutes,
    /// An hour.
    Hour,
    /// Twelve hours.
    HalfDay,
}

impl Step {
    /// Every step, finest first.
    pub const ALL: [Step; 3] = [Self::FiveMinutes, Self::Hour, Self::HalfDay];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5min",
            Self::Hour => "hour",
            Self::HalfDay => "12h",
        }
    }

    /// The step with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }

    /// How long it is, in seconds.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::FiveMinutes => 300,
            Self::Hour => 3_600,
            Self::HalfDay => 43_200,
        }
    }

    /// For how many days it is kept.
    pub const fn days_kept(self) -> i64 {
        match self {
            Self::FiveMinutes => 100,
            Self::Hour => 400,
            Self::HalfDay => 1_200,
        }
    }

    /// The begin of the step in which a moment lies, both in microseconds since 1970 UTC.
    pub const fn begin(self, at_us: i64) -> i64 {
        at_us - at_us.rem_euclid(self.seconds() * 1_000_000)
    }

    /// The finest step in which a window of so many seconds takes at most some hundred steps and is still kept: percentiles
    /// are the same in every step, and only the edges of the window are rounded to it.
    pub fn for_window(seconds: i64) -> Self {
        Self::for_past_window(seconds, seconds)
    }

    /// As [`Step::for_window`], for a window that began so many seconds ago: fine steps of long ago are not kept.
    pub fn for_past_window(seconds: i64, ago_seconds: i64) -> Self {
        let fits =
            |step: &Step| seconds / step.seconds() <= MOST_STEPS && ago_seconds <= step.days_kept() * 86_400;
        Self::ALL.into_iter().find(fits).unwrap_or(Self::HalfDay)
    }
}

/// Whether rounds of ours went on while something was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// None did.
    Calm,
    /// A round did, on this target or on another.
    Round,
}

impl Beside {
    /// Both.
    pub const ALL: [Beside; 2] = [Self::Calm, Self::Round];

    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Round => "round",
        }
    }

    /// The one with this stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|beside| beside.name() == name)
    }
}

/// Answers of the probe in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeStep {
    /// The target.
    pub target: TargetName,
    /// The begin of the step, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// What was asked.
    pub kind: ProbeKind,
    /// What else went on.
    pub beside: Beside,
    /// From the intended instants until the answers, failed ones left out.
    pub latency: Histogram,
    /// Slots that were answered with an error.
    pub errors: u64,
    /// Slots that were not answered within [`LOST_NS`]; those that were answered later are in `latency` too.
    pub lost: u64,
}

impl ProbeStep {
    /// A step without an answer.
    pub fn new(target: TargetName, at_us: i64, kind: ProbeKind, beside: Beside) -> Self {
        Self { target, at_us, kind, beside, latency: Histogram::new(), errors: 0, lost: 0 }
    }

    /// Takes in what was found in another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.errors += other.errors;
        self.lost += other.lost;
    }
}

/// What one source counted for one target, or for the machine, in one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrafficStep {
    /// The target; `None`: the machine.
    pub target: Option<TargetName>,
    /// The begin of the step, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// The sum of what was counted, over as many seconds as were looked at.
    pub traffic: Traffic,
    /// Seconds of looks in which others than longhaul moved data.
    pub busy_seconds: f64,
    /// The most bytes a second in either direction within one look; `None`: the source counts no bytes.
    pub peak: Option<f64>,
}

impl TrafficStep {
    /// One look.
    pub fn of(target: Option<TargetName>, at_us: i64, traffic: Traffic) -> Self {
        let rate = |bytes: u64| if traffic.seconds > 0.0 { bytes as f64 / traffic.seconds } else { 0.0 };
        let user = plus(traffic.user_read, traffic.user_written).map(rate);
        let all =
            plus(plus(traffic.user_read, traffic.user_written), plus(traffic.own_read, traffic.own_written));
        let is_busy = user.is_some_and(|rate| rate > BUSY_BYTES_PER_SECOND);
        let busy_seconds = if is_busy { traffic.seconds } else { 0.0 };
        Self { target, at_us, busy_seconds, peak: all.map(rate), traffic }
    }

    /// Takes in what was found in another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        let (mine, more) = (&mut self.traffic, &other.traffic);
        mine.seconds += more.seconds;
        for (sum, value) in [
            (&mut mine.user_read, more.user_read),
            (&mut mine.user_written, more.user_written),
            (&mut mine.own_read, more.own_read),
            (&mut mine.own_written, more.own_written),
            (&mut mine.requests, more.requests),
            (&mut mine.retransmissions, more.retransmissions),
            (&mut mine.errors, more.errors),
            (&mut mine.reconnects, more.reconnects),
        ] {
            *sum = plus(*sum, value);
        }
        mine.round_trips = match (mine.round_trips, more.round_trips) {
            (Some((count, time)), Some((more_count, more_time))) => {
                Some((count + more_count, time + more_time))
            }
            (one, other) => one.or(other),
        };
        mine.packet_round_trip_us = mine.packet_round_trip_us.max(more.packet_round_trip_us);
        self.busy_seconds += other.busy_seconds;
        self.peak = larger(self.peak, other.peak);
    }

    /// What is merged into one: source and what it covers.
    pub fn place(&self) -> (Option<TargetName>, Source, Covers) {
        (self.target.clone(), self.traffic.source.clone(), self.traffic.covers)
    }
}

/// The machine in one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct MachineStep {
    /// The begin of the step, in microseconds since 1970 UTC.
    pub at_us: i64,
    /// Looks at the machine.
    pub looks: u64,
    /// The mean share of the processors' time that was used, from 0 to 1.
    pub processor_share: Option<f64>,
    /// The most of it between two looks.
    pub processor_peak: Option<f64>,
    /// The least bytes of memory that were not in use.
    pub memory_least: Option<u64>,
    /// The highest one-minute load average.
    pub load_most: Option<f64>,
    /// The weakest radio signal, in dBm.
    pub signal_least: Option<f64>,
    /// What the probes themselves cost: processor time in nanoseconds.
    pub probe_ns: u64,
}

impl MachineStep {
    /// Takes in what was found in another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        let (mine, more) = (self.looks as f64, other.looks as f64);
        self.processor_share = match (self.processor_share, other.processor_share) {
            (Some(one), Some(another)) => Some((one * mine + another * more) / (mine + more).max(1.0)),
            (one, another) => one.or(another),
        };
        self.looks += other.looks;
        self.probe_ns += other.probe_ns;
        self.processor_peak = larger(self.processor_peak, other.processor_peak);
        self.memory_least = self.memory_least.into_iter().chain(other.memory_least).min();
        self.load_most = larger(self.load_most, other.load_most);
        self.signal_least = larger(self.signal_least.map(|x| -x), other.signal_least.map(|x| -x)).map(|x| -x);
    }
}

/// A time in which a target kept somebody waiting: one line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stall {
    /// The target.
    pub target: TargetName,
    /// What it was first known as: its first begin, in microseconds since 1970 UTC. It never changes.
    pub opened_us: i64,
    /// When it began, as far as is known now.
    pub started_us: i64,
    /// When it ended; `None`: it goes on.
    pub ended_us: Option<i64>,
    /// Whether longhaul ended before it did: it may have gone on for longer.
    pub is_cut: bool,
    /// The call that waited for longest.
    pub operation: String,
    /// Calls that waited, or failed.
    pub calls: u64,
    /// The longest wait of one call, in nanoseconds.
    pub longest_ns: u64,
    /// How often which error was the answer.
    pub errors: BTreeMap<String, u64>,
    /// Who waited: the probe, or workloads by name.
    pub who: Vec<String>,
    /// What else went on.
    pub beside: Option<String>,
}

fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_lies_in_the_step_that_began_last() {
        for step in Step::ALL {
            for at_us in [0, 1, 1_699_999_999_999_999, -1] {
                let begin = step.begin(at_us);
                assert!(begin <= at_us && at_us - begin < step.seconds() * 1_000_000);
                assert_eq!(begin % (step.seconds() * 1_000_000), 0);
            }
            assert_eq!(Step::from_name(step.name()), Some(step));
        }
    }

    #[test]
    fn a_long_window_is_read_in_long_steps() {
        const DAY: i64 = 86_400;
        assert_eq!(Step::for_window(DAY), Step::FiveMinutes);
        assert_eq!(Step::for_window(7 * DAY), Step::Hour);
        assert_eq!(Step::for_window(56 * DAY), Step::HalfDay);
        assert_eq!(Step::for_window(365 * DAY), Step::HalfDay);
        assert_eq!(Step::for_window(3000 * DAY), Step::HalfDay);
        assert_eq!(Step::for_past_window(DAY, 99 * DAY), Step::FiveMinutes);
        assert_eq!(Step::for_past_window(DAY, 101 * DAY), Step::Hour, "five minutes are kept for 100 days");
        assert_eq!(Step::for_past_window(DAY, 401 * DAY), Step::HalfDay);
    }

    #[test]
    fn what_is_not_counted_stays_unknown_when_steps_are_merged() {
        let traffic = |read| Traffic {
            source: Source::Mountstats,
            covers: Covers::Mount,
            seconds: 10.0,
            user_read: read,
            user_written: None,
            own_read: None,
            own_written: None,
            requests: Some(2),
            retransmissions: None,
            errors: None,
            reconnects: None,
            round_trips: Some((2, 900)),
            packet_round_trip_us: None,
        };
        let mut step = TrafficStep::of(None, 0, traffic(Some(50_000)));
        step.merge(&TrafficStep::of(None, 0, traffic(Some(90_000))));
        step.merge(&TrafficStep::of(None, 0, traffic(None)));
        let merged = &step.traffic;
        assert_eq!((merged.user_read, merged.user_written, merged.requests), (Some(140_000), None, Some(6)));
        assert_eq!((merged.round_trips, merged.seconds, step.busy_seconds), (Some((6, 2700)), 30.0, 20.0));
        assert_eq!(step.peak, Some(9000.0));
    }
}
