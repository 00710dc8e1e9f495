//! Samples aggregated into time steps: their contents, resolution and retention.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::time::{DAY, Timestamp};
use crate::{CounterScope, CounterSource, Histogram, ProbeKind, TargetName, Traffic};

/// Latency in nanoseconds above which a probe request also counts as a timeout.
pub const PROBE_TIMEOUT_NS: u64 = 30_000_000_000;
/// Traffic of programs other than longhaul, in bytes per second, above which an observation counts as busy.
const BUSY_BYTES_PER_SECOND: f64 = 1000.0;

/// Maximum number of steps in a window. This many are read in a few milliseconds.
const MAX_STEPS: u64 = 400;

/// Resolution of stored samples. The three steps are those of SmokePing: 300 s for 100 days, an hour for 400,
/// half a day for 1200.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Resolution {
    /// Step of five minutes.
    #[strum(serialize = "5min")]
    FiveMinutes,
    /// Step of one hour.
    Hour,
    /// Step of twelve hours.
    #[strum(serialize = "12h")]
    HalfDay,
}

impl Resolution {
    /// Returns the length of the step.
    pub const fn length(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_mins(5),
            Self::Hour => Duration::from_hours(1),
            Self::HalfDay => Duration::from_hours(12),
        }
    }

    /// Returns the number of days for which samples with this step are stored.
    pub const fn days_kept(self) -> u32 {
        match self {
            Self::FiveMinutes => 100,
            Self::Hour => 400,
            Self::HalfDay => 1_200,
        }
    }

    /// Returns the start of the step that contains a time.
    pub fn start(self, at: Timestamp) -> Timestamp {
        at.floor(self.length())
    }

    /// Returns the finest step that divides a window of this length into at most 400 steps and is still
    /// stored. Percentiles are the same at every step; only the edges of the window are rounded to it.
    pub fn for_window(length: Duration) -> Self {
        Self::for_past_window(length, length)
    }

    /// Returns the same as [`Resolution::for_window`], for a window that started `age` ago: old samples are not
    /// stored in fine steps.
    pub fn for_past_window(length: Duration, age: Duration) -> Self {
        let fits = |step: &Resolution| {
            let steps = length.as_secs() / step.length().as_secs();
            steps <= MAX_STEPS && age.as_secs() <= (step.days_kept() * DAY).as_secs()
        };
        Self::ALL.into_iter().find(fits).unwrap_or(Self::HalfDay)
    }
}

/// Load from longhaul's own rounds at the time of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LoadContext {
    /// No round was running.
    Idle,
    /// A round was running, on this target or on another.
    Round,
}

/// Latency probe results of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeStep {
    /// Target that was probed.
    pub target: TargetName,
    /// The start of the step, in microseconds since 1970 UTC.
    pub at_us: Timestamp,
    /// Kind of request.
    pub kind: ProbeKind,
    /// Load from longhaul's own rounds at that time.
    pub during: LoadContext,
    /// Latencies from the scheduled times to the answers, without failed requests.
    pub latency: Histogram,
    /// Number of slots whose request failed.
    pub errors: u64,
    /// Number of slots that were not answered within [`PROBE_TIMEOUT_NS`]. Those that were answered later are
    /// in `latency` too.
    pub timeouts: u64,
}

impl ProbeStep {
    /// Returns a step without results.
    pub fn new(target: TargetName, at: Timestamp, kind: ProbeKind, context: LoadContext) -> Self {
        Self { target, at_us: at, kind, during: context, latency: Histogram::new(), errors: 0, timeouts: 0 }
    }

    /// Adds the values of another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.errors += other.errors;
        self.timeouts += other.timeouts;
    }
}

/// Traffic of one source in one step, for one target or for the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrafficStep {
    /// Target of the traffic; `None` for the machine.
    pub target: Option<TargetName>,
    /// The start of the step, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub at_us: Timestamp,
    /// Total traffic of the step; its `seconds` are the seconds that were observed.
    pub traffic: Traffic,
    /// Observed seconds in which programs other than longhaul moved data.
    pub busy_seconds: f64,
    /// Highest traffic of one observation in bytes per second, received and sent together; `None` if the
    /// source counts no bytes.
    pub peak_bytes_per_second: Option<f64>,
}

