//! A self-check as a document or as JSON. Both are meant to be published, so they contain no name, path or
//! address.

use longhaul_measure::platform;
use longhaul_measure::selfcheck::{Check, CheckOutcome};
use longhaul_service::selfcheck::{Section, count_checks};
use longhaul_view::{Document, Table};
use serde_json::{Value, json};

/// Returns a table for each section.
pub fn document(sections: &[Section]) -> Document {
    let counted = |verdict| count_checks(sections, verdict);
    let version = env!("CARGO_PKG_VERSION");
    let mut document = Document::new();
    document.paragraph(format!("longhaul {version} selfcheck on {}", platform::system_version()));
    for section in sections {
        document.section(section.subject.replace(' ', "-"), heading(section)).table(table(&section.checks));
    }
    document.paragraph(format!(
        "{} as expected, {} different, {} unknown. No user, server, address or path is named here: paste it into an issue.",
        counted(CheckOutcome::Ok),
        counted(CheckOutcome::Differs),
        counted(CheckOutcome::Unknown)
    ));
    document
}

fn heading(section: &Section) -> String {
    match &section.protocol {
        Some(protocol) => format!("{} ({protocol})", section.subject),
        None => section.subject.clone(),
    }
}

fn table(checks: &[Check]) -> Table {
    let mut table = Table::new("Checks").words(["verdict", "call", "answer", "expected", "source"]);
    for Check { name: call, answer, expected, verdict, source } in checks {
        table.row([verdict.name(), call, answer, expected, source]);
    }
    table
}

/// Renders the same rows as JSON, each with the name of its section.
pub fn json(sections: &[Section]) -> Value {
    let row = |section: &Section, check: &Check| {
        json!({
            "place": section.subject,
            "protocol": section.protocol,
            "call": check.name,
            "answer": check.answer,
            "expected": check.expected,
            "verdict": check.verdict.name(),
            "source": check.source,
        })
    };
    let rows =
        sections.iter().flat_map(|section| section.checks.iter().map(move |check| row(section, check)));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "system": platform::system_version(),
        "checks": rows.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use longhaul_view::render::markdown::render;

    use super::*;

    #[test]
    fn cell_text_cannot_break_the_table() {
        let check = Check {
            name: "call".to_owned(),
            answer: "one | two\n| three".to_owned(),
            expected: "it".to_owned(),
            verdict: CheckOutcome::Differs,
            source: "a manual".to_owned(),
        };
        let mut document = Document::new();
        document.table(table(&[check]));
        let text = render(&document);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.starts_with('|') && line.ends_with('|')), "{text}");
    }
}
