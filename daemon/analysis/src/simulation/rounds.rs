//! Simulates rounds in a world with known noise and effects.

use super::noise::{AutoregressiveNoise, Noise};
use super::round_trip::{RoundTripState, RoundTripWander};

/// Duration of an undisturbed run, in seconds.
pub const UNDISTURBED_SECONDS: f64 = 6.0;
/// Cap of a run in seconds: twenty times the undisturbed duration. A hung run ends at the cap.
pub const CAP_SECONDS: f64 = 20.0 * UNDISTURBED_SECONDS;
/// Correlation time of the network load that all targets share, in hours.
const LOAD_MEMORY_HOURS: f64 = 6.0;
/// Correlation time of gusts of load, in hours: ten minutes, so that gusts differ between the targets of a round.
const BURST_MEMORY_HOURS: f64 = 1.0 / 6.0;
/// Time from one target of a round to the next, in hours.
const SLOT_HOURS: f64 = 1.0 / 30.0;
/// Probability that a hang continues in the next round.
const HANG_CONTINUES_CHANCE: f64 = 0.4;
/// Probability that the machine sleeps through a night.
const SLEEP_CHANCE: f64 = 0.9;
/// Probability that a round is missed at random.
const MISSED_CHANCE: f64 = 0.05;
/// Length of the single holiday without rounds, in days.
const HOLIDAY_DAYS: i64 = 4;

/// Noise parameters of a simulated world. Shares are shares of runs; deviations and steps are in natural logarithms of
/// seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    /// Name of the world.
    pub name: &'static str,
    /// Standard deviation of the network load that all targets share.
    pub load_deviation: f64,
    /// Standard deviation of gusts of load, which last minutes.
    pub burst_deviation: f64,
    /// Standard deviation of the random walk that all targets share, after one week.
    pub weekly_drift_deviation: f64,
    /// Step of a firmware update at a random time, common to all targets.
    pub firmware_step: f64,
    /// Standard deviation of the independent noise of each run.
    pub run_deviation: f64,
    /// Share of runs that an unrelated disturbance makes longer.
    pub spike_share: f64,
    /// Mean factor by which a disturbed run is longer.
    pub spike_factor: f64,
    /// Share of runs that hang.
    pub hang_share: f64,
    /// Standard deviation of the drift of each target on its own. Pairing by round cannot remove this drift.
    pub own_drift_deviation: f64,
    /// Correlation time of the drift of each target on its own, in hours.
    pub own_drift_hours: f64,
    /// Round trip time that is measured before each run and makes some runs longer; `None` if it is not known.
    pub round_trip: Option<RoundTripWander>,
}

impl World {
    /// World of a wired network.
    pub const WIRED: World = World {
        name: "wired",
        load_deviation: 0.12,
        burst_deviation: 0.03,
        weekly_drift_deviation: 0.03,
        firmware_step: 0.10,
        run_deviation: 0.07,
        spike_share: 0.02,
        spike_factor: 1.6,
        hang_share: 0.001,
        own_drift_deviation: 0.03,
        own_drift_hours: 12.0,
        round_trip: None,
    };
    /// World of typical Wi-Fi at home.
    pub const TYPICAL: World = World {
        name: "typical",
        load_deviation: 0.25,
        burst_deviation: 0.16,
        weekly_drift_deviation: 0.06,
        firmware_step: 0.15,
        run_deviation: 0.12,
        spike_share: 0.04,
        spike_factor: 2.0,
        hang_share: 0.004,
        own_drift_deviation: 0.05,
        own_drift_hours: 12.0,
        round_trip: None,
    };
    /// World of Wi-Fi among many other networks.
    pub const ROUGH: World = World {
        name: "rough",
        load_deviation: 0.45,
        burst_deviation: 0.35,
        weekly_drift_deviation: 0.10,
        firmware_step: 0.25,
        run_deviation: 0.25,
        spike_share: 0.06,
        spike_factor: 2.5,
        hang_share: 0.015,
        own_drift_deviation: 0.08,
        own_drift_hours: 24.0,
        round_trip: None,
    };
    /// World of typical Wi-Fi in which targets drift against each other for days. Here the guarantees do not hold
    /// (docs/methodology.md#known-limits).
    pub const OWN_DRIFT: World =
        World { name: "own-drift", own_drift_deviation: 0.08, own_drift_hours: 48.0, ..World::TYPICAL };
    /// Worlds in which the round trip time is known and one target needs more round trips; in the last one it wanders
    /// without any effect on the runs. At 8 % it is used on some days and not on others.
    pub const WITH_ROUND_TRIP: [World; 6] = [
        World::WIRED.with_round_trip("wired, 30 %", 0.3),
        World::WIRED.with_round_trip("wired, 50 %", 0.5),
        World::TYPICAL.with_round_trip("typical, 8 %", 0.08),
        World::TYPICAL.with_round_trip("typical, 30 %", 0.3),
        World::TYPICAL.with_round_trip("typical, 50 %", 0.5),
        World {
            name: "typical, 30 % without effect",
            round_trip: Some(RoundTripWander { shares: [0.0; 2], ..RoundTripWander::with_deviation(0.3) }),
            ..World::TYPICAL
        },
    ];
    /// Worlds in which the round trip time is unknown.
    pub const ALL: [World; 4] = [World::WIRED, World::TYPICAL, World::ROUGH, World::OWN_DRIFT];

