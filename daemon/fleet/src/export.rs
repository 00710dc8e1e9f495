//! Exports one machine: every week that changed, table by table, each as one object that replaces its former state whole.

use std::ops::{ControlFlow, RangeInclusive};
use std::time::Duration;

use longhaul_export::fleet::{
    EachOperation, FleetTable, ImplausibleRecords, Origin, TableFile, Week, WeekRecords, plausible_history,
    weeks_of,
};
use longhaul_model::time::DAY;
use longhaul_model::{Event, FreshnessSample, History, Resolution, Timestamp, fnv};
use longhaul_store::{OTHER_COMPUTER_EVENT, Reader, SampleFilter};

use crate::Error;
use crate::layout::{FileKey, template_path};
use crate::location::Collection;
use crate::manifest::{ExportedWeek, LastRun, Manifest};

/// Time after the end of a week from which nothing is added to it: its last round has ended, in every time zone.
const GRACE: Duration = Duration::from_hours(48);

/// Names that the administrator gives, and the time of the export.
#[derive(Debug, Clone)]
pub struct ExportSettings {
    /// Name of the site.
    pub site: String,
    /// Name of the machine; `None` if it has none.
    pub label: Option<String>,
    /// Time of the export.
    pub now: Timestamp,
    /// Weeks to write.
    pub weeks: WeeksToWrite,
}

/// Weeks that an export writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeeksToWrite {
    /// Weeks that are not exported yet, or have changed since.
    Changed,
    /// All weeks, for a collection from which files were lost.
    All,
}

/// Result of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportReport {
    /// Source under which the rows are stored.
    pub source: String,
    /// Number of weeks that the database has.
    pub weeks: usize,
    /// Number of files that were written.
    pub files: u64,
    /// Number of rows in them.
    pub rows: u64,
    /// Size of the written files in bytes.
    pub bytes: u64,
    /// Records that were left out, by reason.
    pub left_out: Vec<ImplausibleRecords>,
}

/// Exports all weeks of a database that are not in the collection yet. Repeating it writes nothing; after an interruption it
/// continues with the first week that is missing.
///
/// # Errors
///
/// [`Error`]: the weeks that were written before the error remain, whole.
pub fn export(
    reader: &Reader,
    collection: &Collection,
    settings: &ExportSettings,
) -> Result<ExportReport, Error> {
    crate::runtime::block_on(Exporter::open(reader, collection, settings)?.run())
}

/// The part of a database that was measured on this computer. The rest is exported by the computer that used the database before.
struct OwnRecords {
    /// Number of the last round on another computer.
    rounds_elsewhere: i64,
    events: Vec<Event>,
    /// Time from which this computer uses the database, for records that are not numbered: a clock that was set may put them to the
    /// wrong computer.
    since: Timestamp,
}

impl OwnRecords {
    fn of(reader: &Reader) -> Result<Self, Error> {
        let mut events = reader.events(None)?;
        let changes = events.iter().filter(|stored| stored.event.kind == OTHER_COMPUTER_EVENT);
        let change = changes.max_by_key(|stored| stored.number);
        let (first, since) = change.map_or((0, Timestamp::MIN), |stored| (stored.number, stored.event.at_us));
        events.retain(|stored| stored.number >= first);
        let events = events.into_iter().map(|stored| stored.event).collect();
        Ok(Self { rounds_elsewhere: reader.rounds_elsewhere()?, events, since })
    }

    fn of_history(&self, mut history: History) -> History {
        history.rounds.retain(|round| round.number > self.rounds_elsewhere);
        history.runs.retain(|run| run.round > self.rounds_elsewhere);
        history.events.clone_from(&self.events);
        history
    }

    fn of_freshness(&self, mut samples: Vec<FreshnessSample>) -> Vec<FreshnessSample> {
        samples.retain(|sample| match sample.round {
            Some(round) => round > self.rounds_elsewhere,
            None => sample.at >= self.since,
        });
        samples
    }
}

