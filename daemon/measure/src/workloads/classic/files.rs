//! Which file is next: those that a thread has, there or not there.

use std::collections::{BTreeSet, VecDeque};

use crate::corpus::draw::{draws, shuffled};
use crate::profile::Pick;

/// The files of one thread. The one that is chosen stands last among those that are there.
pub struct Files {
    present: VecDeque<u64>,
    absent: VecDeque<u64>,
    current: Option<u64>,
    draws: Box<dyn Iterator<Item = u64> + Send>,
}

impl Files {
    /// Files that are there and files that are not; what is drawn follows from the seed.
    pub fn new(present: Vec<u64>, absent: Vec<u64>, seed: u64) -> Self {
        let draws = Box::new(draws(seed, 0x6669_6c65));
        Self { present: present.into(), absent: absent.into(), current: None, draws }
    }

    /// Brings those that are there into a drawn order.
    pub fn shuffle(&mut self, seed: u64) {
        let order = shuffled(seed, 0x7368_7566, self.present.len() as u64);
        self.present = order.iter().map(|place| self.present[*place as usize]).collect();
    }

    /// Brings those that are there into an order that was found; those that are not in it come last.
    pub fn arrange(&mut self, order: impl Iterator<Item = u64>) {
        let mut unplaced: BTreeSet<u64> = self.present.drain(..).collect();
        self.present.extend(order.filter(|number| unplaced.remove(number)));
        self.present.extend(unplaced);
    }

    /// How many there are, whether they are there or not.
    pub fn in_all(&self) -> u64 {
        (self.present.len() + self.absent.len()) as u64
    }

    /// All that are not there.
    pub fn absent(&self) -> impl Iterator<Item = u64> + '_ {
        self.absent.iter().copied()
    }

    /// All that are there.
    pub fn present(&self) -> impl Iterator<Item = u64> + '_ {
        self.present.iter().copied()
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        let number = self.draws.next().unwrap_or_default();
        ((u128::from(number) * u128::from(bound)) >> 64) as u64
    }

    /// The chosen file; the next one if none is. `None` if none is there.
    pub fn current(&mut self) -> Option<u64> {
        self.current.or_else(|| self.choose(Pick::Next))
    }

    /// The chosen file, if one is.
    pub fn chosen(&self) -> Option<u64> {
        self.current
    }

    /// Chooses a file. [`Pick::AtEnd`] and [`Pick::All`] are for whoever knows ends, and does things for all.
    pub fn choose(&mut self, pick: Pick) -> Option<u64> {
        let count = self.present.len();
        if count == 0 {
            return None;
        }
        match pick {
            Pick::Same | Pick::AtEnd | Pick::All if self.current.is_some() => return self.current,
            Pick::Random => {
                let place = self.below(count as u64) as usize;
                self.present.swap(place, count - 1);
            }
            Pick::Next | Pick::Shuffled | Pick::Listed | Pick::Same | Pick::AtEnd | Pick::All => {
                self.present.rotate_left(1);
            }
        }
        self.current = self.present.back().copied();
        self.current
    }

    /// Chooses a file that is not there, and counts it as there from now on.
    pub fn create(&mut self, pick: Pick) -> Option<u64> {
        if pick == Pick::Random && !self.absent.is_empty() {
            let place = self.below(self.absent.len() as u64) as usize;
            self.absent.swap(place, 0);
        }
        let number = self.absent.pop_front()?;
        self.present.push_back(number);
        self.current = Some(number);
        self.current
    }

    /// Counts the chosen file as not there.
    pub fn delete(&mut self) {
        if self.current.take().is_some() {
            let number = self.present.pop_back();
            self.absent.extend(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_take_turns_from_the_first_on() {
        let mut files = Files::new(vec![0, 1, 2], vec![], 1);
        let turns: Vec<_> = (0..4).map(|_| files.choose(Pick::Next)).collect();
        assert_eq!(turns, [Some(0), Some(1), Some(2), Some(0)]);
        assert_eq!(files.choose(Pick::Same), Some(0));
    }

    #[test]
    fn a_shuffled_order_has_each_file_once() {
        let mut files = Files::new((0..100).collect(), vec![], 1);
        files.shuffle(7);
        let mut seen: Vec<_> = (0..100).filter_map(|_| files.choose(Pick::Shuffled)).collect();
        assert!(!seen.is_sorted());
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn an_order_that_was_found_loses_no_file_and_adds_none() {
        let mut files = Files::new((0..4).collect(), vec![4], 1);
        files.arrange([2, 9, 4, 0, 2].into_iter());
        let turns: Vec<_> = (0..4).filter_map(|_| files.choose(Pick::Listed)).collect();
        assert_eq!(turns, [2, 0, 1, 3]);
    }

    proptest! {
        #[test]
        fn no_file_is_lost_or_doubled(steps in prop::collection::vec(0u8..5, 0..200)) {
            let mut files = Files::new((0..5).collect(), (5..9).collect(), 3);
            for step in steps {
                match step {
                    0 => { files.create(Pick::Next); }
                    1 => { files.create(Pick::Random); }
                    2 => { files.choose(Pick::Random); }
                    3 => { files.choose(Pick::Next); }
                    _ => files.delete(),
                }
                let mut all: Vec<u64> = files.present.iter().chain(&files.absent).copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..9).collect::<Vec<_>>());
                prop_assert!(files.chosen().is_none_or(|chosen| files.present.back() == Some(&chosen)));
            }
        }
    }
}
