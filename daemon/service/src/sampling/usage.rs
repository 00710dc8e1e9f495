//! Counts the usage of each target by programs other than longhaul, until it is stored. Pure.
//!
//! The time between two readings of the counters in which a round runs is left out. The requests of the latency probe in
//! all other time are subtracted. Its samples arrive up to a minute after the counters showed its requests, so they are
//! assigned to a reading by their times, and subtracted when usage is stored, and again from the usage that is stored next.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use longhaul_measure::samplers::MeteredTraffic;
use longhaul_model::{
    CounterScope, CounterSource, ProbeKind, ProbeSample, RequestCounts, RequestKind, Resolution, TargetName,
    Timestamp, UsageStep,
};

/// Step of time in which usage is stored.
const STEP: Resolution = Resolution::Hour;

/// Time after which a sample of the probe has arrived.
const MAX_SAMPLE_DELAY: Duration = Duration::from_secs(300);
/// Number of requests a second from which a counter is taken to be reset: no client sends as many.
const MAX_REQUESTS_PER_SECOND: f64 = 1e6;
/// Number of bytes a second from which a counter is taken to be reset: ten times the fastest network.
const MAX_BYTES_PER_SECOND: f64 = 1e12;

/// Usage of all targets since it was last stored.
#[derive(Default)]
pub struct UsageCounter {
    steps: BTreeMap<(TargetName, CounterSource, Timestamp), UsageStep>,
    /// Requests of the probe in counted time, since usage was last taken.
    own: BTreeMap<TargetName, RequestCounts>,
    /// Requests of the probe after the last reading.
    unread: Vec<(TargetName, ProbeKind, Timestamp)>,
    /// Requests of the probe before usage was last taken, which no counter had shown then.
    late: BTreeMap<TargetName, RequestCounts>,
    /// Usage that could not be stored.
    unstored: Vec<UsageStep>,
    /// True if the time after the last reading is left out.
    is_left_out: bool,
    /// Time of the last reading.
    last_reading: Option<Timestamp>,
    /// Times between readings that were left out, as far as samples of them can still arrive.
    left_out: Vec<Range<Timestamp>>,
}

impl UsageCounter {
    /// Leaves out the time from the last reading to the next one, because a round runs or no counter can be read.
    pub fn leave_out(&mut self) {
        self.is_left_out = true;
    }

    /// Adds the traffic of all counters between two readings, at the time of the later one.
    pub fn add(&mut self, metered: &[MeteredTraffic], at: Timestamp) {
        let is_left_out = std::mem::take(&mut self.is_left_out);
        self.note_reading(at, is_left_out);
        for one in metered.iter().filter(|one| !one.is_repeated && is_plausible(one)) {
            let (Some(target), CounterScope::Mount | CounterScope::Server) = (&one.target, one.traffic.scope)
            else {
                continue;
            };
            let source = one.traffic.source.clone();
            let mut part = UsageStep::new(target.clone(), source.clone(), STEP.start(at));
            if is_left_out {
                part.left_out_seconds = one.traffic.seconds;
            } else {
                part.counted_seconds = one.traffic.seconds;
                part.requests = one.requests;
                (part.read_bytes, part.written_bytes) = (one.traffic.user_read, one.traffic.user_written);
            }
            let step = self.steps.entry((part.target.clone(), source, part.at));
            step.and_modify(|step| step.merge(&part)).or_insert(part);
        }
    }

    /// Notes whether the time since the last reading is left out, and assigns the requests of the probe in it.
    fn note_reading(&mut self, at: Timestamp, is_left_out: bool) {
        let from = self.last_reading.replace(at);
        self.left_out.retain(|range| range.end > at - MAX_SAMPLE_DELAY);
        if is_left_out {
            self.left_out.push(from.unwrap_or(at - MAX_SAMPLE_DELAY)..at);
        }
        for (target, kind, sample_at) in std::mem::take(&mut self.unread) {
            self.assign(target, kind, sample_at);
        }
    }

    /// Adds a request of the latency probe.
    pub fn add_probe(&mut self, target: &TargetName, sample: &ProbeSample) {
        if sample.call_ns.is_some() {
            self.assign(target.clone(), sample.kind, sample.at_us);
        }
    }

