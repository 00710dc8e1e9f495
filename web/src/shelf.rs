//! What was read from the database, kept until the database changes.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longhaul_measure::platform;
use longhaul_measure::summary::{History, Question, Week, Weekly, local_day, weekly};
use longhaul_service::config::Config;
use longhaul_service::places;
use longhaul_store::{Reader, Result};

/// So many weeks are kept ready; nobody looks at more of them at a time.
const MOST_WEEKS: usize = 16;

/// Where figures come from.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The database.
    pub database: PathBuf,
    /// The configuration file, which need not be there: it holds the person's mix of activities.
    pub config: Option<PathBuf>,
}

/// The one place in which the database is kept open for the page.
pub struct Shelf {
    sources: Sources,
    book: Mutex<Option<Book>>,
}

/// An open database, and what is known of it.
pub struct Book {
    /// For everything that is not kept.
    pub reader: Reader,
    identity: Option<(u64, u64)>,
    version: i64,
    /// What the history was read from: the state of the database, and when the configuration was written.
    mark: (String, Option<SystemTime>),
    config: Option<PathBuf>,
    history: Option<Arc<History>>,
    weeks: BTreeMap<Week, Arc<Weekly>>,
}

impl Shelf {
    /// Nothing is opened before somebody asks.
    pub fn new(sources: Sources) -> Self {
        Self { sources, book: Mutex::new(None) }
    }

    /// Makes ready what most pages show, so that whoever opens one does not wait for it.
    pub fn warm(&self) {
        let newest = self.read(|book| {
            let newest = book.newest()?;
            book.weekly(newest)
        });
        // Whoever opens a page is told of it.
        drop(newest);
    }

    /// Reads. Whatever was kept is thrown away if what it was made of has changed, or the database has been replaced.
    ///
    /// # Errors
    ///
    /// If the database cannot be opened or read.
    pub fn read<T>(&self, ask: impl FnOnce(&mut Book) -> Result<T>) -> Result<T> {
        let mut place = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = place.take().filter(|book| book.identity == identity(&self.sources.database));
        let mut book = match kept {
            Some(book) => book,
            None => Book::open(&self.sources)?,
        };
        book.refresh()?;
        let answer = ask(&mut book);
        *place = Some(book);
        answer
    }
}

/// What tells this file from one that takes its place.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// When a file was last written; `None` where it is not there.
fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

impl Book {
    fn open(sources: &Sources) -> Result<Self> {
        let identity = identity(&sources.database);
        Ok(Self {
            reader: Reader::open(&sources.database)?,
            identity,
            version: 0,
            mark: (String::new(), None),
            config: sources.config.clone(),
            history: None,
            weeks: BTreeMap::new(),
        })
    }

    /// Samples are stored all the time: they change no history, and a summary takes a tenth of a second.
    fn refresh(&mut self) -> Result<()> {
        let (version, written) = (self.reader.version()?, self.config.as_deref().and_then(written));
        let is_same = version == self.version;
        let mark = if is_same { self.mark.0.clone() } else { self.reader.history_mark()? };
        self.version = version;
        if self.mark != (mark.clone(), written) {
            (self.mark, self.history) = ((mark, written), None);
            self.weeks.clear();
        }
        Ok(())
    }

    /// Everything that verdicts rest on.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn history(&mut self) -> Result<Arc<History>> {
        if let Some(history) = &self.history {
            return Ok(Arc::clone(history));
        }
        // A broken configuration is a problem of its own, which the service tells of: the figures do not wait for it.
        let config =
            self.config.as_deref().filter(|path| path.exists()).and_then(|path| Config::read(path).ok());
        let history = Arc::new(places::history(&self.reader, &config.unwrap_or_default())?);
        self.history = Some(Arc::clone(&history));
        Ok(history)
    }

    /// The summary of a week, the same value that the terminal prints.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn weekly(&mut self, week: Week) -> Result<Arc<Weekly>> {
        if let Some(weekly) = self.weeks.get(&week) {
            return Ok(Arc::clone(weekly));
        }
        let history = self.history()?;
        let summary = Arc::new(weekly(&history, &Question { week, scale: None, zone: zone() }));
        if self.weeks.len() >= MOST_WEEKS {
            self.weeks.clear();
        }
        self.weeks.insert(week, Arc::clone(&summary));
        Ok(summary)
    }

    /// The first and the last week with a round; `None` without one.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn span(&mut self) -> Result<Option<(Week, Week)>> {
        let history = self.history()?;
        let week = |round: &longhaul_measure::summary::KeptRound| Week::of_day(round.day());
        Ok(history.rounds.first().map(week).zip(history.rounds.last().map(week)))
    }

    /// The newest week with a round, or else the present one.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn newest(&mut self) -> Result<Week> {
        Ok(self.span()?.map_or_else(this_week, |(_, last)| last))
    }
}

/// The person's time zone.
pub fn zone() -> TimeZone {
    TimeZone::system()
}

/// The week that it is now.
pub fn this_week() -> Week {
    let now_us = platform::wall_clock_us();
    Week::of_day(local_day(now_us, offset_at(now_us)))
}

/// The offset of local time from UTC at an instant, in seconds.
pub fn offset_at(at_us: i64) -> i32 {
    Timestamp::from_microsecond(at_us).map_or(0, |at| zone().to_offset(at).seconds())
}

#[cfg(test)]
mod tests {
    use longhaul_measure::model::{Event, MachineStep};
    use longhaul_store::{Samples, Store, Writer};

    use super::*;

    fn store(database: &Path, kind: &str) -> Writer {
        let writer = Writer::spawn(Store::open(database, &[]).unwrap());
        let detail = serde_json::Value::Null;
        writer.add_event(Event { target: None, kind: kind.to_owned(), detail, at_us: 1 }).unwrap();
        writer
    }

    fn kinds(shelf: &Shelf) -> Vec<String> {
        let history = shelf.read(Book::history).unwrap();
        history.events.iter().map(|event| event.kind.clone()).collect()
    }

    #[test]
    fn what_is_kept_is_as_new_as_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        let writer = store(&database, "first");
        let shelf = Shelf::new(Sources { database: database.clone(), config: None });
        let kept = |shelf: &Shelf| shelf.read(Book::history).unwrap();
        assert!(Arc::ptr_eq(&kept(&shelf), &kept(&shelf)), "read once");
        let before = kept(&shelf);
        writer.add_samples(Samples { machine: vec![MachineStep::default()], ..Samples::default() }).unwrap();
        assert!(Arc::ptr_eq(&kept(&shelf), &before), "what changes no history throws none away");
        let detail = serde_json::Value::Null;
        writer.add_event(Event { target: None, kind: "second".to_owned(), detail, at_us: 2 }).unwrap();
        assert_eq!(kinds(&shelf), ["first", "second"]);
        drop(writer);
        std::fs::rename(&database, folder.path().join("aside.sqlite")).unwrap();
        assert!(matches!(shelf.read(Book::history), Err(longhaul_store::Error::NoDatabase { .. })));
        let _other = store(&database, "of another");
        assert_eq!(kinds(&shelf), ["of another"], "the file that took its place");
    }
}
