//! The overview: what changed lately, and how far the answer can be trusted.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{PairSummary, SampledWindow, WeeklySummary, summarize_window};
use longhaul_model::{Event, Stall, Timestamp};

use super::checks::{CheckResults, in_brief};
use super::{stalls, words};
use crate::document::Document;
use crate::event_words::event_words;
use crate::text::Text;
use crate::time;

/// Number of days of which the overview lists events.
pub const DAYS_SHOWN: u32 = 30;
/// Maximum number of events that the overview lists.
const MAX_EVENTS: usize = 8;

/// Returns what changed: the ratios that changed, then the events since a time, newest first.
pub fn what_changed(weekly: &WeeklySummary, events: &[Event], since: Timestamp, zone: &TimeZone) -> Document {
    // Test data that were made change no results.
    let is_change = |event: &&Event| event.at_us >= since && event.kind != "prepared";
    let recent: Vec<&Event> = events.iter().rev().filter(is_change).collect();
    let changes: Vec<String> = weekly.pairs.iter().filter_map(ratio_change).collect();
    let listed = recent.iter().take(MAX_EVENTS).map(|event| event_line(event, zone));
    let mut document = Document::new();
    if recent.is_empty() && changes.is_empty() {
        document.paragraph(format!("Nothing in the last {DAYS_SHOWN} days."));
    }
    document.list(changes.into_iter().map(Text::from).chain(listed));
    let rest = recent.len().saturating_sub(MAX_EVENTS);
    let more = Text::from(if rest > 0 { format!("{rest} more: ") } else { "All: ".to_owned() });
    document.note(more.link("event log", "/events").plain("."));
    document
}

fn event_line(event: &Event, zone: &TimeZone) -> Text {
    let day = time::zoned(event.at_us, zone);
    let day = day.map_or_else(String::new, |at| format!("{}: ", at.strftime("%-d %b %H:%M")));
    let text = match &event.target {
        Some(target) => Text::from(day).target(target).plain(" "),
        None => Text::from(day),
    };
    text.plain(event_words(event)).plain(".")
}

fn ratio_change(pair: &PairSummary) -> Option<String> {
    let headline = pair.headline.as_ref()?;
    let change = headline.change.as_ref()?;
    Some(format!(
        "{}: {} took {:.2}× the time of {} before, {:.2}× since then.",
        change.date, headline.b, change.ratio_before, headline.a, change.ratio_after
    ))
}

/// Returns the total of each target's stalls in a window that ends now. `None` instead of a list: nothing was measured in it.
pub fn stalls_in_brief(seen: Option<&[Stall]>, span: (Timestamp, Timestamp)) -> Document {
    let all = seen.unwrap_or_default();
    let window = SampledWindow { span, stalls: all.to_vec(), ..SampledWindow::default() };
    let mut document = Document::new();
    if all.is_empty() {
        let period = stalls::last(span);
        let text = if seen.is_some() { stalls::none(&period) } else { stalls::nothing_measured(&period) };
        document.paragraph(text);
    }
    document
        .facts(stalls::totals(&summarize_window(&window).stalls))
        .note(Text::from("Each of them: ").link("latency", "/latency#stalls").plain("."));
    document
}

/// Returns the results of the checks, one sentence each; `None` without a result.
pub fn checks_in_brief(results: &CheckResults<'_>) -> Option<Document> {
    let sentences = in_brief(results);
    let mut document = Document::new();
    document.list(sentences.clone()).note(Text::from("Each of them: ").link("checks", "/checks").plain("."));
    (!sentences.is_empty()).then_some(document)
}

/// Returns how the answer is found, in a few lines.
pub fn method(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    document
        .list([
            Text::from(
                "In each round every share does the same tasks within minutes, in random order, so that a busy network or server \
                 slows all of them.",
            ),
            Text::from(words::guarantee()),
            Text::from("Failures are counted, never averaged: ")
                .link("each pair in full", format!("/weeks/{}#pairs", weekly.week))
                .plain("."),
        ])
        .note(Text::from("More: ").link("method", "/method").plain("."));
    document
}

#[cfg(test)]
mod tests {
    use longhaul_model::time::DAY;

    use super::*;
    use crate::render::terminal;

    #[test]
    fn week_without_measurements_has_no_statement_about_stalls() {
        let span = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + 7 * DAY);
        let shown = |seen: Option<&[Stall]>| terminal::render(&stalls_in_brief(seen, span));
        assert!(shown(Some(&[])).contains("No stalls longer than 1 s in the last 7 days."));
        assert!(shown(None).contains("Nothing was measured in the last 7 days"));
        assert!(!shown(None).contains("No stalls"));
    }
}