    const fn with_round_trip(self, name: &'static str, deviation: f64) -> World {
        World { name, round_trip: Some(RoundTripWander::with_deviation(deviation)), ..self }
    }
}

/// True effects in a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenario<const TARGETS: usize> {
    /// Number of simulated days.
    pub days: i64,
    /// True log ratio of each target: logarithm of its time divided by the undisturbed time.
    pub ln_ratios: [f64; TARGETS],
    /// Change of the true log ratios: first day of the change, and the amount added for each target.
    pub change: Option<(i64, [f64; TARGETS])>,
    /// Share of runs that hang on each target; `None` uses the share of the world.
    pub hang_shares: Option<[f64; TARGETS]>,
}

impl<const TARGETS: usize> Scenario<TARGETS> {
    /// Creates a scenario of eight weeks of hourly rounds with constant true log ratios.
    pub fn eight_weeks(ln_ratios: [f64; TARGETS]) -> Self {
        Self { days: 56, ln_ratios, change: None, hang_shares: None }
    }
}

/// A simulated round, with one run on every target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedRound<const TARGETS: usize> {
    /// Day of the round, counted from 0.
    pub day: i64,
    /// Hour of the day for which the round was planned.
    pub hour: i64,
    /// Seconds of the run on each target, at most [`CAP_SECONDS`]; a hung run takes exactly the cap.
    pub seconds: [f64; TARGETS],
    /// True for each target whose run hung.
    pub hung: [bool; TARGETS],
    /// True log ratio of each target at the time of its run, with its own drift and the effect of the round trip time:
    /// what the noise of the run hides.
    pub true_ln_ratios: [f64; TARGETS],
    /// Round trip time in milliseconds, measured before the run on each target; `None` if it is not known.
    pub round_trip_ms: [Option<f64>; TARGETS],
}

/// Simulates the rounds of a scenario in a world.
pub fn simulate_rounds<const TARGETS: usize>(
    world: &World,
    scenario: &Scenario<TARGETS>,
    seed: u64,
) -> Vec<SimulatedRound<TARGETS>> {
    let mut noise = Noise::new(seed);
    let mut state = WorldState::new(world, scenario, &mut noise);
    state.round_trip = world.round_trip.map(|wander| RoundTripState::new(wander, seed));
    (0..scenario.days * 24).filter_map(|hour| state.next_round(hour, &mut noise)).collect()
}

/// State of a world at the current simulated time.
struct WorldState<'a, const TARGETS: usize> {
    world: &'a World,
    scenario: &'a Scenario<TARGETS>,
    holiday_start_day: i64,
    firmware_hour: f64,
    is_asleep: bool,
    load: AutoregressiveNoise,
    bursts: AutoregressiveNoise,
    drift: f64,
    drift_hour: f64,
    own_drift: [AutoregressiveNoise; TARGETS],
    round_trip: Option<RoundTripState>,
    is_hung: [bool; TARGETS],
}

