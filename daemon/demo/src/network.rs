//! The made-up network: a round-trip time that drifts from day to day, and the times of requests over it.

use longhaul_model::{CacheState, Phase, RequestTimes, RequestTotals, Task, TcpCounters, WireTraffic};
use longhaul_model::{CounterScope, CounterSource};

/// Usual round-trip time, in microseconds.
const USUAL_ROUND_TRIP_US: f64 = 1_200.0;
/// Rate of the network in bytes per second: a gigabit, in good weather.
const BYTES_PER_SECOND: f64 = 1.1e8;
/// Bytes that a Time Machine burst sends, from which the bandwidth of a round is told.
const BULK_BYTES: u64 = 400_000_000;

/// Network in one round.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedNetwork {
    /// Round-trip time, in microseconds.
    pub round_trip_us: u64,
}

impl SimulatedNetwork {
    /// Returns the network at a deviation from the usual, in standard deviations.
    pub fn at(deviation: f64) -> Self {
        Self { round_trip_us: (USUAL_ROUND_TRIP_US * (0.45 * deviation).exp()) as u64 }
    }

    /// Returns the factor by which a task takes longer than with the usual round-trip time.
    pub fn slowdown(self, task: &Task, target: &str) -> f64 {
        let share = share_of_round_trips(task, target);
        1.0 + share * (self.round_trip_us as f64 / USUAL_ROUND_TRIP_US - 1.0)
    }

    /// Adds the requests of a phase, and their times: those of round trips, and of the server.
    pub fn add_requests(self, phase: &mut Phase, task: &Task, target: &str) {
        let slowdown = self.slowdown(task, target);
        let usual = phase.seconds / slowdown;
        let trips = usual * share_of_round_trips(task, target) * 1e6 / USUAL_ROUND_TRIP_US;
        let microseconds = |share: f64| Some((phase.seconds * share * 1e6) as u64);
        phase.request_times = Some(RequestTimes {
            requests: RequestTotals {
                answered: Some(trips as u64),
                queue_us: microseconds(0.01),
                answer_us: microseconds(0.86),
                execute_us: microseconds(0.88),
            },
            tcp: TcpCounters {
                min_rtt_us: Some(self.round_trip_us),
                delivery_rate: Some(BYTES_PER_SECOND as u64),
                ..TcpCounters::default()
            },
            retransmits: Some(0),
            processor_us: microseconds(0.1),
            processor_wait_us: Some(0),
            kernel_us: microseconds(0.02),
            ..RequestTimes::default()
        });
        // Warm phases keep no traffic: it would say that the clients cache nothing.
        if phase.cache != CacheState::Warm {
            phase.wire = Some(WireTraffic {
                read: Some(phase.bytes_read + phase.bytes_read / 64),
                written: Some(if phase.name == "burst" { BULK_BYTES } else { 0 }),
                requests: Some(trips as u64),
                listings: None,
                source: CounterSource::Mountstats,
                scope: CounterScope::Mount,
            });
        }
    }
}

/// Returns the share of a task's usual time that is spent in round trips.
fn share_of_round_trips(task: &Task, target: &str) -> f64 {
    let share = match task.name() {
        "folder-index" => 0.5,
        "incremental-backup" => 0.4,
        _ => 0.15,
    };
    if target == "nfs" { share * 0.6 } else { share }
}
