//! Counters of a NAS, read from the NAS itself, and the use of its disks and processors between two readings.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::Timestamp;
use crate::names::stored_names;

/// Shortest time between two readings over which an average of the last minute is used.
pub const AVERAGE_PERIOD: Duration = Duration::from_secs(60);

/// A counter that only grows until it starts again at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Current value, below `limit`.
    pub value: u64,
    /// Value at which the counter starts again at zero. `u64::MAX`: never.
    pub limit: u64,
}

impl Counter {
    /// Creates a counter of 64 bits, which never starts again.
    pub const fn wide(value: u64) -> Self {
        Self { value, limit: u64::MAX }
    }

    /// Creates a counter of 32 bits.
    pub const fn narrow(value: u32) -> Self {
        Self { value: value as u64, limit: 1 << 32 }
    }

    /// Returns the growth since an earlier value. `None`: the counter was reset.
    ///
    /// A smaller value counts as a new start at zero only if the counter was in the upper half and is in the lower one.
    pub fn growth_since(self, earlier: Self) -> Option<u64> {
        if self.limit != earlier.limit {
            return None;
        }
        let (now, before, half) = (self.value, earlier.value, self.limit / 2);
        let has_wrapped = self.limit != u64::MAX && before >= half && before < self.limit && now < half;
        match now.checked_sub(before) {
            Some(growth) => Some(growth),
            None => has_wrapped.then(|| self.limit - before + now),
        }
    }
}

/// Use of the processors of a NAS: counted, or as an average of the NAS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NasProcessors {
    /// Time of all processors since the start of the NAS, in the same unit.
    Counted {
        /// Time in which they worked.
        busy: Counter,
        /// All time.
        total: Counter,
    },
    /// Share of the last minute in which they worked, from 0 to 1.
    LastMinute(f64),
}

/// Time in which a disk had requests: counted, or as an average of the NAS.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DiskBusy {
    /// Microseconds since the start of the NAS.
    Counted(Counter),
    /// Share of the last minute, from 0 to 1.
    LastMinute(f64),
}

/// Counters of one disk of a NAS. `None`: the NAS does not tell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NasDisk {
    /// Name of the disk on the NAS, such as `sda`.
    pub name: String,
    /// Number of read requests.
    pub reads: Option<Counter>,
    /// Number of write requests.
    pub writes: Option<Counter>,
    /// Number of bytes read.
    pub read_bytes: Option<Counter>,
    /// Number of bytes written.
    pub written_bytes: Option<Counter>,
    /// Sum of the durations of read requests, in microseconds.
    pub read_time: Option<Counter>,
    /// Sum of the durations of write requests, in microseconds.
    pub write_time: Option<Counter>,
    /// Time in which the disk had requests.
    pub busy: Option<DiskBusy>,
}

/// One reading of the counters of a NAS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NasReading {
    /// Time of this computer at which the reading was complete.
    pub at: Timestamp,
    /// Number that changes when the counters start again, such as the start time of the NAS in seconds. `None`: unknown.
    pub start: Option<NasStart>,
    /// Processors. `None`: the NAS does not tell.
    pub processors: Option<NasProcessors>,
    /// Disks, in the order of the NAS. Partitions are left out.
    pub disks: Vec<NasDisk>,
    /// Shortest time between two readings about which the processor counters tell something: some are updated rarely.
    pub min_processor_span: Duration,
    /// Shortest time between two readings about which the disk counters tell something.
    pub min_disk_span: Duration,
}

/// Age of the counters of a NAS: the next reading tells from it if they were reset in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NasStart {
    /// Time at which the NAS started, in seconds since 1970. A clock that is set moves it.
    BootTime(u64),
    /// Time since the NAS or its SNMP agent started.
    Uptime(Duration),
}

impl NasStart {
    /// Returns whether the counters were reset between an earlier reading and this one.
    fn is_reset_since(self, earlier: Self) -> bool {
        /// Largest step of the boot time that a clock being set causes; a NAS takes longer to start.
        const MAX_STEP_SECONDS: u64 = 10;
        match (earlier, self) {
            (Self::BootTime(before), Self::BootTime(now)) => now.saturating_sub(before) > MAX_STEP_SECONDS,
            (Self::Uptime(before), Self::Uptime(now)) => now < before,
            _ => true,
        }
    }
}

