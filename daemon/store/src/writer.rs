//! The one thread that writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::thread::{Builder, JoinHandle};

use longhaul_measure::model::{Run, Target};
use rusqlite::{Transaction, TransactionBehavior};

use crate::error::{Error, Fault, Result};
use crate::insert;
use crate::names::path_value;
use crate::open::Store;
use crate::records::{NewRound, RoundEnd, StoredRun};
use crate::samples::{self, Samples};
use longhaul_measure::model::Event;

type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// Owns the store on a thread of its own. Every call waits until what it brought is on disk.
///
/// It may be shared between threads; dropping it closes the database in order. When a call fails, nothing of it was
/// stored, and what [`Error::is_retryable`] may be tried again.
#[derive(Debug)]
pub struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. Should the system refuse one, every call says so.
    pub fn spawn(store: Store) -> Self {
        let (jobs, waiting) = channel();
        let thread = Builder::new().name("store".to_owned()).spawn(move || work(store, &waiting)).ok();
        Self { jobs: Some(jobs), thread }
    }

    /// Books the begin of a round and gives its number.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] and [`Error::Full`] may be retried; anything else is lasting.
    pub fn begin_round(&self, round: NewRound) -> Result<i64> {
        self.call(move |store| store.in_transaction("begin a round", |cx| insert::round(cx, &round)))
    }

    /// Books the end of a round.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`]; [`Error::NoSuchRound`] if there is none of that number, or it has ended.
    pub fn end_round(&self, round: i64, end: RoundEnd) -> Result<()> {
        self.call(move |store| store.in_transaction("end a round", |cx| insert::round_end(cx, round, &end)))
    }

    /// Books rounds that are not begun, each with its reason and the moment at which that was known, in one transaction.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn add_skipped(&self, skipped: Vec<(NewRound, String)>) -> Result<()> {
        self.call(move |store| {
            store.in_transaction("book skipped rounds", |cx| {
                skipped.iter().try_for_each(|(round, reason)| insert::skipped(cx, round, reason))
            })
        })
    }

    /// Stores a run with all that belongs to it, in one transaction, and gives it back with its number.
    ///
    /// The target's path and role are kept with it, and a new epoch is opened if it was made under other circumstances
    /// than the target's latest one; what the run does not know is no difference.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`]; [`Error::NoSuchRound`] if its round was not begun, [`Error::Unstorable`] if it holds
    /// NaN or an infinity, or is not a run on `target`.
    pub fn add_run(&self, target: &Target, run: &Run) -> Result<StoredRun> {
        let (target, run) = (target.clone(), run.clone());
        self.call(move |store| {
            let receipt = store.in_transaction("store a run", |cx| insert::run(cx, &target, &run))?;
            Ok(StoredRun { number: receipt.number, trace_id: receipt.trace_id, epoch: receipt.epoch, run })
        })
    }

    /// Stores an event and gives its number.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn add_event(&self, event: Event) -> Result<i64> {
        self.call(move |store| store.in_transaction("store an event", |cx| insert::event(cx, &event)))
    }

    /// Merges samples into what is there, lets go of what is older than it is kept, and gives some of the space that this
    /// frees back to the file system.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn add_samples(&self, new: Samples) -> Result<()> {
        self.call(move |store| {
            store.in_transaction("store samples", |cx| samples::add(cx, &new))?;
            samples::shrink(&store.connection).map_err(|fault| fault.during("free space", &store.path))
        })
    }

    /// Ends the lines of the ledger that have no end: at the start of a service, and at its end.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn close_stalls(&self, now_us: i64) -> Result<()> {
        self.call(move |store| store.in_transaction("close stalls", |cx| samples::close_stalls(cx, now_us)))
    }

    /// Keeps what a target, or the machine for an empty name, is like now.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn keep_surroundings(
        &self,
        subject: &str,
        facts: &BTreeMap<String, String>,
        now_us: i64,
    ) -> Result<()> {
        let (subject, facts) = (subject.to_owned(), serde_json::json!(facts).to_string());
        self.call(move |store| {
            let replace =
                "INSERT OR REPLACE INTO surroundings (subject, taken_us, facts) VALUES (?1, ?2, ?3)";
            let kept = store.connection.execute(replace, (subject, now_us, facts));
            kept.map(drop).map_err(|error| Fault::from(error).during("keep the surroundings", &store.path))
        })
    }

    /// Settles from which ratio on a difference matters, unless it is settled already: nobody is to choose it after having
    /// seen the figures.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn settle_threshold(&self, ratio: f64) -> Result<()> {
        self.call(move |store| {
            let insert = "INSERT OR IGNORE INTO meta (key, value) VALUES ('threshold', CAST(?1 AS TEXT))";
            let settled = store.connection.execute(insert, [ratio]);
            settled.map(drop).map_err(|error| Fault::from(error).during("settle the threshold", &store.path))
        })
    }

    /// Writes all that the open database holds to another file, which must not exist. It works even when the database's
    /// own file was removed, for it is still open.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`].
    pub fn copy_to(&self, path: &Path) -> Result<()> {
        let to = path_value(path);
        self.call(move |store| {
            let copied = store.connection.execute("VACUUM INTO ?1", [to]);
            copied.map(drop).map_err(|error| Fault::from(error).during("copy the database", &store.path))
        })
    }

    /// Does something on the thread and waits for it.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = sync_channel(1);
        // The receiver is gone only if the caller is, who then wants no answer.
        let job = Box::new(move |store: &mut Store| drop(answer.send(work(store))));
        let jobs = self.jobs.as_ref().ok_or(Error::WriterStopped)?;
        jobs.send(job).map_err(|_| Error::WriterStopped)?;
        answered.recv().map_err(|_| Error::WriterStopped)?
    }
}

/// The writer of the moment, for who is not its owner: the owner may put another one in its place, and ends it alone.
#[derive(Debug, Clone, Default)]
pub struct SharedWriter(Arc<RwLock<Weak<Writer>>>);

impl SharedWriter {
    /// The writer of the moment; `None`: there is none any more. Not to be kept.
    pub fn current(&self) -> Option<Arc<Writer>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Puts this one in the place of the one before.
    pub fn set(&self, writer: &Arc<Writer>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(writer);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // It can only fail by a panic, which its callers have heard of as `WriterStopped`.
            drop(thread.join());
        }
    }
}

fn work(mut store: Store, waiting: &Receiver<Job>) {
    for job in waiting {
        job(&mut store);
    }
}

impl Store {
    /// Does all or nothing. The lock is taken at once, so that what is read inside is still true when it is written.
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
        attempt().map_err(|fault: Fault| fault.during(operation, &self.path))
    }
}
