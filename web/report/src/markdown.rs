//! The summary as Markdown, to be posted: the answer first, never a winner without its interval.

use longhaul_measure::model::Role;
use longhaul_measure::summary::{
    CONFOUNDED, EndpointRow, PairSummary, TargetLine, Times, TimesOnTarget, Weekly,
};

use crate::exchange::{Exchange, beside};
use crate::findings::{all_is_well, findings};
use crate::units::seconds;
use crate::{method, private, words};

/// The summary of a week.
pub fn markdown(weekly: &Weekly) -> String {
    markdown_beside(weekly, &[])
}

/// The summary of a week, and what others found.
pub fn markdown_beside(weekly: &Weekly, others: &[Exchange]) -> String {
    let sections = [
        title(weekly),
        answer(weekly),
        section("What is wrong", wrong(weekly)),
        section("Task by task", tasks(weekly)),
        section("Failures and time waited", failures(weekly)),
        section("What each task took", times(weekly)),
        section("Three numbers, never one", scores(weekly)),
        section("Beside others", beside::markdown(weekly, others)),
        section("Events of the week", events(weekly)),
        section("What was left out, and why", left_out(weekly)),
        section("Method", list(method::in_three_lines(weekly).iter().map(|line| escape(line)))),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Text that is only text: nothing in it marks, links, mentions or ends a cell, and it stays on its line.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            // A mention on a forum calls somebody; a colon makes links (`http://`) and little pictures (`:x:`) by itself.
            '@' => out += "&#64;",
            ':' if rest.peek().is_some_and(|next| !next.is_whitespace() && !next.is_ascii_digit()) => {
                out += "&#58;"
            }
            '.' if out.ends_with("www") || out.ends_with("WWW") => out += "\\.",
            '\\' | '^' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' | '!' => out.extend(['\\', c]),
            // Marks that turn the direction of writing can make a text read as another one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {}
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => out.push(' '),
            c => out.push(c),
        }
    }
    // Four spaces begin a block of code, and `1. ` begins a list.
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

fn section(heading: &str, body: String) -> String {
    if body.is_empty() { body } else { format!("## {heading}\n\n{body}") }
}

fn list(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| format!("- {line}\n")).collect()
}

/// A table. Cells are escaped by who made them; columns after the first `words` stand right.
pub fn table(head: &[&str], words: usize, rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = (0..head.len()).map(|place| if place < words { "---" } else { "---:" }.to_owned());
    let head = line(head.iter().map(|cell| escape(cell)).collect()) + &line(rule.collect());
    head + &rows.iter().map(|row| line(row.clone())).collect::<String>()
}

fn title(weekly: &Weekly) -> String {
    let scale = weekly.scale.map_or(String::new(), |scale| format!(", {} scale", scale.name()));
    let targets = weekly.targets.iter().map(target).collect::<Vec<_>>().join("; ");
    let targets = if targets.is_empty() {
        "No target was measured up to the end of this week.".to_owned()
    } else {
        targets
    };
    format!(
        "# longhaul, week {}: {} to {} ({:.0} hours{scale})\n\n{targets}\n",
        weekly.week, weekly.first_day, weekly.last_day, weekly.hours
    )
}

fn target(target: &TargetLine) -> String {
    let protocol = target.protocol.as_deref().unwrap_or("protocol not known");
    let role = match target.role {
        Role::Share => "",
        Role::Baseline => ", beside the comparison",
    };
    let since = target.settled.as_deref().map_or(String::new(), |day| format!(", counted since {day}"));
    let epochs = if target.epochs > 1 { format!(", epoch {}", target.epochs) } else { String::new() };
    format!("**{}** ({}{role}{epochs}{since})", escape(target.name.as_str()), escape(protocol))
}

