//! Exports the event log.

use longhaul_analysis::summary::anonymize;
use longhaul_model::{Event, History};

use crate::table::{Cell, Column, Definition, Kind, timestamp_cell};
use crate::write::Output;
use crate::{Error, Window};

const COLUMNS: &[Definition] = &[
    ("number", Kind::Integer, "position in the whole event log, from 1"),
    ("at", Kind::Text, "time of the event, in RFC 3339, UTC"),
    ("at_us", Kind::Integer, "time of the event, in microseconds since 1970 UTC"),
    ("target", Kind::Text, "affected target; empty: the whole machine"),
    ("kind", Kind::Text, "kind of event, in one word"),
    ("detail", Kind::Json, "details; `hidden-1`, `hidden-2`, ... replace paths, servers and users"),
];

/// Writes the events in a window, without private data, and returns their number.
///
/// # Errors
///
/// [`Error::Write`], [`Error::ParquetDisabled`].
pub fn events(history: History, window: &Window, output: Output<'_>) -> Result<u64, Error> {
    let events = anonymize(history).events;
    output.write(&Column::all(COLUMNS), |sink| {
        let mut in_window = events.iter().enumerate().filter(|(_, event)| window.contains(event.at_us));
        in_window.try_for_each(|(index, event)| sink.row(&row(index, event)))
    })
}

fn row(index: usize, event: &Event) -> [Cell<'_>; COLUMNS.len()] {
    [
        Cell::count(index as u64 + 1),
        timestamp_cell(event.at_us, 0),
        event.at_us.into(),
        event.target.as_ref().map(|name| name.as_str()).into(),
        event.kind.as_str().into(),
        Cell::Json(event.detail.to_string().into()),
    ]
}
