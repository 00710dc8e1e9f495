//! Scales that map values to positions on an axis. Horizontal positions are in percent, vertical positions in lines
//! (em), so that a chart is as wide as its page and keeps the font size of the page.

use longhaul_analysis::summary::Week;

/// Readable steps between ticks, from fine to coarse, for an axis whose values are all near 1.
const DECIMAL_STEPS: [f64; 8] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0];
/// Ticks within a decade, from fine to coarse.
const DECADE_STEPS: [&[f64]; 4] = [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
/// Minimum and maximum of an axis, as powers of ten.
const POWER_RANGE: std::ops::RangeInclusive<i32> = -12..=12;

/// The two positions between which something is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Position of the start.
    pub from: f64,
    /// Position of the end.
    pub to: f64,
}

impl Extent {
    /// Returns the same positions in reverse order.
    pub const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// A logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// Creates an axis that holds all values, drawn between two positions. Values that are not positive and finite are
    /// ignored.
    pub fn spanning(values: impl IntoIterator<Item = f64>, drawn: Extent) -> Self {
        let known = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let bounded =
            known.map(|value| value.clamp(10f64.powi(*POWER_RANGE.start()), 10f64.powi(*POWER_RANGE.end())));
        let (low, high) =
            bounded.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        // Leaves a margin on both sides, so that a single value has an axis and the outermost marks fit.
        let room = (high / low).ln().mul_add(0.04, 0.01).exp();
        Self { low: low / room, high: high * room, from: drawn.from, to: drawn.to }
    }

    /// Returns the same axis, drawn between other positions.
    pub fn with_range(self, drawn: Extent) -> Self {
        Self { from: drawn.from, to: drawn.to, ..self }
    }

    /// Returns the position of a value; values beyond the axis are clamped to its ends.
    pub fn position(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns the value at a position.
    pub fn value(&self, position: f64) -> f64 {
        let share = (position - self.from) / (self.to - self.from);
        self.low * (self.high / self.low).powf(share)
    }

    /// Returns true if a value lies on the axis.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns the values to label on the axis: the finest set with at least `gap` between two labels, in units of the
    /// position.
    pub fn ticks(&self, gap: f64) -> Vec<f64> {
        let near_one = DECIMAL_STEPS.iter().map(|step| self.step_ticks(*step));
        let by_decade = DECADE_STEPS.iter().map(|parts| self.decade_ticks(parts));
        let candidates = near_one.take_while(|_| self.high / self.low < 12.0).chain(by_decade);
        let mut sets: Vec<Vec<f64>> = candidates.filter(|ticks| ticks.len() > 1).collect();
        let fits = |ticks: &Vec<f64>| {
            ticks.windows(2).all(|pair| (self.position(pair[1]) - self.position(pair[0])).abs() >= gap)
        };
        match sets.iter().position(fits) {
            Some(place) => sets.swap_remove(place),
            None => self.sparse_ticks(gap),
        }
    }

    fn step_ticks(&self, step: f64) -> Vec<f64> {
        let first = (self.low / step).ceil().max(1.0);
        let count = ((self.high / step).floor() - first + 1.0).clamp(0.0, 200.0);
        // Division gives exact values: 7 / 10 is 0.7, but 7 * 0.1 is not.
        (0..count as usize).map(|place| (first + place as f64) / (1.0 / step).round()).collect()
    }

    fn decade_ticks(&self, parts: &[f64]) -> Vec<f64> {
        let of_power = |power: i32| parts.iter().map(move |part| part * 10f64.powi(power));
        POWER_RANGE.flat_map(of_power).filter(|value| self.contains(*value)).collect()
    }

    /// Returns powers of ten that are at least `gap` apart; if the axis contains none, other round values.
    fn sparse_ticks(&self, gap: f64) -> Vec<f64> {
        let mut powers = self.decade_ticks(DECADE_STEPS[3]);
        if powers.is_empty() {
            powers = DECADE_STEPS
                .iter()
                .rev()
                .map(|parts| self.decade_ticks(parts))
                .find(|set| !set.is_empty())
                .unwrap_or_default();
        }
        let mut ticks: Vec<f64> = vec![];
        for value in powers {
            if ticks.last().is_none_or(|last| (self.position(value) - self.position(*last)).abs() >= gap) {
                ticks.push(value);
            }
        }
        ticks
    }
}

/// A linear axis of whole days.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayScale {
    first: i64,
    last: i64,
    from: f64,
    to: f64,
}