impl<'a, const TARGETS: usize> WorldState<'a, TARGETS> {
    fn new(world: &'a World, scenario: &'a Scenario<TARGETS>, noise: &mut Noise) -> Self {
        Self {
            world,
            scenario,
            holiday_start_day: noise.uniform_below((scenario.days - HOLIDAY_DAYS).max(1) as u64) as i64,
            firmware_hour: noise.uniform() * scenario.days as f64 * 24.0,
            is_asleep: false,
            load: AutoregressiveNoise::new(world.load_deviation, LOAD_MEMORY_HOURS, noise),
            bursts: AutoregressiveNoise::new(world.burst_deviation, BURST_MEMORY_HOURS, noise),
            drift: 0.0,
            drift_hour: 0.0,
            own_drift: std::array::from_fn(|_| {
                AutoregressiveNoise::new(world.own_drift_deviation, world.own_drift_hours, noise)
            }),
            round_trip: None,
            is_hung: [false; TARGETS],
        }
    }

    /// Simulates the round planned for an hour; `None` if the round is missed.
    fn next_round(&mut self, planned: i64, noise: &mut Noise) -> Option<SimulatedRound<TARGETS>> {
        let (day, hour) = (planned / 24, planned % 24);
        if hour == 0 {
            self.is_asleep = noise.bernoulli(SLEEP_CHANCE);
        }
        let on_holiday = (self.holiday_start_day..self.holiday_start_day + HOLIDAY_DAYS).contains(&day);
        // Each start is jittered by a sixth of the interval to both sides (docs/methodology.md#rounds).
        let start = planned as f64 + (noise.uniform() - 0.5) / 3.0;
        if on_holiday || (self.is_asleep && hour < 7) || noise.bernoulli(MISSED_CHANCE) {
            return None;
        }
        let mut round = SimulatedRound {
            day,
            hour,
            seconds: [0.0; TARGETS],
            hung: [false; TARGETS],
            true_ln_ratios: [0.0; TARGETS],
            round_trip_ms: [None; TARGETS],
        };
        for (slot, target) in noise.random_order::<TARGETS>().into_iter().enumerate() {
            let hour = start + slot as f64 * SLOT_HOURS;
            round.round_trip_ms[target] = self.round_trip.as_mut().map(|state| state.measure_at(hour));
            (round.seconds[target], round.hung[target]) = self.simulate_run(target, hour, noise);
            round.true_ln_ratios[target] = self.true_ln_ratio(hour, target)
                + self.own_drift[target].level()
                + self.round_trip_factor(target);
        }
        Some(round)
    }

    /// Simulates one run. Returns its seconds, and true if the run hung.
    fn simulate_run(&mut self, target: usize, hour: f64, noise: &mut Noise) -> (f64, bool) {
        let share = self.scenario.hang_shares.map_or(self.world.hang_share, |hangs| hangs[target]);
        // Chance of a new hang that gives the wanted share of hung runs, although hangs continue.
        let begins = share * (1.0 - HANG_CONTINUES_CHANCE) / (1.0 - share);
        let hangs = noise.bernoulli(if self.is_hung[target] { HANG_CONTINUES_CHANCE } else { begins });
        self.is_hung[target] = hangs;
        let drift = self.own_drift[target].value_at(hour, noise);
        let logarithm = self.true_ln_ratio(hour, target)
            + self.shared_factor(hour, noise)
            + drift
            + self.round_trip_factor(target)
            + self.run_factor(noise);
        let seconds = UNDISTURBED_SECONDS * logarithm.exp();
        if hangs { (CAP_SECONDS, true) } else { (seconds.min(CAP_SECONDS), false) }
    }

    fn round_trip_factor(&self, target: usize) -> f64 {
        self.round_trip.as_ref().map_or(0.0, |state| state.ln_factor(target))
    }

    /// Returns the true log ratio of a target at an hour.
    fn true_ln_ratio(&self, hour: f64, target: usize) -> f64 {
        let change = self.scenario.change.filter(|(day, _)| hour >= *day as f64 * 24.0);
        self.scenario.ln_ratios[target] + change.map_or(0.0, |(_, by)| by[target])
    }