/// A figure that a NAS may tell about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NasFigure {
    /// Work of its processors.
    Processors,
    /// Its disks.
    Disks,
    /// Time in which each disk was busy, counted.
    DiskBusyTime,
    /// Time that the requests to each disk took.
    DiskRequestTime,
    /// Bytes that each disk read and wrote.
    DiskBytes,
}

impl NasReading {
    /// Returns the figures that the NAS does not tell.
    pub fn missing(&self) -> Vec<NasFigure> {
        let no_disk = |has: fn(&NasDisk) -> bool| !self.disks.is_empty() && !self.disks.iter().any(has);
        let missing = [
            (NasFigure::Processors, self.processors.is_none()),
            (NasFigure::Disks, self.disks.is_empty()),
            (NasFigure::DiskBusyTime, no_disk(|disk| matches!(disk.busy, Some(DiskBusy::Counted(_))))),
            (NasFigure::DiskRequestTime, no_disk(|disk| disk.read_time.is_some())),
            (NasFigure::DiskBytes, no_disk(|disk| disk.read_bytes.is_some())),
        ];
        missing.into_iter().filter(|(_, is_missing)| *is_missing).map(|(figure, _)| figure).collect()
    }
}

/// Use of the disks and processors of a NAS between two readings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NasUse {
    /// Seconds between the two readings, on the clock of this computer.
    pub seconds: f64,
    /// Share of the time in which the processors worked, from 0 to 1. `None`: unknown.
    pub processor_share: Option<f64>,
    /// Disks, the busiest one first. Empty: the NAS tells nothing about its disks, or the time was too short.
    pub disks: Vec<DiskUse>,
}

/// Use of one disk of a NAS between two readings. `None`: unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DiskUse {
    /// Name of the disk on the NAS. It is neither exported nor sent.
    pub name: String,
    /// Share of the time in which the disk had requests, from 0 to 1.
    pub busy_share: Option<f64>,
    /// Sum of the durations of all requests, in seconds. Requests at the same time count each.
    pub request_seconds: Option<f64>,
    /// Number of requests.
    pub requests: Option<u64>,
    /// Number of bytes read and written.
    pub bytes: Option<u64>,
}

impl NasUse {
    /// Returns the use between two readings that are `elapsed` apart. `None`: the counters were reset, or no time passed.
    ///
    /// A disk that only one of the readings has is left out.
    pub fn between(before: &NasReading, after: &NasReading, elapsed: Duration) -> Option<Self> {
        let is_reset = match (before.start, after.start) {
            (Some(before), Some(after)) => after.is_reset_since(before),
            (None, None) => false,
            _ => true,
        };
        if is_reset || elapsed.is_zero() {
            return None;
        }
        let disk = |after: &NasDisk| {
            let before = before.disks.iter().find(|before| before.name == after.name)?;
            Some(DiskUse::between(before, after, elapsed))
        };
        let mut disks: Vec<DiskUse> = match elapsed >= after.min_disk_span {
            true => after.disks.iter().filter_map(disk).collect(),
            false => vec![],
        };
        disks.sort_by(|a, b| b.busyness().partial_cmp(&a.busyness()).unwrap_or(std::cmp::Ordering::Equal));
        let processors = after.processors.filter(|_| elapsed >= after.min_processor_span);
        let processor_share = processor_share(before.processors, processors, elapsed);
        Some(Self { seconds: elapsed.as_secs_f64(), processor_share, disks })
    }

    /// Returns the disk that was busy for the largest share. `None`: nothing is known about disks.
    pub fn busiest_disk(&self) -> Option<&DiskUse> {
        self.disks.first()
    }
}

