//! The thread that owns the store and executes all writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use longhaul_model::stored::{NewRound, RoundEnd};
use longhaul_model::{Event, Timestamp};
use parking_lot::RwLock;
use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Error, Fault, Result};
use crate::path_value::path_value;
use crate::samples::{self, Samples};
use crate::store::{Store, check_pages, create_private};
use crate::{events, insert};

type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// Owns the store on a separate thread. Every call blocks until its data is on disk.
///
/// A writer can be shared between threads; dropping it closes the database properly. If a call fails, it has
/// stored nothing; if [`Error::is_retryable`] is true, the caller may retry it.
#[derive(Debug)]
pub struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    has_met_damage: AtomicBool,
}

impl Writer {
    /// Starts the writer thread. If the thread cannot be created, every later call returns
    /// [`Error::WriterStopped`].
    pub fn spawn(store: Store) -> Self {
        let (jobs, receiver) = channel();
        let thread = Builder::new().name("store".to_owned()).spawn(move || run_jobs(store, &receiver)).ok();
        Self { jobs: Some(jobs), thread, has_met_damage: AtomicBool::new(false) }
    }

    /// Tells whether pages of the file are damaged, so that later calls may fail and nothing is stored. Reads every page,
    /// but only after a call failed with [`Error::Damaged`]: a single value that cannot be read means the same error.
    pub fn has_damaged_pages(&self) -> bool {
        // A check that finds damage sets the mark again.
        self.has_met_damage.swap(false, Ordering::Relaxed)
            && matches!(
                self.run_on_thread(|store| check_pages(&store.connection, &store.path)),
                Err(Error::Damaged { .. })
            )
    }

    /// Stores the start of a round and returns its number.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] and [`Error::DiskFull`] may be retried; all other errors are permanent.
    pub fn begin_round(&self, round: NewRound) -> Result<i64> {
        self.transact("store the start of a round", move |cx| insert::insert_round(cx, &round))
    }

    /// Stores the end of a round.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`]; [`Error::NoSuchRound`] if there is no such round or it has already ended.
    pub fn end_round(&self, round: i64, end: RoundEnd) -> Result<()> {
        self.transact("store the end of a round", move |cx| insert::close_round(cx, round, &end))
    }

    /// Stores the time that the checks after the runs of a round took.
    pub fn add_check_time(&self, round: i64, time: Duration) -> Result<()> {
        self.transact("store the time of checks", move |cx| insert::check_time(cx, round, time))
    }

    /// Stores skipped rounds, each with its reason, in one transaction. The start time of each is the time at
    /// which the reason was known.
    pub fn add_skipped(&self, skipped: Vec<(NewRound, String)>) -> Result<()> {
        self.transact("store skipped rounds", move |cx| {
            skipped.iter().try_for_each(|(round, reason)| insert::skipped_round(cx, round, reason))
        })
    }

    /// Stores an event and returns its number.
    pub fn add_event(&self, event: Event) -> Result<i64> {
        self.transact("store an event", move |cx| events::insert_event(cx, &event))
    }

    /// Merges samples into the stored ones, deletes expired samples, and releases some of the free pages to the
    /// file system if that is possible.
    pub fn add_samples(&self, new: Samples) -> Result<()> {
        self.run_on_thread(move |store| {
            store.in_transaction("store samples", |cx| samples::add(cx, &new))?;
            // The samples are stored: after an error, the caller would add them again, and they would count twice. The
            // next call releases what is left now, and a damaged page is met by calls that use it.
            let _ = samples::release_free_pages(&store.connection);
            Ok(())
        })
    }

    /// Closes all stalls without an end. The service calls this when it starts and when it stops.
    pub fn close_stalls(&self, now: Timestamp) -> Result<()> {
        self.transact("close stalls", move |cx| samples::close_stalls(cx, now))
    }

    /// Stores the current facts about a target, or about the machine if `subject` is empty.
    pub fn save_environment_facts(
        &self,
        subject: &str,
        facts: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<()> {
        let (subject, facts) = (subject.to_owned(), serde_json::json!(facts).to_string());
        self.transact("store the environment facts", move |cx| {
            let replace = "INSERT OR REPLACE INTO snapshot (subject, observed_us, facts) VALUES (?1, ?2, ?3)";
            Ok(cx.execute(replace, (subject, now.as_us(), facts)).map(drop)?)
        })
    }

    /// Fixes the threshold (the ratio from which a difference matters) unless it is already fixed. It cannot be
    /// changed later, so that it is not chosen to suit the results.
    pub fn set_threshold_once(&self, ratio: f64) -> Result<()> {
        self.transact("store the threshold", move |cx| {
            let insert = "INSERT OR IGNORE INTO meta (key, value) VALUES ('threshold', CAST(?1 AS TEXT))";
            Ok(cx.execute(insert, [ratio]).map(drop)?)
        })
    }

    /// Copies the database to another file, which must not exist. This works even if the database file was
    /// deleted, because the writer still has it open.
    pub fn copy_to(&self, path: &Path) -> Result<()> {
        let (to, path) = (path_value(path), path.to_owned());
        self.run_on_thread(move |store| {
            // SQLite writes into an empty file that exists.
            create_private(&path);
            let copied = store.connection.execute("VACUUM INTO ?1", [to]);
            copied.map(drop).map_err(|error| Fault::from(error).into_error("copy the database", &store.path))
        })
    }

    /// Runs `work` in a transaction on the writer thread and waits for its result.
    pub(crate) fn transact<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        self.run_on_thread(move |store| store.in_transaction(operation, work))
    }

    /// Runs `work` on the writer thread and waits for its result.
    pub(crate) fn run_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, result) = sync_channel(1);
        // Sending fails only if the caller has panicked, and then the result is not needed.
        let job = Box::new(move |store: &mut Store| drop(sender.send(work(store))));
        let jobs = self.jobs.as_ref().ok_or(Error::WriterStopped)?;
        jobs.send(job).map_err(|_| Error::WriterStopped)?;
        let result = result.recv().map_err(|_| Error::WriterStopped)?;
        if matches!(result, Err(Error::Damaged { .. })) {
            self.has_met_damage.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// A weak reference to the current writer. The owner of the writer can replace it, and dropping the owner's
/// reference is enough to close the database.
#[derive(Debug, Clone, Default)]
pub struct SharedWriter(Arc<RwLock<Weak<Writer>>>);

impl SharedWriter {
    /// Returns the current writer. `None`: the writer was dropped or never set. The caller must not store the
    /// result, because it keeps the database open.
    pub fn current(&self) -> Option<Arc<Writer>> {
        self.0.read().upgrade()
    }

    /// Replaces the current writer.
    pub fn replace(&self, writer: &Arc<Writer>) {
        *self.0.write() = Arc::downgrade(writer);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // Joining fails only if the thread panicked, which its callers have already seen as
            // `WriterStopped`.
            drop(thread.join());
        }
    }
}

fn run_jobs(mut store: Store, jobs: &Receiver<Job>) {
    for job in jobs {
        job(&mut store);
    }
}

impl Store {
    /// Runs `work` in a transaction, which is rolled back on error. The write lock is taken at the start, so
    /// that values read inside the transaction are still valid when it writes.
    pub(crate) fn in_transaction<T>(
        &mut self,
        operation: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T> {
        let connection = &mut self.connection;
        let attempt = move || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        attempt().map_err(|fault: Fault| fault.into_error(operation, &self.path))
    }
}
