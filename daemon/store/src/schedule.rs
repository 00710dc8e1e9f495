//! Queries about past rounds for the scheduler. They use indexes, so that a year of rounds does not slow down
//! the start of the service.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::{RoundStatus, TargetName, Timestamp};
use rusqlite::{OptionalExtension, Row, params};

use crate::error::{Fault, Result};
use crate::events::stored_event;
use crate::host;
use crate::reader::{Reader, stored_round};
use crate::rows::{TableRow, query_all};
use longhaul_model::stored::{FreeSpace, RoundCounts, StoredEvent, StoredRound};

/// Kind of the event that records the number of bytes written to create a corpus. They count against the byte
/// budget like the bytes of runs.
pub const PREPARATION_EVENT: &str = "prepared";

impl Reader {
    /// Returns the rounds without an end.
    pub fn open_rounds(&self) -> Result<Vec<StoredRound>> {
        let query = "SELECT * FROM round WHERE status IS NULL ORDER BY number";
        self.in_snapshot("read the open rounds", |cx| query_all(cx, query, [], stored_round))
    }

    /// Returns the number of void rounds with this reason that started at `since` or later. `reason` is the part of
    /// the stored reason before the colon.
    pub fn void_rounds_since(&self, since: Timestamp, reason: &str) -> Result<u64> {
        let query = "SELECT count(*) FROM round WHERE started_us >= ?1 AND status = 'void' AND reason LIKE ?2 || ':%'";
        self.in_snapshot("count the void rounds", |cx| {
            let count: i64 = cx.query_row(query, (since.as_us(), reason), |row| row.get(0))?;
            Ok(count.cast_unsigned())
        })
    }

    /// Returns the latest event of one of these two kinds. `None`: there is no such event.
    pub fn last_event(&self, kinds: [&str; 2]) -> Result<Option<StoredEvent>> {
        let query = "SELECT * FROM event WHERE kind IN (?1, ?2) ORDER BY number DESC LIMIT 1";
        self.in_snapshot("read the last event", |cx| Ok(query_all(cx, query, kinds, stored_event)?.pop()))
    }

    /// Returns the latest round, scheduled or started by a user, including skipped rounds. `None`: there is no
    /// round.
    pub fn last_round(&self) -> Result<Option<StoredRound>> {
        let query = "SELECT * FROM round ORDER BY number DESC LIMIT 1";
        self.in_snapshot("read the last round", |cx| Ok(query_all(cx, query, [], stored_round)?.pop()))
    }

    /// Returns the latest scheduled round, including skipped rounds. `None`: there is no scheduled round.
    pub fn last_scheduled(&self) -> Result<Option<StoredRound>> {
        let query = "SELECT * FROM round WHERE scheduled_us IS NOT NULL ORDER BY number DESC LIMIT 1";
        self.in_snapshot("read the last scheduled round", |cx| {
            Ok(query_all(cx, query, [], stored_round)?.pop())
        })
    }

    /// Returns the latest scheduled round before which the link to the NAS was known. `None`: there is none.
    pub fn last_with_link(&self) -> Result<Option<StoredRound>> {
        let query = "SELECT * FROM round WHERE scheduled_us IS NOT NULL AND json_extract(before, '$.link') IS NOT NULL
            ORDER BY number DESC LIMIT 1";
        self.in_snapshot("read the last round with a known link", |cx| {
            Ok(query_all(cx, query, [], stored_round)?.pop())
        })
    }

    /// Returns the number of scheduled rounds after a time that were skipped for a reason with this code.
    pub fn count_skipped(&self, after: Timestamp, code: &str) -> Result<u32> {
        let query = "SELECT count(*) FROM round
            WHERE scheduled_us IS NOT NULL AND started_us > ?1 AND status = 'skipped' AND reason LIKE ?2 || ':%'";
        self.in_snapshot("count the skipped rounds", |cx| {
            Ok(cx.query_row(query, params![after.as_us(), code], |row| row.get(0))?)
        })
    }

    /// Returns the scheduled start of the first scheduled round. `None`: there
    /// is no scheduled round.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] if the file is damaged.
    pub fn first_scheduled(&self) -> Result<Option<Timestamp>> {
        let query = "SELECT scheduled_us FROM round WHERE scheduled_us IS NOT NULL ORDER BY number LIMIT 1";
        self.in_snapshot("read the first scheduled round", |cx| {
            Ok(cx.query_row(query, [], |row| row.get(0)).optional()?.map(Timestamp::from_us))
        })
    }

