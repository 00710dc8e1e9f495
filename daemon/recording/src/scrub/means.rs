//! Means of the values of one class.

use std::time::Duration;

use crate::PowerOfTwo;

/// Sum and number of the values of each class.
#[derive(Default)]
pub(super) struct ClassMeans(Vec<Class>);

#[derive(Clone, Copy, Default)]
struct Class {
    sum: u128,
    count: u64,
}

impl ClassMeans {
    /// Adds a pause, in nanoseconds, to the class of its microseconds.
    pub(super) fn add_pause(&mut self, pause: Duration) -> PowerOfTwo {
        let class = PowerOfTwo::of(pause.as_micros().try_into().unwrap_or(u64::MAX));
        self.add(class, pause.as_nanos());
        class
    }

    /// Adds a size in bytes.
    pub(super) fn add_size(&mut self, size: u64) -> PowerOfTwo {
        let class = PowerOfTwo::of(size);
        self.add(class, u128::from(size));
        class
    }

    fn add(&mut self, class: PowerOfTwo, value: u128) {
        let number = usize::from(class.number());
        if self.0.len() <= number {
            self.0.resize(number + 1, Class::default());
        }
        self.0[number].sum += value;
        self.0[number].count += 1;
    }

    /// Returns the mean of each class, by number of the class; 0 without values.
    pub(super) fn means(&self) -> Vec<u64> {
        let mean =
            |class: &Class| (class.sum / u128::from(class.count.max(1))).try_into().unwrap_or(u64::MAX);
        self.0.iter().map(mean).collect()
    }
}
