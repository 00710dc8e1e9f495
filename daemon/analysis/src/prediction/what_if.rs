//! Answers: the time of each metric with another network or disk.

use std::time::Duration;

use super::model::{Model, NetworkAndDisk, NoPrediction, Prediction, TimedRun};
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
    /// Number of runs that a model can be fitted to.
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
    let (key, count) = (key.clone(), runs.iter().filter(|run| run.is_valid()).count());
    match Model::fit(runs) {
        Err(reason) => Answer { key, runs: count, usual: None, changed: Err(reason) },
        Ok(model) => {
            let usual = model.usual();
            let changed = model.predict(change.applied_to(usual));
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

    #[test]
    fn runs_that_no_model_uses_are_not_counted() {
        let run = |round_trip_ms| TimedRun {
            environment: NetworkAndDisk {
                round_trip: Duration::from_millis(round_trip_ms),
                bytes_per_second: 1e8,
                disk: None,
            },
            seconds: 1.0,
            bytes: 1e6,
        };
        let key = TargetMetric {
            target: "smb".parse().unwrap(),
            workload: "time-machine".to_owned(),
            metric: "burst".to_owned(),
        };
        // A round trip time of zero is below the resolution.
        let runs: Vec<TimedRun> = [0, 0, 0].into_iter().chain(1..=12).map(run).collect();
        let answer = answer(&key, &runs, AssumedChange::default());
        assert_eq!((answer.runs, answer.usual.is_some()), (12, true));
    }
}
