//! Renders a document as HTML, for the dashboard and for the report in one file.

use maud::{Markup, html};

use crate::charts::{Chart, SeriesStyles};
use crate::document::{Block, Details, Document, Section};
use crate::table::{ColumnKind, Table};
use crate::text::{Span, Style, Text, Tone};

/// Renders the blocks of a document. Each section of the document becomes a `section` element.
pub fn render(document: &Document, styles: &SeriesStyles) -> Markup {
    let is_section = |block: &Block| matches!(block, Block::Section(_));
    let parts = document.blocks.chunk_by(|_, next| !is_section(next));
    html! {
        @for part in parts {
            @match part {
                [Block::Section(Section { id, heading }), body @ ..] => (section(id, heading, &blocks(body, styles))),
                body => (blocks(body, styles)),
            }
        }
    }
}

/// Renders a section of a page, to which the table of contents links by `id`.
pub fn section(id: &str, heading: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-heading" } {
            h2 id={ (id) "-heading" } { (heading) }
            (body)
        }
    }
}

/// Renders blocks; charts that follow each other share a grid.
fn blocks(blocks: &[Block], styles: &SeriesStyles) -> Markup {
    let is_chart = |block: &Block| matches!(block, Block::Chart(_));
    html! {
        @for run in blocks.chunk_by(|a, b| is_chart(a) && is_chart(b)) {
            @if run.len() > 1 { div class="chart-grid" { @for one in run { (block(one, styles)) } } }
            @else { @for one in run { (block(one, styles)) } }
        }
    }
}

fn block(block: &Block, styles: &SeriesStyles) -> Markup {
    html! {
        @match block {
            Block::Title(text) => h1 { (line(text, styles)) },
            Block::Section(section) => h2 { (section.heading) },
            Block::Subheading(text) => h3 { (line(text, styles)) },
            Block::Paragraph(text) => p { (line(text, styles)) },
            Block::ChartNote(text) => p { (line(text, styles)) },
            Block::Note(text) => p class="muted" { (line(text, styles)) },
            Block::Warning(text) => p class="warning" { (line(text, styles)) },
            Block::List(items) => ul { @for item in items { li { (line(item, styles)) } } },
            Block::Facts(facts) => dl { @for fact in facts { dt { (fact.name) } dd { (line(&fact.value, styles)) } } },
            Block::Table(table) => (self::table(table, styles)),
            Block::Chart(chart) => (figure(chart)),
            Block::Details(Details { summary, content }) => details { summary { (summary) } (blocks(&content.blocks, styles)) },
        }
    }
}

/// Renders a chart with its title, its notes, its description and its data as a table. A chart without anything to draw is its
/// description.
pub fn figure(chart: &Chart) -> Markup {
    if chart.is_sentence() {
        return html! { figure id=(chart.id) { figcaption { (chart.title) } p { (chart.description) } } };
    }
    html! {
        figure id=(chart.id) {
            figcaption { (chart.title) }
            (chart.inline())
            @if !chart.notes.is_empty() { p class="notes" { (chart.notes.join(" · ")) } }
            details {
                summary { "Description and data" }
                p { (chart.description) }
                (table(&chart.table, &SeriesStyles::default()))
            }
        }
    }
}

/// Renders a table that scrolls horizontally on a narrow page. Rows that follow each other and have the same first cell
/// share that cell.
pub fn table(table: &Table, styles: &SeriesStyles) -> Markup {
    let is_figures =
        |place: usize| table.columns.get(place).is_some_and(|column| column.kind == ColumnKind::Figures);
    // A class on the table instead of one on each cell keeps a page with many figures small.
    let is_numeric = (1..table.columns.len()).all(is_figures);
    let class = |place: usize| (!is_numeric && is_figures(place)).then_some("figure");
    let cells = |row: &[Text]| {
        html! { @for (place, cell) in row.iter().enumerate().skip(1) { td class=[class(place)] { (line(cell, styles)) } } }
    };
    let groups: Vec<&[Vec<Text>]> = table.rows.chunk_by(|a, b| a.first() == b.first()).collect();
    html! {
        div class="scroll" role="region" aria-label={ "Table: " (table.caption) } tabindex="0" {
            table class=[is_numeric.then_some("numeric")] {
                caption class="visually-hidden" { (table.caption) }
                thead {
                    tr { @for (place, column) in table.columns.iter().enumerate() { th scope="col" class=[class(place)] { (column.title) } } }
                }
                @for part in groups.chunk_by(|a, b| a.len() == 1 && b.len() == 1) {
                    tbody {
                        @for (group, (index, row)) in part.iter().flat_map(|group| group.iter().enumerate().map(move |row| (group, row))) {
                            tr {
                                @if index == 0 && let Some(title) = row.first() { (row_title(&line(title, styles), group.len())) }
                                (cells(row))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row_title(cell: &Markup, rows: usize) -> Markup {
    html! {
        @if rows > 1 { th scope="rowgroup" rowspan=(rows) { (cell) } } @else { th scope="row" { (cell) } }
    }
}

/// Renders a line of text.
pub fn line(text: &Text, styles: &SeriesStyles) -> Markup {
    html! { @for span in &text.0 { (self::span(span, styles)) } }
}

fn span(Span { text, style }: &Span, styles: &SeriesStyles) -> Markup {
    html! {
        @match style {
            Style::Plain => (text),
            Style::Strong => strong { (text) },
            Style::Code => code { (text) },
            Style::Target => { @if let Ok(name) = text.parse() { (styles.legend_mark(&name)) } (text) },
            Style::Link { href } => a href=(href) { (text) },
            Style::Toned(tone) => span class=(tone_class(*tone)) { (text) },
        }
    }
}

const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Neutral => "neutral",
        Tone::Warning => "warning-text",
        Tone::Bad => "serious",
    }
}
