//! Answers: the time of each metric with another network or disk.

use std::time::Duration;

use super::conditions::{NetworkAndDisk, NoPrediction, TimedRun};
use super::model::{FittedRuns, Prediction, fitted_runs};
use super::runs::{TargetMetric, TimedRuns};

/// Payload share of a bandwidth, because each segment of 1,448 bytes has 90 bytes of headers and gaps on Ethernet.
const PAYLOAD: f64 = 1448.0 / 1538.0;

/// Change of the network or disk. `None`: as it usually was.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AssumedChange {
    /// Round-trip time to the server.
    pub round_trip: Option<Duration>,
    /// Bandwidth of the path in bits per second, with all headers.
    pub bits_per_second: Option<f64>,
    /// Time of a request to the disk of the NAS.
    pub disk: Option<Duration>,
}

/// Time of a metric on a target, as it usually is and with the change.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Target and metric.
    pub key: TargetMetric,
    /// Number of runs that the model is or would be fitted to.
    pub runs: usize,
    /// Time as it usually is, by the model; `None` if there is no model.
    pub usual: Option<Prediction>,
    /// Time with the change, or the reason why it is not known.
    pub changed: Result<Prediction, NoPrediction>,
}

/// Returns an answer for each metric of each target that was measured.
pub fn what_if(runs: &TimedRuns, change: AssumedChange) -> Vec<Answer> {
    runs.iter().map(|(key, runs)| answer(key, runs, change)).collect()
}

fn answer(key: &TargetMetric, runs: &[TimedRun], change: AssumedChange) -> Answer {
    let (key, count) = (key.clone(), fitted_runs(runs).len());
    match FittedRuns::of(runs) {
        Err(reason) => Answer { key, runs: count, usual: None, changed: Err(reason) },
        Ok(fitted) => {
            let model = fitted.model(None);
            let usual = model.usual();
            let changed = fitted.model(change.round_trip).predict(change.applied_to(usual));
            Answer { key, runs: count, usual: model.predict(usual).ok(), changed }
        }
    }
}

impl AssumedChange {
    fn applied_to(self, usual: NetworkAndDisk) -> NetworkAndDisk {
        NetworkAndDisk {
            round_trip: self.round_trip.unwrap_or(usual.round_trip),
            bytes_per_second: self
                .bits_per_second
                .map_or(usual.bytes_per_second, |bits| bits / 8.0 * PAYLOAD),
            disk: self.disk.or(usual.disk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TargetMetric {
        TargetMetric {
            target: "smb".parse().unwrap(),
            workload: "time-machine".to_owned(),
            metric: "burst".to_owned(),
        }
    }

    /// Returns a run of 0.1 s, 10 round trips and, if its time is known, 20 disk requests.
    fn run(round_trip_ms: u64, disk_ms: Option<u64>) -> TimedRun {
        TimedRun {
            environment: NetworkAndDisk {
                round_trip: Duration::from_millis(round_trip_ms),
                bytes_per_second: 1e8,
                disk: disk_ms.map(Duration::from_millis),
            },
            seconds: 0.1 + 0.01 * round_trip_ms as f64 + 0.02 * disk_ms.unwrap_or(0) as f64,
            bytes: 1e6,
            trips: None,
        }
    }

    #[test]
    fn runs_that_no_model_uses_are_not_counted() {
        // A round trip time of zero is below the resolution.
        let runs: Vec<TimedRun> = [0, 0, 0].into_iter().chain(1..=12).map(|ms| run(ms, None)).collect();
        let answer = answer(&key(), &runs, AssumedChange::default());
        assert_eq!((answer.runs, answer.usual.is_some()), (12, true));
    }

    #[test]
    fn one_run_without_a_disk_time_does_not_hide_the_disk() {
        let mut runs: Vec<TimedRun> = (0..40).map(|index| run(1 + index % 5, Some(1 + index % 8))).collect();
        runs[7].environment.disk = None;
        let ssd = AssumedChange { disk: Some(Duration::from_micros(100)), ..AssumedChange::default() };
        let found = answer(&key(), &runs, ssd);
        let (usual, changed) = (found.usual.unwrap().seconds, found.changed.unwrap().seconds);
        assert!(found.runs == 39 && changed < 0.8 * usual, "{usual} {changed}");
    }
}
