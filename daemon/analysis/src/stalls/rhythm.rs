//! Test of a rhythm: some calls of a group are marked, and keep an interval better than calls of the group that are
//! marked at random. A group that keeps the interval as a whole says nothing.

use std::f64::consts::{EULER_GAMMA, PI, TAU};
use std::ops::RangeInclusive;

use longhaul_model::draw::shuffled_indices;

/// Random markings with which the real one is compared.
const MARKINGS: u64 = 100;
/// Seed of the random markings, so that the same calls always give the same answer.
const SEED: u64 = 0x7275_6c65;
/// Frequencies that are tried for each independent one.
const OVERSAMPLING: f64 = 3.0;

/// Share of its score that a multiple of an interval has if it is the real interval.
const FRACTION_SCORE: f64 = 0.6;

/// Calls that were made within a short time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Group {
    /// Seconds from the start of the group to the start of each call: marked calls first.
    pub times: Vec<f64>,
    /// Number of marked calls.
    pub marked: usize,
}

/// Interval that the marked calls keep best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rhythm {
    /// Interval in seconds.
    pub period: f64,
    /// Share of the marked calls that keep the interval, as length of their mean vector.
    pub coherence: f64,
    score: f64,
}

/// Direction of each call of a group at one interval, less the mean direction of the group.
type Directions = Vec<[f64; 2]>;

/// Returns the interval in a range of seconds that the marked calls keep best; `None` without groups.
pub(super) fn best(groups: &[Group], periods: RangeInclusive<f64>) -> Option<Rhythm> {
    let rhythms = grid(groups, periods).into_iter().map(|period| Rhythm {
        period,
        coherence: coherence(groups, period),
        score: score(groups, period),
    });
    rhythms.max_by(|one, other| one.score.total_cmp(&other.score))
}

impl Rhythm {
    /// Returns whether the calls keep a multiple of the interval as well: pauses every five seconds keep 2.5 seconds, too.
    pub fn is_fraction(&self, groups: &[Group], longest: f64) -> bool {
        let multiples = (2..).map(|times| f64::from(times) * self.period);
        multiples
            .take_while(|period| *period <= longest)
            .any(|period| score(groups, period) >= FRACTION_SCORE * self.score)
    }

    /// Returns the probability that calls marked at random keep any interval of the range as well. The largest score of
    /// a range has a Gumbel distribution, whose two parameters are estimated from random markings.
    pub fn chance(&self, groups: &[Group], periods: RangeInclusive<f64>) -> f64 {
        let markings = markings(groups);
        let mut largest = vec![f64::MIN; MARKINGS as usize];
        for period in grid(groups, periods) {
            let directions: Vec<Directions> = groups.iter().map(|group| group.directions(period)).collect();
            for (largest, marking) in largest.iter_mut().zip(&markings) {
                let scores = groups.iter().zip(&directions).zip(marking);
                let score = scores
                    .map(|((group, directions), marked)| group.score(directions, marked.iter().copied()));
                *largest = largest.max(score.sum());
            }
        }
        gumbel_tail(&largest, self.score)
    }
}

/// Returns how well the marked calls keep an interval, beyond all calls.
fn score(groups: &[Group], period: f64) -> f64 {
    groups.iter().map(|group| group.score(&group.directions(period), 0..group.marked)).sum()
}

/// Returns random markings: for each the marked calls of each group.
fn markings(groups: &[Group]) -> Vec<Vec<Vec<usize>>> {
    let marked = |marking: u64, (index, group): (usize, &Group)| {
        let order = shuffled_indices(SEED + marking, index as u64, group.times.len() as u64);
        order.into_iter().take(group.marked).map(|place| place as usize).collect()
    };
    (0..MARKINGS)
        .map(|marking| groups.iter().enumerate().map(|group| marked(marking, group)).collect())
        .collect()
}

/// Returns the probability that a Gumbel distribution with the moments of `values` exceeds `limit`.
fn gumbel_tail(values: &[f64], limit: f64) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let scale = (6.0 * variance).sqrt() / PI;
    let mode = mean - EULER_GAMMA * scale;
    if scale <= 0.0 {
        return 1.0;
    }
    -(-(-(limit - mode) / scale).exp()).exp_m1()
}

