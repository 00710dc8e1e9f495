//! Tables: plain, without lines, so that they survive a pipe and a forum.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// An empty table with these columns.
pub fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns);
    table
}

/// Aligns the columns from this one on to the right.
pub fn align_right_from(table: &mut Table, first: usize) {
    table.column_iter_mut().skip(first).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
}