impl DiskUse {
    fn between(before: &NasDisk, after: &NasDisk, elapsed: Duration) -> Self {
        let growth =
            |counter: fn(&NasDisk) -> Option<Counter>| counter(after)?.growth_since(counter(before)?);
        let sum = |a: Option<u64>, b: Option<u64>| a.and_then(|a| a.checked_add(b?));
        let requests = sum(growth(|disk| disk.reads), growth(|disk| disk.writes));
        let bytes = sum(growth(|disk| disk.read_bytes), growth(|disk| disk.written_bytes));
        let request_us = sum(growth(|disk| disk.read_time), growth(|disk| disk.write_time));
        Self {
            name: after.name.clone(),
            busy_share: busy_share(before.busy, after.busy, elapsed),
            request_seconds: request_us.map(|us| us as f64 / 1e6),
            requests,
            bytes,
        }
    }

    /// Returns a key by which disks are compared: share, then time of requests, then their number.
    fn busyness(&self) -> (f64, f64, u64) {
        let or_zero = |value: Option<f64>| value.unwrap_or(0.0);
        (or_zero(self.busy_share), or_zero(self.request_seconds), self.requests.unwrap_or(0))
    }
}

fn processor_share(
    before: Option<NasProcessors>,
    after: Option<NasProcessors>,
    elapsed: Duration,
) -> Option<f64> {
    match (before?, after?) {
        (
            NasProcessors::Counted { busy: busy_before, total: total_before },
            NasProcessors::Counted { busy, total },
        ) => {
            let (busy, total) = (busy.growth_since(busy_before)?, total.growth_since(total_before)?);
            (total > 0).then(|| share(busy as f64 / total as f64))
        }
        (NasProcessors::LastMinute(_), NasProcessors::LastMinute(value)) => average(value, elapsed),
        _ => None,
    }
}

fn busy_share(before: Option<DiskBusy>, after: Option<DiskBusy>, elapsed: Duration) -> Option<f64> {
    match (before?, after?) {
        (DiskBusy::Counted(before), DiskBusy::Counted(after)) => {
            let busy = Duration::from_micros(after.growth_since(before)?);
            Some(share(busy.as_secs_f64() / elapsed.as_secs_f64()))
        }
        (DiskBusy::LastMinute(_), DiskBusy::LastMinute(value)) => average(value, elapsed),
        _ => None,
    }
}

/// Returns an average of the last minute, unless most of that minute lies before the first reading.
fn average(value: f64, elapsed: Duration) -> Option<f64> {
    (elapsed >= AVERAGE_PERIOD && value.is_finite()).then(|| share(value))
}

/// Limits a share: counters are read one after the other, so that it can be slightly above 1.
fn share(value: f64) -> f64 {
    value.clamp(0.0, 1.0)
}

/// Reason why the use of a NAS during a run is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NasProblem {
    /// The NAS did not answer in time.
    Timeout,
    /// The NAS cannot be reached, or its name cannot be resolved.
    Unreachable,
    /// The NAS refuses the credentials, or the user may not read the counters.
    Refused,
    /// The credentials are missing or cannot be read on this computer.
    NoCredentials,
    /// The answer is not what was asked for.
    InvalidAnswer,
    /// The answer is longer than any real one.
    TooLarge,
    /// The answer contains neither disks nor processors.
    Nothing,
    /// The counters were reset between the two readings.
    Reset,
    /// The NAS failed several times in this round and was not asked again.
    NotAsked,
}

/// Use of the NAS during a run, or the reason why it is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct RunNasUse {
    /// Number of the run in the database.
    pub run: i64,
    /// Use from just before to just after the run.
    pub found: Result<NasUse, NasProblem>,
}

