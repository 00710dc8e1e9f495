//! Conversion of a phase's wire traffic to and from database columns.

use longhaul_model::{CounterScope, CounterSource, Protocol, Reread, WireTraffic};
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::rows::{TableRow, query_all};

/// An enum value as a column: a plain variant is stored as its serialized name, a variant with data as JSON.
pub(crate) struct EnumName<T>(pub(crate) Option<T>);

impl<T: Serialize> ToSql for EnumName<T> {
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

/// Reads a column that [`EnumName`] wrote.
pub(crate) fn parse_enum_name<T: DeserializeOwned>(text: &str) -> Option<T> {
    let name = serde_json::Value::String(text.to_owned());
    serde_json::from_value(name).ok().or_else(|| serde_json::from_str(text).ok())
}

/// Reads the wire traffic from a row of `phase`. `None`: no counter was read during the phase.
pub(crate) fn from_row(row: TableRow<'_>) -> Result<Option<WireTraffic>, Fault> {
    let Some(source) = row.optional_parsed("wire_source", parse_enum_name::<CounterSource>)? else {
        return Ok(None);
    };
    Ok(Some(WireTraffic {
        source,
        scope: row.parsed("wire_scope", parse_enum_name::<CounterScope>)?,
        read: row.optional_unsigned("wire_read")?,
        written: row.optional_unsigned("wire_written")?,
        requests: row.optional_unsigned("wire_requests")?,
        listings: row.optional_unsigned("wire_listings")?,
    }))
}

const REREADS_QUERY: &str = "SELECT phase.number, target.name AS target, run.epoch, run.protocol, phase.bytes_read,
        (SELECT count FROM operation WHERE operation.phase = phase.number AND operation.operation = 'open') AS files,
        phase.wire_source, phase.wire_scope, phase.wire_read, phase.wire_written, phase.wire_requests, phase.wire_listings
    FROM phase JOIN run ON run.number = phase.run JOIN target ON target.number = run.target
    WHERE phase.cache = 'warm' AND phase.wire_source IS NOT NULL AND phase.complete AND run.outcome = 'ok'
        AND run.epoch = (SELECT max(number) FROM epoch WHERE epoch.target = run.target)
    ORDER BY phase.number";

/// Returns the warm phases with wire traffic of each target's newest epoch.
pub(crate) fn rereads(cx: &Connection) -> Result<Vec<Reread>, Fault> {
    let rereads = query_all(cx, REREADS_QUERY, [], |row| {
        let row = TableRow::numbered(row, "phase")?;
        let protocol: Option<Protocol> = row.optional_json("protocol")?;
        let wire = from_row(row)?;
        let target = row.parsed("target", |name| name.parse().ok())?;
        let (epoch, bytes_read) = (row.get("epoch")?, row.unsigned("bytes_read")?);
        let files = row.optional_unsigned("files")?.unwrap_or(0);
        let protocol = protocol.map(|protocol| protocol.to_string());
        Ok(wire.map(|wire| Reread { target, epoch, protocol, bytes_read, files, wire }))
    })?;
    Ok(rereads.into_iter().flatten().collect())
}
