//! Renders a document as Markdown for a forum.

use crate::document::{Block, Document, Fact};
use crate::table::{ColumnKind, Table};
use crate::text::{Span, Style, Text};

/// Renders a document. Charts are omitted.
pub fn render(document: &Document) -> String {
    document.blocks.iter().map(block).filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(text) => format!("# {}\n", line(text)),
        Block::Section(section) => format!("## {}\n", escape(&section.heading)),
        Block::Subheading(text) => format!("**{}**\n", escape(&text.content())),
        Block::Paragraph(text) | Block::Note(text) | Block::Warning(text) => line(text) + "\n",
        Block::List(items) => items.iter().map(|item| format!("- {}\n", line(item))).collect(),
        Block::Facts(facts) => facts.iter().map(fact_line).collect(),
        Block::Table(table) => table_lines(table),
        Block::Details(details) => {
            format!("**{}**\n\n{}", escape(&details.summary), render(&details.content))
        }
        Block::Chart(_) | Block::ChartNote(_) => String::new(),
    }
}

fn fact_line(fact: &Fact) -> String {
    format!("- {}: {}\n", escape(&fact.name), line(&fact.value))
}

fn table_lines(table: &Table) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let titles = row(table.columns.iter().map(|column| escape(&column.title)).collect());
    let rule = table.columns.iter().map(|column| match column.kind {
        ColumnKind::Words => "---".to_owned(),
        ColumnKind::Figures => "---:".to_owned(),
    });
    let rows = table.rows.iter().map(|cells| row(cells.iter().map(line).collect()));
    titles + &row(rule.collect()) + &rows.collect::<String>()
}

/// Renders a text on one line. Only the spaces at its ends are removed.
fn line(text: &Text) -> String {
    let is_space = |c: Option<char>| c.is_some_and(char::is_whitespace);
    let mut out = String::new();
    for part in &text.0 {
        if is_space(part.text.chars().next()) && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        out += &span(part);
        if is_space(part.text.chars().last()) && !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.trim_end().to_owned()
}

fn span(Span { text, style }: &Span) -> String {
    match style {
        Style::Strong => format!("**{}**", escape(text)),
        Style::Plain | Style::Code | Style::Target | Style::Link { .. } | Style::Toned(_) => escape(text),
    }
}

/// Escapes a text for Markdown: the result contains no markup, link or mention, does not end a table cell, and stays on
/// one line.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut remaining = text.chars().peekable();
    while let Some(c) = remaining.next() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            // Forums turn `@name` into a mention that notifies a user. A colon creates links (`http://`) and emoji
            // (`:x:`).
            '@' => out += "&#64;",
            ':' if remaining.peek().is_some_and(|next| !next.is_whitespace() && !next.is_ascii_digit()) => {
                out += "&#58;"
            }
            '.' if out.ends_with("www") || out.ends_with("WWW") => out += "\\.",
            '\\' | '^' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' | '!' => out.extend(['\\', c]),
            // Bidirectional control characters can make a text look like a different one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {}
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => out.push(' '),
            c => out.push(c),
        }
    }
    // Four spaces would start a code block, and `1. ` would start a list.
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let digits = out.len() - out.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match out.as_bytes().get(digits..) {
        Some([b'.' | b')'] | [b'.' | b')', b' ', ..]) if digits > 0 => {
            format!("{}\\{}", &out[..digits], &out[digits..])
        }
        Some([b'-' | b'+' | b'=', ..]) if digits == 0 => format!("\\{out}"),
        Some(_) | None => out,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    /// Returns the text that a reader sees; `None` if the Markdown contains markup other than a list item.
    fn read(markdown: &str) -> Option<String> {
        let mut text = String::new();
        let options = Options::all().difference(Options::ENABLE_SMART_PUNCTUATION);
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Text(words) => text += &words,
                Event::SoftBreak => text += " ",
                Event::Start(Tag::List(_) | Tag::Item | Tag::Paragraph) | Event::End(_) => {}
                _ => return None,
            }
        }
        Some(text)
    }

    #[test]
    fn markup_links_and_mentions_are_escaped() {
        let hostile = [
            "<script>alert(1)</script>",
            "a | b",
            "**bold** _it_ `code` ~~gone~~",
            "[here](http://example.org)",
            "http://example.org @anna #12 $x$",
            "1. first",
            "- item",
            "![x](y)",
        ];
        for text in hostile {
            assert_eq!(read(&format!("- {}", escape(text))).as_deref(), Some(text), "{}", escape(text));
        }
    }

    #[test]
    fn document_becomes_headings_lists_and_tables() {
        let mut table = Table::new("times").words(["task"]).figures(["median"]);
        table.row(["walk", "1.20 s"]);
        let mut document = Document::titled("Week 2026-W40");
        document.section("times", "Times").table(table).note("All of them.");
        document.list([Text::new()
            .strong("smb")
            .plain(" 1 ")
            .target(&"nfs".parse().unwrap())
            .plain(": 3 < 4")]);
        document.facts(vec![Fact::new("power", "mains")]);
        assert_eq!(
            render(&document),
            "# Week 2026-W40\n\n## Times\n\n| task | median |\n| --- | ---: |\n| walk | 1.20 s |\n\nAll of them.\n\n- **smb** 1 nfs: 3 \
             &lt; 4\n\n- power: mains\n"
        );
    }

    proptest! {
        #[test]
        fn escaped_text_renders_as_itself(text in "[ -~]{0,40}") {
            let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(read(&format!("- x {}", escape(&text))), Some(format!("x {plain}").trim_end().to_owned()));
        }

        #[test]
        fn escaped_text_stays_in_its_table_cell(text in "\\PC{0,40}") {
            let mut table = Table::new("").words(["a"]).figures(["b"]);
            table.row([text.as_str(), "2"]);
            let cells = Parser::new_ext(&table_lines(&table), Options::ENABLE_TABLES)
                .filter(|event| matches!(event, Event::Start(Tag::TableCell)))
                .count();
            prop_assert_eq!(cells, 4);
        }
    }
}