/// Returns the intervals to try, evenly spaced in frequency.
fn grid(groups: &[Group], periods: RangeInclusive<f64>) -> Vec<f64> {
    let longest = groups.iter().flat_map(|group| &group.times).copied().fold(*periods.end(), f64::max);
    let (low, high) = (periods.end().recip(), periods.start().recip());
    let steps = ((high - low) * longest * OVERSAMPLING).ceil().max(1.0);
    (0..=steps as u32).map(|step| (low + (high - low) * f64::from(step) / steps).recip()).collect()
}

/// Returns the mean length of the groups' mean vectors, weighted by their marked calls.
fn coherence(groups: &[Group], period: f64) -> f64 {
    let marked: usize = groups.iter().map(|group| group.marked).sum();
    let lengths = groups.iter().map(|group| {
        let [x, y] = group.times[..group.marked].iter().map(|at| unit(*at, period)).fold([0.0; 2], plus);
        x.hypot(y)
    });
    lengths.sum::<f64>() / marked.max(1) as f64
}

impl Group {
    fn directions(&self, period: f64) -> Directions {
        let units: Directions = self.times.iter().map(|at| unit(*at, period)).collect();
        let mean = units.iter().copied().fold([0.0; 2], plus).map(|sum| sum / units.len().max(1) as f64);
        units.into_iter().map(|[x, y]| [x - mean[0], y - mean[1]]).collect()
    }

    fn score(&self, directions: &Directions, marked: impl Iterator<Item = usize>) -> f64 {
        let [x, y] = marked.filter_map(|place| directions.get(place).copied()).fold([0.0; 2], plus);
        (x * x + y * y) / self.marked.max(1) as f64
    }

    /// Returns the marked calls that keep an interval: the number of each, and the number of its cycle.
    pub fn kept(&self, period: f64) -> Vec<[i64; 2]> {
        let marked = &self.times[..self.marked];
        let [x, y] = marked.iter().map(|at| unit(*at, period)).fold([0.0; 2], plus);
        let mean = y.atan2(x) / TAU;
        let cycle = |at: f64| (at / period - mean).round();
        let is_kept = |at: f64| (at / period - mean - cycle(at)).abs() <= 1.0 / 6.0;
        let numbered = (0i64..).zip(marked.iter().copied());
        numbered.filter(|(_, at)| is_kept(*at)).map(|(number, at)| [number, cycle(at) as i64]).collect()
    }
}

fn unit(at: f64, period: f64) -> [f64; 2] {
    let (sine, cosine) = (TAU * at / period).sin_cos();
    [cosine, sine]
}

fn plus(one: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [one[0] + other[0], one[1] + other[1]]
}

#[cfg(test)]
mod tests {
    use longhaul_model::draw::draw_below;

    use super::*;

    /// Returns a group with marked calls at every `period` seconds and calls at random times.
    fn group(period: f64, marked: usize) -> Group {
        let random = (0..40).map(|index| draw_below(7, 1, index, 60_000) as f64 / 1000.0);
        let times = (0..marked).map(|index| 0.3 + period * index as f64).chain(random);
        Group { times: times.collect(), marked }
    }

    #[test]
    fn marked_calls_at_an_interval_are_no_chance() {
        let groups = [group(1.5, 12)];
        let best = best(&groups, 0.9..=2.5).unwrap();
        assert!((best.period - 1.5).abs() < 0.05 && best.coherence > 0.95, "{best:?}");
        let chance = best.chance(&groups, 0.9..=2.5);
        assert!(chance < 1e-4, "{chance}");
        assert_eq!(groups[0].kept(best.period).len(), 12);
    }

    #[test]
    fn a_group_that_keeps_the_interval_says_nothing() {
        // The marked calls are spread over all of them.
        let times = shuffled_indices(3, 1, 40).into_iter().map(|place| 1.5 * place as f64);
        let groups = [Group { times: times.collect(), marked: 12 }];
        let best = best(&groups, 0.9..=2.5).unwrap();
        assert!(best.chance(&groups, 0.9..=2.5) > 0.01);
    }
}
