//! Caches the history and weekly summaries; invalidated when the database changes.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use jiff::tz::TimeZone;
use longhaul_analysis::attribution::{ATTRIBUTED_ROUNDS, Attribution};
use longhaul_analysis::prediction::{FITTED_ROUNDS, TimedRuns, timed_runs};
use longhaul_analysis::summary::{Week, WeeklyQuery, WeeklySummary, summarize_week};
use longhaul_measure::platform;
use longhaul_model::{History, Scale};
use longhaul_service::config::ConfigLoader;
use longhaul_service::paths;
use longhaul_store::{Reader, Result};
use longhaul_view::time::utc_offset_at;

/// Maximum number of weekly summaries in the cache; when it is reached, all of them are dropped.
const MAX_WEEKS: usize = 16;

/// Paths of the files that the figures are read from.
#[derive(Debug, Clone)]
pub struct SummarySources {
    /// Path of the database.
    pub database: PathBuf,
    /// Path of the configuration file, which contains the usage profile. The file need not exist.
    pub config: Option<PathBuf>,
}

/// Keeps the database open for the web server and caches what was read from it.
pub struct SummaryCache {
    sources: SummarySources,
    entry: Mutex<Option<CacheEntry>>,
}

/// An open database, with the history and the weekly summaries that were read from it.
pub struct CacheEntry {
    /// Reader for all queries that are not cached.
    pub reader: Reader,
    file_id: Option<(u64, u64)>,
    data_version: i64,
    /// Version of the data that the cached history was read from: the history version of the database, and the
    /// modification times of the configuration file and of the administrator's.
    source_version: (String, [Option<SystemTime>; 2]),
    config: Option<PathBuf>,
    history: Option<Arc<History>>,
    /// History that is out of date; its runs need not be read again.
    earlier: Option<Arc<History>>,
    weeks: BTreeMap<Week, Arc<WeeklySummary>>,
    attributions: Option<Arc<Vec<Attribution>>>,
    timed_runs: Option<Arc<TimedRuns>>,
}

impl SummaryCache {
    /// Creates an empty cache. The database is opened by the first read.
    pub fn new(sources: SummarySources) -> Self {
        Self { sources, entry: Mutex::new(None) }
    }

    /// Fills the cache with what the first page shows, so that it opens fast.
    pub fn prewarm(&self) {
        let newest = self.read(|entry| {
            entry.attributions()?;
            let newest = entry.newest_week()?;
            entry.weekly(newest)
        });
        // An error is ignored here: the page that is opened next will report it.
        drop(newest);
    }

    /// Runs a query on the cached database. Reopens the database if its file was replaced, and drops cached values
    /// that are out of date.
    ///
    /// # Errors
    ///
    /// If the database cannot be opened or read.
    pub fn read<T>(&self, ask: impl FnOnce(&mut CacheEntry) -> Result<T>) -> Result<T> {
        let mut guard = self.entry.lock().unwrap_or_else(PoisonError::into_inner);
        let current = guard.take().filter(|entry| entry.file_id == file_id(&self.sources.database));
        let mut entry = match current {
            Some(entry) => entry,
            None => CacheEntry::open(&self.sources)?,
        };
        entry.refresh()?;
        let answer = ask(&mut entry);
        *guard = Some(entry);
        answer
    }
}

