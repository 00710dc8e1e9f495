//! The end of reading: order, doubles, and what belongs to nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul_measure::summary::KeptTarget;

use super::assemble::Numbered;
use super::left_out::{Noun, Tally};
use crate::Error;

/// What all kinds of records are settled with.
pub(super) struct Settling<'p> {
    pub(super) path: &'p Path,
    pub(super) place: &'static str,
    pub(super) left_out: Tally,
    /// How many of each kind the file says to hold.
    pub(super) announced: BTreeMap<String, u64>,
}

impl Settling<'_> {
    /// Records in the order of their numbers, each once.
    pub(super) fn settle<T: PartialEq>(
        &mut self,
        record: &'static str,
        numbered: Numbered<T>,
    ) -> Result<Vec<T>, Error> {
        self.settle_known(record, numbered, |_| Ok(()))
    }

    /// As [`Settling::settle`], but without those that belong to nothing.
    pub(super) fn settle_known<T: PartialEq>(
        &mut self,
        record: &'static str,
        numbered: Numbered<T>,
        is_known: impl Fn(&T) -> Result<(), &'static str>,
    ) -> Result<Vec<T>, Error> {
        let Numbered { mut rows, refused } = numbered;
        rows.sort_by_key(|(number, _, _)| *number);
        let rows = self.once(record, rows)?;
        let announced = self.announced.get(record).copied().unwrap_or(0);
        let missing = announced.saturating_sub(rows.len() as u64 + refused);
        if missing > 0 {
            let why = format!("that the file announces and does not hold (of the kind `{record}`)");
            self.left_out.note_absent(&why, missing);
        }
        let mut settled = Vec::with_capacity(rows.len());
        for (_, at, row) in rows {
            match is_known(&row) {
                Ok(()) => settled.push(row),
                Err(why) => self.left_out.note(Noun::Row, why, at),
            }
        }
        Ok(settled)
    }

    /// Of rows that are sorted by number, the first of each number.
    fn once<T: PartialEq>(
        &mut self,
        record: &'static str,
        rows: Vec<(i64, u64, T)>,
    ) -> Result<Vec<(i64, u64, T)>, Error> {
        let mut once: Vec<(i64, u64, T)> = Vec::with_capacity(rows.len());
        for (number, at, row) in rows {
            match once.last().filter(|(last, _, _)| *last == number) {
                None => once.push((number, at, row)),
                Some((_, _, same)) if *same == row => self.left_out.note(Noun::Row, "twice", at),
                Some((_, first, _)) => {
                    let (path, place, first, second) = (self.path.to_owned(), self.place, *first, at);
                    return Err(Error::Contradiction { path, record, number, place, first, second });
                }
            }
        }
        Ok(once)
    }

    pub(super) fn require_unique(&self, targets: &[KeptTarget]) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        match targets.iter().find(|target| !names.insert(&target.name)) {
            None => Ok(()),
            Some(target) => {
                let detail = format!("two of its targets are called `{}`", target.name);
                Err(Error::Damaged { path: self.path.to_owned(), detail })
            }
        }
    }
}