    /// Keeps a request after the last reading, counts one in counted time, and forgets one in time that is left out.
    fn assign(&mut self, target: TargetName, kind: ProbeKind, at: Timestamp) {
        if self.last_reading.is_none_or(|reading| at >= reading) {
            self.unread.push((target, kind, at));
            return;
        }
        if self.left_out.iter().any(|range| range.contains(&at)) {
            return;
        }
        let own = self.own.entry(target).or_default();
        own.add(RequestKind::Open, 1);
        match kind {
            ProbeKind::Getattr => own.add(RequestKind::Attributes, 1),
            ProbeKind::Read => own.add(RequestKind::Read, 1),
            ProbeKind::WriteSync => own.add(RequestKind::Write, 1),
        }
    }

    /// Takes all usage, to be stored.
    pub fn take(&mut self) -> Vec<UsageStep> {
        if self.steps.is_empty() {
            // No counter was read, so none can have shown the requests of the probe.
            return std::mem::take(&mut self.unstored);
        }
        let mut steps: Vec<UsageStep> = std::mem::take(&mut self.steps).into_values().collect();
        let (mut late, mut own) = (std::mem::take(&mut self.late), std::mem::take(&mut self.own));
        for step in steps.iter_mut().filter(|step| !step.requests.is_empty()) {
            for requests in [late.get_mut(&step.target), own.get_mut(&step.target)].into_iter().flatten() {
                subtract(&mut step.requests, requests);
            }
            step.files_read = files_read(&step.source, &step.requests);
        }
        self.late = own;
        let mut all = std::mem::take(&mut self.unstored);
        all.append(&mut steps);
        all
    }

    /// Adds usage back that could not be stored.
    pub fn restore(&mut self, mut usage: Vec<UsageStep>) {
        self.unstored.append(&mut usage);
    }
}

/// Returns about how many files were opened and read; `None` if the source does not count both.
fn files_read(source: &CounterSource, requests: &RequestCounts) -> Option<u64> {
    let (opens, reads) = requests.get(RequestKind::Open).zip(requests.get(RequestKind::Read))?;
    // The SMB client looks up a name by opening it, asking for its attributes and closing it (fs/smb/client/smb2inode.c,
    // `smb2_compound_op`); the open of a file itself returns them.
    let lookups = match source {
        CounterSource::CifsStats => requests.get(RequestKind::Attributes).unwrap_or(0),
        _ => 0,
    };
    Some(opens.saturating_sub(lookups).min(reads))
}

/// Returns whether a client can have caused the traffic in its time.
fn is_plausible(metered: &MeteredTraffic) -> bool {
    let traffic = &metered.traffic;
    let is_below =
        |count: Option<u64>, limit: f64| count.is_none_or(|count| count as f64 <= limit * traffic.seconds);
    RequestKind::ALL.iter().all(|kind| is_below(metered.requests.get(*kind), MAX_REQUESTS_PER_SECOND))
        && is_below(traffic.user_read, MAX_BYTES_PER_SECOND)
        && is_below(traffic.user_written, MAX_BYTES_PER_SECOND)
}