/// Returns the device and inode number of a file, which change when the file is replaced.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Returns the modification time of a file; `None` if the file does not exist.
fn modified_time(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

impl CacheEntry {
    fn open(sources: &SummarySources) -> Result<Self> {
        let identity = file_id(&sources.database);
        Ok(Self {
            reader: Reader::open(&sources.database)?,
            file_id: identity,
            data_version: 0,
            source_version: (String::new(), [None; 2]),
            config: sources.config.clone(),
            history: None,
            earlier: None,
            weeks: BTreeMap::new(),
            attributions: None,
            timed_runs: None,
        })
    }

    /// Drops cached values if the history or the configuration changed. New samples alone do not change the
    /// history, so they keep the cache; recomputing a summary takes a tenth of a second.
    fn refresh(&mut self) -> Result<()> {
        let version = self.reader.data_version()?;
        let managed = modified_time(ConfigLoader::system().managed_path());
        let written = [self.config.as_deref().and_then(modified_time), managed];
        let is_same = version == self.data_version;
        let mark = if is_same { self.source_version.0.clone() } else { self.reader.history_version()? };
        self.data_version = version;
        if self.source_version != (mark.clone(), written) {
            self.source_version = (mark, written);
            self.earlier = self.history.take().or(self.earlier.take());
            self.weeks.clear();
            self.attributions = None;
            self.timed_runs = None;
        }
        Ok(())
    }

    /// Returns the history: all data that verdicts are computed from.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn history(&mut self) -> Result<Arc<History>> {
        if let Some(history) = &self.history {
            return Ok(Arc::clone(history));
        }
        // The service reports a broken configuration as a problem; here the administrator's settings and the defaults are
        // used instead, so that the figures stay visible.
        let loader = ConfigLoader::system();
        let config = loader.read(self.config.as_deref().filter(|path| path.exists()));
        let config = config.or_else(|_| loader.read(None)).unwrap_or_default();
        let earlier = self.earlier.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        let history = Arc::new(paths::read_history_since(&self.reader, &config, earlier)?);
        self.history = Some(Arc::clone(&history));
        Ok(history)
    }

    /// Returns the summary of a week, the same value that `longhaul report` prints.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn weekly(&mut self, week: Week) -> Result<Arc<WeeklySummary>> {
        if let Some(weekly) = self.weeks.get(&week) {
            return Ok(Arc::clone(weekly));
        }
        let history = self.history()?;
        let summary = Arc::new(summarize_week(
            &history,
            &WeeklyQuery { week, scale: None, since: None, zone: local_zone() },
        ));
        if self.weeks.len() >= MAX_WEEKS {
            self.weeks.clear();
        }
        self.weeks.insert(week, Arc::clone(&summary));
        Ok(summary)
    }

    /// Returns where the time of each task went in the newest rounds.
    ///
    /// # Errors
    ///
    /// If the times cannot be read.
    pub fn attributions(&mut self) -> Result<Arc<Vec<Attribution>>> {
        if let Some(known) = &self.attributions {
            return Ok(Arc::clone(known));
        }
        let scale = self.newest_scale()?;
        let found = Arc::new(paths::read_attributions(&self.reader, ATTRIBUTED_ROUNDS, scale)?);
        self.attributions = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Returns the runs to which predictions are fitted.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn timed_runs(&mut self) -> Result<Arc<TimedRuns>> {
        if let Some(known) = &self.timed_runs {
            return Ok(Arc::clone(known));
        }
        let scale = self.newest_scale()?;
        let phases = self.reader.phase_times(FITTED_ROUNDS, scale)?;
        let found = Arc::new(timed_runs(&phases, &self.reader.nas_use_of(&phases)?));
        self.timed_runs = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Returns the scale of the runs that the newest weekly summary is about; `None` if there is no run.
    fn newest_scale(&mut self) -> Result<Option<Scale>> {
        let newest = self.newest_week()?;
        Ok(self.weekly(newest)?.scale)
    }

    /// Returns the first and the last week with a round; `None` if there is no round.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn week_range(&mut self) -> Result<Option<(Week, Week)>> {
        let history = self.history()?;
        let week = |round: &longhaul_model::RoundRecord| Week::of_day(round.day());
        Ok(history.rounds.first().map(week).zip(history.rounds.last().map(week)))
    }

    /// Returns the newest week with a round, or the current week if there is no round.
    ///
    /// # Errors
    ///
    /// If the history cannot be read.
    pub fn newest_week(&mut self) -> Result<Week> {
        Ok(self.week_range()?.map_or_else(current_week, |(_, last)| last))
    }
}

/// Returns the local time zone of this machine.
pub fn local_zone() -> TimeZone {
    TimeZone::system()
}

/// Returns the current week.
pub fn current_week() -> Week {
    let now = platform::wall_clock();
    Week::of_day(now.local_day(utc_offset_at(now, &local_zone())))
}

#[cfg(test)]
mod tests {
    use longhaul_model::{Event, MachineStep, Timestamp};
    use longhaul_store::{Samples, Store, Writer};

    use super::*;

    fn store(database: &Path, kind: &str) -> Writer {
        let writer = Writer::spawn(Store::open(database, &[]).unwrap());
        let detail = serde_json::Value::Null;
        writer
            .add_event(Event { target: None, kind: kind.to_owned(), detail, at_us: Timestamp::from_us(1) })
            .unwrap();
        writer
    }

    fn kinds(cache: &SummaryCache) -> Vec<String> {
        let history = cache.read(CacheEntry::history).unwrap();
        history.events.iter().map(|event| event.kind.clone()).collect()
    }

    #[test]
    fn cache_follows_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("longhaul.sqlite");
        let writer = store(&database, "first");
        let cache = SummaryCache::new(SummarySources { database: database.clone(), config: None });
        let history = |cache: &SummaryCache| cache.read(CacheEntry::history).unwrap();
        assert!(Arc::ptr_eq(&history(&cache), &history(&cache)), "the second read comes from the cache");
        let before = history(&cache);
        writer.add_samples(Samples { machine: vec![MachineStep::default()], ..Samples::default() }).unwrap();
        assert!(Arc::ptr_eq(&history(&cache), &before), "new samples keep the cached history");
        let detail = serde_json::Value::Null;
        writer
            .add_event(Event {
                target: None,
                kind: "second".to_owned(),
                detail,
                at_us: Timestamp::from_us(2),
            })
            .unwrap();
        assert_eq!(kinds(&cache), ["first", "second"]);
        drop(writer);
        std::fs::rename(&database, folder.path().join("aside.sqlite")).unwrap();
        assert!(matches!(cache.read(CacheEntry::history), Err(longhaul_store::Error::NoDatabase { .. })));
        let _other = store(&database, "of the new file");
        assert_eq!(kinds(&cache), ["of the new file"], "a replaced database file is reopened");
    }
}