impl TrafficStep {
    /// Returns a step with one observation.
    pub fn new(target: Option<TargetName>, at: Timestamp, traffic: Traffic) -> Self {
        let rate = |bytes: u64| if traffic.seconds > 0.0 { bytes as f64 / traffic.seconds } else { 0.0 };
        let user = sum_known(traffic.user_read, traffic.user_written).map(rate);
        let all = sum_known(
            sum_known(traffic.user_read, traffic.user_written),
            sum_known(traffic.longhaul_read, traffic.longhaul_written),
        );
        let is_busy = user.is_some_and(|rate| rate > BUSY_BYTES_PER_SECOND);
        let busy_seconds = if is_busy { traffic.seconds } else { 0.0 };
        Self { target, at_us: at, busy_seconds, peak_bytes_per_second: all.map(rate), traffic }
    }

    /// Adds the values of another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        let (mine, more) = (&mut self.traffic, &other.traffic);
        mine.seconds += more.seconds;
        for (sum, value) in [
            (&mut mine.user_read, more.user_read),
            (&mut mine.user_written, more.user_written),
            (&mut mine.longhaul_read, more.longhaul_read),
            (&mut mine.longhaul_written, more.longhaul_written),
            (&mut mine.requests, more.requests),
            (&mut mine.retransmits, more.retransmits),
            (&mut mine.errors, more.errors),
            (&mut mine.reconnects, more.reconnects),
        ] {
            *sum = sum_known(*sum, value);
        }
        mine.round_trips = match (mine.round_trips, more.round_trips) {
            (Some((count, time)), Some((more_count, more_time))) => {
                Some((count + more_count, time + more_time))
            }
            (one, other) => one.or(other),
        };
        // The round-trip time is a current value, not a counter: a sum would have no meaning.
        mine.tcp_rtt_us = mine.tcp_rtt_us.max(more.tcp_rtt_us);
        self.busy_seconds += other.busy_seconds;
        self.peak_bytes_per_second = max_known(self.peak_bytes_per_second, other.peak_bytes_per_second);
    }

    /// Returns the key by which steps are merged: target, source and scope.
    pub fn key(&self) -> (Option<TargetName>, CounterSource, CounterScope) {
        (self.target.clone(), self.traffic.source.clone(), self.traffic.scope)
    }
}

/// State of the machine in one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct MachineStep {
    /// The start of the step, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub at_us: Timestamp,
    /// Number of observations of the machine.
    pub observations: u64,
    /// Mean share of the processors' time that was used, from 0 to 1.
    pub processor_share: Option<f64>,
    /// Highest share of the processors' time that was used between two observations, from 0 to 1.
    pub processor_share_max: Option<f64>,
    /// Lowest available memory, in bytes.
    pub memory_available_min: Option<u64>,
    /// Highest one-minute load average.
    pub load_average_max: Option<f64>,
    /// Weakest radio signal, in dBm.
    pub signal_dbm_min: Option<f64>,
    /// CPU time that the latency probes used, in nanoseconds.
    pub probe_cpu_ns: u64,
}

impl MachineStep {
    /// Adds the values of another part of the same step.
    pub fn merge(&mut self, other: &Self) {
        let (mine, more) = (self.observations as f64, other.observations as f64);
        self.processor_share = match (self.processor_share, other.processor_share) {
            (Some(one), Some(another)) => Some((one * mine + another * more) / (mine + more).max(1.0)),
            (one, another) => one.or(another),
        };
        self.observations += other.observations;
        self.probe_cpu_ns += other.probe_cpu_ns;
        self.processor_share_max = max_known(self.processor_share_max, other.processor_share_max);
        self.memory_available_min =
            self.memory_available_min.into_iter().chain(other.memory_available_min).min();
        self.load_average_max = max_known(self.load_average_max, other.load_average_max);
        self.signal_dbm_min =
            max_known(self.signal_dbm_min.map(|x| -x), other.signal_dbm_min.map(|x| -x)).map(|x| -x);
    }
}

/// Stall: a period in which a target kept operations waiting. One entry of the stall log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stall {
    /// Target that stalled.
    pub target: TargetName,
    /// Start of the stall as first recorded, in microseconds since 1970 UTC. It never changes.
    #[schema(value_type = i64)]
    pub opened_us: Timestamp,
    /// Start of the stall as known now, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub started_us: Timestamp,
    /// End of the stall, in microseconds since 1970 UTC; `None` while the stall continues.
    #[schema(value_type = Option<i64>)]
    pub ended_us: Option<Timestamp>,
    /// True if longhaul stopped before the stall ended: the stall may have lasted longer.
    pub is_truncated: bool,
    /// Operation that waited longest.
    pub operation: String,
    /// Number of calls that waited or failed.
    pub calls: u64,
    /// Longest wait of one call, in nanoseconds.
    pub longest_ns: u64,
    /// Number of errors, by error name.
    pub errors: BTreeMap<String, u64>,
    /// Sources that observed the stall: the latency probe, or workloads by name.
    pub sources: Vec<String>,
    /// Activity of longhaul during the stall, such as `a round`; `None` if there was none.
    pub during: Option<String>,
}

