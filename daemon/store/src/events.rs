//! Stores and reads the entries of the event log.

use longhaul_model::{Event, Timestamp};
use rusqlite::{Connection, Row, named_params};

use crate::error::Fault;
use crate::rows::{TableRow, query_all};
use longhaul_model::stored::StoredEvent;

/// Inserts an event and returns its number.
pub(crate) fn insert_event(cx: &Connection, event: &Event) -> Result<i64, Fault> {
    let insert = "INSERT INTO event (at_us, target, kind, detail) VALUES (:at_us, :target, :kind, :detail)";
    cx.prepare_cached(insert)?.execute(named_params! {
        ":at_us": event.at_us.as_us(), ":target": event.target.as_ref().map(|name| name.as_str()),
        ":kind": event.kind, ":detail": event.detail.to_string(),
    })?;
    Ok(cx.last_insert_rowid())
}

/// Returns the events at or after `since`, oldest first.
pub(crate) fn events_since(cx: &Connection, since: Timestamp) -> Result<Vec<StoredEvent>, Fault> {
    let query = "SELECT * FROM event WHERE at_us >= ?1 ORDER BY at_us, number";
    query_all(cx, query, [since.as_us()], stored_event)
}

pub(crate) fn stored_event(row: &Row<'_>) -> Result<StoredEvent, Fault> {
    let row = TableRow::numbered(row, "event")?;
    let event = Event {
        target: row.optional_parsed("target", |name| name.parse().ok())?,
        kind: row.get("kind")?,
        detail: row.json("detail")?,
        at_us: row.time("at_us")?,
    };
    Ok(StoredEvent { number: row.number, event })
}
