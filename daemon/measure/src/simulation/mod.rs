//! Weeks of rounds that never happened: what the statistics are tried on before anyone believes them.
//!
//! Not part of the product: compiled for tests, examples and benchmarks only. Everything follows from a seed. The noise
//! is assumed, not measured; the four worlds bracket what is plausible between a cable and a crowded Wi-Fi. Most of their
//! figures were settled with the method; the gusts and the length of hangs were chosen here, so that a day's median
//! scatters as it did there: by 0.044, 0.081, 0.166 (wired, typical, rough).

mod history;
mod noise;
mod study;

pub use history::{claims_a_difference, evening, history, record, shown};
pub use study::{Look, Tally, daily_looks, day_medians, normal_days};

use noise::{Noise, Wander};

/// How long a run takes where nothing disturbs it, in seconds.
pub const UNDISTURBED_SECONDS: f64 = 6.0;
/// At how many seconds a run is given up: twenty times the undisturbed one.
pub const CAP_SECONDS: f64 = 20.0 * UNDISTURBED_SECONDS;
/// The memory of the network load that all targets share, in hours.
const LOAD_HOURS: f64 = 6.0;
/// Gusts of load come and go within ten minutes, and so between the targets of one round.
const GUST_HOURS: f64 = 1.0 / 6.0;
/// The time from one target of a round to the next, in hours.
const SLOT_HOURS: f64 = 1.0 / 30.0;
/// A hang goes on in the next round with this chance.
const HANG_GOES_ON: f64 = 0.4;
/// A night is slept through with this chance.
const SLEEPS: f64 = 0.9;
/// A round is missed for no reason that matters with this chance.
const MISSED: f64 = 0.05;
/// How long the one holiday lasts, in days.
const HOLIDAY: i64 = 4;

/// How disturbed a world is. Shares are of runs; everything else is in units of the logarithm of seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    /// Its name.
    pub name: &'static str,
    /// Standard deviation of the network load that all targets share.
    pub load: f64,
    /// Standard deviation of the gusts within minutes.
    pub gusts: f64,
    /// Standard deviation of the common random walk after a week.
    pub drift: f64,
    /// The step of a firmware update at a random time, common to all.
    pub firmware: f64,
    /// Standard deviation of what a run has for itself.
    pub run: f64,
    /// Share of runs that are disturbed by something else.
    pub spikes: f64,
    /// By what factor they are longer, on average.
    pub spike_factor: f64,
    /// Share of runs that hang.
    pub hangs: f64,
    /// Standard deviation with which each target wanders on its own: what no pairing removes.
    pub wander: f64,
    /// Memory of that wandering, in hours.
    pub wander_hours: f64,
}

impl World {
    /// A cable.
    pub const WIRED: World = World {
        name: "wired",
        load: 0.12,
        gusts: 0.03,
        drift: 0.03,
        firmware: 0.10,
        run: 0.07,
        spikes: 0.02,
        spike_factor: 1.6,
        hangs: 0.001,
        wander: 0.03,
        wander_hours: 12.0,
    };
    /// Wi-Fi at home.
    pub const TYPICAL: World = World {
        name: "typical",
        load: 0.25,
        gusts: 0.16,
        drift: 0.06,
        firmware: 0.15,
        run: 0.12,
        spikes: 0.04,
        spike_factor: 2.0,
        hangs: 0.004,
        wander: 0.05,
        wander_hours: 12.0,
    };
    /// Wi-Fi among many.
    pub const ROUGH: World = World {
        name: "rough",
        load: 0.45,
        gusts: 0.35,
        drift: 0.10,
        firmware: 0.25,
        run: 0.25,
        spikes: 0.06,
        spike_factor: 2.5,
        hangs: 0.015,
        wander: 0.08,
        wander_hours: 24.0,
    };
    /// Typical, but targets drift against each other for days: the limit of what can be promised.
    pub const WANDER: World = World { name: "wander", wander: 0.08, wander_hours: 48.0, ..World::TYPICAL };
    /// All of them.
    pub const ALL: [World; 4] = [World::WIRED, World::TYPICAL, World::ROUGH, World::WANDER];
}

