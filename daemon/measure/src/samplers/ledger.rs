//! The ledger of waits: which of them belong together, when each time of waiting began and ended. Pure.

use std::collections::BTreeMap;

use crate::model::{LONG_WAIT_NS, Operation, ProbeKind, Probed, Stall, TargetName, Waited};

/// Waits with less than this between them are one stall, in microseconds: two slots of the probe. A cut cable makes some
/// calls wait, lets one through from a cache, and makes the next wait.
const GAP_US: i64 = 10_000_000;
/// For how long a line is kept at hand after its end, in microseconds: what a workload waited for is told at the end of its
/// phase, and may belong to a line that is over.
const AMENDABLE_US: i64 = 3_600_000_000;
/// Errors that mean that the server or the way to it failed, not that something is forbidden or missing.
const FAILURES: [&str; 17] = [
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

/// Every stall that is not over, or may still turn out to go on. See the module.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    stall: Stall,
    /// The latest instant that is known to belong to it.
    until_us: i64,
    /// A call is in flight.
    in_flight: bool,
    /// The latest answer was a failure.
    failing: bool,
    /// Something is known that has not been given out.
    is_news: bool,
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
pub struct Flight<'a> {
    /// The call.
    pub operation: Operation,
    /// When it began, in microseconds since 1970 UTC.
    pub since_us: i64,
    /// Who waits for it.
    pub who: &'a str,
}

/// A stretch of waiting, as one call tells of it.
struct Stretch<'a> {
    began_us: i64,
    until_us: i64,
    operation: &'a str,
    error: Option<&'a str>,
    who: &'a str,
}

impl Ledger {
    /// A call that took long, and has returned.
    pub fn waited(&mut self, target: &TargetName, waited: &Waited) {
        let stretch = Stretch {
            began_us: waited.at_us,
            until_us: waited.at_us + microseconds(waited.nanoseconds),
            operation: waited.operation.name(),
            error: waited.error.as_deref(),
            who: waited.workload.as_deref().unwrap_or("probe"),
        };
        let line = self.line(target, &stretch);
        line.take(&stretch);
        line.in_flight = false;
    }

    /// A slot of the probe. Long ones come as [`Waited`] too; here count failures, and the first good answer after them.
    pub fn probed(&mut self, target: &TargetName, slot: &Probed) {
        let until_us = slot.at_us + microseconds(slot.latency_ns);
        match slot.error.as_deref().filter(|error| FAILURES.contains(error)) {
            Some(error) => {
                let operation = operation_of(slot.kind);
                let stretch =
                    Stretch { began_us: slot.at_us, until_us, operation, error: Some(error), who: "probe" };
                let line = self.line(target, &stretch);
                line.take(&stretch);
                (line.failing, line.in_flight) = (true, false);
            }
            None if slot.call_ns.is_some() => self.answered(target, until_us),
            None => {}
        }
    }

    /// A good answer ends a time of failures, not before it was given.
    fn answered(&mut self, target: &TargetName, at_us: i64) {
        for line in self.of(target).filter(|line| line.failing && at_us >= line.until_us) {
            (line.failing, line.until_us) = (false, at_us);
        }
    }

    /// The call that is in flight on a target now; `None`: none is. `clock`: the time in microseconds since 1970 UTC, and what
    /// else goes on.
    pub fn in_flight(&mut self, target: &TargetName, flight: Option<Flight<'_>>, clock: (i64, Option<&str>)) {
        let (now_us, beside) = clock;
        let is_long = |flight: &Flight<'_>| (now_us - flight.since_us) * 1000 >= LONG_WAIT_NS.cast_signed();
        let Some(Flight { operation, since_us, who }) = flight.filter(is_long) else {
            return self.of(target).for_each(|line| line.in_flight = false);
        };
        let operation = operation.name();
        let stretch = Stretch { began_us: since_us, until_us: now_us, operation, error: None, who };
        let line = self.line(target, &stretch);
        line.stall.started_us = line.stall.started_us.min(since_us);
        line.stall.ended_us = None;
        line.until_us = line.until_us.max(now_us);
        line.in_flight = true;
        line.stall.beside = line.stall.beside.take().or_else(|| beside.map(str::to_owned));
    }

    /// Time has passed: what is over by now.
    pub fn settle(&mut self, now_us: i64) {
        for line in &mut self.lines {
            let is_over = !line.in_flight && !line.failing && now_us - line.until_us > GAP_US;
            if is_over && line.stall.ended_us != Some(line.until_us) {
                (line.stall.ended_us, line.is_news) = (Some(line.until_us), true);
            }
        }
        let is_done = |line: &Line| line.stall.ended_us.is_some() && !line.is_news;
        self.lines.retain(|line| !is_done(line) || now_us - line.until_us < AMENDABLE_US);
    }

    /// Whether something is known that has not been given out.
    pub fn has_news(&self) -> bool {
        self.lines.iter().any(|line| line.is_news)
    }

    /// The lines of which something new is known, to be kept.
    pub fn take_news(&mut self) -> Vec<Stall> {
        let news = self.lines.iter_mut().filter(|line| line.is_news);
        let news = news.map(|line| {
            line.is_news = false;
            line.stall.clone()
        });
        news.collect()
    }