fn answer(weekly: &Weekly) -> String {
    let sure = if weekly.pairs.is_empty() { String::new() } else { format!(" {}", words::how_sure()) };
    let mut lines = vec![format!("**{}.**{sure}", escape(&words::ranking(weekly))), String::new()];
    for pair in &weekly.pairs {
        lines.push(format!("- **{}**: {}", names(pair), escape(&words::headline(pair))));
        let basis = pair.headline.as_ref().map(|headline| format!("Rests on {}.", words::basis(headline)));
        lines.push(format!("  {} {}", escape(&pair.reliability_text), escape(&basis.unwrap_or_default())));
        lines.extend(
            pair.minutes_a_week.map(|minutes| format!("  {}", escape(&words::minutes(pair, &minutes)))),
        );
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

fn names(pair: &PairSummary) -> String {
    format!("{} and {}", escape(pair.a.as_str()), escape(pair.b.as_str()))
}

fn wrong(weekly: &Weekly) -> String {
    let found = findings(weekly);
    if found.is_empty() {
        return escape(&all_is_well(weekly)) + "\n";
    }
    list(found.into_iter().map(|finding| escape(&finding.text)))
}

fn tasks(weekly: &Weekly) -> String {
    let mut out = String::new();
    for pair in &weekly.pairs {
        let comparisons = pair.by_presence.iter().chain(&pair.tasks).map(|task| escape(&task.text));
        let weeks = pair.sequential.iter().map(|weeks| escape(&weeks.text(pair.a.as_str(), pair.b.as_str())));
        let lines = list(comparisons.chain(weeks));
        if !lines.is_empty() {
            out += &format!("**{}**\n\n{lines}\n", names(pair));
        }
        if !pair.sequential.is_empty() {
            out += &format!("{}\n\n", escape(CONFOUNDED));
        }
    }
    out.trim_end().to_owned() + if out.is_empty() { "" } else { "\n" }
}

fn failures(weekly: &Weekly) -> String {
    let rows: Vec<Vec<String>> = weekly
        .failures
        .iter()
        .map(|failures| {
            vec![
                escape(failures.target.as_str()),
                failures.rounds.to_string(),
                failures.failed_rounds.to_string(),
                failures.episodes.to_string(),
                failures.hung_runs.to_string(),
                words::waited(failures.hung_seconds),
                failures.error_runs.to_string(),
                failures.unavailable_rounds.to_string(),
            ]
        })
        .collect();
    let head =
        ["target", "rounds", "failed", "episodes", "hung runs", "hung for", "error runs", "rounds not there"];
    table(&head, 1, &rows)
}

fn times(weekly: &Weekly) -> String {
    let rows: Vec<Vec<String>> = weekly.table.iter().flat_map(rows_of).collect();
    let head = [
        "task",
        "target",
        "median",
        "medians of days",
        "p95",
        "n",
        "failed",
        "this week",
        "medians of days",
        "n",
        "failed",
    ];
    let body = table(&head, 2, &rows);
    if body.is_empty() {
        return body;
    }
    format!(
        "{body}\nThe first figures are of all days that count, the last four of this week alone. Failures have no time. A p95 \
         stands only where enough values lie beyond it.\n"
    )
}

fn rows_of(row: &EndpointRow) -> impl Iterator<Item = Vec<String>> + '_ {
    row.targets.iter().map(|on: &TimesOnTarget| {
        let known = |value: Option<f64>| value.map_or("–".to_owned(), seconds);
        vec![
            escape(&words::subject(&row.subject)),
            escape(on.target.as_str()),
            known(on.epoch.median),
            days_range(&on.epoch),
            known(on.epoch.p95),
            on.epoch.times.to_string(),
            on.epoch.failed.to_string(),
            known(on.week.median),
            days_range(&on.week),
            on.week.times.to_string(),
            on.week.failed.to_string(),
        ]
    })
}

fn days_range(times: &Times) -> String {
    times.days_range.map_or("–".to_owned(), |(low, high)| format!("{} to {}", seconds(low), seconds(high)))
}

fn scores(weekly: &Weekly) -> String {
    let rows: Vec<Vec<String>> = weekly
        .scores
        .iter()
        .map(|scores| {
            vec![
                escape(scores.target.as_str()),
                words::speed(scores),
                words::share(scores.smoothness),
                words::share(scores.reliability),
                words::place(scores),
            ]
        })
        .collect();
    let body = table(&["target", "speed", "smoothness", "reliability", "place"], 1, &rows);
    if body.is_empty() { body } else { format!("{body}\n{}\n", escape(&method::scores())) }
}

fn events(weekly: &Weekly) -> String {
    list(weekly.events.iter().map(private::event).map(|event| {
        let target = event.target.as_ref().map_or("machine", |target| target.as_str());
        escape(&format!("{}  {target}, {}: {}", event.at, event.kind, event.detail))
    }))
}

fn left_out(weekly: &Weekly) -> String {
    let runs =
        weekly.left_out.iter().map(|left| format!("{} runs {}", left.runs, private::prose(&left.reason)));
    list(runs.map(|line| escape(&line)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    /// The text that a reader sees, if it is only text.
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
    fn what_would_mark_or_link_or_call_is_only_text() {
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

    proptest! {
        #[test]
        fn any_text_reads_back_as_itself(text in "[ -~]{0,40}") {
            let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(read(&format!("- x {}", escape(&text))), Some(format!("x {plain}").trim_end().to_owned()));
        }

        #[test]
        fn any_cell_stays_in_its_cell(text in "\\PC{0,40}") {
            let table = table(&["a", "b"], 1, &[vec![escape(&text), "2".to_owned()]]);
            let cells = Parser::new_ext(&table, Options::ENABLE_TABLES)
                .filter(|event| matches!(event, Event::Start(Tag::TableCell)))
                .count();
            prop_assert_eq!(cells, 4);
        }
    }
}
