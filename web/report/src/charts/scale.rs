//! Values to places on an axis: in per cent across, in lines (em) down, so that a picture is as wide as its page and its
//! letters stay as large as the page's.

/// Decimal steps that people read easily, from fine to coarse, for an axis on which everything lies near 1.
const STEPS: [f64; 8] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0];
/// What a decade is divided into, from fine to coarse.
const DECADES: [&[f64]; 4] = [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
/// No axis begins lower or ends higher than this power of ten.
const POWERS: std::ops::RangeInclusive<i32> = -12..=12;

/// A logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// The axis that holds all the values, drawn between two places. What is no positive number has no place on it.
    pub fn over(values: impl IntoIterator<Item = f64>, (from, to): (f64, f64)) -> Self {
        let known = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let bounded = known.map(|value| value.clamp(10f64.powi(*POWERS.start()), 10f64.powi(*POWERS.end())));
        let (low, high) =
            bounded.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        // One value alone gets some room on both sides, and so do the outermost marks.
        let room = (high / low).ln().mul_add(0.04, 0.01).exp();
        Self { low: low / room, high: high * room, from, to }
    }

    /// The same axis between other places.
    pub fn between(self, (from, to): (f64, f64)) -> Self {
        Self { from, to, ..self }
    }

    /// Where a value lies; what lies beyond is drawn at the end.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The value that lies at a place.
    pub fn value(&self, place: f64) -> f64 {
        let share = (place - self.from) / (self.to - self.from);
        self.low * (self.high / self.low).powf(share)
    }

    /// Whether a value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Values to write on the axis: the finest set that leaves `gap` between any two, in the unit of places.
    pub fn ticks(&self, gap: f64) -> Vec<f64> {
        let near_one = STEPS.iter().map(|step| self.steps(*step));
        let by_decade = DECADES.iter().map(|parts| self.decades(parts));
        let candidates = near_one.take_while(|_| self.high / self.low < 12.0).chain(by_decade);
        let mut sets: Vec<Vec<f64>> = candidates.filter(|ticks| ticks.len() > 1).collect();
        let fits = |ticks: &Vec<f64>| {
            ticks.windows(2).all(|pair| (self.at(pair[1]) - self.at(pair[0])).abs() >= gap)
        };
        match sets.iter().position(fits) {
            Some(place) => sets.swap_remove(place),
            None => self.thinned(gap),
        }
    }

    fn steps(&self, step: f64) -> Vec<f64> {
        let first = (self.low / step).ceil().max(1.0);
        let count = ((self.high / step).floor() - first + 1.0).clamp(0.0, 200.0);
        // Divided, not multiplied: 7 / 10 is 0.7, 7 * 0.1 is not.
        (0..count as usize).map(|place| (first + place as f64) / (1.0 / step).round()).collect()
    }

    fn decades(&self, parts: &[f64]) -> Vec<f64> {
        let of_power = |power: i32| parts.iter().map(move |part| part * 10f64.powi(power));
        POWERS.flat_map(of_power).filter(|value| self.holds(*value)).collect()
    }

    /// Powers of ten that are far enough from each other, or else whatever round value there is.
    fn thinned(&self, gap: f64) -> Vec<f64> {
        let mut powers = self.decades(DECADES[3]);
        if powers.is_empty() {
            powers = DECADES
                .iter()
                .rev()
                .map(|parts| self.decades(parts))
                .find(|set| !set.is_empty())
                .unwrap_or_default();
        }
        let mut kept: Vec<f64> = vec![];
        for value in powers {
            if kept.last().is_none_or(|last| (self.at(value) - self.at(*last)).abs() >= gap) {
                kept.push(value);
            }
        }
        kept
    }
}

/// Whole days on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayScale {
    first: i64,
    last: i64,
    from: f64,
    to: f64,
}

impl DayScale {
    /// The axis from a first to a last day, drawn between two places.
    pub fn new((first, last): (i64, i64), (from, to): (f64, f64)) -> Self {
        Self { first, last: last.max(first), from, to }
    }

    /// How much room a day has.
    pub fn day_width(&self) -> f64 {
        (self.to - self.from) / (self.last.saturating_sub(self.first).saturating_add(1)) as f64
    }

    /// Where a day begins.
    pub fn begin(&self, day: i64) -> f64 {
        self.from
            + (day.clamp(self.first, self.last.saturating_add(1)) - self.first) as f64 * self.day_width()
    }

    /// The middle of a day.
    pub fn middle(&self, day: i64) -> f64 {
        self.begin(day) + self.day_width() / 2.0
    }

    /// Whether a day lies on the axis.
    pub fn holds(&self, day: i64) -> bool {
        (self.first..=self.last).contains(&day)
    }

    /// Days to write on the axis: every Monday or every so many weeks, days only where there are few.
    pub fn ticks(&self, gap: f64) -> Vec<i64> {
        let monday = |day: i64| day - (day + 3).rem_euclid(7);
        let steps = [1, 2].into_iter().map(|step| (self.first, step));
        let weeks = [7, 14, 28, 56, 112, 364].into_iter().map(|step| (monday(self.first + 6), step));
        let fitting = steps.chain(weeks).find(|(_, step)| *step as f64 * self.day_width() >= gap);
        let (first, step) = fitting.unwrap_or((self.first, i64::MAX));
        let count = self.last.saturating_sub(first).max(0) / step;
        (0..=count).map(|place| first + place * step).filter(|day| self.holds(*day)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_numbers_that_people_read() {
        let axis = |low, high| LogScale::over([low, high], (0.0, 100.0)).ticks(14.0);
        assert_eq!(axis(0.9, 1.1), [0.9, 0.95, 1.0, 1.05, 1.1]);
        assert_eq!(axis(0.5, 1.2), [0.6, 0.8, 1.0, 1.2]);
        assert_eq!(axis(0.02, 30.0), [0.1, 1.0, 10.0]);
        assert_eq!(axis(0.003, 120.0), [0.01, 0.1, 1.0, 10.0, 100.0]);
    }

    #[test]
    fn nothing_known_is_an_axis_around_one() {
        let axis = LogScale::over([f64::NAN, -1.0, 0.0], (0.0, 100.0));
        assert!((axis.at(1.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn weeks_begin_on_mondays() {
        // 2026-11-09 is a Monday, day 20 766.
        let axis = DayScale::new((20_764, 20_820), (0.0, 100.0));
        assert_eq!(axis.ticks(15.0), [20_766, 20_780, 20_794, 20_808]);
        assert_eq!(DayScale::new((5, 5), (0.0, 100.0)).ticks(15.0), [5]);
    }

    proptest! {
        #[test]
        fn ticks_lie_on_the_axis_in_order_and_apart(low in 1e-9f64..1e9, factor in 1.0f64..1e9) {
            let axis = LogScale::over([low, low * factor], (2.0, 98.0));
            let ticks = axis.ticks(14.0);
            prop_assert!(ticks.len() <= 8);
            prop_assert!(ticks.iter().all(|tick| axis.holds(*tick)));
            for pair in ticks.windows(2) {
                prop_assert!(axis.at(pair[1]) - axis.at(pair[0]) >= 14.0 - 1e-9);
            }
        }

        #[test]
        fn any_two_days_make_an_axis(first in -1_000_000i64..1_000_000, span in 0i64..100_000) {
            let axis = DayScale::new((first, first + span), (0.0, 100.0));
            let ticks = axis.ticks(15.0);
            prop_assert!(ticks.iter().all(|day| axis.holds(*day)));
            prop_assert!(ticks.len() <= 9);
        }
    }
}
