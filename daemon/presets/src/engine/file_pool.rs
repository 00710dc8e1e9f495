//! The files of one thread, and the choice of the next file.

use std::collections::{BTreeSet, VecDeque};

use crate::profile::FileChoice;
use longhaul_model::draw::{draw_stream, shuffled_indices};

/// The file numbers of one thread: files that exist, and files that do not exist yet or no longer.
///
/// The chosen file is always the last element of `present`.
pub struct FilePool {
    present: VecDeque<u64>,
    absent: VecDeque<u64>,
    current_number: Option<u64>,
    draws: Box<dyn Iterator<Item = u64> + Send>,
}

impl FilePool {
    /// Creates a pool of existing and missing files. Random choices are derived from the seed.
    pub fn new(present: Vec<u64>, absent: Vec<u64>, seed: u64) -> Self {
        let draws = Box::new(draw_stream(seed, 0x6669_6c65));
        Self { present: present.into(), absent: absent.into(), current_number: None, draws }
    }

    /// Puts the existing files into a random order that is derived from the seed.
    pub fn shuffle(&mut self, seed: u64) {
        let order = shuffled_indices(seed, 0x7368_7566, self.present.len() as u64);
        self.present = order.iter().map(|index| self.present[*index as usize]).collect();
    }

    /// Puts the existing files into the given order. Files that it does not contain come last; unknown numbers
    /// are ignored.
    pub fn reorder(&mut self, order: impl Iterator<Item = u64>) {
        let mut unplaced: BTreeSet<u64> = self.present.drain(..).collect();
        self.present.extend(order.filter(|number| unplaced.remove(number)));
        self.present.extend(unplaced);
    }

    /// Returns the number of files, both existing and missing.
    pub fn total(&self) -> u64 {
        (self.present.len() + self.absent.len()) as u64
    }

    /// Returns the numbers of the missing files.
    pub fn absent(&self) -> impl Iterator<Item = u64> + '_ {
        self.absent.iter().copied()
    }

    /// Returns the numbers of the existing files.
    pub fn present(&self) -> impl Iterator<Item = u64> + '_ {
        self.present.iter().copied()
    }

    /// Returns a random number below `bound`.
    pub fn draw_below(&mut self, bound: u64) -> u64 {
        let number = self.draws.next().unwrap_or_default();
        ((u128::from(number) * u128::from(bound)) >> 64) as u64
    }

    /// Returns the chosen file, or chooses the next one if no file is chosen. `None` if no file exists.
    pub fn current_or_next(&mut self) -> Option<u64> {
        self.current_number.or_else(|| self.choose(FileChoice::Next))
    }

    /// Returns the chosen file; `None` if no file is chosen.
    pub fn chosen_file(&self) -> Option<u64> {
        self.current_number
    }

    /// Chooses an existing file; `None` if no file exists.
    ///
    /// [`FileChoice::AtEnd`] and [`FileChoice::All`] keep the chosen file here. The caller decides if the end was
    /// reached, and repeats a step for all files.
    pub fn choose(&mut self, pick: FileChoice) -> Option<u64> {
        let count = self.present.len();
        if count == 0 {
            return None;
        }
        match pick {
            FileChoice::Same | FileChoice::AtEnd | FileChoice::All if self.current_number.is_some() => {
                return self.current_number;
            }
            FileChoice::Random => {
                let index = self.draw_below(count as u64) as usize;
                self.present.swap(index, count - 1);
            }
            FileChoice::Next
            | FileChoice::Shuffled
            | FileChoice::Listed
            | FileChoice::Same
            | FileChoice::AtEnd
            | FileChoice::All => {
                self.present.rotate_left(1);
            }
        }
        self.current_number = self.present.back().copied();
        self.current_number
    }

    /// Chooses a missing file and marks it as existing; `None` if no file is missing.
    pub fn create(&mut self, pick: FileChoice) -> Option<u64> {
        if pick == FileChoice::Random && !self.absent.is_empty() {
            let index = self.draw_below(self.absent.len() as u64) as usize;
            self.absent.swap(index, 0);
        }
        let number = self.absent.pop_front()?;
        self.present.push_back(number);
        self.current_number = Some(number);
        self.current_number
    }

    /// Marks the chosen file as missing.
    pub fn delete(&mut self) {
        if self.current_number.take().is_some() {
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
    fn files_are_chosen_in_turn_from_the_first() {
        let mut files = FilePool::new(vec![0, 1, 2], vec![], 1);
        let turns: Vec<_> = (0..4).map(|_| files.choose(FileChoice::Next)).collect();
        assert_eq!(turns, [Some(0), Some(1), Some(2), Some(0)]);
        assert_eq!(files.choose(FileChoice::Same), Some(0));
    }

    #[test]
    fn a_shuffled_order_has_each_file_once() {
        let mut files = FilePool::new((0..100).collect(), vec![], 1);
        files.shuffle(7);
        let mut seen: Vec<_> = (0..100).filter_map(|_| files.choose(FileChoice::Shuffled)).collect();
        assert!(!seen.is_sorted());
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn reorder_neither_loses_nor_adds_files() {
        let mut files = FilePool::new((0..4).collect(), vec![4], 1);
        files.reorder([2, 9, 4, 0, 2].into_iter());
        let turns: Vec<_> = (0..4).filter_map(|_| files.choose(FileChoice::Listed)).collect();
        assert_eq!(turns, [2, 0, 1, 3]);
    }

    proptest! {
        #[test]
        fn no_file_is_lost_or_duplicated(steps in prop::collection::vec(0u8..5, 0..200)) {
            let mut files = FilePool::new((0..5).collect(), (5..9).collect(), 3);
            for step in steps {
                match step {
                    0 => { files.create(FileChoice::Next); }
                    1 => { files.create(FileChoice::Random); }
                    2 => { files.choose(FileChoice::Random); }
                    3 => { files.choose(FileChoice::Next); }
                    _ => files.delete(),
                }
                let mut all: Vec<u64> = files.present.iter().chain(&files.absent).copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..9).collect::<Vec<_>>());
                prop_assert!(files.chosen_file().is_none_or(|chosen| files.present.back() == Some(&chosen)));
            }
        }
    }
}