/// What is measured in a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course<const TARGETS: usize> {
    /// For how many days.
    pub days: i64,
    /// The true logarithm of how much longer each target takes.
    pub ln_ratios: [f64; TARGETS],
    /// From the beginning of that day on, the true logarithms differ by so much more.
    pub change: Option<(i64, [f64; TARGETS])>,
    /// Share of runs that hang on each target; `None`: as many as the world says.
    pub hangs: Option<[f64; TARGETS]>,
}

impl<const TARGETS: usize> Course<TARGETS> {
    /// Eight weeks of hourly rounds, between targets that differ by these logarithms throughout.
    pub fn eight_weeks(ln_ratios: [f64; TARGETS]) -> Self {
        Self { days: 56, ln_ratios, change: None, hangs: None }
    }
}

/// One round: every target once, within minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedRound<const TARGETS: usize> {
    /// The day, from 0.
    pub day: i64,
    /// The hour of the day for which it was planned.
    pub hour: i64,
    /// How long each target took, at most [`CAP_SECONDS`]; that if it hung.
    pub seconds: [f64; TARGETS],
    /// Which targets hung.
    pub hung: [bool; TARGETS],
}

/// The rounds of a course through a world.
pub fn rounds<const TARGETS: usize>(
    world: &World,
    course: &Course<TARGETS>,
    seed: u64,
) -> Vec<SimulatedRound<TARGETS>> {
    let mut noise = Noise::new(seed);
    let mut life = Life::new(world, course, &mut noise);
    (0..course.days * 24).filter_map(|hour| life.round(hour, &mut noise)).collect()
}

/// The state of a world while time passes.
struct Life<'a, const TARGETS: usize> {
    world: &'a World,
    course: &'a Course<TARGETS>,
    holiday: i64,
    firmware_hour: f64,
    asleep: bool,
    load: Wander,
    gusts: Wander,
    drift: f64,
    drifted_until: f64,
    wander: [Wander; TARGETS],
    hanging: [bool; TARGETS],
}

impl<'a, const TARGETS: usize> Life<'a, TARGETS> {
    fn new(world: &'a World, course: &'a Course<TARGETS>, noise: &mut Noise) -> Self {
        Self {
            world,
            course,
            holiday: noise.below((course.days - HOLIDAY).max(1) as u64) as i64,
            firmware_hour: noise.uniform() * course.days as f64 * 24.0,
            asleep: false,
            load: Wander::new(world.load, LOAD_HOURS, noise),
            gusts: Wander::new(world.gusts, GUST_HOURS, noise),
            drift: 0.0,
            drifted_until: 0.0,
            wander: std::array::from_fn(|_| Wander::new(world.wander, world.wander_hours, noise)),
            hanging: [false; TARGETS],
        }
    }

    /// The round of an hour; `None` if there was none.
    fn round(&mut self, planned: i64, noise: &mut Noise) -> Option<SimulatedRound<TARGETS>> {
        let (day, hour) = (planned / 24, planned % 24);
        if hour == 0 {
            self.asleep = noise.happens(SLEEPS);
        }
        let away = (self.holiday..self.holiday + HOLIDAY).contains(&day);
        let start = planned as f64 + (noise.uniform() - 0.5) / 3.0;
        if away || (self.asleep && hour < 7) || noise.happens(MISSED) {
            return None;
        }
        let mut round = SimulatedRound { day, hour, seconds: [0.0; TARGETS], hung: [false; TARGETS] };
        for (slot, target) in noise.order::<TARGETS>().into_iter().enumerate() {
            (round.seconds[target], round.hung[target]) =
                self.run(target, start + slot as f64 * SLOT_HOURS, noise);
        }
        Some(round)
    }

