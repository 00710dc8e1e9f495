//! The runs that models are fitted to, from phases and readings of the NAS.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::{PhaseTimes, RunNasUse, TargetName, WaitMetric, all_metrics};

use super::conditions::{NetworkAndDisk, TimedRun};
use crate::attribution::TripsInOrder;

/// Minimum traffic of a phase from which the bandwidth can be told: shorter ones end before a connection is at full speed.
const MIN_BYTES: u64 = 4_000_000;

/// Bytes of a request and its answer that counters of file bytes leave out: names, attributes and headers. Measured as 650 to
/// 890 bytes over NFS 4.2.
const BYTES_OF_A_REQUEST: f64 = 700.0;
/// Bytes of headers and gaps around a request and its answer on Ethernet, which counters of connections leave out.
const HEADERS_OF_A_REQUEST: f64 = 2.0 * 90.0;

/// A metric on a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetMetric {
    /// Target that was measured.
    pub target: TargetName,
    /// Name of the task.
    pub workload: String,
    /// Name of the metric in its task.
    pub metric: String,
}

/// Runs of each metric with their environment.
pub type TimedRuns = BTreeMap<TargetMetric, Vec<TimedRun>>;

/// Returns the runs of each metric with their environment. The phases are in the order of their runs. A round in which the
/// bandwidth or the round-trip time is not known is left out, and a metric that is not the duration of its phases. A metric of a
/// share whose runs are all left out has no runs, so that a reader learns that nothing is known about it.
///
/// The bandwidth of a target in a round is the highest rate of its phases, because no phase can be faster than the path. It is
/// only an estimate: a phase can be slowed down by a disk or by the length of the path.
pub fn timed_runs(phases: &[PhaseTimes], nas: &[RunNasUse]) -> TimedRuns {
    let bandwidths = bandwidths(phases);
    let disks: BTreeMap<i64, Duration> =
        nas.iter().filter_map(|found| Some((found.run, disk_time(found)?))).collect();
    let mut runs = TimedRuns::new();
    for own in phases.chunk_by(|one, next| one.run == next.run) {
        let first = &own[0];
        let environment = environment(first, &bandwidths, &disks);
        for (metric, seconds) in metrics(own) {
            let key = TargetMetric {
                target: first.target.clone(),
                workload: first.workload.clone(),
                metric: metric.name.to_owned(),
            };
            let run = environment.zip(bytes(metric, seconds, own));
            let run = run.map(|(environment, bytes)| {
                let trips = trips(metric, own);
                TimedRun { environment, seconds, bytes, trips }
            });
            if run.is_some() || first.is_on_network() {
                runs.entry(key).or_default().extend(run);
            }
        }
    }
    runs
}

/// Returns the environment of a phase's run; `None` if its round-trip time or the bandwidth in its round is not known.
fn environment(
    phase: &PhaseTimes,
    bandwidths: &BTreeMap<(&TargetName, i64), f64>,
    disks: &BTreeMap<i64, Duration>,
) -> Option<NetworkAndDisk> {
    Some(NetworkAndDisk {
        round_trip: Duration::from_micros(phase.round_trip_us?),
        bytes_per_second: *bandwidths.get(&(&phase.target, phase.round))?,
        disk: disks.get(&phase.run).copied(),
    })
}

/// Returns the metrics of a run that are the duration of phases, with their times.
fn metrics(phases: &[PhaseTimes]) -> impl Iterator<Item = (&'static WaitMetric, f64)> {
    let first = &phases[0];
    let of_task =
        all_metrics().filter(move |(task, metric)| task.name() == first.workload && !metric.is_one_of_many());
    of_task.filter_map(|(_, metric)| {
        let found = first.metrics.iter().find(|found| found.metric == metric.name)?;
        Some((metric, found.seconds))
    })
}