    /// The stalls that go on, or ended a moment ago.
    pub fn open(&self) -> impl Iterator<Item = &Stall> {
        self.lines.iter().map(|line| &line.stall).filter(|stall| stall.ended_us.is_none())
    }

    fn of<'a>(&'a mut self, target: &'a TargetName) -> impl Iterator<Item = &'a mut Line> {
        self.lines.iter_mut().filter(|line| line.stall.target == *target)
    }

    /// The line that a stretch belongs to, or a new one.
    fn line(&mut self, target: &TargetName, stretch: &Stretch<'_>) -> &mut Line {
        let belongs = |line: &Line| line.stall.target == *target && line.touches(stretch);
        let place = self.lines.iter().position(belongs).unwrap_or_else(|| {
            self.lines.push(Line::new(target, stretch));
            self.lines.len() - 1
        });
        &mut self.lines[place]
    }
}

impl Line {
    fn new(target: &TargetName, stretch: &Stretch<'_>) -> Self {
        let stall = Stall {
            target: target.clone(),
            opened_us: stretch.began_us,
            started_us: stretch.began_us,
            ended_us: None,
            is_cut: false,
            operation: stretch.operation.to_owned(),
            calls: 0,
            longest_ns: 0,
            errors: BTreeMap::new(),
            who: vec![stretch.who.to_owned()],
            beside: None,
        };
        Self { stall, until_us: stretch.until_us, in_flight: false, failing: false, is_news: true }
    }

    fn touches(&self, stretch: &Stretch<'_>) -> bool {
        let goes_on = self.in_flight || self.failing;
        let begins_in_time = goes_on || stretch.began_us - self.until_us <= GAP_US;
        begins_in_time && self.stall.started_us - stretch.until_us <= GAP_US
    }

    /// Counts a call that has returned.
    fn take(&mut self, stretch: &Stretch<'_>) {
        let stall = &mut self.stall;
        let nanoseconds =
            u64::try_from(stretch.until_us - stretch.began_us).unwrap_or(0).saturating_mul(1000);
        stall.calls += 1;
        stall.started_us = stall.started_us.min(stretch.began_us);
        if nanoseconds > stall.longest_ns {
            (stall.longest_ns, stall.operation) = (nanoseconds, stretch.operation.to_owned());
        }
        if let Some(error) = stretch.error {
            *stall.errors.entry(error.to_owned()).or_default() += 1;
        }
        if !stall.who.iter().any(|who| who == stretch.who) {
            stall.who.push(stretch.who.to_owned());
        }
        self.until_us = self.until_us.max(stretch.until_us);
        // It was given out as over: more is known now.
        self.is_news |= stall.ended_us.is_some();
    }
}

fn operation_of(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Getattr => Operation::Getattr.name(),
        ProbeKind::Read => Operation::Read.name(),
        ProbeKind::WriteSync => Operation::Sync.name(),
    }
}

fn microseconds(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds / 1000).unwrap_or(i64::MAX)
}

