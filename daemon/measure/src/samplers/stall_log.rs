//! The stall log: joins slow and failed calls into stalls, each with a start and an end. Pure, without I/O and
//! clocks.

use std::time::Duration;

use longhaul_model::time::{HOUR, Timestamp};
use longhaul_model::{Operation, ProbeKind, ProbeSample, SLOW_CALL_NS, SlowCall, Stall, TargetName};

/// Maximum gap between two slow calls of one stall: two intervals of the probe. With a cut cable,
/// some calls wait, one is answered from a cache, and the next one waits again; all of them belong to one stall.
const MERGE_GAP: Duration = Duration::from_secs(10);
/// Time during which an ended stall can still be extended: slow calls of a workload are reported at the end of a phase.
const AMEND_WINDOW: Duration = HOUR;
/// Largest difference between the starts of a call as seen in flight and as reported, in seconds.
const REPORT_TOLERANCE_SECONDS: f64 = 1.0;
/// Names of errors that mean that the server or the network failed, unlike EACCES or ENOENT.
const CONNECTION_ERRORS: [&str; 17] = [
    "EIO",
    "ESTALE",
    "ETIMEDOUT",
    "ENOTCONN",
    "EHOSTDOWN",
    "EHOSTUNREACH",
    "ENETDOWN",
    "ENETUNREACH",
    "ECONNRESET",
    "ECONNABORTED",
    "ECONNREFUSED",
    "EPIPE",
    "ENODEV",
    "ENXIO",
    "EREMOTEIO",
    "EPROTONOSUPPORT",
    "EAGAIN",
];

/// Log of the stalls that are ongoing or may still be extended.
#[derive(Debug, Clone, Default)]
pub struct StallLog {
    entries: Vec<StallEntry>,
}

#[derive(Debug, Clone)]
struct StallEntry {
    stall: Stall,
    /// Latest time that is known to belong to the stall.
    latest: Timestamp,
    /// True while a slow call of the stall is in flight.
    has_call_in_flight: bool,
    /// Call that was last seen in flight and has not been reported.
    unreported: Option<UnreportedCall>,
    /// True if the latest answer of the probe was a failure.
    is_failing: bool,
    /// True if the stall has changed since it was last returned by [`StallLog::take_updates`].
    has_update: bool,
}

/// Call that has not returned yet.
#[derive(Debug, Clone, Copy)]
pub struct PendingCall<'a> {
    /// Kind of call.
    pub operation: Operation,
    /// Start of the call.
    pub since: Timestamp,
    /// Source of the call: the name of a workload, or `probe`.
    pub source: &'a str,
    /// Activity of the service at this time, such as a round; `None` without one.
    pub during: Option<&'a str>,
}

/// Slow call that was seen in flight. It is never reported if the worker is stopped before the call returns.
#[derive(Debug, Clone, Copy)]
struct UnreportedCall {
    operation: &'static str,
    since: Timestamp,
    /// Time at which it was last seen in flight.
    until: Timestamp,
    /// True once the stall has ended and counts the call.
    is_counted: bool,
}

/// Time during which one call waited.
struct WaitInterval<'a> {
    began: Timestamp,
    until: Timestamp,
    operation: &'a str,
    error: Option<&'a str>,
    source: &'a str,
}

impl StallLog {
    /// Adds a slow call that has returned.
    pub fn record_slow_call(&mut self, target: &TargetName, call: &SlowCall) {
        let interval = WaitInterval {
            began: call.at_us,
            until: call.at_us + Duration::from_nanos(call.duration_ns),
            operation: call.operation.name(),
            error: call.error.as_deref(),
            source: call.workload.as_deref().unwrap_or("probe"),
        };
        let entry = self.entry_for(target, &interval);
        entry.add_interval(&interval);
        entry.has_call_in_flight = false;
    }