    /// Returns the noise that all targets share at an hour, as a logarithm.
    fn shared_factor(&mut self, hour: f64, noise: &mut Noise) -> f64 {
        let weeks = (hour - self.drift_hour).max(0.0) / 168.0;
        self.drift += self.world.weekly_drift_deviation * weeks.sqrt() * noise.normal();
        self.drift_hour = self.drift_hour.max(hour);
        // Load peaks around 21:00, and is higher on weekends; day 0 is a Monday.
        let evening = (-((hour.rem_euclid(24.0) - 21.0) / 2.5).powi(2)).exp();
        let weekend = if hour.rem_euclid(168.0) >= 120.0 { 0.5 } else { 0.0 };
        let firmware = if hour >= self.firmware_hour { self.world.firmware_step } else { 0.0 };
        let load = self.load.value_at(hour, noise) + self.world.load_deviation * (evening + weekend);
        load + self.bursts.value_at(hour, noise) + self.drift + firmware
    }

    /// Returns the independent noise of one run, as a logarithm.
    fn run_factor(&self, noise: &mut Noise) -> f64 {
        let spiked = noise.bernoulli(self.world.spike_share);
        let factor = if spiked { 1.0 + (self.world.spike_factor - 1.0) * noise.exponential() } else { 1.0 };
        self.world.run_deviation * noise.student_t4() + factor.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::super::error_rates::day_medians;
    use super::*;
    use crate::stats::count_episodes;

    fn typical(seed: u64) -> Vec<SimulatedRound<2>> {
        simulate_rounds(&World::TYPICAL, &Scenario::eight_weeks([0.0, 0.2]), seed)
    }

    #[test]
    fn rounds_depend_only_on_the_seed() {
        assert_eq!(typical(1), typical(1));
        assert_ne!(typical(1), typical(2));
    }

    #[test]
    fn eight_weeks_have_about_52_days_of_17_rounds() {
        let days: Vec<usize> = (0..20)
            .flat_map(|seed| {
                typical(seed).chunk_by(|a, b| a.day == b.day).map(<[_]>::len).collect::<Vec<_>>()
            })
            .collect();
        let rounds = days.iter().sum::<usize>() as f64;
        assert_eq!(days.len(), 20 * 52);
        assert!((rounds / days.len() as f64 - 16.9).abs() < 0.3, "{}", rounds / days.len() as f64);
    }

    #[test]
    fn hangs_have_the_configured_share_and_take_the_cap() {
        let scenario = Scenario { hang_shares: Some([0.0, 0.03]), ..Scenario::eight_weeks([0.0, 0.0]) };
        let all: Vec<_> =
            (0..20).flat_map(|seed| simulate_rounds(&World::TYPICAL, &scenario, seed)).collect();
        let hung: Vec<bool> = all.iter().map(|round| round.hung[1]).collect();
        let count = hung.iter().filter(|hung| **hung).count() as f64;
        assert!((count / all.len() as f64 - 0.03).abs() < 0.004, "{count} of {}", all.len());
        assert!((count / count_episodes(&hung) as f64 - 1.0 / (1.0 - HANG_CONTINUES_CHANCE)).abs() < 0.2);
        assert!(
            all.iter().all(|round| !round.hung[0] && (!round.hung[1] || round.seconds[1] == CAP_SECONDS))
        );
        assert!(
            all.iter().all(|round| round.seconds.iter().all(|seconds| (0.0..=CAP_SECONDS).contains(seconds)))
        );
    }

    #[test]
    fn true_ratio_is_found_before_and_after_a_change() {
        let scenario = Scenario { change: Some((28, [0.0, 0.5])), ..Scenario::eight_weeks([0.0, 0.2]) };
        let days: Vec<(i64, f64)> = (0..20)
            .flat_map(|seed| day_medians(&simulate_rounds(&World::WIRED, &scenario, seed), 0, 1))
            .collect();
        let mean = |from: i64| {
            let values: Vec<f64> = days
                .iter()
                .filter(|(day, _)| (from..from + 28).contains(day))
                .map(|(_, value)| *value)
                .collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        assert!((mean(0) - 0.2).abs() < 0.01 && (mean(28) - 0.7).abs() < 0.01, "{} {}", mean(0), mean(28));
    }
}
