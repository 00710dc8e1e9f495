//! Simulates what is stored about the slow calls of one target, with or without a cause of slow calls.
//!
//! The calls of a run are made one after the other, and the same eight slowest and eight random calls of a phase are kept
//! as by the flight recorder. The noise is assumed: heavy tails, pauses at random times, slow disks, and workloads with a
//! rhythm of their own.

use std::time::Duration;

use longhaul_model::stored::StoredCalls;
use longhaul_model::time::{HOUR, SECOND};
use longhaul_model::{
    CacheState, Call, CounterScope, CounterSource, Event, KeepReason, LoadContext, Operation, ProbeKind,
    ProbeStep, Resolution, Scale, Stall, TargetName, Timestamp, Traffic, TrafficStep,
};
use serde_json::json;

use super::noise::Noise;
use crate::stalls::{StallCause, TargetObservations};

/// Longest number of calls of a simulated phase.
const MAX_CALLS: usize = 1500;
/// Number of workloads in a round, and the probability that one of them has a rhythm of its own.
const WORKLOADS: u64 = 6;
const RHYTHM_CHANCE: f64 = 0.3;
/// Seconds between two requests of the probe, of all kinds together.
const PROBE_INTERVAL: f64 = 5.0;
/// Start of simulated time: a full hour.
const START: i64 = 1_760_000_400_000_000;

/// Cause of slow calls that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injection {
    /// Only noise.
    None,
    /// Pulses of 80 to 90 ms every 1.5 s.
    Pulses,
    /// Pauses of 0.1 to 0.8 s about every 5 s.
    ShortCommit,
    /// Pauses of 0.3 to 3 s about every 30 s.
    LongCommit,
    /// Calls that wait 200 ms for a lost packet; a few wait twice.
    Loss,
    /// Calls that wait 40 ms for an acknowledgement.
    DelayedAck,
    /// Stalls after idle times.
    SpinUp,
    /// Slow times of 10 to 25 minutes from the full hour on.
    Backup,
    /// Single stalls with an event of this cause.
    Event(StallCause),
}

impl Injection {
    /// Returns the cause that should be named; `None` for noise.
    pub fn cause(self) -> Option<StallCause> {
        Some(match self {
            Self::None => return None,
            Self::Pulses => StallCause::PeriodicPulses,
            Self::ShortCommit | Self::LongCommit => StallCause::Commit,
            Self::Loss => StallCause::RetransmissionTimeout,
            Self::DelayedAck => StallCause::DelayedAck,
            Self::SpinUp => StallCause::DiskSpinUp,
            Self::Backup => StallCause::OnTheHour,
            Self::Event(cause) => cause,
        })
    }
}

/// Pauses of a phase: each blocks all calls that begin in it until its end.
struct Pauses(Vec<[f64; 2]>);

/// Noise of one target that stays the same in all hours.
struct World {
    injection: Injection,
    /// Median duration of a call in seconds, its spread, and the probability of a much slower one.
    median: f64,
    spread: f64,
    tail: f64,
    /// Random pauses per minute.
    pauses: f64,
    has_retransmit_counter: bool,
    probes_always: bool,
    /// Workload that pauses by itself at a fixed interval.
    rhythm: Option<u64>,
}

/// Simulates hours of a target.
pub fn simulated_observations(seed: u64, hours: u32, injection: Injection) -> TargetObservations {
    let mut noise = Noise::new(seed);
    let target: TargetName = "smb".parse().unwrap_or_else(|_| unreachable!("a valid name"));
    let mut observations = TargetObservations::new(target);
    let world = World::draw(injection, &mut noise);
    for hour in 0..hours {
        let from = Timestamp::from_us(START) + HOUR * hour;
        let round = from + SECOND * (600 + noise.uniform_below(2400) as u32);
        world.round(&mut observations, round, &mut noise);
        world.probe(&mut observations, from, &mut noise);
        world.stalls(&mut observations, from, &mut noise);
        if injection == Injection::SpinUp && noise.bernoulli(0.8) {
            let stall = stall(round - SECOND * noise.uniform_below(40) as u32, 3.0 + 6.0 * noise.uniform());
            observations.stalls.push(stall);
        }
    }
    observations.stalls.sort_by_key(|stall| stall.started_us);
    observations
}