    /// One run: its seconds, and whether it hung.
    fn run(&mut self, target: usize, hour: f64, noise: &mut Noise) -> (f64, bool) {
        let share = self.course.hangs.map_or(self.world.hangs, |hangs| hangs[target]);
        let begins = share * (1.0 - HANG_GOES_ON) / (1.0 - share);
        let hangs = noise.happens(if self.hanging[target] { HANG_GOES_ON } else { begins });
        self.hanging[target] = hangs;
        let wander = self.wander[target].at(hour, noise);
        let logarithm = self.ratio(hour, target) + self.common(hour, noise) + wander + self.alone(noise);
        let seconds = UNDISTURBED_SECONDS * logarithm.exp();
        if hangs { (CAP_SECONDS, true) } else { (seconds.min(CAP_SECONDS), false) }
    }

    /// The true logarithm of a target's ratio at an hour.
    fn ratio(&self, hour: f64, target: usize) -> f64 {
        let change = self.course.change.filter(|(day, _)| hour >= *day as f64 * 24.0);
        self.course.ln_ratios[target] + change.map_or(0.0, |(_, by)| by[target])
    }

    /// What all targets have in common at an hour.
    fn common(&mut self, hour: f64, noise: &mut Noise) -> f64 {
        let weeks = (hour - self.drifted_until).max(0.0) / 168.0;
        self.drift += self.world.drift * weeks.sqrt() * noise.normal();
        self.drifted_until = self.drifted_until.max(hour);
        let evening = (-((hour.rem_euclid(24.0) - 21.0) / 2.5).powi(2)).exp();
        let weekend = if hour.rem_euclid(168.0) >= 120.0 { 0.5 } else { 0.0 };
        let firmware = if hour >= self.firmware_hour { self.world.firmware } else { 0.0 };
        let load = self.load.at(hour, noise) + self.world.load * (evening + weekend);
        load + self.gusts.at(hour, noise) + self.drift + firmware
    }

    /// What a run has for itself.
    fn alone(&self, noise: &mut Noise) -> f64 {
        let spiked = noise.happens(self.world.spikes);
        let factor = if spiked { 1.0 + (self.world.spike_factor - 1.0) * noise.exponential() } else { 1.0 };
        self.world.run * noise.heavy() + factor.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::episodes;

    fn typical(seed: u64) -> Vec<SimulatedRound<2>> {
        rounds(&World::TYPICAL, &Course::eight_weeks([0.0, 0.2]), seed)
    }

    #[test]
    fn a_seed_gives_the_same_weeks_again_and_another_seed_others() {
        assert_eq!(typical(1), typical(1));
        assert_ne!(typical(1), typical(2));
    }

    #[test]
    fn eight_weeks_have_about_fifty_two_days_of_seventeen_rounds() {
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
    fn hangs_are_as_frequent_as_asked_come_in_episodes_and_take_the_cap() {
        let course = Course { hangs: Some([0.0, 0.03]), ..Course::eight_weeks([0.0, 0.0]) };
        let all: Vec<_> = (0..20).flat_map(|seed| rounds(&World::TYPICAL, &course, seed)).collect();
        let hung: Vec<bool> = all.iter().map(|round| round.hung[1]).collect();
        let count = hung.iter().filter(|hung| **hung).count() as f64;
        assert!((count / all.len() as f64 - 0.03).abs() < 0.004, "{count} of {}", all.len());
        assert!((count / episodes(&hung) as f64 - 1.0 / (1.0 - HANG_GOES_ON)).abs() < 0.2);
        assert!(
            all.iter().all(|round| !round.hung[0] && (!round.hung[1] || round.seconds[1] == CAP_SECONDS))
        );
        assert!(
            all.iter().all(|round| round.seconds.iter().all(|seconds| (0.0..=CAP_SECONDS).contains(seconds)))
        );
    }

    #[test]
    fn the_true_ratio_is_found_before_and_after_a_change() {
        let course = Course { change: Some((28, [0.0, 0.5])), ..Course::eight_weeks([0.0, 0.2]) };
        let days: Vec<(i64, f64)> =
            (0..20).flat_map(|seed| day_medians(&rounds(&World::WIRED, &course, seed), (0, 1))).collect();
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
