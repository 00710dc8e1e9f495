//! Renders a document for a terminal. Tables have no lines, so that they survive pipes and forum posts.

use anstyle::{AnsiColor, Style as Ansi};
use unicode_width::UnicodeWidthStr;

use crate::document::{Block, Document, Fact};
use crate::table::{Column, ColumnKind, Table};
use crate::text::{Span, Style, Text, Tone};

/// Renders a document with ANSI colours, which the caller removes where the output is no terminal (`anstream`).
pub fn render(document: &Document) -> String {
    lines(document).iter().map(|text| line(text) + "\n").collect()
}

/// Renders the start of a document, as much as fits on a screen of this many columns and rows, which wraps longer lines.
pub fn first_rows(document: &Document, columns: usize, rows: usize) -> String {
    let mut left = rows;
    let fits = |text: &&Text| {
        let needed = text_width(text).div_ceil(columns.max(1)).max(1);
        let is_room = needed <= left;
        left = left.saturating_sub(needed);
        is_room
    };
    lines(document).iter().take_while(fits).map(|text| line(text) + "\n").collect()
}

/// Returns the lines of a document.
pub fn lines(document: &Document) -> Vec<Text> {
    let mut all: Vec<Text> = vec![];
    let mut follows_heading = true;
    for block in &document.blocks {
        let own = block_lines(block);
        if own.is_empty() {
            continue;
        }
        if !follows_heading {
            all.push(Text::new());
        }
        follows_heading = matches!(block, Block::Section(_) | Block::Subheading(_));
        all.extend(own);
    }
    all
}

/// Returns the lines of a block; none for a chart.
fn block_lines(block: &Block) -> Vec<Text> {
    match block {
        Block::Title(text) | Block::Paragraph(text) | Block::Note(text) => vec![text.clone()],
        Block::Section(section) => vec![Text::new().strong(section.heading.as_str())],
        Block::Subheading(text) => vec![Text::new().strong(text.content())],
        Block::List(items) => items.iter().map(|item| Text::from("  ").then(item.clone())).collect(),
        Block::Facts(facts) => fact_lines(facts),
        Block::Table(table) => row_lines(table),
        Block::Warning(text) => vec![Text::new().toned(text.content(), Tone::Warning)],
        Block::Details(details) => {
            let heading = Text::new().strong(details.summary.as_str());
            std::iter::once(heading).chain(lines(&details.content)).collect()
        }
        Block::Chart(_) | Block::ChartNote(_) => vec![],
    }
}

fn fact_lines(facts: &[Fact]) -> Vec<Text> {
    let width = facts.iter().map(|fact| visible(&fact.name).width()).max().unwrap_or(0);
    let fact_line = |fact: &Fact| {
        let gap = " ".repeat(width - visible(&fact.name).width());
        Text::new().plain(format!("  {}{gap}  ", fact.name)).then(fact.value.clone())
    };
    facts.iter().map(fact_line).collect()
}

/// Returns the rows of a table, the header first. Columns are two spaces apart, and as wide as their widest cell.
fn row_lines(table: &Table) -> Vec<Text> {
    let header: Vec<Text> = table.columns.iter().map(|column| column.title.as_str().into()).collect();
    let rows: Vec<&Vec<Text>> = std::iter::once(&header).chain(&table.rows).collect();
    let width = |place: usize| rows.iter().filter_map(|row| row.get(place)).map(text_width).max();
    let widths: Vec<usize> = (0..header.len()).map(|place| width(place).unwrap_or(0)).collect();
    rows.iter().map(|cells| row_line(cells, &table.columns, &widths)).collect()
}

fn row_line(cells: &[Text], columns: &[Column], widths: &[usize]) -> Text {
    let mut row = Text::new();
    for ((cell, column), width) in cells.iter().zip(columns).zip(widths) {
        let gap = " ".repeat(width.saturating_sub(text_width(cell)));
        let between = if row.is_empty() { " " } else { "  " };
        row = match column.kind {
            ColumnKind::Words => row.plain(between).then(cell.clone()).plain(gap),
            ColumnKind::Figures => row.plain(format!("{between}{gap}")).then(cell.clone()),
        };
    }
    while row.0.last().is_some_and(|span| span.text.trim().is_empty()) {
        row.0.pop();
    }
    row
}

fn text_width(text: &Text) -> usize {
    let width = |Span { text, style }: &Span| {
        visible(text).width() + if *style == Style::Code { "``".len() } else { 0 }
    };
    text.0.iter().map(width).sum()
}

/// Renders a text on one line.
pub fn line(text: &Text) -> String {
    text.0.iter().map(span).collect()
}

fn span(Span { text, style }: &Span) -> String {
    let text = visible(text);
    let ansi = match style {
        Style::Plain | Style::Target | Style::Link { .. } => return text,
        Style::Code => return format!("`{text}`"),
        Style::Strong => Ansi::new().bold(),
        Style::Toned(Tone::Good) => AnsiColor::Green.on_default(),
        Style::Toned(Tone::Neutral) => AnsiColor::Cyan.on_default(),
        Style::Toned(Tone::Warning) => AnsiColor::Yellow.on_default(),
        Style::Toned(Tone::Bad) => AnsiColor::Red.on_default(),
    };
    format!("{ansi}{text}{ansi:#}")
}

/// Escapes control characters, with which a name could move the cursor or change colours.
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_a_reader_sees() {
        let mut table = Table::new("times").words(["task", "target"]).figures(["median"]);
        table.row([Text::from("öffnen"), Text::new().toned("smb", Tone::Good), "1.20 s".into()]);
        table.row(["walk", "nfs-4", "12.0 s"]);
        let lines: String = row_lines(&table).iter().map(|row| line(row) + "\n").collect();
        let plain = without_colours(&lines);
        assert_eq!(plain, " task    target  median\n öffnen  smb     1.20 s\n walk    nfs-4   12.0 s\n");
    }

    #[test]
    fn wrapped_lines_count_as_rows() {
        let mut document = Document::new();
        document.list(["12345678", "123456789", "1", "2"]);
        assert_eq!(first_rows(&document, 10, 4), "  12345678\n  123456789\n  1\n");
        assert_eq!(first_rows(&document, 10, 2), "  12345678\n");
    }

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        let mut document = Document::titled("a\u{1b}[2Jb");
        document.list(["c\u{7}d"]);
        assert_eq!(render(&document), "a\\u{1b}[2Jb\n\n  c\\u{7}d\n");
    }

    /// Removes ANSI sequences.
    fn without_colours(text: &str) -> String {
        let mut out = String::new();
        let mut is_inside = false;
        for c in text.chars() {
            match c {
                '\u{1b}' => is_inside = true,
                'm' if is_inside => is_inside = false,
                c if !is_inside => out.push(c),
                _ => {}
            }
        }
        out
    }
}
