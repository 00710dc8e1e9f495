//! Many rounds at once: for benchmarks and tests that need a database as it is after a year.

use longhaul_measure::model::{Event, Run, Target};
use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Fault, Result};
use crate::insert;
use crate::open::Store;
use crate::records::{NewRound, RoundEnd};

/// Adds without waiting for the disk. Nothing of it is there before all of it is.
pub struct Bulk<'a> {
    transaction: Transaction<'a>,
    path: &'a std::path::Path,
}

impl Store {
    /// Adds whatever `add` adds, all of it or nothing.
    ///
    /// # Errors
    ///
    /// As [`Writer::add_run`](crate::Writer::add_run), and whatever `add` says.
    pub fn in_bulk<E: From<crate::Error>>(
        &mut self,
        add: impl FnOnce(&Bulk<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        const OPERATION: &str = "add in bulk";
        let path = &self.path;
        let fault = |error: rusqlite::Error| Fault::from(error).during(OPERATION, path);
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let bulk = Bulk { transaction: begun.map_err(fault)?, path };
        add(&bulk)?;
        Ok(bulk.transaction.commit().map_err(fault)?)
    }
}

impl Bulk<'_> {
    /// As [`Writer::begin_round`](crate::Writer::begin_round).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn begin_round(&self, round: &NewRound) -> Result<i64> {
        self.named("begin a round", insert::round(&self.transaction, round))
    }

    /// As [`Writer::end_round`](crate::Writer::end_round).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn end_round(&self, round: i64, end: &RoundEnd) -> Result<()> {
        self.named("end a round", insert::round_end(&self.transaction, round, end))
    }

    /// As [`Writer::add_run`](crate::Writer::add_run), and gives the run's number.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_run(&self, target: &Target, run: &Run) -> Result<i64> {
        self.named("store a run", insert::run(&self.transaction, target, run)).map(|receipt| receipt.number)
    }

    /// As [`Writer::add_event`](crate::Writer::add_event).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add_event(&self, event: &Event) -> Result<i64> {
        self.named("store an event", insert::event(&self.transaction, event))
    }

    fn named<T>(&self, operation: &'static str, result: Result<T, Fault>) -> Result<T> {
        result.map_err(|fault| fault.during(operation, self.path))
    }
}
