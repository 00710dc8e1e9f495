//! The journal.

use longhaul_measure::model::Event;
use longhaul_measure::summary::{History, public};

use crate::table::{Cell, Column, Kind, moment};
use crate::write::Output;
use crate::{Error, Window};

const COLUMNS: &[(&str, Kind, &str)] = &[
    ("number", Kind::Integer, "its place in the whole journal, from 1"),
    ("at", Kind::Text, "when it happened, in RFC 3339, UTC"),
    ("at_us", Kind::Integer, "when it happened, in microseconds since 1970 UTC"),
    ("target", Kind::Text, "the target that it is about; not known: the whole machine"),
    ("kind", Kind::Text, "what happened, in one word"),
    ("detail", Kind::Json, "the particulars; `hidden-1` stands for a path, a server or a person"),
];

/// Writes the events in a window in their public form and gives their number.
///
/// # Errors
///
/// [`Error::Write`], [`Error::WithoutParquet`].
pub fn events(history: History, window: &Window, output: Output) -> Result<u64, Error> {
    let journal = public(history).events;
    let columns: Vec<Column> = COLUMNS.iter().map(Column::of).collect();
    output.write(&columns, |sink| {
        let mut inside = journal.iter().enumerate().filter(|(_, event)| window.contains(event.at_us));
        inside.try_for_each(|(place, event)| sink.row(&row(place, event)))
    })
}

fn row(place: usize, event: &Event) -> [Cell<'_>; COLUMNS.len()] {
    [
        Cell::count(place as u64 + 1),
        moment(event.at_us, 0),
        event.at_us.into(),
        event.target.as_ref().map(|name| name.as_str()).into(),
        event.kind.as_str().into(),
        Cell::Json(event.detail.to_string().into()),
    ]
}