impl Stall {
    /// Returns a stall that continues, without any calls.
    pub fn new(target: TargetName, started: Timestamp, operation: &str) -> Self {
        Self {
            target,
            opened_us: started,
            started_us: started,
            ended_us: None,
            is_truncated: false,
            operation: operation.to_owned(),
            calls: 0,
            longest_ns: 0,
            errors: BTreeMap::new(),
            sources: vec![],
            during: None,
        }
    }
}

/// Returns the number of seconds within a window that are covered by at least one stall. An ongoing stall counts until the
/// end of the window.
pub fn stalled_seconds<'a>(stalls: impl IntoIterator<Item = &'a Stall>, window: Range<Timestamp>) -> f64 {
    let clip = |stall: &Stall| {
        let end = stall.ended_us.unwrap_or(window.end).min(window.end);
        (stall.started_us.max(window.start), end)
    };
    let mut intervals: Vec<(Timestamp, Timestamp)> =
        stalls.into_iter().map(clip).filter(|(from, to)| from < to).collect();
    intervals.sort_unstable();
    // Overlapping stalls are counted once: only the part after the end of all earlier stalls is added.
    let mut covered_until = Timestamp::MIN;
    let mut sum = Duration::ZERO;
    for (from, to) in intervals {
        sum += to.since(from.max(covered_until));
        covered_until = covered_until.max(to);
    }
    sum.as_micros() as f64 / 1e6
}

/// Returns the sum of two counts, of which one or both may be unknown.
pub(crate) fn sum_known(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn max_known(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

stored_names! { Resolution LoadContext }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_the_last_started_step() {
        for step in Resolution::ALL {
            for at in [0, 1, 1_699_999_999_999_999, -1].map(Timestamp::from_us) {
                let begin = step.start(at);
                assert!(begin <= at && at.since(begin) < step.length());
                assert_eq!(begin.as_us() % step.length().as_micros() as i64, 0);
            }
            assert_eq!(Resolution::from_name(step.name()), Some(step));
        }
    }

    #[test]
    fn a_long_window_is_read_in_long_steps() {
        assert_eq!(Resolution::for_window(DAY), Resolution::FiveMinutes);
        assert_eq!(Resolution::for_window(7 * DAY), Resolution::Hour);
        assert_eq!(Resolution::for_window(56 * DAY), Resolution::HalfDay);
        assert_eq!(Resolution::for_window(365 * DAY), Resolution::HalfDay);
        assert_eq!(Resolution::for_window(3000 * DAY), Resolution::HalfDay);
        assert_eq!(Resolution::for_past_window(DAY, 99 * DAY), Resolution::FiveMinutes);
        assert_eq!(
            Resolution::for_past_window(DAY, 101 * DAY),
            Resolution::Hour,
            "five minutes are kept for 100 days"
        );
        assert_eq!(Resolution::for_past_window(DAY, 401 * DAY), Resolution::HalfDay);
    }

    #[test]
    fn merging_steps_keeps_uncounted_values_unknown() {
        let traffic = |read| Traffic {
            user_read: read,
            requests: Some(2),
            round_trips: Some((2, 900)),
            ..Traffic::new(CounterSource::Mountstats, CounterScope::Mount, 10.0)
        };
        let mut step = TrafficStep::new(None, Timestamp::UNIX_EPOCH, traffic(Some(50_000)));
        step.merge(&TrafficStep::new(None, Timestamp::UNIX_EPOCH, traffic(Some(90_000))));
        step.merge(&TrafficStep::new(None, Timestamp::UNIX_EPOCH, traffic(None)));
        let merged = &step.traffic;
        assert_eq!((merged.user_read, merged.user_written, merged.requests), (Some(140_000), None, Some(6)));
        assert_eq!((merged.round_trips, merged.seconds, step.busy_seconds), (Some((6, 2700)), 30.0, 20.0));
        assert_eq!(step.peak_bytes_per_second, Some(9000.0));
    }

    #[test]
    fn overlapping_stalls_are_counted_once() {
        let at = |seconds: i64| Timestamp::from_us(seconds * 1_000_000);
        let stall = |from: i64, to: Option<i64>| Stall {
            ended_us: to.map(at),
            ..Stall::new("smb".parse().unwrap(), at(from), "read")
        };
        let stalls = [stall(0, Some(10)), stall(5, Some(20)), stall(30, None), stall(90, Some(95))];
        assert_eq!(stalled_seconds(&stalls, at(2)..at(40)), 28.0);
        assert_eq!(stalled_seconds(&[], at(0)..at(1)), 0.0);
    }
}
