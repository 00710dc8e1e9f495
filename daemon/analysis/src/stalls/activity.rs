//! Times in which a target was used at all, by anyone: idle times lie between them.

use std::time::Duration;

use longhaul_model::{Resolution, Timestamp};

use super::observations::TargetObservations;

/// Idle time after which a disk may have stopped.
pub(super) const MIN_IDLE: Duration = Duration::from_mins(10);

/// Time in which a target was used, without an idle time of [`MIN_IDLE`] in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Session {
    /// Start and end.
    pub from: Timestamp,
    pub until: Timestamp,
    /// Time by which the start may be later than `from`.
    pub blur: Duration,
    /// Idle time before; `None` for the first session of a window, before which nothing is known.
    pub idle: Option<Duration>,
}

/// Returns all sessions of a target, oldest first. Stalls are no use: they may be what ended an idle time.
pub(super) fn sessions(observations: &TargetObservations) -> Vec<Session> {
    let mut uses: Vec<Session> = phases(observations).chain(steps(observations)).collect();
    uses.sort_by_key(|session| session.from);
    let mut sessions: Vec<Session> = vec![];
    for session in uses {
        match sessions.last_mut() {
            Some(last) if session.from.since(last.until) < MIN_IDLE => {
                last.until = last.until.max(session.until)
            }
            last => {
                let idle = last.map(|last| session.from.since(last.until));
                sessions.push(Session { idle, ..session });
            }
        }
    }
    sessions
}

fn phases(observations: &TargetObservations) -> impl Iterator<Item = Session> {
    observations.calls.iter().map(|phase| {
        let ends = phase.calls.iter().map(|call| call.offset_ns.saturating_add(call.duration_ns));
        let length = Duration::from_nanos(ends.max().unwrap_or(0));
        Session { from: phase.began, until: phase.began + length, blur: Duration::ZERO, idle: None }
    })
}

/// Returns the steps with requests of the probe or of anyone else.
fn steps(observations: &TargetObservations) -> impl Iterator<Item = Session> {
    let probed = observations.probes.iter().filter(|step| step.latency.count() + step.errors > 0);
    let moved = observations.traffic.iter().filter(|step| {
        let sum = |one: Option<u64>, other: Option<u64>| one.unwrap_or(0) + other.unwrap_or(0);
        sum(step.traffic.user_read, step.traffic.user_written) + step.traffic.requests.unwrap_or(0) > 0
    });
    let times = probed.map(|step| step.at_us).chain(moved.map(|step| step.at_us));
    let length = Resolution::FiveMinutes.length();
    times.map(move |at| Session { from: at, until: at + length, blur: length, idle: None })
}
