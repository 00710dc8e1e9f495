//! Stores and reads fidelity: the properties of files that a target keeps, changes, refuses or loses.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{
    Event, Finding, KeepResult, Property, ReadBack, Target, TargetFidelity, TargetName, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde_json::{Map, Value, json};

use crate::error::{Fault, Result};
use crate::events;
use crate::insert::upsert_target;
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::writer::Writer;

/// Kind of the event that tells that a target keeps other properties than before.
const EVENT_KIND: &str = "fidelity";
/// Time after which a check in which nothing could be tested is repeated.
const RETRY_INTERVAL: Duration = DAY;

impl Writer {
    /// Stores the findings of a check. If results differ from those stored last, an event names these properties.
    pub fn add_fidelity(&self, target: &Target, checked: &TargetFidelity) -> Result<()> {
        let (target, checked) = (target.clone(), checked.clone());
        self.transact("store the fidelity", move |cx| insert(cx, &target, &checked))
    }
}

impl Reader {
    /// Returns the last check of each target, in the order in which the targets were added.
    pub fn fidelity(&self) -> Result<Vec<TargetFidelity>> {
        let query = "SELECT fidelity.*, target.name AS target_name FROM fidelity
            JOIN target ON target.number = fidelity.target
            WHERE at_us = (SELECT max(at_us) FROM fidelity AS last WHERE last.target = fidelity.target)
            ORDER BY fidelity.target";
        let rows = self.in_snapshot("read the fidelity", |cx| query_all(cx, query, [], stored_finding))?;
        Ok(by_target(rows))
    }

    /// Returns true if nothing could be tested on a target since its epoch began, and no check of it failed in the last
    /// 24 hours. False for a target without an epoch, because nothing was measured on it.
    pub fn is_fidelity_due(&self, target: &TargetName, now: Timestamp) -> Result<bool> {
        // Rows from the future are of a time before the clock was set back.
        let query = "SELECT NOT EXISTS (SELECT 1 FROM fidelity
                WHERE fidelity.target = epoch.target AND fidelity.epoch = epoch.number
                    AND (result NOT IN ('hung', 'not-tested') OR at_us BETWEEN :retried_us + 1 AND :now_us))
            FROM epoch JOIN target ON target.number = epoch.target WHERE target.name = :target
            ORDER BY epoch.number DESC LIMIT 1";
        let (now_us, retried_us) = (now.as_us(), (now - RETRY_INTERVAL).as_us());
        self.in_snapshot("read the fidelity", |cx| {
            let parameters = named_params! {
                ":target": target.as_str(), ":now_us": now_us, ":retried_us": retried_us,
            };
            let due = cx.query_row(query, parameters, |row| row.get(0)).optional()?;
            Ok(due.unwrap_or(false))
        })
    }
}

fn insert(cx: &Connection, target: &Target, checked: &TargetFidelity) -> Result<(), Fault> {
    let number = upsert_target(cx, target, checked.at)?;
    let before = latest_results(cx, number)?;
    let insert = "INSERT OR REPLACE INTO fidelity (target, at_us, property, result, detail, read_back, epoch, protocol)
        VALUES (:target, :at_us, :property, :result, :detail, :read_back,
            (SELECT max(number) FROM epoch WHERE epoch.target = :target), :protocol)";
    let mut statement = cx.prepare_cached(insert)?;
    for finding in &checked.findings {
        statement.execute(named_params! {
            ":target": number, ":at_us": checked.at.as_us(), ":property": finding.property.name(),
            ":result": finding.result.name(), ":detail": finding.detail,
            ":read_back": finding.read_back.name(), ":protocol": checked.protocol,
        })?;
    }
    let detail = changes(&before, &checked.findings);
    if !detail.is_empty() {
        let (target, detail) = (Some(target.name.clone()), Value::Object(detail));
        let event = Event { target, kind: EVENT_KIND.to_owned(), detail, at_us: checked.at };
        events::insert_event(cx, &event)?;
    }
    Ok(())
}