/// Seconds within a window that somebody had to wait: the union of the stalls, each until its end, or `until_us` while it
/// goes on. Both ends of the window are microseconds since 1970 UTC.
pub fn seconds_waited<'a>(stalls: impl IntoIterator<Item = &'a Stall>, window: (i64, i64)) -> f64 {
    let (from_us, until_us) = window;
    let clip = |stall: &Stall| {
        let end = stall.ended_us.unwrap_or(until_us).min(until_us);
        (stall.started_us.max(from_us), end)
    };
    let mut stretches: Vec<(i64, i64)> =
        stalls.into_iter().map(clip).filter(|(from, to)| from < to).collect();
    stretches.sort_unstable();
    let mut reached = i64::MIN;
    let mut sum_us = 0;
    for (from, to) in stretches {
        sum_us += (to - from.max(reached)).max(0);
        reached = reached.max(to);
    }
    sum_us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000;

    fn smb() -> TargetName {
        "smb".parse().unwrap()
    }

    fn waited(from: i64, to: i64, workload: Option<&str>) -> Waited {
        Waited {
            operation: Operation::Read,
            at_us: from * SECOND,
            nanoseconds: ((to - from) * 1_000_000_000).cast_unsigned(),
            error: None,
            workload: workload.map(str::to_owned),
        }
    }

    fn slot(at: i64, error: Option<&str>) -> Probed {
        Probed {
            kind: ProbeKind::Getattr,
            at_us: at * SECOND,
            latency_ns: 1_000_000,
            call_ns: Some(1_000_000),
            error: error.map(str::to_owned),
            beside: None,
        }
    }

    #[test]
    fn every_failure_has_the_name_that_the_system_gives_it() {
        let name = |number| crate::platform::error_name(&std::io::Error::from_raw_os_error(number));
        let given: Vec<String> = (1..200).filter_map(name).collect();
        let is_here = |failure: &&&str| cfg!(target_os = "linux") || **failure != "EREMOTEIO";
        for failure in FAILURES.iter().filter(is_here) {
            assert!(given.iter().any(|name| name == failure), "{failure} is called otherwise");
        }
    }

    /// What is new at a moment.
    fn news(ledger: &mut Ledger, now_us: i64) -> Vec<Stall> {
        ledger.settle(now_us);
        ledger.take_news()
    }

    /// What is in the ledger long after everything.
    fn settled(mut ledger: Ledger) -> Vec<Stall> {
        news(&mut ledger, 1_000_000 * SECOND).into_iter().filter(|stall| stall.ended_us.is_some()).collect()
    }

    #[test]
    fn a_cut_cable_is_one_stall_however_many_calls_waited() {
        let flight = Flight { operation: Operation::Getattr, since_us: 100 * SECOND, who: "probe" };
        let mut ledger = Ledger::default();
        ledger.in_flight(&smb(), Some(flight), (108 * SECOND, Some("a round")));
        assert_eq!(news(&mut ledger, 108 * SECOND).len(), 1, "known while it goes on");
        ledger.in_flight(&smb(), Some(flight), (118 * SECOND, None));
        assert_eq!(news(&mut ledger, 118 * SECOND), [], "nothing new");
        ledger.waited(&smb(), &waited(100, 131, None));
        ledger.waited(&smb(), &waited(98, 130, Some("incremental-backup")));
        ledger.waited(&smb(), &waited(132, 134, Some("incremental-backup")));
        ledger.in_flight(&smb(), None, (135 * SECOND, None));
        assert_eq!(news(&mut ledger, 140 * SECOND), [], "it may go on");
        let stalls = settled(ledger);
        assert_eq!(stalls.len(), 1);
        let stall = &stalls[0];
        assert_eq!((stall.started_us, stall.ended_us), (98 * SECOND, Some(134 * SECOND)));
        assert_eq!((stall.opened_us, stall.calls, stall.longest_ns), (100 * SECOND, 3, 32_000_000_000));
        assert_eq!(stall.who, ["probe", "incremental-backup"]);
        assert_eq!(stall.beside.as_deref(), Some("a round"));
    }

    #[test]
    fn waits_far_apart_are_two() {
        let mut ledger = Ledger::default();
        ledger.waited(&smb(), &waited(100, 102, None));
        ledger.waited(&smb(), &waited(113, 115, None));
        assert_eq!(settled(ledger).len(), 2);
    }

    #[test]
    fn failures_are_one_episode_until_the_first_good_answer() {
        let mut ledger = Ledger::default();
        [100, 105, 130].into_iter().for_each(|at| ledger.probed(&smb(), &slot(at, Some("ESTALE"))));
        assert!(news(&mut ledger, 200 * SECOND).iter().all(|stall| stall.ended_us.is_none()), "it goes on");
        ledger.probed(&smb(), &slot(210, None));
        ledger.probed(&smb(), &slot(215, None));
        let stalls = settled(ledger);
        assert_eq!(stalls.len(), 1);
        assert_eq!(stalls[0].errors, [("ESTALE".to_owned(), 3)].into());
        assert_eq!((stalls[0].started_us, stalls[0].ended_us), (100 * SECOND, Some(210 * SECOND + 1000)));
    }

    #[test]
    fn what_is_forbidden_or_missing_is_no_stall() {
        let mut ledger = Ledger::default();
        ["EACCES", "ENOENT", "EROFS"].iter().for_each(|error| ledger.probed(&smb(), &slot(1, Some(error))));
        assert_eq!(settled(ledger), []);
    }

    #[test]
    fn a_second_is_lost_once_however_many_waited() {
        let stall = |from: i64, to: Option<i64>| Stall {
            started_us: from * SECOND,
            ended_us: to.map(|to| to * SECOND),
            ..Line::new(
                &smb(),
                &Stretch { began_us: 0, until_us: 0, operation: "read", error: None, who: "probe" },
            )
            .stall
        };
        let stalls = [stall(0, Some(10)), stall(5, Some(20)), stall(30, None), stall(90, Some(95))];
        assert_eq!(seconds_waited(&stalls, (2 * SECOND, 40 * SECOND)), 28.0);
        assert_eq!(seconds_waited(&[], (0, 1)), 0.0);
    }

    proptest! {
        #[test]
        fn the_ledger_loses_no_second_and_opens_nothing_twice(
            waits in proptest::collection::vec((0i64..500, 2i64..60), 1..20),
        ) {
            let mut ledger = Ledger::default();
            let mut booked = BTreeMap::new();
            for (from, length) in &waits {
                ledger.waited(&smb(), &waited(*from, from + length, None));
                for stall in news(&mut ledger, 0) {
                    booked.insert(stall.opened_us, stall);
                }
            }
            for stall in news(&mut ledger, i64::MAX / 2) {
                booked.insert(stall.opened_us, stall);
            }
            prop_assert!(booked.values().all(|stall| stall.ended_us.is_some()));
            for (from, length) in waits {
                let covered = booked.values().any(|stall| {
                    stall.started_us <= from * SECOND && stall.ended_us.unwrap() >= (from + length) * SECOND
                });
                prop_assert!(covered, "{from} + {length}");
            }
        }
    }
}
