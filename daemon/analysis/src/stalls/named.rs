//! Names the causes of a target's stalls and slow calls.

use std::collections::BTreeSet;

use longhaul_model::stored::StallRecords;
use longhaul_model::time::HOUR;
use longhaul_model::{Resolution, Stall, TargetName, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::cause::{Pattern, StallCause, StallEvidence};
use super::observations::{RunCalls, TargetObservations};
use super::{coincidence, durations, hourly, idle, periodic};

/// Cause of many slow calls or stalls of a target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NamedStall {
    /// Target that was slow.
    pub target: TargetName,
    /// Cause.
    pub cause: StallCause,
    /// Evidence for the cause.
    pub evidence: StallEvidence,
    /// Start of the first slow call or stall of this cause, in microseconds since 1970 UTC; `None` if only the probe saw
    /// them, which keeps no times of single calls.
    #[schema(value_type = Option<i64>)]
    pub first_us: Option<Timestamp>,
    /// Start of the last one.
    #[schema(value_type = Option<i64>)]
    pub last_us: Option<Timestamp>,
}

/// Stall of the stall log with its cause.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedStall {
    /// The stall.
    #[serde(flatten)]
    pub stall: Stall,
    /// Cause; `None` if nothing that is stored explains the stall.
    pub cause: Option<StallCause>,
    /// Evidence for the cause.
    pub evidence: Option<StallEvidence>,
}

/// Causes of a target's stalls and slow calls.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StallCauses {
    /// Causes of many slow calls or stalls, those with the most first.
    pub named: Vec<NamedStall>,
    /// All stalls, oldest first.
    pub stalls: Vec<ExplainedStall>,
    /// True if a run, a sample of the probe or a stall is stored: without them there is nothing to say about stalls.
    pub was_watched: bool,
}

/// Names the causes of the stalls and slow calls of all targets. Scheduled tasks begin at full hours of local time.
pub fn explain_stalls(records: &StallRecords, utc_offset_seconds: i32) -> StallCauses {
    let stalls = records.stalls.iter().map(|stall| &stall.target);
    let seen = stalls.chain(records.calls.iter().map(|phase| &phase.target));
    let targets: BTreeSet<&TargetName> = seen.chain(records.probes.iter().map(|step| &step.target)).collect();
    let mut causes = StallCauses { was_watched: !targets.is_empty(), ..StallCauses::default() };
    for target in targets {
        let observations =
            TargetObservations { utc_offset_seconds, ..TargetObservations::of(target, records) };
        let StallCauses { named, stalls, .. } = name_stalls(&observations);
        causes.named.extend(named);
        causes.stalls.extend(stalls);
    }
    causes.stalls.sort_by(|one, other| one.order().cmp(&other.order()));
    causes
}

impl ExplainedStall {
    /// Returns the key of the order in which stalls are stored.
    fn order(&self) -> (Timestamp, &TargetName) {
        (self.stall.started_us, &self.stall.target)
    }
}

/// Names the causes of the stalls and slow calls of one target.
pub fn name_stalls(observations: &TargetObservations) -> StallCauses {
    let calls = observations.run_calls();
    let mut named = named_calls(observations, &calls);
    let after_idle = idle::find(observations);
    let hourly = hourly::find(observations);
    let explain = |stall: &Stall| {
        let of_idle = after_idle.iter().find(|found| found.times.contains(&stall.started_us));
        let of_hour = hourly.iter().find(|found| begins_at(&found.times, stall));
        // What happens again and again explains more than what happened once.
        of_idle
            .map(|found| (found.cause, found.evidence.clone()))
            .or_else(|| of_hour.map(|found| (found.cause, found.evidence.clone())))
            .or_else(|| coincidence::find(stall, &observations.events))
    };
    let stalls = observations.stalls.iter().map(|stall| {
        let (cause, evidence) = explain(stall).unzip();
        ExplainedStall { stall: stall.clone(), cause, evidence }
    });
    let stalls: Vec<ExplainedStall> = stalls.collect();
    named.extend(after_idle.into_iter().chain(hourly).map(|found| NamedStall::of(observations, found)));
    named.extend(events(observations, &stalls));
    named.sort_by_key(|named| std::cmp::Reverse(named.evidence.matching));
    StallCauses { named, stalls, was_watched: true }
}

/// Returns the causes that slow calls of runs and of the probe show.
fn named_calls(observations: &TargetObservations, calls: &RunCalls<'_>) -> Vec<NamedStall> {
    let mut named: Vec<NamedStall> = vec![];
    for found in periodic::BANDS.iter().filter_map(|band| periodic::find(calls, band)) {
        // An interval of 30 seconds that is six of five seconds is found twice.
        if named.iter().all(|known| known.cause != found.cause) {
            named.push(NamedStall::of(observations, found));
        }
    }
    let waits = durations::find(observations, calls).into_iter();
    named.extend(waits.map(|found| NamedStall::of(observations, found)));
    named
}

impl NamedStall {
    fn of(observations: &TargetObservations, Pattern { cause, evidence, times }: Pattern) -> Self {
        let (first_us, last_us) = (times.iter().min().copied(), times.iter().max().copied());
        Self { target: observations.target.clone(), cause, evidence, first_us, last_us }
    }
}

/// Returns whether a stall began in the first step of one of the slow times.
fn begins_at(onsets: &[Timestamp], stall: &Stall) -> bool {
    onsets.iter().any(|onset| {
        (*onset..*onset + Resolution::FiveMinutes.length()).contains(&stall.started_us)
            && onset.floor(HOUR) == stall.started_us.floor(HOUR)
    })
}

/// Returns the causes of single stalls that happened together with an event, each once.
fn events(observations: &TargetObservations, stalls: &[ExplainedStall]) -> Vec<NamedStall> {
    let causes = [StallCause::Reconnect, StallCause::Wake, StallCause::LinkChange];
    let of_cause = |cause: StallCause| {
        let found: Vec<&ExplainedStall> = stalls.iter().filter(|stall| stall.cause == Some(cause)).collect();
        let times = found.iter().map(|explained| explained.stall.started_us).collect();
        let longest = found.iter().map(|explained| explained.stall.longest_ns).max()?;
        let evidence = StallEvidence {
            matching: found.len() as u64,
            examined: stalls.len() as u64,
            typical_seconds: longest as f64 / 1e9,
            event_us: found.last()?.evidence.as_ref()?.event_us,
            ..StallEvidence::default()
        };
        Some(NamedStall::of(observations, Pattern { cause, evidence, times }))
    };
    causes.into_iter().filter_map(of_cause).collect()
}