/// Returns the bytes on the wire during a metric; `None` if no counter counted them in one of its phases, or if its time is not
/// their duration.
fn bytes(metric: &WaitMetric, seconds: f64, phases: &[PhaseTimes]) -> Option<f64> {
    /// Smallest share of the phases' duration that the metric must have.
    const MIN_SHARE: f64 = 0.5;
    let own: Vec<&PhaseTimes> =
        phases.iter().filter(|phase| metric.covers(&phase.phase, phase.cache)).collect();
    let duration: f64 = own.iter().map(|phase| phase.seconds).sum();
    if seconds < MIN_SHARE * duration {
        return None;
    }
    own.iter().map(|phase| phase_bytes(phase)).sum()
}

/// Returns the bytes on the wire during a phase; `None` if nothing counted them.
fn phase_bytes(phase: &PhaseTimes) -> Option<f64> {
    let files = phase.wire_read?.saturating_add(phase.wire_written?) as f64;
    // A source that counts no requests counts all bytes, with their headers.
    let requests = phase.wire_requests.map_or(0.0, |requests| requests as f64);
    let of_connections = phase.times.as_ref().and_then(|times| times.sent_bytes.zip(times.received_bytes));
    Some(match of_connections {
        Some((sent, received)) => files.max((sent + received) as f64) + requests * HEADERS_OF_A_REQUEST,
        None => files + requests * BYTES_OF_A_REQUEST,
    })
}

/// Returns the round trips of a metric; `None` if they are not known of one of its phases.
fn trips(metric: &WaitMetric, phases: &[PhaseTimes]) -> Option<TripsInOrder> {
    let own = phases.iter().filter(|phase| metric.covers(&phase.phase, phase.cache));
    own.map(TripsInOrder::of).sum()
}

/// Returns the highest rate of each target in each round, in bytes per second.
fn bandwidths(phases: &[PhaseTimes]) -> BTreeMap<(&TargetName, i64), f64> {
    let mut bandwidths = BTreeMap::new();
    for phase in phases {
        let bytes = phase.wire_read.unwrap_or(0).saturating_add(phase.wire_written.unwrap_or(0));
        if bytes >= MIN_BYTES && phase.seconds > 0.0 {
            let highest: &mut f64 = bandwidths.entry((&phase.target, phase.round)).or_default();
            *highest = highest.max(bytes as f64 / phase.seconds);
        }
    }
    bandwidths
}

/// Returns the mean time of a request to the busiest disk during a run, zero if it had none; `None` if it is not known.
fn disk_time(found: &RunNasUse) -> Option<Duration> {
    let disk = found.found.as_ref().ok()?.busiest_disk()?;
    let (seconds, requests) = (disk.request_seconds?, disk.requests?);
    Duration::try_from_secs_f64(if requests > 0 { seconds / requests as f64 } else { 0.0 }).ok()
}

#[cfg(test)]
mod tests {
    use longhaul_model::{
        CacheState, CallTotals, DiskUse, MetricSeconds, NasProblem, NasUse, Protocol, RequestTimes,
    };

    use super::*;

    fn phase(run: i64, round: i64, megabytes: u64) -> PhaseTimes {
        PhaseTimes {
            run,
            round,
            target: "nfs".parse().unwrap(),
            protocol: None,
            workload: "time-machine".to_owned(),
            metrics: vec![MetricSeconds { metric: "burst".to_owned(), seconds: 3.0 }],
            round_trip_us: Some(2000),
            send_rate: None,
            phase: "burst".to_owned(),
            cache: CacheState::None,
            seconds: 2.0,
            calls: CallTotals::default(),
            wire_read: Some(0),
            wire_written: Some(megabytes * 1_000_000),
            wire_requests: None,
            times: None,
        }
    }

    fn nas(run: i64, requests: u64) -> RunNasUse {
        let disk = DiskUse { request_seconds: Some(1.0), requests: Some(requests), ..DiskUse::default() };
        RunNasUse { run, found: Ok(NasUse { disks: vec![disk], ..NasUse::default() }) }
    }

    fn only_runs(phases: &[PhaseTimes], nas: &[RunNasUse]) -> Vec<TimedRun> {
        timed_runs(phases, nas).into_values().next().unwrap_or_default()
    }

