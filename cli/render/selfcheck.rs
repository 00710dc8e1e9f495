//! A self-check as Markdown and as JSON. Both are made to be published: they hold no name, path or address.

use comfy_table::presets::ASCII_MARKDOWN;
use longhaul_measure::platform;
use longhaul_measure::selfcheck::{Check, Verdict};
use longhaul_service::selfcheck::{Section, count};
use serde_json::{Value, json};

use super::table::table;

/// A table for each place, which a forum and a terminal show alike.
pub fn markdown(sections: &[Section]) -> String {
    let mut parts =
        vec![format!("longhaul {} selfcheck on {}", env!("CARGO_PKG_VERSION"), platform::system_version())];
    for section in sections {
        parts.push(format!("### {}", heading(section)));
        parts.push(rows(&section.checks));
    }
    let counted = |verdict| count(sections, verdict);
    parts.push(format!(
        "{} as expected, {} different, {} unknown. No user, server, address or path is named here: paste it into an issue.",
        counted(Verdict::Ok),
        counted(Verdict::Differs),
        counted(Verdict::Unknown)
    ));
    parts.join("\n\n")
}

fn heading(section: &Section) -> String {
    match &section.protocol {
        Some(protocol) => format!("{} ({protocol})", section.place),
        None => section.place.clone(),
    }
}

fn rows(checks: &[Check]) -> String {
    let mut table = table(&["verdict", "call", "answer", "expected", "source"]);
    table.load_style(ASCII_MARKDOWN);
    for check in checks {
        let Check { call, answer, expected, verdict, source } = check;
        table.add_row([verdict.name(), call, &cell(answer), expected, source]);
    }
    table.to_string()
}

/// A text that does not end its cell or its row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// The same rows, each with its place.
pub fn json(sections: &[Section]) -> Value {
    let row = |section: &Section, check: &Check| {
        json!({
            "place": section.place,
            "protocol": section.protocol,
            "call": check.call,
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
    use super::*;

    #[test]
    fn an_answer_cannot_break_its_row() {
        assert_eq!(cell("a|b\nc"), "a\\|b c");
        let check = Check {
            call: "call".to_owned(),
            answer: "one | two\n| three".to_owned(),
            expected: "it".to_owned(),
            verdict: Verdict::Differs,
            source: "a manual".to_owned(),
        };
        let text = rows(&[check]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.starts_with('|') && line.ends_with('|')), "{text}");
    }
}
