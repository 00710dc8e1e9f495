//! Stores and reads freshness samples.

use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{ChangeKind, FreshnessDay, FreshnessOutcome, FreshnessSample, SLOW_CHANGE, Timestamp};
use rusqlite::{Connection, Row, named_params};

use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::samples::oldest_kept_of;
use crate::writer::Writer;

/// Number of days after which samples are deleted, if that many later days have some.
const RETENTION_DAYS: u32 = 400;

impl Writer {
    /// Stores freshness samples in one transaction, and deletes expired ones. Each sample belongs to the newest
    /// epoch of its target.
    pub fn add_freshness(&self, samples: Vec<FreshnessSample>) -> Result<()> {
        self.transact("store freshness samples", move |cx| {
            samples.iter().try_for_each(|sample| insert(cx, sample))?;
            let newest = samples.iter().map(|sample| sample.at).max();
            newest.map_or(Ok(()), |newest| delete_expired(cx, newest))
        })
    }
}

impl Reader {
    /// Returns the freshness samples of all targets at or after `since`, oldest first.
    pub fn freshness(&self, since: Timestamp) -> Result<Vec<FreshnessSample>> {
        let query = "SELECT * FROM freshness WHERE at_us >= ?1 ORDER BY at_us, number";
        self.in_snapshot("read freshness samples", |cx| query_all(cx, query, [since.as_us()], sample))
    }

    /// Returns the counts of changes at or after `since` by epoch, kind and local day, as in a history.
    pub fn freshness_days(&self, since: Timestamp) -> Result<Vec<FreshnessDay>> {
        self.in_snapshot("count freshness samples", |cx| freshness_by_day(cx, since))
    }
}

fn insert(cx: &Connection, sample: &FreshnessSample) -> std::result::Result<(), Fault> {
    let insert = "INSERT INTO freshness (target, protocol, epoch, changed_through, shares_client, round, kind, at_us,
            earliest_us, latest_us, limit_us, reason)
        VALUES (:target, :protocol,
            (SELECT max(epoch.number) FROM epoch JOIN target ON target.number = epoch.target WHERE target.name = :target),
            :changed_through, :shares_client, :round, :kind, :at_us, :earliest_us, :latest_us, :limit_us, :reason)";
    let protocol = sample.protocol.as_ref().map(serde_json::to_string).transpose().map_err(Fault::json)?;
    let (mut earliest, mut latest, mut limit, mut reason) = (None, None, None, None);
    match &sample.outcome {
        FreshnessOutcome::Seen { earliest: from, latest: to } => {
            (earliest, latest) = (Some(microseconds(*from)), Some(microseconds(*to)));
        }
        FreshnessOutcome::NotSeen { limit: until } => limit = Some(microseconds(*until)),
        FreshnessOutcome::Void { reason: why } => reason = Some(why),
    }
    cx.prepare_cached(insert)?.execute(named_params! {
        ":target": sample.target.as_str(), ":protocol": protocol,
        ":changed_through": sample.changed_through.as_ref().map(|name| name.as_str()),
        ":shares_client": sample.shares_client, ":round": sample.round, ":kind": sample.kind.name(),
        ":at_us": sample.at.as_us(), ":earliest_us": earliest, ":latest_us": latest, ":limit_us": limit,
        ":reason": reason,
    })?;
    Ok(())
}

/// Returns the counts of changes by epoch, kind and local day, without changes through a target that shares the client and without
/// those that have no result. The day is that of the round; a change outside of rounds has the UTC offset of the newest round
/// before it, or none.
pub(crate) fn freshness_by_day(
    cx: &Connection,
    since: Timestamp,
) -> std::result::Result<Vec<FreshnessDay>, Fault> {
    let query = "SELECT target, epoch, kind,
            coalesce(round.started_us + round.utc_offset_seconds * 1000000, at_us + coalesce(
                (SELECT earlier.utc_offset_seconds * 1000000 FROM round AS earlier WHERE earlier.started_us <= freshness.at_us
                    ORDER BY earlier.number DESC LIMIT 1), 0)) / ?1 AS day,
            count(*) AS changes, sum(limit_us IS NOT NULL) AS not_seen, coalesce(sum(latest_us > ?2), 0) AS slow,
            min(limit_us) AS limit_us
        FROM freshness LEFT JOIN round ON round.number = freshness.round
        WHERE at_us >= ?3 AND epoch IS NOT NULL AND NOT shares_client AND freshness.reason IS NULL
        GROUP BY epoch, kind, target, day ORDER BY day, epoch, kind";
    query_all(cx, query, [microseconds(DAY), microseconds(SLOW_CHANGE), since.as_us()], |row| {
        let row = TableRow::new(row, "freshness", 0);
        Ok(FreshnessDay {
            target: row.parsed("target", |name| name.parse().ok())?,
            epoch: row.get("epoch")?,
            kind: row.parsed("kind", ChangeKind::from_name)?,
            day: row.get("day")?,
            changes: row.unsigned("changes")?,
            not_seen: row.unsigned("not_seen")?,
            slow: row.unsigned("slow")?,
            limit: row.optional_unsigned("limit_us")?.map(Duration::from_micros),
        })
    })
}

fn microseconds(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

fn delete_expired(cx: &Connection, now: Timestamp) -> std::result::Result<(), Fault> {
    // The days of other samples do not count: without the service there are none.
    let Some(oldest) = oldest_kept_of(cx, "freshness", now, RETENTION_DAYS)? else { return Ok(()) };
    let delete = "DELETE FROM freshness WHERE at_us < ?1";
    cx.prepare_cached(delete)?.execute([oldest.as_us()])?;
    Ok(())
}

fn sample(row: &Row<'_>) -> std::result::Result<FreshnessSample, Fault> {
    let row = TableRow::numbered(row, "freshness")?;
    Ok(FreshnessSample {
        target: row.parsed("target", |name| name.parse().ok())?,
        protocol: row.optional_json("protocol")?,
        epoch: row.get("epoch")?,
        changed_through: row.optional_parsed("changed_through", |name| name.parse().ok())?,
        shares_client: row.get("shares_client")?,
        round: row.get("round")?,
        kind: row.parsed("kind", ChangeKind::from_name)?,
        at: row.time("at_us")?,
        outcome: outcome(row)?,
    })
}

fn outcome(row: TableRow<'_>) -> std::result::Result<FreshnessOutcome, Fault> {
    let length = |column| Ok::<_, Fault>(row.optional_unsigned(column)?.map(Duration::from_micros));
    if let (Some(earliest), Some(latest)) = (length("earliest_us")?, length("latest_us")?) {
        return Ok(FreshnessOutcome::Seen { earliest, latest });
    }
    if let Some(limit) = length("limit_us")? {
        return Ok(FreshnessOutcome::NotSeen { limit });
    }
    let reason = row.text("reason")?.ok_or_else(|| row.unknown("reason", "NULL"))?;
    Ok(FreshnessOutcome::Void { reason: reason.to_owned() })
}