/// Subtracts longhaul's own requests, as far as they were counted. What remains of them was not counted yet.
fn subtract(counted: &mut RequestCounts, own: &mut RequestCounts) {
    for kind in RequestKind::ALL {
        if let (Some(all), Some(ours)) = (counted.get(kind), own.get(kind)) {
            let subtracted = all.min(ours);
            *counted = counted.with(kind, Some(all - subtracted));
            *own = own.with(kind, Some(ours - subtracted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Traffic;

    fn nas() -> TargetName {
        "nas".parse().unwrap()
    }

    fn requests(open: u64, read: u64) -> RequestCounts {
        RequestCounts::default().with(RequestKind::Open, Some(open)).with(RequestKind::Read, Some(read))
    }

    fn metered(requests: RequestCounts) -> MeteredTraffic {
        let traffic = Traffic {
            user_read: Some(100),
            user_written: Some(0),
            longhaul_read: Some(0),
            longhaul_written: Some(0),
            ..Traffic::new(CounterSource::Mountstats, CounterScope::Mount, 10.0)
        };
        MeteredTraffic { target: Some(nas()), traffic, is_used: None, requests, is_repeated: false }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_us(second * 1_000_000)
    }

    fn read_slot(second: i64) -> ProbeSample {
        ProbeSample {
            kind: ProbeKind::Read,
            at_us: at(second),
            latency_ns: 5,
            call_ns: Some(5),
            error: None,
            during: None,
        }
    }

    #[test]
    fn time_between_readings_with_a_round_is_left_out() {
        let mut counter = UsageCounter::default();
        for (second, has_round) in [(10, false), (20, true), (30, true), (40, false)] {
            if has_round {
                counter.leave_out();
            }
            counter.add(&[metered(requests(3, 2))], at(second));
        }
        let usage = counter.take();
        assert_eq!((usage[0].counted_seconds, usage[0].left_out_seconds), (20.0, 20.0));
        assert_eq!((usage[0].requests, usage[0].files_read), (requests(6, 4), Some(4)));
        assert_eq!(usage[0].read_bytes, Some(200));
    }

    #[test]
    fn usage_is_split_at_the_hour_and_repeated_counters_skipped() {
        let mut counter = UsageCounter::default();
        let shared = MeteredTraffic { is_repeated: true, ..metered(requests(5, 5)) };
        counter.add(&[metered(requests(1, 1)), shared], at(3599));
        counter.add(&[metered(requests(2, 2))], at(3600));
        let found: Vec<_> = counter.take().iter().map(|step| (step.at, step.requests)).collect();
        assert_eq!(found, [(at(0), requests(1, 1)), (at(3600), requests(2, 2))]);
    }

    #[test]
    fn requests_of_the_probe_are_subtracted_even_if_reported_late() {
        let mut counter = UsageCounter::default();
        counter.add(&[metered(requests(10, 8))], at(10));
        (0..3).for_each(|_| counter.add_probe(&nas(), &read_slot(5)));
        assert_eq!(counter.take()[0].requests, requests(7, 5));
        (0..4).for_each(|_| counter.add_probe(&nas(), &read_slot(15)));
        counter.add(&[metered(requests(1, 1))], at(20));
        assert_eq!(counter.take()[0].requests, requests(0, 0), "three of four were not counted yet");
        counter.add(&[metered(requests(5, 5))], at(30));
        assert_eq!(counter.take()[0].requests, requests(2, 2));
        counter.add(&[metered(requests(5, 5))], at(40));
        assert_eq!(counter.take()[0].requests, requests(5, 5), "nothing is left to subtract");
    }

    #[test]
    fn requests_of_the_probe_are_subtracted_however_rarely_counters_are_read() {
        let mut counter = UsageCounter::default();
        (0..3).for_each(|_| counter.add_probe(&nas(), &read_slot(5)));
        (0..5).for_each(|_| assert!(counter.take().is_empty()));
        counter.add(&[metered(requests(3, 3))], at(1800));
        assert_eq!(counter.take()[0].requests, requests(0, 0));
    }

    #[test]
    fn requests_of_the_probe_in_time_that_is_left_out_are_not_subtracted() {
        let mut counter = UsageCounter::default();
        counter.add(&[metered(requests(0, 0))], at(10));
        // Those before and after the round may arrive before the next reading, during the round or after it.
        for second in [15, 25] {
            counter.add_probe(&nas(), &read_slot(second));
        }
        counter.add(&[metered(requests(4, 4))], at(20));
        counter.leave_out();
        counter.add(&[metered(requests(9, 9))], at(30));
        for second in [16, 26, 35] {
            counter.add_probe(&nas(), &read_slot(second));
        }
        counter.add(&[metered(requests(5, 5))], at(40));
        assert_eq!(counter.take()[0].requests, requests(6, 6));
        counter.add(&[metered(requests(1, 1))], at(50));
        assert_eq!(counter.take()[0].requests, requests(1, 1));
    }

    #[test]
    fn names_that_smb_looks_up_are_not_files_that_are_read() {
        let counted = requests(90, 30).with(RequestKind::Attributes, Some(70));
        assert_eq!(files_read(&CounterSource::CifsStats, &counted), Some(20));
        assert_eq!(files_read(&CounterSource::Mountstats, &counted), Some(30));
        assert_eq!(files_read(&CounterSource::Mountstats, &counted.with(RequestKind::Open, None)), None);
    }

    #[test]
    fn implausible_counts_of_a_reset_are_left_out() {
        let mut counter = UsageCounter::default();
        counter.add(&[metered(requests(1 << 31, 1))], at(10));
        assert!(counter.take().is_empty());
    }

    #[test]
    fn usage_that_could_not_be_stored_is_taken_again() {
        let mut counter = UsageCounter::default();
        counter.add(&[metered(requests(1, 1))], at(10));
        let usage = counter.take();
        assert!(counter.take().is_empty());
        counter.restore(usage.clone());
        assert_eq!(counter.take(), usage);
    }
}
