//! What pages are made of.

use maud::{Markup, html};

use crate::charts::{Chart, Table};

/// A picture with its heading, what happened in it, and its figures.
pub fn figure(chart: &Chart, notes: &[String]) -> Markup {
    html! {
        figure id=(chart.id) {
            figcaption { (chart.title) }
            (chart.inline())
            @if !notes.is_empty() { p class="notes" { (notes.join(" · ")) } }
            details {
                summary { "How to read it, and its figures" }
                p { (chart.description) }
                (table_of(&chart.title, &chart.table))
            }
        }
    }
}

/// A table that scrolls by itself where the page is narrow. Rows that begin alike share their first cell; columns of
/// figures stand right.
pub fn table_of(caption: &str, table: &Table) -> Markup {
    let groups: Vec<&[Vec<String>]> = table.rows.chunk_by(|a, b| a.first() == b.first()).collect();
    let of_figures =
        |place: usize| table.rows.iter().all(|row| row.get(place).is_some_and(|cell| is_figure(cell)));
    // Once for each column: a year of days has many rows.
    let columns: Vec<bool> = (0..table.head.len()).map(|place| place > 0 && of_figures(place)).collect();
    let class = |place: usize| columns.get(place).copied().unwrap_or(false).then_some("figure");
    html! {
        div class="scroll" role="region" aria-label={ "Table: " (caption) } tabindex="0" {
            table {
                caption class="unseen" { (caption) }
                thead {
                    tr { @for (place, cell) in table.head.iter().enumerate() { th scope="col" class=[class(place)] { (cell) } } }
                }
                @for group in groups {
                    tbody {
                        @for (line, row) in group.iter().enumerate() {
                            tr {
                                @for (place, cell) in row.iter().enumerate() {
                                    @if place > 0 { td class=[class(place)] { (cell) } }
                                    @else if line == 0 { (first_cell(cell, group.len())) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn first_cell(cell: &str, rows: usize) -> Markup {
    html! {
        @if rows > 1 { th scope="rowgroup" rowspan=(rows) { (cell) } } @else { th scope="row" { (cell) } }
    }
}

fn is_figure(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || c == '–')
}

/// A part of the page that the contents lead to.
pub fn section(id: &str, heading: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-heading" } {
            h2 id={ (id) "-heading" } { (heading) }
            (body)
        }
    }
}
