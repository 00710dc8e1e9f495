//! What a schedule has to know of the past, answered by indexes: a year of rounds must not slow down a start.

use std::collections::BTreeMap;

use longhaul_measure::model::{RoundStatus, TargetName};
use rusqlite::{OptionalExtension, Row};

use crate::error::{Fault, Result};
use crate::reader::{Reader, collect, stored_event, stored_round};
use crate::records::{Room, RoundCounts, StoredEvent, StoredRound};
use crate::rows::{named, optional_named};

/// The event that books what the making of a corpus wrote: it counts against the budget as runs do.
pub const PREPARED: &str = "prepared";

impl Reader {
    /// The rounds without an end.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn open_rounds(&self) -> Result<Vec<StoredRound>> {
        let query = "SELECT * FROM round WHERE status IS NULL ORDER BY number";
        self.in_snapshot("read the open rounds", |cx| collect(cx, query, [], stored_round))
    }

    /// The latest event of one of these kinds.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn last_event(&self, kinds: (&str, &str)) -> Result<Option<StoredEvent>> {
        let query = "SELECT * FROM event WHERE kind IN (?1, ?2) ORDER BY number DESC LIMIT 1";
        self.in_snapshot("read the last event", |cx| Ok(collect(cx, query, kinds, stored_event)?.pop()))
    }

    /// The latest round that was begun, or skipped, by a schedule or by a person.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn last_round(&self) -> Result<Option<StoredRound>> {
        let query = "SELECT * FROM round ORDER BY number DESC LIMIT 1";
        self.in_snapshot("read the last round", |cx| Ok(collect(cx, query, [], stored_round)?.pop()))
    }

    /// The latest round of a schedule.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn last_scheduled(&self) -> Result<Option<StoredRound>> {
        let query = "SELECT * FROM round WHERE scheduled_us IS NOT NULL ORDER BY number DESC LIMIT 1";
        self.in_snapshot(
            "read the last scheduled round",
            |cx| Ok(collect(cx, query, [], stored_round)?.pop()),
        )
    }

    /// When the first round of a schedule was meant to be, in microseconds since 1970 UTC.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] for a broken file.
    pub fn first_scheduled_us(&self) -> Result<Option<i64>> {
        let query = "SELECT scheduled_us FROM round WHERE scheduled_us IS NOT NULL ORDER BY number LIMIT 1";
        self.in_snapshot("read the first scheduled round", |cx| {
            Ok(cx.query_row(query, [], |row| row.get(0)).optional()?)
        })
    }

    /// How many scheduled rounds ended how.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn round_counts(&self) -> Result<RoundCounts> {
        let query = "SELECT 0 AS number, status, count(*) AS rounds FROM round
            WHERE scheduled_us IS NOT NULL GROUP BY status";
        let counted = |row: &Row<'_>| {
            let status = optional_named(row, (("round", 0), "status"), RoundStatus::from_name)?;
            Ok((status, row.get::<_, i64>("rounds")?.cast_unsigned()))
        };
        let found = self.in_snapshot("count the rounds", |cx| collect(cx, query, [], counted))?;
        let mut counts = RoundCounts::default();
        found.into_iter().for_each(|(status, rounds)| counts.add(status, rounds));
        Ok(counts)
    }

    /// How many rounds were begun in all, by a schedule or by a person.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] for a broken file.
    pub fn rounds_begun(&self) -> Result<u64> {
        let query = "SELECT count(*) FROM round WHERE status IS NULL OR status != 'skipped'";
        let count: i64 =
            self.in_snapshot("count the rounds", |cx| Ok(cx.query_row(query, [], |row| row.get(0))?))?;
        Ok(count.cast_unsigned())
    }

    /// For how long rounds went on since a moment, in microseconds.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Damaged`] for a broken file.
    pub fn busy_us_since(&self, since_us: i64) -> Result<i64> {
        let query = "SELECT coalesce(sum(max(ended_us - started_us, 0)), 0) FROM round
            WHERE status IN ('ok', 'void', 'cut-short') AND scheduled_us >= ?1";
        self.in_snapshot("add up the time of rounds", |cx| {
            Ok(cx.query_row(query, [since_us], |row| row.get(0))?)
        })
    }

    /// Bytes that were read and written on each target since a moment, what the making of corpora wrote included.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn bytes_since(&self, since_us: i64) -> Result<BTreeMap<TargetName, u64>> {
        let query = "SELECT name, sum(bytes) AS bytes FROM (
                SELECT target.name AS name, phase.bytes_read + phase.bytes_written AS bytes
                FROM run JOIN target ON target.number = run.target JOIN phase ON phase.run = run.number
                WHERE run.started_us >= ?1
            UNION ALL
                SELECT target AS name, json_extract(detail, '$.bytes') AS bytes FROM event
                WHERE at_us >= ?1 AND kind = ?2 AND target IS NOT NULL
            ) GROUP BY name";
        self.in_snapshot("add up the bytes of runs", |cx| {
            Ok(collect(cx, query, (since_us, PREPARED), bytes_of_target)?.into_iter().collect())
        })
    }

    /// The most bytes that a round read and wrote on each target since a moment.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn most_bytes_in_a_round_since(&self, since_us: i64) -> Result<BTreeMap<TargetName, u64>> {
        let query = "SELECT name, max(bytes) AS bytes FROM (
                SELECT target.name AS name, sum(phase.bytes_read + phase.bytes_written) AS bytes
                FROM run JOIN target ON target.number = run.target JOIN phase ON phase.run = run.number
                WHERE run.started_us >= ?1 GROUP BY run.target, run.round
            ) GROUP BY name";
        self.in_snapshot("find the largest round", |cx| {
            Ok(collect(cx, query, [since_us], bytes_of_target)?.into_iter().collect())
        })
    }

    /// The space on each target as its latest run found it; left out where that did not look.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn rooms(&self) -> Result<BTreeMap<TargetName, Room>> {
        let query = "SELECT target.name AS name, json_extract(conditions, '$.free_bytes') AS free,
                json_extract(conditions, '$.total_bytes') AS total, started_us
            FROM target JOIN run ON run.number = (
                SELECT number FROM run WHERE run.target = target.number ORDER BY started_us DESC, number DESC LIMIT 1
            ) WHERE free IS NOT NULL";
        self.in_snapshot("read the space on targets", |cx| {
            Ok(collect(cx, query, [], room)?.into_iter().collect())
        })
    }
}

fn room(row: &Row<'_>) -> Result<(TargetName, Room), Fault> {
    let room = Room {
        free_bytes: row.get::<_, i64>("free")?.cast_unsigned(),
        total_bytes: row.get::<_, Option<i64>>("total")?.map(i64::cast_unsigned),
        found_us: row.get("started_us")?,
    };
    Ok((named(row, (("target", 0), "name"), |name| name.parse().ok())?, room))
}

fn bytes_of_target(row: &Row<'_>) -> Result<(TargetName, u64), Fault> {
    let name = named(row, (("target", 0), "name"), |name| name.parse().ok())?;
    Ok((name, row.get::<_, i64>("bytes")?.cast_unsigned()))
}
