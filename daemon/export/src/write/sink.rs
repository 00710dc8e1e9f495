//! The interface of the three file formats.

use std::io;

use crate::table::Cell;

/// Encodes rows in one file format. Every row has one cell per column.
pub(crate) trait Sink {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()>;
    /// Completes the output. Without this call the file is incomplete.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Returns a list of integers as JSON text.
pub(super) fn json_list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}