    /// Adds a sample of the probe. Only failures and the first success after them matter here, because slow calls
    /// of the probe are also reported as [`SlowCall`].
    pub fn record_probe(&mut self, target: &TargetName, slot: &ProbeSample) {
        let until = slot.at_us + Duration::from_nanos(slot.latency_ns);
        match slot.error.as_deref().filter(|error| CONNECTION_ERRORS.contains(error)) {
            Some(error) => {
                let operation = probe_operation(slot.kind);
                let interval =
                    WaitInterval { began: slot.at_us, until, operation, error: Some(error), source: "probe" };
                let entry = self.entry_for(target, &interval);
                entry.add_interval(&interval);
                (entry.is_failing, entry.has_call_in_flight) = (true, false);
                // It goes on, although it may have ended while the probe was off.
                entry.stall.ended_us = None;
            }
            None if slot.call_ns.is_some() => self.record_success(target, until),
            None => {}
        }
    }

    /// Ends a period of failures at the time of a successful answer.
    fn record_success(&mut self, target: &TargetName, at: Timestamp) {
        for entry in self.entries_of(target).filter(|entry| entry.is_failing && at >= entry.latest) {
            (entry.is_failing, entry.latest) = (false, at);
        }
    }

    /// Ends a period of failures of a target whose probe is off, because no success can end it. Its end is the last
    /// failure, and it goes on if another one follows within `MERGE_GAP`.
    pub fn end_failures(&mut self, target: &TargetName, now: Timestamp) {
        for entry in self.entries_of(target).filter(|entry| now.since(entry.latest) > MERGE_GAP) {
            entry.is_failing = false;
        }
    }

    /// Lets the stalls of targets that are no longer configured end with what was last observed of them.
    pub fn end_removed(&mut self, is_configured: impl Fn(&TargetName) -> bool) {
        for entry in self.entries.iter_mut().filter(|entry| !is_configured(&entry.stall.target)) {
            (entry.is_failing, entry.has_call_in_flight) = (false, false);
        }
    }

    /// Records the call that is in flight on a target now; `None` if no call is in flight.
    pub fn update_in_flight(&mut self, target: &TargetName, flight: Option<PendingCall<'_>>, now: Timestamp) {
        let is_slow = |call: &PendingCall<'_>| now.since(call.since) >= Duration::from_nanos(SLOW_CALL_NS);
        let Some(PendingCall { operation, since, source, during }) = flight.filter(is_slow) else {
            return self.entries_of(target).for_each(|entry| entry.has_call_in_flight = false);
        };
        let operation = operation.name();
        let interval = WaitInterval { began: since, until: now, operation, error: None, source };
        let entry = self.entry_for(target, &interval);
        entry.unreported = Some(UnreportedCall { operation, since, until: now, is_counted: false });
        entry.stall.started_us = entry.stall.started_us.min(since);
        entry.stall.ended_us = None;
        entry.latest = entry.latest.max(now);
        entry.has_call_in_flight = true;
        entry.stall.during = entry.stall.during.take().or_else(|| during.map(str::to_owned));
    }

    /// Sets the end of all stalls that have ended by `now`, and forgets stalls that can no longer be extended.
    pub fn close_finished(&mut self, now: Timestamp) {
        for entry in &mut self.entries {
            let has_ended =
                !entry.has_call_in_flight && !entry.is_failing && now.since(entry.latest) > MERGE_GAP;
            if has_ended && entry.stall.ended_us != Some(entry.latest) {
                entry.count_unreported_call();
                (entry.stall.ended_us, entry.has_update) = (Some(entry.latest), true);
            }
        }
        let is_done = |entry: &StallEntry| entry.stall.ended_us.is_some() && !entry.has_update;
        self.entries.retain(|entry| !is_done(entry) || now.since(entry.latest) < AMEND_WINDOW);
    }

    /// Returns whether a stall has changed since the last [`StallLog::take_updates`].
    pub fn has_updates(&self) -> bool {
        self.entries.iter().any(|entry| entry.has_update)
    }

