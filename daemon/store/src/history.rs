//! The narrow form of everything: what a verdict rests on, read without touching the wide rows.

use std::collections::BTreeMap;

use longhaul_measure::model::{Endpoint, Outcome, Protocol, Role, RoundStatus, Run, Scale, Times};
use longhaul_measure::summary::{History, KeptEpoch, KeptRound, KeptRun, KeptTarget, Premises};
use longhaul_measure::workloads::{WORKLOADS, workload};
use rusqlite::{Connection, Row};
use serde_json::{Map, Value};

use crate::error::Fault;
use crate::open::{read_machine_id, read_threshold};
use crate::reader::collect;
use crate::rows::{Place, named, optional_json_of, optional_named, unknown};

/// The times of a run's endpoints as they are kept; `None` where there is none.
pub(crate) fn endpoints_of(run: &Run) -> Option<String> {
    let endpoints = workload(&run.workload).filter(|_| run.outcome == Outcome::Ok)?.endpoints();
    let times = Times::of(run, endpoints);
    let known = endpoints
        .iter()
        .enumerate()
        .filter_map(|(place, endpoint)| Some((endpoint.name.to_owned(), Value::from(times.get(place)?))));
    let known: Map<String, Value> = known.collect();
    (!known.is_empty()).then(|| Value::Object(known).to_string())
}

/// Reads everything but the events. Of the premises only those that the database knows are filled in.
pub(crate) fn read(cx: &Connection) -> Result<History, Fault> {
    let targets = collect(cx, "SELECT number, name, role FROM target ORDER BY number", [], |row| {
        let number: i64 = row.get(0)?;
        let place = ("target", number);
        let name = named(row, (place, "name"), |name| name.parse().ok())?;
        Ok((number, KeptTarget { name, role: named(row, (place, "role"), Role::from_name)? }))
    })?;
    let places: BTreeMap<i64, usize> =
        targets.iter().enumerate().map(|(place, (number, _))| (*number, place)).collect();
    let default = Premises::default();
    let threshold = read_threshold(cx)?.unwrap_or(default.threshold);
    Ok(History {
        premises: Premises { machine: read_machine_id(cx)?, threshold, ..default },
        targets: targets.into_iter().map(|(_, target)| target).collect(),
        epochs: collect(cx, EPOCHS, [], epoch)?,
        rounds: collect(cx, ROUNDS, [], round)?,
        runs: collect(cx, RUNS, [], |row| run(row, &places))?.into_iter().flatten().collect(),
        events: vec![],
    })
}

/// What changes whenever a history does: rows are only added, a round is ended once, the rest is small.
const MARK: &str = "SELECT json_array(
    (SELECT max(number) FROM run), (SELECT max(number) FROM event), (SELECT max(number) FROM epoch),
    (SELECT max(number) FROM round), (SELECT count(*) FROM round WHERE status IS NULL),
    (SELECT json_group_array(json_array(number, name, role)) FROM target),
    (SELECT json_group_array(json_array(key, value)) FROM meta))";

/// A text that stays the same for as long as the history does.
pub(crate) fn mark(cx: &Connection) -> Result<String, Fault> {
    Ok(cx.prepare_cached(MARK)?.query_row([], |row| row.get(0))?)
}

const EPOCHS: &str = "SELECT epoch.number, epoch.opened_us, epoch.protocol, target.name AS target FROM epoch
    JOIN target ON target.number = epoch.target ORDER BY epoch.number";

fn epoch(row: &Row<'_>) -> Result<KeptEpoch, Fault> {
    let number = row.get("number")?;
    let place = ("epoch", number);
    let protocol: Option<Protocol> = optional_json_of(row, place, "protocol")?;
    Ok(KeptEpoch {
        number,
        target: named(row, (place, "target"), |name| name.parse().ok())?,
        opened_us: row.get("opened_us")?,
        protocol: protocol.map(|protocol| protocol.to_string()),
    })
}

const ROUNDS: &str =
    "SELECT number, started_us, utc_offset_seconds, scale, status, reason FROM round ORDER BY number";

fn round(row: &Row<'_>) -> Result<KeptRound, Fault> {
    let number = row.get("number")?;
    let place = ("round", number);
    Ok(KeptRound {
        number,
        started_us: row.get("started_us")?,
        utc_offset_seconds: row.get("utc_offset_seconds")?,
        scale: named(row, (place, "scale"), Scale::from_name)?,
        status: optional_named(row, (place, "status"), RoundStatus::from_name)?,
        reason: row.get("reason")?,
    })
}

/// Every column is in the index `run_history`, in this order: a year of runs is one walk through it.
pub(crate) const RUNS: &str =
    "SELECT number, round, epoch, target, workload, scale, outcome, started_us, seconds, endpoints
    FROM run INDEXED BY run_history ORDER BY number";

/// A run; `None` for a workload that this program no longer has. Columns by number: names would be looked up each time.
fn run(row: &Row<'_>, targets: &BTreeMap<i64, usize>) -> Result<Option<KeptRun>, Fault> {
    let number = row.get(0)?;
    let place = ("run", number);
    let name = row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?;
    let Some(position) = WORKLOADS.iter().position(|workload| workload.name() == name) else {
        return Ok(None);
    };
    let target: i64 = row.get(3)?;
    Ok(Some(KeptRun {
        number,
        round: row.get(1)?,
        epoch: row.get(2)?,
        target: *targets.get(&target).ok_or_else(|| unknown(place, "target", target))?,
        workload: position,
        scale: text(row, (place, 5), Scale::from_name)?,
        outcome: text(row, (place, 6), Outcome::from_name)?,
        started_us: row.get(7)?,
        seconds: row.get(8)?,
        times: times(row, place, WORKLOADS[position].endpoints())?,
    }))
}

fn text<T>(row: &Row<'_>, column: (Place, usize), read: impl Fn(&str) -> Option<T>) -> Result<T, Fault> {
    let (place, column) = column;
    let name = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    read(name).ok_or_else(|| unknown(place, if column == 5 { "scale" } else { "outcome" }, name))
}

fn times(row: &Row<'_>, place: Place, endpoints: &[Endpoint]) -> Result<Times, Fault> {
    let Some(text) = row.get_ref(9)?.as_str_or_null().map_err(rusqlite::Error::from)? else {
        return Ok(Times::NONE);
    };
    let known: BTreeMap<&str, f64> =
        serde_json::from_str(text).map_err(|_| unknown(place, "endpoints", text))?;
    let with = |times: Times, (position, endpoint): (usize, &Endpoint)| match known.get(endpoint.name) {
        Some(seconds) => times.with(position, *seconds),
        None => times,
    };
    Ok(endpoints.iter().enumerate().fold(Times::NONE, with))
}
