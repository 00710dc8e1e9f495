//! Totals of metric values over time.

use std::collections::BTreeMap;

use crate::attributes::Labels;
use crate::instruments::{INSTRUMENTS, Kind};
use crate::values::{Point, Value};
use longhaul_model::time::DAY;

/// A UTC day, in nanoseconds.
const DAY_NS: u64 = DAY.as_nanos() as u64;

/// The period over which counts and histograms are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// One UTC day. A point then depends only on the stored data of its day, so it is the same whenever it is
    /// sent, by whichever process.
    Day,
    /// Everything that was added.
    All,
}

/// Running totals of all series.
#[derive(Debug, Clone)]
pub struct Totals {
    period: Period,
    began_ns: u64,
    series: BTreeMap<(usize, Labels), Value>,
}

impl Totals {
    /// Creates empty totals.
    pub fn new(period: Period) -> Self {
        Self { period, began_ns: 0, series: BTreeMap::new() }
    }

    /// Starts the period that contains `item_ns` (nanoseconds since 1970 UTC). With [`Period::Day`], the totals
    /// are cleared when the UTC day changes.
    pub fn begin_period(&mut self, item_ns: u64) {
        let day_ns = item_ns - item_ns % DAY_NS;
        let is_over = self.period == Period::Day && day_ns != self.began_ns;
        if is_over || self.series.is_empty() {
            self.series.clear();
            self.began_ns = day_ns;
        }
    }

    /// Adds a point of the instrument with this index in [`INSTRUMENTS`] and returns the new total of its
    /// series.
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

    /// Returns the total of every series with the index of its instrument in [`INSTRUMENTS`].
    pub fn series(&self) -> impl Iterator<Item = (usize, &Labels, &Value)> {
        self.series.iter().map(|((place, labels), value)| (*place, labels, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::round_points;
    use crate::tests::samples;

    /// Returns the points of the last of these rounds, with the totals of all of them.
    fn totals(rounds: &[i64]) -> Vec<(usize, Point)> {
        let mut totals = Totals::new(Period::Day);
        let mut last = vec![];
        for round in rounds.iter().map(|number| samples::round(*number)) {
            totals.begin_period(crate::time::nanoseconds(round.stored.round.started));
            last = round_points(&round)
                .into_iter()
                .map(|(place, point)| (place, totals.add(place, point)))
                .collect();
        }
        last
    }

    #[test]
    fn totals_depend_only_on_the_rounds_of_the_day() {
        assert_eq!(totals(&[1, 2, 3]), totals(&[1, 2, 3]));
        assert_ne!(totals(&[1, 2, 3]), totals(&[2, 3]));
        let next_day = 1 + samples::ROUNDS_A_DAY;
        assert_eq!(totals(&[1, 2, 3, next_day]), totals(&[next_day]), "a new day starts from zero");
    }

    #[test]
    fn counters_are_summed_and_gauges_keep_the_last_value() {
        let mut totals = Totals::new(Period::All);
        let mut add = || {
            round_points(&samples::round(1))
                .into_iter()
                .for_each(|(place, point)| drop(totals.add(place, point)));
            totals.series().map(|(place, _, value)| (place, value.clone())).collect::<Vec<_>>()
        };
        for ((place, once), (_, twice)) in add().into_iter().zip(add()) {
            let name = INSTRUMENTS[place].name;
            match (once, twice) {
                (Value::Count(once), Value::Count(twice)) => assert_eq!(twice, 2 * once, "{name}"),
                (Value::Histogram(once), Value::Histogram(twice)) => {
                    assert_eq!(twice.count(), 2 * once.count(), "{name}");
                }
                (once, twice) => assert_eq!(once, twice, "{name}"),
            }
        }
    }
}