    /// Returns the stalls that have changed since the last call of this function, to be stored.
    pub fn take_updates(&mut self) -> Vec<Stall> {
        let changed = self.entries.iter_mut().filter(|entry| entry.has_update);
        let changed = changed.map(|entry| {
            entry.has_update = false;
            entry.stall.clone()
        });
        changed.collect()
    }

    /// Returns the stalls that have not ended yet. A stall ends `MERGE_GAP` after its last slow or failed
    /// call.
    pub fn ongoing(&self) -> impl Iterator<Item = &Stall> {
        self.entries.iter().map(|entry| &entry.stall).filter(|stall| stall.ended_us.is_none())
    }

    fn entries_of<'a>(&'a mut self, target: &'a TargetName) -> impl Iterator<Item = &'a mut StallEntry> {
        self.entries.iter_mut().filter(|entry| entry.stall.target == *target)
    }

    /// Returns the entry that an interval belongs to, or adds a new one.
    fn entry_for(&mut self, target: &TargetName, interval: &WaitInterval<'_>) -> &mut StallEntry {
        let belongs = |entry: &StallEntry| entry.stall.target == *target && entry.is_adjacent(interval);
        let index = self.entries.iter().position(belongs).unwrap_or_else(|| {
            self.entries.push(StallEntry::new(target, interval));
            self.entries.len() - 1
        });
        &mut self.entries[index]
    }
}

impl StallEntry {
    fn new(target: &TargetName, interval: &WaitInterval<'_>) -> Self {
        let stall = Stall {
            sources: vec![interval.source.to_owned()],
            ..Stall::new(target.clone(), interval.began, interval.operation)
        };
        Self {
            stall,
            latest: interval.until,
            has_call_in_flight: false,
            unreported: None,
            is_failing: false,
            has_update: true,
        }
    }

    fn is_adjacent(&self, interval: &WaitInterval<'_>) -> bool {
        let is_ongoing = self.has_call_in_flight || self.is_failing;
        let starts_in_time = is_ongoing || interval.began.since(self.latest) <= MERGE_GAP;
        starts_in_time && self.stall.started_us.since(interval.until) <= MERGE_GAP
    }

    /// Counts the call that was last seen in flight if it was never reported. It waited at least until it was last seen.
    fn count_unreported_call(&mut self) {
        let Some(call) = self.unreported.as_mut().filter(|call| !call.is_counted) else { return };
        call.is_counted = true;
        add_call(&mut self.stall, call.operation, call.until.since(call.since));
    }

    /// Adds the interval of a call that has returned.
    fn add_interval(&mut self, interval: &WaitInterval<'_>) {
        let distance = |call: &UnreportedCall| call.since.seconds_since(interval.began).abs();
        let is_it = |call: &mut UnreportedCall| distance(call) < REPORT_TOLERANCE_SECONDS;
        if self.unreported.take_if(is_it).is_some_and(|call| call.is_counted) {
            self.stall.calls -= 1;
        }
        let stall = &mut self.stall;
        add_call(stall, interval.operation, interval.until.since(interval.began));
        stall.started_us = stall.started_us.min(interval.began);
        if let Some(error) = interval.error {
            *stall.errors.entry(error.to_owned()).or_default() += 1;
        }
        if !stall.sources.iter().any(|source| source == interval.source) {
            stall.sources.push(interval.source.to_owned());
        }
        self.latest = self.latest.max(interval.until);
        // A stall that was already returned with an end has changed and must be stored again.
        self.has_update |= stall.ended_us.is_some();
    }
}

/// Counts a call that waited.
fn add_call(stall: &mut Stall, operation: &str, waited: Duration) {
    let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
    stall.calls += 1;
    if nanoseconds > stall.longest_ns {
        (stall.longest_ns, stall.operation) = (nanoseconds, operation.to_owned());
    }
}

fn probe_operation(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Getattr => Operation::Getattr.name(),
        ProbeKind::Read => Operation::Read.name(),
        ProbeKind::WriteSync => Operation::Sync.name(),
    }
}

#[cfg(test)]
mod tests;