impl World {
    fn draw(injection: Injection, noise: &mut Noise) -> Self {
        // Where acknowledgements are delayed by 40 ms, round trips must be shorter for anyone to tell.
        let slowest: f64 = if injection == Injection::DelayedAck { 3.0 } else { 30.0 };
        Self {
            injection,
            median: 3e-4 * slowest.powf(noise.uniform()),
            spread: 0.2 + 0.6 * noise.uniform(),
            tail: 0.01 * noise.uniform(),
            pauses: 2.0 * noise.uniform().powi(2),
            has_retransmit_counter: noise.bernoulli(0.7),
            probes_always: noise.bernoulli(0.5) || injection == Injection::Backup,
            rhythm: noise.bernoulli(RHYTHM_CHANCE).then(|| noise.uniform_below(WORKLOADS)),
        }
    }

    /// Adds the runs of a round. A round takes a few minutes.
    fn round(&self, observations: &mut TargetObservations, from: Timestamp, noise: &mut Noise) {
        let mut at = 0.0;
        let pauses = self.draw_pauses(noise);
        for workload in 0..WORKLOADS {
            for phase in 0..1 + noise.uniform_below(3) {
                let length = 1.5 * 20f64.powf(noise.uniform());
                let (calls, until) = self.phase(&Phase { workload, from: at, length }, &pauses, noise);
                observations.calls.push(StoredCalls {
                    run: 1,
                    target: observations.target.clone(),
                    protocol: None,
                    workload: format!("workload-{workload}"),
                    scale: Scale::Standard,
                    phase: format!("phase-{phase}"),
                    cache: CacheState::Cold,
                    began: from + Duration::from_secs_f64(at),
                    calls,
                });
                at = until + 0.5 + 2.0 * noise.uniform();
            }
        }
    }

    /// Returns the pauses of ten minutes.
    fn draw_pauses(&self, noise: &mut Noise) -> Pauses {
        let mut pauses = vec![];
        let mut at = 0.0;
        while self.pauses > 0.0 && at < 600.0 {
            at += 60.0 / self.pauses * noise.exponential();
            pauses.push([at, at + 0.03 * 10f64.powf(1.2 * noise.uniform())]);
        }
        let mut at = 40.0 * noise.uniform();
        while at < 600.0 {
            let (pause, interval) = match self.injection {
                Injection::Pulses => (0.08 + 0.01 * noise.uniform(), 1.5),
                // A journal's timer starts anew after each commit.
                Injection::ShortCommit => (0.1 + 0.7 * noise.uniform(), 5.0 + 0.15 * noise.uniform()),
                Injection::LongCommit => (0.3 + 2.7 * noise.uniform(), 30.0 + 0.3 * noise.uniform()),
                _ => break,
            };
            pauses.push([at, at + pause]);
            at += interval;
        }
        pauses.sort_by(|one, other| one[0].total_cmp(&other[0]));
        Pauses(pauses)
    }

    fn phase(&self, phase: &Phase, pauses: &Pauses, noise: &mut Noise) -> (Vec<Call>, f64) {
        let usual = self.median * 4f64.powf(noise.uniform());
        let rhythm = (self.rhythm == Some(phase.workload)).then(|| 0.5 + 5.0 * noise.uniform());
        // Between calls, programs compute; some wait for their next second.
        let think = (phase.length / MAX_CALLS as f64 - usual).max(0.0);
        let paced = noise.bernoulli(0.15).then(|| 0.3 + 3.0 * noise.uniform());
        let (mut at, mut recent, mut calls) = (phase.from, -1.0, Kept::default());
        while at < phase.from + phase.length && calls.seen < MAX_CALLS {
            let mut duration = self.duration(usual, noise);
            if rhythm.is_some_and(|period| (at / period).floor() > (recent / period).floor()) {
                duration += 0.03 + 0.1 * noise.uniform();
            }
            recent = at;
            duration += self.timer(noise);
            let until = pauses.end(at, at + duration);
            let operation = if noise.bernoulli(0.3) { Operation::Getattr } else { Operation::Read };
            calls.add(operation, [at - phase.from, until - at], noise);
            at = until + think * noise.exponential();
            if let Some(period) = paced.filter(|_| noise.bernoulli(0.05)) {
                at = (at / period).ceil() * period;
            }
        }
        (calls.into_calls(), at)
    }

