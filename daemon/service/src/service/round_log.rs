//! Counts rounds by their outcome, and stores rounds that were skipped or missed.

use longhaul_store::{NewRound, Reader, RoundCounts, RoundEnd, RoundStatus, StoredRound};

use crate::database::Database;
use crate::round::RoundResult;
use crate::status::LastRound;
use longhaul_model::Timestamp;

/// The rounds that have ended, and skipped rounds that wait for the database.
#[derive(Default)]
pub(super) struct RoundLog {
    counts: RoundCounts,
    last: Option<LastRound>,
    /// Skipped rounds that the database has not accepted yet, with their reason.
    unstored: Vec<(NewRound, String)>,
}

impl RoundLog {
    /// Reads the rounds that are stored. Keeps those that wait to be stored.
    ///
    /// # Errors
    ///
    /// If the database cannot be read. Nothing has changed then.
    pub(super) fn refresh(&mut self, reader: &Reader) -> longhaul_store::Result<()> {
        (self.counts, self.last) = (reader.round_counts()?, reader.last_round()?.and_then(last_round));
        Ok(())
    }

    /// Returns the number of rounds by outcome.
    pub(super) fn counts(&self) -> RoundCounts {
        self.counts
    }

    /// Returns the last round, run or skipped.
    pub(super) fn last(&self) -> Option<&LastRound> {
        self.last.as_ref()
    }

    /// Counts a scheduled round that was run.
    pub(super) fn count(&mut self, status: RoundStatus) {
        self.counts.add(Some(status), 1);
    }

    /// Records a round that was run, scheduled or requested.
    pub(super) fn set_last(&mut self, result: &RoundResult, ended: Timestamp) {
        let RoundResult { number, status, ref reason, .. } = *result;
        self.last = Some(LastRound { number, status, reason: reason.clone(), ended_us: ended });
    }

    /// Adds a skipped round, to be stored by [`Self::store`].
    pub(super) fn add_skipped(&mut self, round: NewRound, reason: String) {
        self.unstored.push((round, reason));
    }

    /// Returns whether a skipped round waits for the database.
    pub(super) fn has_unstored(&self) -> bool {
        !self.unstored.is_empty()
    }

    /// Stores the skipped rounds that the database has not accepted yet.
    ///
    /// # Errors
    ///
    /// If the database refuses them. They are kept for the next call.
    pub(super) fn store(&mut self, database: &Database) -> longhaul_store::Result<()> {
        database.writer().add_skipped(self.unstored.clone())?;
        let stored = std::mem::take(&mut self.unstored);
        let scheduled = stored.iter().filter(|(round, _)| round.scheduled.is_some()).count();
        self.counts.add(Some(RoundStatus::Skipped), scheduled as u64);
        let last = database.reader().and_then(|reader| reader.last_round()).ok().flatten();
        self.last = last.and_then(last_round);
        Ok(())
    }
}

fn last_round(round: StoredRound) -> Option<LastRound> {
    let RoundEnd { status, reason, ended, .. } = round.end?;
    Some(LastRound { number: round.number, status, reason, ended_us: ended })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_model::Scale;

    use super::*;

    fn database(folder: &Path) -> Database {
        Database::open(&folder.join("longhaul.sqlite"), &[], Timestamp::from_us(1)).unwrap().0
    }

    fn round(scheduled: Option<i64>) -> NewRound {
        let scheduled = scheduled.map(Timestamp::from_us);
        NewRound { scheduled, ..NewRound::new(Timestamp::from_us(1), 1, Scale::Quick) }
    }

    #[test]
    fn skipped_rounds_are_counted_once_they_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        let (database, mut log) = (database(folder.path()), RoundLog::default());
        log.add_skipped(round(Some(1)), "paused: by the user".to_owned());
        log.add_skipped(round(None), "time-budget: used up".to_owned());
        assert!(log.has_unstored() && log.counts().skipped == 0);
        log.store(&database).unwrap();
        assert_eq!(
            (log.has_unstored(), log.counts().skipped),
            (false, 1),
            "a requested round is not planned"
        );
        assert_eq!(log.last().unwrap().reason.as_deref(), Some("time-budget: used up"));
    }

    #[test]
    fn rounds_of_an_earlier_database_are_forgotten() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (before, now) = (database(folder.path()), database(other.path()));
        let mut log = RoundLog::default();
        log.add_skipped(round(Some(1)), "paused: by the user".to_owned());
        log.store(&before).unwrap();
        log.add_skipped(round(Some(2)), "paused: by the user".to_owned());
        log.refresh(&now.reader().unwrap()).unwrap();
        assert_eq!((log.counts(), log.last()), (RoundCounts::default(), None));
        assert!(log.has_unstored(), "the new database gets the round that waits");
    }
}