impl DayScale {
    /// Creates an axis from a first to a last day (in days since 1970-01-01), drawn between two positions.
    pub fn new(first: i64, last: i64, drawn: Extent) -> Self {
        Self { first, last: last.max(first), from: drawn.from, to: drawn.to }
    }

    /// Returns the width of a day.
    pub fn day_width(&self) -> f64 {
        (self.to - self.from) / (self.last.saturating_sub(self.first).saturating_add(1)) as f64
    }

    /// Returns the position at which a day starts.
    pub fn day_start(&self, day: i64) -> f64 {
        self.from
            + (day.clamp(self.first, self.last.saturating_add(1)) - self.first) as f64 * self.day_width()
    }

    /// Returns the position of the middle of a day.
    pub fn day_middle(&self, day: i64) -> f64 {
        self.day_start(day) + self.day_width() / 2.0
    }

    /// Returns true if a day lies on the axis.
    pub fn contains(&self, day: i64) -> bool {
        (self.first..=self.last).contains(&day)
    }

    /// Returns the days to label on the axis, at least `gap` apart: every day or every second day if there are few,
    /// else Mondays.
    pub fn ticks(&self, gap: f64) -> Vec<i64> {
        let monday = |day: i64| Week::of_day(day).first_day();
        let steps = [1, 2].into_iter().map(|step| (self.first, step));
        let weeks = [7, 14, 28, 56, 112, 364].into_iter().map(|step| (monday(self.first + 6), step));
        let fitting = steps.chain(weeks).find(|(_, step)| *step as f64 * self.day_width() >= gap);
        let (first, step) = fitting.unwrap_or((self.first, i64::MAX));
        let count = self.last.saturating_sub(first).max(0) / step;
        (0..=count).map(|index| first + index * step).filter(|day| self.contains(*day)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers() {
        let axis = |low, high| LogScale::spanning([low, high], Extent { from: 0.0, to: 100.0 }).ticks(14.0);
        assert_eq!(axis(0.9, 1.1), [0.9, 0.95, 1.0, 1.05, 1.1]);
        assert_eq!(axis(0.5, 1.2), [0.6, 0.8, 1.0, 1.2]);
        assert_eq!(axis(0.02, 30.0), [0.1, 1.0, 10.0]);
        assert_eq!(axis(0.003, 120.0), [0.01, 0.1, 1.0, 10.0, 100.0]);
    }

    #[test]
    fn axis_without_valid_values_is_centred_on_one() {
        let axis = LogScale::spanning([f64::NAN, -1.0, 0.0], Extent { from: 0.0, to: 100.0 });
        assert!((axis.position(1.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn week_ticks_are_mondays() {
        // 2026-11-09, day 20,766, is a Monday.
        let axis = DayScale::new(20_764, 20_820, Extent { from: 0.0, to: 100.0 });
        assert_eq!(axis.ticks(15.0), [20_766, 20_780, 20_794, 20_808]);
        assert_eq!(DayScale::new(5, 5, Extent { from: 0.0, to: 100.0 }).ticks(15.0), [5]);
    }

    proptest! {
        #[test]
        fn ticks_lie_on_the_axis_with_enough_distance(low in 1e-9f64..1e9, factor in 1.0f64..1e9) {
            let axis = LogScale::spanning([low, low * factor], Extent { from: 2.0, to: 98.0 });
            let ticks = axis.ticks(14.0);
            prop_assert!(ticks.len() <= 8);
            prop_assert!(ticks.iter().all(|tick| axis.contains(*tick)));
            for pair in ticks.windows(2) {
                prop_assert!(axis.position(pair[1]) - axis.position(pair[0]) >= 14.0 - 1e-9);
            }
        }

        #[test]
        fn any_two_days_give_a_valid_axis(first in -1_000_000i64..1_000_000, span in 0i64..100_000) {
            let axis = DayScale::new(first, first + span, Extent { from: 0.0, to: 100.0 });
            let ticks = axis.ticks(15.0);
            prop_assert!(ticks.iter().all(|day| axis.contains(*day)));
            prop_assert!(ticks.len() <= 9);
        }
    }
}