    fn duration(&self, usual: f64, noise: &mut Noise) -> f64 {
        let usual = usual * (self.spread * noise.normal()).exp();
        if noise.bernoulli(self.tail) { (usual * noise.uniform().powf(-1.5)).min(3.0) } else { usual }
    }

    /// Returns the time that a call waits for a timer of TCP.
    fn timer(&self, noise: &mut Noise) -> f64 {
        match self.injection {
            Injection::Loss if noise.bernoulli(0.01) => {
                let again = if noise.bernoulli(0.05) { 0.4 } else { 0.0 };
                0.2 + again + 0.012 * noise.uniform()
            }
            Injection::DelayedAck if noise.bernoulli(0.02) => 0.04 + 0.008 * noise.uniform(),
            _ => 0.0,
        }
    }

    /// Adds the steps of the probe and of the counters in an hour.
    fn probe(&self, observations: &mut TargetObservations, from: Timestamp, noise: &mut Noise) {
        let is_backup = self.injection == Injection::Backup && noise.bernoulli(0.6);
        let backup = 600.0 + 900.0 * noise.uniform();
        // A user's own work slows a share at any time.
        let busy =
            [3600.0 * noise.uniform(), 900.0 * noise.uniform() * f64::from(u8::from(noise.bernoulli(0.3)))];
        for step in 0..12u32 {
            let at = from + Resolution::FiveMinutes.length() * step;
            let is_used = self.probes_always || noise.bernoulli(0.3);
            let mut steps = ProbeKind::ALL
                .map(|kind| ProbeStep::new(observations.target.clone(), at, kind, LoadContext::Idle));
            for slot in 0..(300.0 / PROBE_INTERVAL) as u32 {
                let second = f64::from(step) * 300.0 + f64::from(slot) * PROBE_INTERVAL;
                let is_slow =
                    (is_backup && second < backup) || (second >= busy[0] && second < busy[0] + busy[1]);
                let queue =
                    if is_slow && noise.bernoulli(0.5) { 0.02 * 10f64.powf(noise.uniform()) } else { 0.0 };
                let seconds = self.duration(self.median, noise) + queue + self.timer(noise);
                steps[slot as usize % 3].latency.record((seconds * 1e9) as u64);
            }
            if is_used && self.injection != Injection::SpinUp {
                observations.probes.extend(steps);
                observations.traffic.push(self.traffic(observations, at, noise));
            }
        }
    }

    fn traffic(&self, observations: &TargetObservations, at: Timestamp, noise: &mut Noise) -> TrafficStep {
        let lost = if self.injection == Injection::Loss {
            1 + noise.uniform_below(20)
        } else {
            noise.uniform_below(2)
        };
        let traffic = Traffic {
            user_read: Some(0),
            user_written: Some(0),
            requests: Some(0),
            retransmits: self.has_retransmit_counter.then_some(lost),
            reconnects: Some(0),
            ..Traffic::new(CounterSource::Connections, CounterScope::Server, 300.0)
        };
        TrafficStep::new(Some(observations.target.clone()), at, traffic)
    }