struct Exporter<'a> {
    reader: &'a Reader,
    collection: &'a Collection,
    settings: &'a ExportSettings,
    origin: Origin,
    history: History,
    last_run: LastRun,
    freshness: Vec<FreshnessSample>,
    /// Time from which samples are of this computer.
    own_since: Timestamp,
    report: ExportReport,
}

impl<'a> Exporter<'a> {
    fn open(
        reader: &'a Reader,
        collection: &'a Collection,
        settings: &'a ExportSettings,
    ) -> Result<Self, Error> {
        let own = OwnRecords::of(reader)?;
        let history = own.of_history(reader.history()?);
        let last = history.runs.last().ok_or(Error::Empty)?;
        let machine_id = reader.machine_id()?.ok_or(Error::Empty)?;
        // Not from the history, which leaves out replays of former recordings: the first run may become one.
        let first_started = reader.first_run_started()?.ok_or(Error::Empty)?;
        let first_second = first_started.as_us().div_euclid(1_000_000);
        let origin = Origin {
            source: format!("{machine_id}-{first_second:x}"),
            machine_id,
            site: settings.site.clone(),
            label: settings.label.clone(),
        };
        let last_run = LastRun { number: last.number, started_us: last.started };
        let plausible = plausible_history(history, settings.now);
        let report = ExportReport {
            source: origin.source.clone(),
            left_out: plausible.left_out,
            ..ExportReport::default()
        };
        let history = WeekRecords::prepare(plausible.history);
        let freshness = own.of_freshness(reader.freshness(Timestamp::MIN)?);
        let own_since = own.since;
        Ok(Self { reader, collection, settings, origin, history, last_run, freshness, own_since, report })
    }

    async fn run(mut self) -> Result<ExportReport, Error> {
        let mut manifest = Manifest::read(self.collection, &self.origin.source).await?;
        self.refuse_other_computer(&manifest)?;
        if self.settings.weeks == WeeksToWrite::All {
            manifest.weeks.clear();
        }
        if manifest.weeks.is_empty() {
            self.put_templates().await?;
        }
        let weeks = weeks_of(&self.history);
        self.report.weeks = weeks.len();
        for week in weeks {
            if let Some(exported) = self.export_week(week, &manifest).await? {
                manifest.weeks.insert(week, exported);
                manifest.last_run = Some(self.last_run);
                manifest.write(self.collection, &self.origin.source).await?;
            }
        }
        Ok(self.report)
    }

    /// Refuses to replace the export of a computer with a copy of this machine's database.
    fn refuse_other_computer(&self, manifest: &Manifest) -> Result<(), Error> {
        let Some(exported) = manifest.last_run else { return Ok(()) };
        // Read again, because the history of the export leaves out runs with an impossible time.
        let stored = self.reader.run(exported.number)?;
        match stored.is_some_and(|stored| stored.run.started_us == exported.started_us) {
            true => Ok(()),
            false => Err(Error::SameMachineId { run: exported.number }),
        }
    }

    /// Writes a file without rows for each table, so that queries find the columns of tables that no machine has rows of.
    async fn put_templates(&self) -> Result<(), Error> {
        let nothing = History::default();
        let records = WeekRecords::new(&self.origin, &nothing, Week::of_day(0));
        for table in FleetTable::ALL {
            let file = self.encode(*table, &records)?;
            self.collection.write(&template_path(&self.collection.root, *table), file.bytes).await?;
        }
        Ok(())
    }