stored_names! { NasProblem }

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn disk(name: &str, busy_us: u64, reads: u32) -> NasDisk {
        NasDisk {
            name: name.to_owned(),
            reads: Some(Counter::narrow(reads)),
            writes: Some(Counter::narrow(0)),
            busy: Some(DiskBusy::Counted(Counter::wide(busy_us))),
            ..NasDisk::default()
        }
    }

    fn reading(uptime_s: u64, disks: Vec<NasDisk>) -> NasReading {
        let start = Some(NasStart::Uptime(Duration::from_secs(uptime_s)));
        NasReading { start, disks, ..NasReading::default() }
    }

    #[test]
    fn busiest_disk_comes_first() {
        let before = reading(100, vec![disk("sda", 0, 5), disk("sdb", 1_000_000, 5)]);
        let after = reading(110, vec![disk("sda", 1_000_000, 9), disk("sdb", 5_000_000, 6)]);
        let found = NasUse::between(&before, &after, Duration::from_secs(10)).unwrap();
        let shares: Vec<_> = found.disks.iter().map(|disk| (disk.name.as_str(), disk.busy_share)).collect();
        assert_eq!(shares, [("sdb", Some(0.4)), ("sda", Some(0.1))]);
        assert_eq!(found.busiest_disk().and_then(|disk| disk.requests), Some(1));
        assert_eq!(found.busiest_disk().and_then(|disk| disk.bytes), None);
    }

    #[test]
    fn restarted_nas_has_no_use() {
        let (before, after) = (reading(100, vec![disk("sda", 5, 5)]), reading(3, vec![disk("sda", 9, 9)]));
        assert_eq!(NasUse::between(&before, &after, Duration::from_secs(10)), None);
        let boot = |at| NasReading { start: Some(NasStart::BootTime(at)), ..NasReading::default() };
        assert_eq!(NasUse::between(&boot(1000), &boot(1100), Duration::from_secs(10)), None);
        assert!(NasUse::between(&boot(1000), &boot(1001), Duration::from_secs(10)).is_some());
    }

    #[test]
    fn counter_of_32_bits_starts_again_at_zero() {
        let (before, after) = (Counter::narrow(u32::MAX - 9), Counter::narrow(20));
        assert_eq!(after.growth_since(before), Some(30));
        assert_eq!(Counter::wide(20).growth_since(Counter::wide(u64::MAX - 9)), None);
        assert_eq!(Counter::narrow(20).growth_since(Counter::narrow(1000)), None, "a reset, not a wrap");
    }

    #[test]
    fn averages_of_a_minute_say_nothing_about_a_short_run() {
        let average =
            NasReading { processors: Some(NasProcessors::LastMinute(0.5)), ..NasReading::default() };
        let share = |seconds| {
            NasUse::between(&average, &average, Duration::from_secs(seconds)).unwrap().processor_share
        };
        assert_eq!((share(59), share(60)), (None, Some(0.5)));
    }

    #[test]
    fn rarely_updated_counters_say_nothing_about_a_short_run() {
        let slow =
            NasReading { min_disk_span: Duration::from_secs(2), ..reading(1, vec![disk("sda", 5, 5)]) };
        let disks = |ms| NasUse::between(&slow, &slow, Duration::from_millis(ms)).unwrap().disks.len();
        assert_eq!((disks(1999), disks(2000)), (0, 1));
    }

    #[test]
    fn disk_that_appears_in_between_is_left_out() {
        let (before, after) = (reading(1, vec![]), reading(2, vec![disk("sda", 5, 5)]));
        assert_eq!(NasUse::between(&before, &after, Duration::from_secs(1)).unwrap().disks, []);
    }

    proptest! {
        #[test]
        fn growth_never_exceeds_the_limit(now: u32, before: u32) {
            let growth = Counter::narrow(now).growth_since(Counter::narrow(before));
            prop_assert!(growth.is_none_or(|growth| growth < 1 << 32));
        }

        #[test]
        fn shares_are_between_0_and_1(a: u64, b: u64, c: u64, d: u64, us in 1_u64..10_000_000_000) {
            let counted = |busy, total| NasReading {
                processors: Some(NasProcessors::Counted { busy: Counter::wide(busy), total: Counter::wide(total) }),
                disks: vec![disk("sda", busy, 1)],
                ..NasReading::default()
            };
            let found = NasUse::between(&counted(a, b), &counted(c, d), Duration::from_micros(us)).unwrap();
            let shares = [found.processor_share, found.disks[0].busy_share];
            prop_assert!(shares.into_iter().flatten().all(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
