//! The stall log: joins slow and failed calls into stalls, each with a start and an end. Pure, without I/O and
//! clocks.

use std::collections::BTreeMap;
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
            target: target.clone(),
            opened_us: interval.began,
            started_us: interval.began,
            ended_us: None,
            is_truncated: false,
            operation: interval.operation.to_owned(),
            calls: 0,
            longest_ns: 0,
            errors: BTreeMap::new(),
            sources: vec![interval.source.to_owned()],
            during: None,
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
mod tests {
    use super::*;
    use longhaul_model::stalled_seconds;
    use proptest::prelude::*;

    /// Returns a time in seconds after 1970.
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_us(seconds * 1_000_000)
    }

    fn smb() -> TargetName {
        "smb".parse().unwrap()
    }

    fn slow_call(from: i64, to: i64, workload: Option<&str>) -> SlowCall {
        SlowCall {
            operation: Operation::Read,
            at_us: at(from),
            duration_ns: ((to - from) * 1_000_000_000).cast_unsigned(),
            error: None,
            workload: workload.map(str::to_owned),
        }
    }

    fn slot(seconds: i64, error: Option<&str>) -> ProbeSample {
        ProbeSample {
            kind: ProbeKind::Getattr,
            at_us: at(seconds),
            latency_ns: 1_000_000,
            call_ns: Some(1_000_000),
            error: error.map(str::to_owned),
            during: None,
        }
    }

    #[test]
    fn connection_errors_are_names_known_to_the_system() {
        let name = |number| crate::platform::error_name(&std::io::Error::from_raw_os_error(number));
        let known: Vec<String> = (1..200).filter_map(name).collect();
        let exists_here = |error: &&&str| cfg!(target_os = "linux") || **error != "EREMOTEIO";
        for error in CONNECTION_ERRORS.iter().filter(exists_here) {
            assert!(known.iter().any(|name| name == error), "{error} is not a name of an error");
        }
    }

    /// Closes finished stalls, and returns the stalls that have changed.
    fn updates(log: &mut StallLog, now: Timestamp) -> Vec<Stall> {
        log.close_finished(now);
        log.take_updates()
    }

    /// Returns the ended stalls of a log, long after the last call.
    fn ended(mut log: StallLog) -> Vec<Stall> {
        updates(&mut log, at(1_000_000)).into_iter().filter(|stall| stall.ended_us.is_some()).collect()
    }

    #[test]
    fn adjacent_slow_calls_are_one_stall() {
        let call = PendingCall {
            operation: Operation::Getattr,
            since: at(100),
            source: "probe",
            during: Some("a round"),
        };
        let mut log = StallLog::default();
        log.update_in_flight(&smb(), Some(call), at(108));
        assert_eq!(updates(&mut log, at(108)).len(), 1, "an ongoing stall is reported");
        log.update_in_flight(&smb(), Some(PendingCall { during: None, ..call }), at(118));
        assert_eq!(updates(&mut log, at(118)), [], "the stall has not changed");
        log.record_slow_call(&smb(), &slow_call(100, 131, None));
        log.record_slow_call(&smb(), &slow_call(98, 130, Some("incremental-backup")));
        log.record_slow_call(&smb(), &slow_call(132, 134, Some("incremental-backup")));
        log.update_in_flight(&smb(), None, at(135));
        assert_eq!(updates(&mut log, at(140)), [], "the stall may still continue");
        let stalls = ended(log);
        assert_eq!(stalls.len(), 1);
        let stall = &stalls[0];
        assert_eq!((stall.started_us, stall.ended_us), (at(98), Some(at(134))));
        assert_eq!((stall.opened_us, stall.calls, stall.longest_ns), (at(100), 3, 32_000_000_000));
        assert_eq!(stall.sources, ["probe", "incremental-backup"]);
        assert_eq!(stall.during.as_deref(), Some("a round"));
    }

    #[test]
    fn call_of_a_stopped_worker_is_counted_once() {
        let (operation, source) = (Operation::Getattr, "probe");
        let call = PendingCall { operation, since: at(100), source, during: None };
        let mut log = StallLog::default();
        log.update_in_flight(&smb(), Some(call), at(127));
        log.update_in_flight(&smb(), None, at(128));
        let stalls = updates(&mut log, at(138));
        assert_eq!((stalls[0].calls, stalls[0].longest_ns), (1, 27_000_000_000), "as long as it was seen");
        assert_eq!(stalls[0].operation, "getattr");
        log.record_slow_call(&smb(), &slow_call(100, 128, None));
        let stalls = updates(&mut log, at(200));
        assert_eq!((stalls[0].calls, stalls[0].longest_ns), (1, 28_000_000_000), "as it was reported later");
    }

    #[test]
    fn distant_slow_calls_are_two_stalls() {
        let mut log = StallLog::default();
        log.record_slow_call(&smb(), &slow_call(100, 102, None));
        log.record_slow_call(&smb(), &slow_call(113, 115, None));
        assert_eq!(ended(log).len(), 2);
    }

    #[test]
    fn failures_are_one_stall_until_the_first_success() {
        let mut log = StallLog::default();
        [100, 105, 130].into_iter().for_each(|at| log.record_probe(&smb(), &slot(at, Some("ESTALE"))));
        assert!(updates(&mut log, at(200)).iter().all(|stall| stall.ended_us.is_none()), "still ongoing");
        log.record_probe(&smb(), &slot(210, None));
        log.record_probe(&smb(), &slot(215, None));
        let stalls = ended(log);
        assert_eq!(stalls.len(), 1);
        assert_eq!(stalls[0].errors, [("ESTALE".to_owned(), 3)].into());
        assert_eq!(
            (stalls[0].started_us, stalls[0].ended_us),
            (at(100), Some(at(210) + Duration::from_millis(1)))
        );
    }

    #[test]
    fn permission_and_missing_file_errors_are_no_stalls() {
        let mut log = StallLog::default();
        ["EACCES", "ENOENT", "EROFS"]
            .iter()
            .for_each(|error| log.record_probe(&smb(), &slot(1, Some(error))));
        assert_eq!(ended(log), []);
    }

    #[test]
    fn overlapping_stalls_are_counted_once() {
        let stall = |from: i64, to: Option<i64>| Stall {
            started_us: at(from),
            ended_us: to.map(at),
            ..StallEntry::new(
                &smb(),
                &WaitInterval { began: at(0), until: at(0), operation: "read", error: None, source: "probe" },
            )
            .stall
        };
        let stalls = [stall(0, Some(10)), stall(5, Some(20)), stall(30, None), stall(90, Some(95))];
        assert_eq!(stalled_seconds(&stalls, at(2)..at(40)), 28.0);
        assert_eq!(stalled_seconds(&[], at(0)..at(1)), 0.0);
    }

    proptest! {
        #[test]
        fn every_slow_call_is_covered_by_an_ended_stall(
            calls in proptest::collection::vec((0i64..500, 2i64..60), 1..20),
        ) {
            let mut log = StallLog::default();
            let mut stored = BTreeMap::new();
            for (from, length) in &calls {
                log.record_slow_call(&smb(), &slow_call(*from, from + length, None));
                for stall in updates(&mut log, at(0)) {
                    stored.insert(stall.opened_us, stall);
                }
            }
            for stall in updates(&mut log, Timestamp::MAX) {
                stored.insert(stall.opened_us, stall);
            }
            prop_assert!(stored.values().all(|stall| stall.ended_us.is_some()));
            for (from, length) in calls {
                let covered = stored.values().any(|stall| {
                    stall.started_us <= at(from) && stall.ended_us.unwrap() >= at(from + length)
                });
                prop_assert!(covered, "{from} + {length}");
            }
        }
    }
}
