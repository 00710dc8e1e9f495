//! Validates the imported records: sorts them, removes duplicates, and skips records with missing references.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul_model::TargetRecord;

use super::numbered_rows::{NumberedRow, NumberedRows};
use super::skipped::{SkipCounter, SkippedUnit};
use crate::Error;

/// Validates records of all kinds and counts the skipped ones.
pub(super) struct RecordValidator<'p> {
    pub(super) path: &'p Path,
    pub(super) position_unit: &'static str,
    pub(super) skipped: SkipCounter,
    /// Number of records of each kind according to the header row.
    pub(super) expected_counts: BTreeMap<String, u64>,
}

impl RecordValidator<'_> {
    /// Returns the records sorted by number, without duplicates.
    pub(super) fn validate<T: PartialEq>(
        &mut self,
        record: &'static str,
        numbered: NumberedRows<T>,
    ) -> Result<Vec<T>, Error> {
        self.validate_references(record, numbered, |_| Ok(()))
    }

    /// Returns the records like [`Self::validate`], but skips those for which `is_known` returns the reason why
    /// a reference cannot be resolved.
    pub(super) fn validate_references<T: PartialEq>(
        &mut self,
        record: &'static str,
        numbered: NumberedRows<T>,
        is_known: impl Fn(&T) -> Result<(), &'static str>,
    ) -> Result<Vec<T>, Error> {
        let NumberedRows { mut rows, rejected } = numbered;
        rows.sort_by_key(|row| row.number);
        let rows = self.deduplicate(record, rows)?;
        let expected = self.expected_counts.get(record).copied().unwrap_or(0);
        let missing = expected.saturating_sub(rows.len() as u64 + rejected);
        if missing > 0 {
            let why = format!("missing, although the header counts them (kind `{record}`)");
            self.skipped.count_missing(&why, missing);
        }
        let mut valid = Vec::with_capacity(rows.len());
        for NumberedRow { at, record, .. } in rows {
            match is_known(&record) {
                Ok(()) => valid.push(record),
                Err(why) => self.skipped.count_at(SkippedUnit::Row, why, at),
            }
        }
        Ok(valid)
    }

    /// Returns the first row of each number from rows sorted by number. Different rows with the same number are
    /// an error.
    fn deduplicate<T: PartialEq>(
        &mut self,
        record: &'static str,
        rows: Vec<NumberedRow<T>>,
    ) -> Result<Vec<NumberedRow<T>>, Error> {
        let mut once: Vec<NumberedRow<T>> = Vec::with_capacity(rows.len());
        for row in rows {
            match once.last().filter(|last| last.number == row.number) {
                None => once.push(row),
                Some(first) if first.record == row.record => {
                    self.skipped.count_at(SkippedUnit::Row, "repeated", row.at);
                }
                Some(first) => {
                    return Err(Error::ConflictingRows {
                        path: self.path.to_owned(),
                        record,
                        number: row.number,
                        place: self.position_unit,
                        first: first.at,
                        second: row.at,
                    });
                }
            }
        }
        Ok(once)
    }

    pub(super) fn require_unique_names(&self, targets: &[TargetRecord]) -> Result<(), Error> {
        let mut names = BTreeSet::new();
        match targets.iter().find(|target| !names.insert(&target.name)) {
            None => Ok(()),
            Some(target) => {
                let detail = format!("two targets are named `{}`", target.name);
                Err(Error::Damaged { path: self.path.to_owned(), detail })
            }
        }
    }
}
