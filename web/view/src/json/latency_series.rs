//! Probe latency in steps of time.

use longhaul_model::{Event, LoadContext, ProbeKind, ProbeStep, TargetName, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::charts::QuantileStep;
use crate::screens::latency_charts::LatencyWindow;

/// Probe latency in a window of time: the response of `/api/v1/latency/series`.
#[derive(Debug, Serialize, ToSchema)]
pub struct LatencySeries {
    /// Start of the window, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    from_us: Timestamp,
    /// End of the window, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    until_us: Timestamp,
    /// Length of a step, in seconds.
    step_seconds: i64,
    /// Time zone of daily steps; null if the zone of the service has no IANA name.
    zone: Option<String>,
    /// Operation of the probe.
    kind: ProbeKind,
    /// Load filter: samples during rounds, or while idle; null for both.
    during: Option<LoadContext>,
    /// Series of each target.
    targets: Vec<TargetSeries>,
}

/// Probe latency of one target.
#[derive(Debug, Serialize, ToSchema)]
struct TargetSeries {
    /// Name of the target.
    target: TargetName,
    /// Steps in order of time. Steps without a request are left out.
    steps: Vec<SeriesStep>,
    /// Events on the target or the machine that may have changed the latency.
    events: Vec<SeriesEvent>,
}

/// Latency within one step, in seconds; null if no request was answered.
#[derive(Debug, Serialize, ToSchema)]
struct SeriesStep {
    /// Start of the step, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    at_us: Timestamp,
    /// 5th percentile, in seconds.
    p5: Option<f64>,
    /// 25th percentile, in seconds.
    p25: Option<f64>,
    /// Median, in seconds.
    p50: Option<f64>,
    /// 75th percentile, in seconds.
    p75: Option<f64>,
    /// 95th percentile, in seconds.
    p95: Option<f64>,
    /// Longest latency, in seconds.
    max: Option<f64>,
    /// Number of answered requests.
    count: u64,
    /// Number of requests that failed or timed out.
    failed: u64,
}

/// An event of the event log.
#[derive(Debug, Serialize, ToSchema)]
struct SeriesEvent {
    /// Time of the event, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    at_us: Timestamp,
    /// Kind of the event.
    kind: String,
}

impl LatencySeries {
    /// Returns the series of all targets in a window, with the events since its start.
    pub fn new(window: &LatencyWindow, steps: &[ProbeStep], events: &[Event]) -> Self {
        let (from, until) = window.span;
        let targets = window.by_target(steps).into_iter().map(|(name, steps)| {
            let concerns = |event: &&Event| event.target.as_ref().is_none_or(|target| target == name);
            let in_window = events.iter().filter(concerns).filter(|event| event.at_us < until);
            TargetSeries {
                target: name.clone(),
                steps: window.quantile_steps(&steps).iter().map(SeriesStep::from).collect(),
                events: in_window
                    .map(|event| SeriesEvent { at_us: event.at_us, kind: event.kind.clone() })
                    .collect(),
            }
        });
        Self {
            from_us: from,
            until_us: until,
            step_seconds: window.step.as_secs().cast_signed(),
            zone: window.zone.iana_name().map(str::to_owned),
            kind: window.kind,
            during: window.during,
            targets: targets.collect(),
        }
    }
}

impl From<&QuantileStep> for SeriesStep {
    fn from(spread: &QuantileStep) -> Self {
        let at = |place: usize| spread.quantiles.map(|all| all[place]);
        Self {
            at_us: spread.at,
            p5: at(0),
            p25: at(1),
            p50: at(2),
            p75: at(3),
            p95: at(4),
            max: spread.max,
            count: spread.count,
            failed: spread.failed,
        }
    }
}