    /// Returns the number of scheduled rounds by status.
    pub fn round_counts(&self) -> Result<RoundCounts> {
        let query = "SELECT 0 AS number, status, count(*) AS rounds FROM round
            WHERE scheduled_us IS NOT NULL GROUP BY status";
        let counted = |row: &Row<'_>| {
            let row = TableRow::new(row, "round", 0);
            let status = row.optional_parsed("status", RoundStatus::from_name)?;
            Ok((status, row.unsigned("rounds")?))
        };
        let found = self.in_snapshot("count the rounds", |cx| query_all(cx, query, [], counted))?;
        let mut counts = RoundCounts::default();
        found.into_iter().for_each(|(status, rounds)| counts.add(status, rounds));
        Ok(counts)
    }

    /// Returns the number of started rounds on this computer, scheduled or started by a user. The order of the runs of the next round
    /// is drawn from this number and the seed of this computer.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] if the file is damaged.
    pub fn count_started_rounds(&self) -> Result<u64> {
        let query =
            "SELECT count(*) FROM round WHERE number > ?1 AND (status IS NULL OR status != 'skipped')";
        self.in_snapshot("count the rounds", |cx| {
            let count: i64 = cx.query_row(query, [host::rounds_elsewhere(cx)?], |row| row.get(0))?;
            Ok(count.cast_unsigned())
        })
    }

    /// Returns the end of the last run of a round; `None` if no run of it is stored.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] if the file is damaged.
    pub fn last_run_end(&self, round: i64) -> Result<Option<Timestamp>> {
        let query = "SELECT max(started_us + CAST(seconds * 1000000 AS INTEGER)) FROM run WHERE round = ?1";
        self.in_snapshot("read the end of the last run of a round", |cx| {
            let end: Option<i64> = cx.query_row(query, [round], |row| row.get(0))?;
            Ok(end.map(Timestamp::from_us))
        })
    }

    /// Returns the total duration of the finished rounds that were scheduled at `since` or later, with the checks around
    /// them. Of a void round, in which the machine may have slept or waited for a full disk, only the runs count.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] if the file is damaged.
    pub fn busy_since(&self, since: Timestamp) -> Result<Duration> {
        let query =
            "SELECT coalesce(sum(coalesce(checks_us, 0) + CASE status WHEN 'void'
                THEN (SELECT coalesce(CAST(sum(seconds) * 1000000 AS INTEGER), 0) FROM run WHERE run.round = round.number)
                ELSE max(ended_us - started_us, 0) END), 0)
            FROM round WHERE status IN ('ok', 'void', 'cut-short') AND scheduled_us >= ?1";
        self.in_snapshot("add up the time of rounds", |cx| {
            let busy: i64 = cx.query_row(query, [since.as_us()], |row| row.get(0))?;
            Ok(Duration::from_micros(busy.cast_unsigned()))
        })
    }

    /// Returns the bytes read and written on each target at `since` or later,
    /// including the bytes written to create corpora.
    pub fn bytes_since(&self, since: Timestamp) -> Result<BTreeMap<TargetName, u64>> {
        let query = "SELECT name, sum(bytes) AS bytes FROM (
                SELECT target.name AS name, phase.bytes_read + phase.bytes_written AS bytes
                FROM run JOIN target ON target.number = run.target JOIN phase ON phase.run = run.number
                WHERE run.started_us >= ?1
            UNION ALL
                SELECT target AS name, json_extract(detail, '$.bytes') AS bytes FROM event
                WHERE at_us >= ?1 AND kind = ?2 AND target IS NOT NULL
            ) GROUP BY name";
        self.in_snapshot("add up the bytes of runs", |cx| {
            Ok(query_all(cx, query, (since.as_us(), PREPARATION_EVENT), target_bytes_row)?
                .into_iter()
                .collect())
        })
    }

    /// Returns, for each target, the largest number of bytes that one round read and wrote there, among runs
    /// that started at `since` or later.
    pub fn max_round_bytes_since(&self, since: Timestamp) -> Result<BTreeMap<TargetName, u64>> {
        let query = "SELECT name, max(bytes) AS bytes FROM (
                SELECT target.name AS name, sum(phase.bytes_read + phase.bytes_written) AS bytes
                FROM run JOIN target ON target.number = run.target JOIN phase ON phase.run = run.number
                WHERE run.started_us >= ?1 GROUP BY run.target, run.round
            ) GROUP BY name";
        self.in_snapshot("find the largest round", |cx| {
            Ok(query_all(cx, query, [since.as_us()], target_bytes_row)?.into_iter().collect())
        })
    }

    /// Returns the free space on each target as recorded by its latest run. A target is missing if its latest
    /// run did not record the free space.
    pub fn free_space(&self) -> Result<BTreeMap<TargetName, FreeSpace>> {
        let query = "SELECT target.name AS name, json_extract(conditions, '$.free_bytes') AS free,
                json_extract(conditions, '$.total_bytes') AS total, started_us
            FROM target JOIN run ON run.number = (
                SELECT number FROM run WHERE run.target = target.number ORDER BY started_us DESC, number DESC LIMIT 1
            ) WHERE free IS NOT NULL";
        self.in_snapshot("read the space on targets", |cx| {
            Ok(query_all(cx, query, [], free_space_row)?.into_iter().collect())
        })
    }
}

fn free_space_row(row: &Row<'_>) -> Result<(TargetName, FreeSpace), Fault> {
    let row = TableRow::new(row, "target", 0);
    let space = FreeSpace {
        free_bytes: row.unsigned("free")?,
        total_bytes: row.optional_unsigned("total")?,
        observed: row.time("started_us")?,
    };
    Ok((row.parsed("name", |name| name.parse().ok())?, space))
}

fn target_bytes_row(row: &Row<'_>) -> Result<(TargetName, u64), Fault> {
    let row = TableRow::new(row, "target", 0);
    Ok((row.parsed("name", |name| name.parse().ok())?, row.unsigned("bytes")?))
}
