//! Assigns runs to epochs. A new epoch starts when a target's path, protocol or negotiated options change; runs
//! of different epochs are never pooled.

use std::path::PathBuf;

use longhaul_model::{
    Event, LONGHAUL_KEY_PREFIX, NegotiatedOptions, Outcome, Protocol, Run, SHARE_KEYS, Target, Timestamp,
};
use rusqlite::{Connection, named_params};
use serde_json::{Value, json};

use crate::error::Fault;
use crate::events;
use crate::path_value::path_value;
use crate::rows::{TableRow, query_all};

/// Option that is read from another file than the others on Linux. That file may lack it for a while, which is no change of the share.
const DIRECTORY_LEASES: &str = "directory-leases";

/// Option that only `smbutil` reports: in a mount table the version of SMB is called `vers`.
const SMBUTIL_KEY: &str = "dialect";

/// The properties that distinguish the epochs of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) path: PathBuf,
    /// Protocol of the mount. `None`: it could not be determined.
    pub(crate) protocol: Option<Protocol>,
    /// Negotiated options. Empty: they could not be determined.
    pub(crate) negotiated: NegotiatedOptions,
}

impl Fingerprint {
    fn epoch_for_run(target: &Target, run: &Run) -> Self {
        Self {
            path: target.path.clone(),
            protocol: run.protocol.clone(),
            negotiated: run.conditions.negotiated.clone(),
        }
    }

    /// Reads the fingerprint from a row with the columns `path`, `protocol` and `negotiated`.
    pub(crate) fn from_row(row: TableRow<'_>) -> Result<Self, Fault> {
        Ok(Self {
            path: row.path("path")?,
            protocol: row.optional_json("protocol")?,
            negotiated: row.json("negotiated")?,
        })
    }

    /// Returns this fingerprint with unknown values filled in from `other`. A share that is unavailable for an
    /// hour, or a tool that does not report the options once, is not a change; a new epoch would separate the
    /// results for good.
    fn fill_missing_from(&self, other: &Self) -> Self {
        let mut known = self.clone();
        if self.path != other.path {
            return known;
        }
        known.protocol = match (known.protocol, &other.protocol) {
            (Some(known), Some(other)) => Some(known.with_version_from(other)),
            (known, other) => known.or_else(|| other.clone()),
        };
        if known.protocol == other.protocol {
            if self.reported().next().is_none() || (self.is_from_smbutil() && other.is_from_smbutil()) {
                for (name, value) in other.reported() {
                    known.negotiated.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            if !known.has_other_share(other) {
                let tags = other.negotiated.iter().filter(|(key, _)| SHARE_KEYS.contains(&key.as_str()));
                known.negotiated.extend(tags.map(|(key, tag)| (key.clone(), tag.clone())));
                if let Some(leases) = other.negotiated.get(DIRECTORY_LEASES) {
                    known.negotiated.entry(DIRECTORY_LEASES.to_owned()).or_insert_with(|| leases.clone());
                }
            }
        }
        known
    }

    /// Returns true if the options are those of `smbutil` on a Mac, which names every attribute that it knows, also one that is off
    /// (SMBClient smbutil/statshares.c:516). One that it does not name is unknown: newer systems know more. In a mount table a
    /// missing flag is off.
    fn is_from_smbutil(&self) -> bool {
        self.negotiated.contains_key(SMBUTIL_KEY)
    }

    /// Returns true if a tag of the share is known of both and differs.
    fn has_other_share(&self, other: &Self) -> bool {
        let tags = |key| self.negotiated.get(key).zip(other.negotiated.get(key));
        SHARE_KEYS.into_iter().filter_map(tags).any(|(own, other)| own != other)
    }

    /// Returns the options reported by the operating system, without the keys that longhaul adds itself.
    fn reported(&self) -> impl Iterator<Item = (&String, &String)> {
        self.negotiated.iter().filter(|(name, _)| !name.starts_with(LONGHAUL_KEY_PREFIX))
    }

    /// Returns the values of the columns `protocol` and `negotiated`.
    fn columns(&self) -> Result<(Option<String>, String), Fault> {
        let protocol = self.protocol.as_ref().map(serde_json::to_string).transpose();
        let negotiated = serde_json::to_string(&self.negotiated);
        Ok((protocol.map_err(Fault::json)?, negotiated.map_err(Fault::json)?))
    }

    fn to_json(&self) -> Value {
        let path = self.path.to_string_lossy();
        json!({ "path": path, "protocol": self.protocol, "negotiated": self.negotiated })
    }
}

/// Returns the number of the epoch that a run belongs to: the target's latest epoch, or a new one if the
/// fingerprint has changed and the target could be used. A new epoch after the first one also stores an event of kind `epoch`.
pub(crate) fn epoch_for_run(
    cx: &Connection,
    target_number: i64,
    target: &Target,
    run: &Run,
) -> Result<i64, Fault> {
    let fingerprint = Fingerprint::epoch_for_run(target, run);
    let Some((number, before)) = latest(cx, target_number)? else {
        return insert_epoch(cx, target_number, &fingerprint, run.started_us);
    };
    // A run that could not use its target shows no change for sure: often only a path was wrong, or the share was not mounted.
    if run.outcome == Outcome::Unavailable {
        return Ok(number);
    }
    let fingerprint = fingerprint.fill_missing_from(&before);
    if fingerprint == before {
        return Ok(number);
    }
    if before.fill_missing_from(&fingerprint) == fingerprint {
        // Not a change: a value that was unknown at the start of the epoch is known now, so it is added to the
        // epoch.
        return update_fingerprint(cx, number, &fingerprint).map(|()| number);
    }
    let opened = insert_epoch(cx, target_number, &fingerprint, run.started_us)?;
    let detail = json!({ "epoch": opened, "before": before.to_json(), "after": fingerprint.to_json() });
    let target = Some(target.name.clone());
    events::insert_event(cx, &Event { target, kind: "epoch".to_owned(), detail, at_us: run.started_us })?;
    Ok(opened)
}

fn latest(cx: &Connection, target: i64) -> Result<Option<(i64, Fingerprint)>, Fault> {
    let query = "SELECT number, path, protocol, negotiated FROM epoch WHERE target = ?1
        ORDER BY number DESC LIMIT 1";
    let found = query_all(cx, query, [target], |row| {
        let row = TableRow::numbered(row, "epoch")?;
        Ok((row.number, Fingerprint::from_row(row)?))
    });
    Ok(found?.pop())
}

fn update_fingerprint(cx: &Connection, number: i64, fingerprint: &Fingerprint) -> Result<(), Fault> {
    let update = "UPDATE epoch SET protocol = :protocol, negotiated = :negotiated WHERE number = :number";
    let (protocol, negotiated) = fingerprint.columns()?;
    cx.prepare_cached(update)?.execute(named_params! {
        ":number": number, ":protocol": protocol, ":negotiated": negotiated,
    })?;
    Ok(())
}

fn insert_epoch(
    cx: &Connection,
    target: i64,
    fingerprint: &Fingerprint,
    opened: Timestamp,
) -> Result<i64, Fault> {
    let (protocol, negotiated) = fingerprint.columns()?;
    let insert = "INSERT INTO epoch (target, opened_us, path, protocol, negotiated)
        VALUES (:target, :opened_us, :path, :protocol, :negotiated)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":target": target, ":opened_us": opened.as_us(), ":path": path_value(&fingerprint.path),
        ":protocol": protocol, ":negotiated": negotiated,
    })?;
    Ok(cx.last_insert_rowid())
}