    /// Exports a week. `None`: nothing has changed.
    async fn export_week(&mut self, week: Week, manifest: &Manifest) -> Result<Option<ExportedWeek>, Error> {
        let records = WeekRecords::new(&self.origin, &self.history, week);
        let mut exported = ExportedWeek {
            fingerprint: fingerprint(&records, &self.origin),
            is_finished: self.settings.now >= start_of(week) + 7 * DAY + GRACE,
            ..ExportedWeek::default()
        };
        let known = manifest.weeks.get(&week);
        if known.is_some_and(|known| known.is_finished && known.fingerprint == exported.fingerprint) {
            return Ok(None);
        }
        for table in FleetTable::ALL {
            let before = manifest.file(week, *table);
            if let Some(stored) = before.filter(|_| self.has_expired(*table, week)) {
                exported.files.insert(table.name().to_owned(), stored);
                continue;
            }
            let file = self.encode(*table, &records)?;
            let hash = fnv(file.bytes.iter().copied());
            // A table without rows is left out, unless an earlier state of it is stored.
            if file.rows == 0 && before.is_none() {
                continue;
            }
            exported.files.insert(table.name().to_owned(), hash);
            if before != Some(hash) {
                self.report.files += 1;
                self.report.rows += file.rows;
                self.report.bytes += file.bytes.len() as u64;
                let key = FileKey { table: *table, week, source: self.origin.source.clone() };
                self.collection.write(&key.path(&self.collection.root), file.bytes).await?;
            }
        }
        Ok((known != Some(&exported)).then_some(exported))
    }

    /// Returns true if the database no longer has all records of a table in a week, so that the exported file has more. Samples
    /// by the hour and those of freshness are stored for the same number of days.
    fn has_expired(&self, table: FleetTable, week: Week) -> bool {
        let expires = matches!(table, FleetTable::Samples | FleetTable::Freshness);
        expires && start_of(week) + Resolution::Hour.days_kept() * DAY <= self.settings.now
    }

    fn encode(&self, table: FleetTable, records: &WeekRecords<'_>) -> Result<TableFile, Error> {
        let runs = records.run_numbers().unwrap_or(RangeInclusive::new(1, 0));
        Ok(match table {
            FleetTable::Rounds => records.rounds()?,
            FleetTable::Runs => records.runs()?,
            FleetTable::Readings => records.readings()?,
            FleetTable::Operations => records.operations(|each| read_operations(self.reader, runs, each))?,
            FleetTable::Samples => {
                let since = start_of(records.week());
                let filter = SampleFilter {
                    target: None,
                    kind: None,
                    step: Resolution::Hour,
                    since: since.max(self.own_since),
                    until: since + 7 * DAY,
                };
                records.samples(&self.reader.probe_steps(&filter)?)?
            }
            FleetTable::Events => records.events()?,
            FleetTable::Freshness => records.freshness(&self.freshness)?,
            FleetTable::Integrity => records.integrity(&self.reader.verified_runs(runs)?)?,
        })
    }
}

/// Calls `each` for every operation of a range of runs in the database, up to its first error.
fn read_operations(
    reader: &Reader,
    runs: RangeInclusive<i64>,
    each: EachOperation<'_>,
) -> Result<(), longhaul_export::Error> {
    let mut result = Ok(());
    reader.for_each_operation(runs, |stored| {
        result = each(&stored);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result.map_err(|source| longhaul_export::Error::Write { to: "memory".to_owned(), source })
}

/// Returns a number that changes with the records of a week, the names of the origin and the columns of the tables. A finished
/// week is exported again when it changes.
fn fingerprint(records: &WeekRecords<'_>, origin: &Origin) -> u64 {
    let bytes = |text: &str| text.bytes().chain([0]).collect::<Vec<u8>>();
    let columns = FleetTable::ALL.iter().flat_map(|table| table.column_names()).flat_map(bytes);
    let names = [origin.site.as_str(), origin.label.as_deref().unwrap_or_default()];
    let names = names.into_iter().flat_map(bytes);
    fnv(records.fingerprint().to_le_bytes().into_iter().chain(columns).chain(names))
}

/// Returns the start of a week in UTC.
fn start_of(week: Week) -> Timestamp {
    let microseconds = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_us(week.first_day().saturating_mul(microseconds))
}