    /// Adds stalls and events of an hour, together only if an event is injected.
    fn stalls(&self, observations: &mut TargetObservations, from: Timestamp, noise: &mut Noise) {
        let within = |noise: &mut Noise| from + Duration::from_secs_f64(3600.0 * noise.uniform());
        if noise.bernoulli(0.1) {
            observations.stalls.push(stall(within(noise), 1.0 + 3.0 * noise.exponential()));
        }
        for cause in [StallCause::Reconnect, StallCause::Wake, StallCause::LinkChange] {
            if noise.bernoulli(0.02) {
                observations.events.push(event(cause, within(noise)));
            }
        }
        if let Injection::Event(cause) = self.injection {
            let (at, seconds) = (within(noise), 1.5 + 20.0 * noise.uniform());
            observations.stalls.push(stall(at, seconds));
            // Reconnects and links are noticed at the next look at the counters, sleep at once.
            let happened = match cause {
                StallCause::Reconnect => at + Duration::from_secs_f64(seconds + 60.0 * noise.uniform()),
                StallCause::LinkChange => at + Duration::from_secs_f64(60.0 * noise.uniform()),
                _ => at - Duration::from_secs_f64(20.0 * noise.uniform()),
            };
            observations.events.push(event(cause, happened));
        }
    }
}

/// One phase of a workload, in seconds of its round.
struct Phase {
    workload: u64,
    from: f64,
    length: f64,
}

impl Pauses {
    /// Returns the end of a call that would take from `from` to `until`: later if a pause begins during it.
    fn end(&self, from: f64, until: f64) -> f64 {
        let first = self.0.partition_point(|pause| pause[1] < from);
        let pause = self.0[first..].iter().find(|pause| pause[0] < until && pause[1] > from);
        pause.map_or(until, |pause| until.max(pause[1]) + (until - from).min(0.01))
    }
}

/// Calls of a phase that are kept: the slowest and a random sample.
#[derive(Default)]
struct Kept {
    seen: usize,
    slowest: Vec<Call>,
    sample: Vec<Call>,
}

impl Kept {
    fn add(&mut self, operation: Operation, [offset, seconds]: [f64; 2], noise: &mut Noise) {
        let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
        let call = Call {
            operation,
            offset_ns: nanoseconds(offset),
            duration_ns: nanoseconds(seconds),
            is_error: false,
            keep_reason: KeepReason::Slowest,
        };
        self.seen += 1;
        let place =
            if self.seen <= 8 { self.seen - 1 } else { noise.uniform_below(self.seen as u64) as usize };
        let sampled = Call { keep_reason: KeepReason::Sample, ..call };
        match self.sample.get_mut(place) {
            Some(kept) => *kept = sampled,
            None if place < 8 => self.sample.push(sampled),
            None => {}
        }
        if self.slowest.len() < KeepReason::CALLS_PER_REASON {
            self.slowest.push(call);
        } else if let Some(fastest) = self.slowest.iter_mut().min_by_key(|kept| kept.duration_ns)
            && fastest.duration_ns < call.duration_ns
        {
            *fastest = call;
        }
    }

    fn into_calls(self) -> Vec<Call> {
        let is_slowest = |call: &Call| self.slowest.iter().any(|slow| slow.offset_ns == call.offset_ns);
        let sample: Vec<Call> = self.sample.iter().filter(|call| !is_slowest(call)).copied().collect();
        self.slowest.into_iter().chain(sample).collect()
    }
}

fn stall(at: Timestamp, seconds: f64) -> Stall {
    Stall {
        ended_us: Some(at + Duration::from_secs_f64(seconds)),
        calls: 1,
        longest_ns: (seconds * 1e9) as u64,
        sources: vec!["probe".to_owned()],
        ..Stall::new("smb".parse().unwrap_or_else(|_| unreachable!("a valid name")), at, "read")
    }
}

fn event(cause: StallCause, at_us: Timestamp) -> Event {
    let (kind, detail) = match cause {
        StallCause::Wake => ("wake", json!({ "slept_seconds": 600 })),
        StallCause::LinkChange => ("facts-changed", json!({ "link": { "before": "en0", "after": "en1" } })),
        _ => ("reconnect", json!({ "count": 1 })),
    };
    Event { target: None, kind: kind.to_owned(), detail, at_us }
}
