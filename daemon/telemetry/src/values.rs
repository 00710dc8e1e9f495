//! Values of instruments, and how they add up over time.

use std::collections::BTreeMap;

use longhaul_measure::stats::Histogram;

use crate::attributes::Labels;
use crate::instruments::{INSTRUMENTS, Kind};

/// A UTC day, in nanoseconds.
const DAY_NS: u64 = 86_400_000_000_000;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a gauge.
    Number(f64),
    /// Of a counter.
    Count(u64),
    /// Of a histogram.
    Histogram(Histogram),
}

impl Value {
    /// Adds another one of its kind: counts add up, histograms merge, and of numbers the later one stays.
    pub fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Count(mine), Self::Count(theirs)) => *mine = mine.saturating_add(*theirs),
            (Self::Histogram(mine), Self::Histogram(theirs)) => mine.merge(theirs),
            (mine, theirs) => *mine = theirs.clone(),
        }
    }

    /// How many values it holds.
    pub fn count(&self) -> u64 {
        match self {
            Self::Number(_) => 1,
            Self::Count(count) => *count,
            Self::Histogram(histogram) => histogram.count(),
        }
    }
}

/// A value of one series at an instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Which series of its instrument.
    pub labels: Labels,
    /// The value.
    pub value: Value,
    /// From when on it counts, in nanoseconds since 1970 UTC.
    pub began_ns: u64,
    /// Up to when it counts, likewise.
    pub at_ns: u64,
}

/// Over what counts and histograms are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Over one UTC day. So what a point says follows from what is stored for its day, and it says the same whenever it is
    /// sent, by whichever process.
    Day,
    /// Over all that was added.
    All,
}

/// Running totals of every series.
#[derive(Debug, Clone)]
pub struct Totals {
    period: Period,
    began_ns: u64,
    series: BTreeMap<(usize, Labels), Value>,
}

impl Totals {
    /// Nothing yet.
    pub fn over(period: Period) -> Self {
        Self { period, began_ns: 0, series: BTreeMap::new() }
    }

    /// Begins the period of a round that began then, in nanoseconds since 1970 UTC. Another day begins with nothing.
    pub fn reach(&mut self, round_ns: u64) {
        let day_ns = round_ns - round_ns % DAY_NS;
        let is_over = self.period == Period::Day && day_ns != self.began_ns;
        if is_over || self.series.is_empty() {
            self.series.clear();
            self.began_ns = day_ns;
        }
    }

    /// Adds what an instrument, by its place in the table, said; gives the total of its series.
    pub fn add(&mut self, place: usize, point: Point) -> Point {
        let key = (place, point.labels.clone());
        let value = match self.series.get_mut(&key) {
            Some(total) => {
                total.add(&point.value);
                total.clone()
            }
            None => {
                self.series.insert(key, point.value.clone());
                point.value
            }
        };
        match INSTRUMENTS[place].kind {
            Kind::Gauge => Point { value, ..point },
            Kind::Counter | Kind::Histogram => Point { value, began_ns: self.began_ns, ..point },
        }
    }

    /// Every series as it stands, by the place of its instrument.
    pub fn series(&self) -> impl Iterator<Item = (usize, &Labels, &Value)> {
        self.series.iter().map(|((place, labels), value)| (*place, labels, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::of_round;
    use crate::tests::samples;

    /// The totals after some rounds, as points.
    fn totals(rounds: &[i64]) -> Vec<(usize, Point)> {
        let mut totals = Totals::over(Period::Day);
        let mut last = vec![];
        for round in rounds.iter().map(|number| samples::round(*number)) {
            totals.reach(crate::time::nanoseconds(round.stored.round.started_us));
            last = of_round(&round)
                .into_iter()
                .map(|(place, point)| (place, totals.add(place, point)))
                .collect();
        }
        last
    }

    #[test]
    fn the_same_day_gives_the_same_totals_whoever_adds_it_up() {
        assert_eq!(totals(&[1, 2, 3]), totals(&[1, 2, 3]));
        assert_ne!(totals(&[1, 2, 3]), totals(&[2, 3]));
        let next_day = 1 + samples::ROUNDS_A_DAY;
        assert_eq!(totals(&[1, 2, 3, next_day]), totals(&[next_day]), "another day begins with nothing");
    }

    #[test]
    fn totals_hold_all_that_was_added_and_gauges_the_last() {
        let mut totals = Totals::over(Period::All);
        let mut add = || {
            of_round(&samples::round(1))
                .into_iter()
                .for_each(|(place, point)| drop(totals.add(place, point)));
            totals.series().map(|(place, _, value)| (place, value.clone())).collect::<Vec<_>>()
        };
        for ((place, once), (_, twice)) in add().into_iter().zip(add()) {
            match INSTRUMENTS[place].kind {
                Kind::Gauge => assert_eq!(once, twice),
                Kind::Counter | Kind::Histogram => {
                    assert_eq!(twice.count(), 2 * once.count(), "{}", INSTRUMENTS[place].name);
                }
            }
        }
    }
}