    #[test]
    fn bandwidth_is_the_highest_rate_of_the_round() {
        let other = PhaseTimes { phase: "speed-large".to_owned(), ..phase(1, 1, 50) };
        let runs = only_runs(&[phase(1, 1, 20), other, phase(2, 2, 10)], &[nas(1, 100)]);
        let rates: Vec<f64> = runs.iter().map(|run| run.environment.bytes_per_second / 1e6).collect();
        assert_eq!(rates, [25.0, 5.0], "one for each run");
        let disks: Vec<_> = runs.iter().map(|run| run.environment.disk).collect();
        assert_eq!(disks, [Some(Duration::from_millis(10)), None]);
        assert_eq!((runs[0].seconds, runs[0].environment.round_trip), (3.0, Duration::from_millis(2)));
        assert_eq!(runs[1].bytes, 1e7, "those of its phases");
    }

    #[test]
    fn metric_that_is_not_the_duration_of_its_phases_is_left_out() {
        let paced = PhaseTimes { seconds: 10.0, ..phase(1, 1, 50) };
        assert_eq!(only_runs(&[paced], &[]), []);
        // As long as its phase by chance, it is no duration either.
        let metrics = vec![MetricSeconds { metric: "switch-cold".to_owned(), seconds: 2.0 }];
        let browse = PhaseTimes {
            workload: "photo-batch".to_owned(),
            metrics,
            phase: "browse".to_owned(),
            cache: CacheState::Cold,
            ..phase(1, 1, 50)
        };
        assert_eq!(only_runs(&[browse], &[]), []);
    }

    #[test]
    fn bytes_that_nothing_counted_are_not_taken_for_none() {
        let uncounted = PhaseTimes { wire_read: None, wire_written: None, ..phase(1, 1, 50) };
        let other = PhaseTimes { phase: "speed-large".to_owned(), ..phase(1, 1, 50) };
        assert_eq!(only_runs(&[uncounted, other], &[]), []);
    }

    #[test]
    fn bytes_that_were_counted_on_the_connection_are_not_estimated() {
        let small = PhaseTimes { wire_written: Some(0), wire_requests: Some(1000), ..phase(1, 1, 0) };
        let times = |sent| RequestTimes {
            sent_bytes: Some(sent),
            received_bytes: Some(90_000),
            ..RequestTimes::default()
        };
        assert_eq!(phase_bytes(&small), Some(700_000.0));
        assert_eq!(phase_bytes(&PhaseTimes { times: Some(times(30_000)), ..small }), Some(300_000.0));
        let file = PhaseTimes { wire_requests: Some(10), times: Some(times(0)), ..phase(1, 1, 50) };
        assert_eq!(phase_bytes(&file), Some(50_001_800.0), "another connection of the share carried it");
    }

    #[test]
    fn share_of_which_nothing_is_known_has_no_runs() {
        let unknown =
            PhaseTimes { protocol: Some(Protocol::Smb(None)), round_trip_us: None, ..phase(1, 1, 50) };
        let runs = timed_runs(&[unknown], &[]);
        assert_eq!(runs.into_values().collect::<Vec<_>>(), [vec![]], "one metric of one share");
    }

    #[test]
    fn run_without_round_trip_or_bandwidth_is_left_out() {
        let unknown = PhaseTimes { round_trip_us: None, ..phase(1, 1, 50) };
        assert_eq!(only_runs(&[unknown, phase(2, 2, 1)], &[]), []);
    }

    #[test]
    fn disk_without_requests_took_no_time() {
        let failed = RunNasUse { run: 1, found: Err(NasProblem::Timeout) };
        assert_eq!((disk_time(&nas(1, 0)), disk_time(&failed)), (Some(Duration::ZERO), None));
        let uncounted = DiskUse { request_seconds: Some(1.0), requests: None, ..DiskUse::default() };
        let found = Ok(NasUse { disks: vec![uncounted], ..NasUse::default() });
        assert_eq!(disk_time(&RunNasUse { run: 1, found }), None);
    }
}
