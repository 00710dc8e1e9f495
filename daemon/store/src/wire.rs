//! What crossed the wire, as columns and back.

use longhaul_measure::model::{Covers, Protocol, Source, Wire};
use longhaul_measure::summary::Reread;
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, Row, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::reader::collect;
use crate::rows::{Place, named, optional_json_of, optional_named};

/// An enum's name as it is serialised; what has more than a name is kept as JSON.
pub(crate) struct Word<T>(pub(crate) Option<T>);

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = self.0.as_ref().map(serde_json::to_value).transpose();
        let value = value.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(ToSqlOutput::Owned(match value {
            None => Value::Null,
            Some(serde_json::Value::String(name)) => Value::Text(name),
            Some(more) => Value::Text(more.to_string()),
        }))
    }
}

fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    let name = serde_json::Value::String(text.to_owned());
    serde_json::from_value(name).ok().or_else(|| serde_json::from_str(text).ok())
}

/// The columns of a phase.
pub(crate) fn of_row(row: &Row<'_>, place: Place) -> Result<Option<Wire>, Fault> {
    let Some(source) = optional_named(row, (place, "wire_source"), word::<Source>)? else { return Ok(None) };
    let count = |column: &'static str| -> Result<Option<u64>, Fault> {
        Ok(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
    };
    Ok(Some(Wire {
        source,
        covers: named(row, (place, "wire_covers"), word::<Covers>)?,
        read: count("wire_read")?,
        written: count("wire_written")?,
        requests: count("wire_requests")?,
    }))
}

const REREADS: &str = "SELECT phase.number, target.name AS target, run.epoch, run.protocol, phase.bytes_read,
        (SELECT count FROM operation WHERE operation.phase = phase.number AND operation.operation = 'open') AS files,
        phase.wire_source, phase.wire_covers, phase.wire_read, phase.wire_written, phase.wire_requests
    FROM phase JOIN run ON run.number = phase.run JOIN target ON target.number = run.target
    WHERE phase.cache = 'warm' AND phase.wire_source IS NOT NULL AND phase.complete AND run.outcome = 'ok'
        AND run.epoch = (SELECT max(number) FROM epoch WHERE epoch.target = run.target)
    ORDER BY phase.number";

/// Every second reading of every target's newest epoch.
pub(crate) fn rereads(cx: &Connection) -> Result<Vec<Reread>, Fault> {
    let rereads = collect(cx, REREADS, [], |row| {
        let place = ("phase", row.get("number")?);
        let protocol: Option<Protocol> = optional_json_of(row, place, "protocol")?;
        let wire = of_row(row, place)?;
        let target = named(row, (place, "target"), |name| name.parse().ok())?;
        let (epoch, bytes_read) = (row.get("epoch")?, row.get::<_, i64>("bytes_read")?.cast_unsigned());
        let files = row.get::<_, Option<i64>>("files")?.map_or(0, i64::cast_unsigned);
        let protocol = protocol.map(|protocol| protocol.to_string());
        Ok(wire.map(|wire| Reread { target, epoch, protocol, bytes_read, files, wire }))
    })?;
    Ok(rereads.into_iter().flatten().collect())
}