/// Returns the last result of each property that was tested, also of earlier checks.
fn latest_results(cx: &Connection, target: i64) -> Result<BTreeMap<Property, KeepResult>, Fault> {
    let query = "SELECT property, result FROM fidelity WHERE target = ?1 ORDER BY at_us";
    let results = query_all(cx, query, [target], |row| {
        let row = TableRow::new(row, "fidelity", target);
        Ok((row.parsed("property", Property::from_name)?, row.parsed("result", KeepResult::from_name)?))
    })?;
    Ok(results.into_iter().filter(|(_, result)| result.is_tested()).collect())
}

/// Returns the properties whose results differ, with the result before and after.
fn changes(before: &BTreeMap<Property, KeepResult>, findings: &[Finding]) -> Map<String, Value> {
    let change = |finding: &Finding| {
        let before = before.get(&finding.property).filter(|before| **before != finding.result)?;
        let change = json!({ "before": before, "after": finding.result });
        Some((finding.property.name().to_owned(), change))
    };
    findings.iter().filter(|finding| finding.result.is_tested()).filter_map(change).collect()
}

/// Row of the table: a finding with the check that it belongs to.
struct StoredFinding {
    target: TargetName,
    protocol: Option<String>,
    at: Timestamp,
    finding: Finding,
}

fn stored_finding(row: &Row<'_>) -> Result<StoredFinding, Fault> {
    let row = TableRow::new(row, "fidelity", row.get("at_us")?);
    Ok(StoredFinding {
        target: row.parsed("target_name", |name| name.parse().ok())?,
        protocol: row.get("protocol")?,
        at: row.time("at_us")?,
        finding: Finding {
            property: row.parsed("property", Property::from_name)?,
            result: row.parsed("result", KeepResult::from_name)?,
            detail: row.get("detail")?,
            read_back: row.parsed("read_back", ReadBack::from_name)?,
        },
    })
}

fn by_target(rows: Vec<StoredFinding>) -> Vec<TargetFidelity> {
    let mut checks: Vec<TargetFidelity> = vec![];
    for StoredFinding { target, protocol, at, finding } in rows {
        match checks.last_mut().filter(|check| check.target == target) {
            Some(check) => check.findings.push(finding),
            None => checks.push(TargetFidelity { target, protocol, at, findings: vec![finding] }),
        }
    }
    checks.iter_mut().for_each(|check| check.findings.sort_by_key(|finding| finding.property));
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use longhaul_model::Role;

    fn finding(property: Property, result: KeepResult) -> Finding {
        Finding { property, result, detail: String::new(), read_back: ReadBack::Server }
    }

    fn checked(second: i64, findings: Vec<Finding>) -> TargetFidelity {
        let at = Timestamp::from_us(second * 1_000_000);
        TargetFidelity {
            target: "nas".parse().unwrap(),
            protocol: Some("SMB 3.1.1".to_owned()),
            at,
            findings,
        }
    }

    #[test]
    fn changed_result_is_an_event_and_an_untested_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.sqlite");
        let writer = Writer::spawn(Store::open(&path, &[]).unwrap());
        let target = Target { name: "nas".parse().unwrap(), path: "/nas".into(), role: Role::Share };
        let both = |permissions, colon| {
            vec![finding(Property::Permissions, permissions), finding(Property::Colon, colon)]
        };
        let first = checked(1, both(KeepResult::Kept, KeepResult::Kept));
        let second = checked(2, both(KeepResult::Kept, KeepResult::NotTested));
        let third = checked(3, both(KeepResult::Kept, KeepResult::Lost));
        for check in [&first, &second, &third] {
            writer.add_fidelity(&target, check).unwrap();
        }
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.fidelity().unwrap(), std::slice::from_ref(&third));
        let events = reader.events(None).unwrap();
        let details: Vec<_> = events.iter().map(|stored| &stored.event.detail).collect();
        assert_eq!(details, [&json!({ "colon": { "before": "kept", "after": "lost" } })]);
        let due = reader.is_fidelity_due(&target.name, third.at).unwrap();
        assert!(!due, "nothing was measured on the target");
    }
}
