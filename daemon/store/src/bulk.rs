//! Inserts many rounds in one transaction, for benchmarks and tests that need a database with a year of data.

use longhaul_model::{Event, Run, Target};
use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Fault, Result};
use crate::store::Store;
use crate::{events, insert};
use longhaul_model::stored::{NewRound, RoundEnd};

/// Inserts rounds, runs and events in one transaction, without an fsync for each of them.
pub struct Bulk<'a> {
    transaction: Transaction<'a>,
    path: &'a std::path::Path,
}

impl Store {
    /// Runs `add` in one transaction. If `add` returns an error, nothing is stored.
    ///
    /// # Errors
    ///
    /// As [`Writer::add_run`](crate::Writer::add_run), and the errors of `add`.
    pub fn bulk_insert<E: From<crate::Error>>(
        &mut self,
        add: impl FnOnce(&Bulk<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        const OPERATION: &str = "insert in bulk";
        let path = &self.path;
        let fault = |error: rusqlite::Error| Fault::from(error).into_error(OPERATION, path);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let bulk = Bulk { transaction: transaction.map_err(fault)?, path };
        add(&bulk)?;
        Ok(bulk.transaction.commit().map_err(fault)?)
    }
}

impl Bulk<'_> {
    /// Stores the start of a round and returns its number, like
    /// [`Writer::begin_round`](crate::Writer::begin_round).
    pub fn begin_round(&self, round: &NewRound) -> Result<i64> {
        self.map_fault("store the start of a round", insert::insert_round(&self.transaction, round))
    }

    /// Stores the end of a round, like [`Writer::end_round`](crate::Writer::end_round).
    pub fn end_round(&self, round: i64, end: &RoundEnd) -> Result<()> {
        self.map_fault("store the end of a round", insert::close_round(&self.transaction, round, end))
    }

    /// Stores a run and returns its number, like [`Writer::add_run`](crate::Writer::add_run).
    pub fn add_run(&self, target: &Target, run: &Run) -> Result<i64> {
        self.map_fault("store a run", insert::insert_run(&self.transaction, target, run))
            .map(|inserted| inserted.number)
    }

    /// Stores an event and returns its number, like [`Writer::add_event`](crate::Writer::add_event).
    pub fn add_event(&self, event: &Event) -> Result<i64> {
        self.map_fault("store an event", events::insert_event(&self.transaction, event))
    }

    fn map_fault<T>(&self, operation: &'static str, result: Result<T, Fault>) -> Result<T> {
        result.map_err(|fault| fault.into_error(operation, self.path))
    }
}
