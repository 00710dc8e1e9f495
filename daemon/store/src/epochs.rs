//! Epochs: runs that were made under different circumstances are never pooled.

use std::path::PathBuf;

use longhaul_measure::model::{Negotiated, OWN_PREFIX, Protocol, Run, Target};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde_json::{Value, json};

use crate::error::Fault;
use crate::insert;
use crate::names::path_value;
use crate::rows::{json_of, optional_json_of, path_of};
use longhaul_measure::model::Event;

/// What an epoch is told apart by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    pub(crate) path: PathBuf,
    /// `None`: could not be told.
    pub(crate) protocol: Option<Protocol>,
    /// Empty: could not be told.
    pub(crate) negotiated: Negotiated,
}

impl Fingerprint {
    fn of_run(target: &Target, run: &Run) -> Self {
        Self {
            path: target.path.clone(),
            protocol: run.protocol.clone(),
            negotiated: run.conditions.negotiated.clone(),
        }
    }

    /// The fingerprint in a row of `epoch` that selects these columns.
    pub(crate) fn from_row(row: &Row<'_>, number: i64) -> Result<Self, Fault> {
        Ok(Self {
            path: path_of(row, ("epoch", number), "path")?,
            protocol: optional_json_of(row, ("epoch", number), "protocol")?,
            negotiated: json_of(row, ("epoch", number), "negotiated")?,
        })
    }

    /// Takes from another time what this one does not know: a share that is away for an hour, or a question that was not
    /// answered, is no other circumstance, and would otherwise split the figures for good.
    fn completed_from(&self, other: &Self) -> Self {
        let mut known = self.clone();
        if self.path != other.path {
            return known;
        }
        known.protocol = match (known.protocol, &other.protocol) {
            (Some(known), Some(other)) => Some(known.completed_from(other)),
            (known, other) => known.or_else(|| other.clone()),
        };
        if known.protocol == other.protocol && self.told().next().is_none() {
            known.negotiated.extend(other.told().map(|(name, value)| (name.clone(), value.clone())));
        }
        known
    }

    /// What the system told, without what longhaul adds.
    fn told(&self) -> impl Iterator<Item = (&String, &String)> {
        self.negotiated.iter().filter(|(name, _)| !name.starts_with(OWN_PREFIX))
    }

    /// Protocol and negotiated values as they are stored.
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

/// The epoch that a run belongs to: the target's latest, or a new one if the run was made under other circumstances.
pub(crate) fn of_run(cx: &Connection, target: (i64, &Target), run: &Run) -> Result<i64, Fault> {
    let (target_number, target) = target;
    let fingerprint = Fingerprint::of_run(target, run);
    let Some((number, before)) = latest(cx, target_number)? else {
        return open(cx, target_number, (&fingerprint, run.started_us));
    };
    let fingerprint = fingerprint.completed_from(&before);
    if fingerprint == before {
        return Ok(number);
    }
    if before.completed_from(&fingerprint) == fingerprint {
        // Nothing changed: what could not be told when the epoch began is told now.
        return complete(cx, number, &fingerprint).map(|()| number);
    }
    let opened = open(cx, target_number, (&fingerprint, run.started_us))?;
    let detail = json!({ "epoch": opened, "before": before.to_json(), "after": fingerprint.to_json() });
    let (target, at_us) = (Some(target.name.clone()), run.started_us);
    insert::event(cx, &Event { target, kind: "epoch".to_owned(), detail, at_us })?;
    Ok(opened)
}

fn latest(cx: &Connection, target: i64) -> Result<Option<(i64, Fingerprint)>, Fault> {
    let query = "SELECT number, path, protocol, negotiated FROM epoch WHERE target = ?1
        ORDER BY number DESC LIMIT 1";
    let mut statement = cx.prepare_cached(query)?;
    let found = statement.query_row([target], |row| {
        let number = row.get("number")?;
        Ok(Fingerprint::from_row(row, number).map(|fingerprint| (number, fingerprint)))
    });
    found.optional()?.transpose()
}

fn complete(cx: &Connection, number: i64, fingerprint: &Fingerprint) -> Result<(), Fault> {
    let update = "UPDATE epoch SET protocol = :protocol, negotiated = :negotiated WHERE number = :number";
    let (protocol, negotiated) = fingerprint.columns()?;
    cx.prepare_cached(update)?.execute(named_params! {
        ":number": number, ":protocol": protocol, ":negotiated": negotiated,
    })?;
    Ok(())
}

fn open(cx: &Connection, target: i64, what: (&Fingerprint, i64)) -> Result<i64, Fault> {
    let (fingerprint, opened_us) = what;
    let (protocol, negotiated) = fingerprint.columns()?;
    let insert = "INSERT INTO epoch (target, opened_us, path, protocol, negotiated)
        VALUES (:target, :opened_us, :path, :protocol, :negotiated)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":target": target, ":opened_us": opened_us, ":path": path_value(&fingerprint.path),
        ":protocol": protocol, ":negotiated": negotiated,
    })?;
    Ok(cx.last_insert_rowid())
}
