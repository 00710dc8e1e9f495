//! The share card: the answer and the typical times as one picture that is readable on a phone.

use longhaul_analysis::summary::WeeklySummary;
use maud::{Markup, html};

use crate::charts::{self, SeriesStyles, strip_control_characters};
use crate::redaction::redact_week;
use crate::screens::recommendation;
use crate::screens::task_rows::{TaskBar, TaskRow, task_rows};
use crate::text::wrapped;

/// Width of the picture in pixels. A phone shows it at a third of that, where text of 30 pixels has the size of body text.
const WIDTH: usize = 1080;
/// Distance of everything from the edges.
const MARGIN: usize = 60;
/// Characters of the answer that fit into a line.
const ANSWER_CHARS: usize = 34;
/// Maximum number of tasks that are drawn; more would be too small on a phone.
const MAX_TASKS: usize = 5;
/// Horizontal range of the bars.
const BARS: std::ops::Range<usize> = 260..820;
/// Height of a bar with the space below it.
const BAR_HEIGHT: usize = 44;

/// Returns the card as an SVG file.
pub fn share_card(weekly: &WeeklySummary) -> String {
    let weekly = &redact_week(weekly);
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let answer = wrapped(&recommendation::heading(weekly), ANSWER_CHARS);
    let rows: Vec<TaskRow<'_>> =
        task_rows(weekly).into_iter().filter(|row| !row.is_instant()).take(MAX_TASKS).collect();
    let answer_end = 70 + answer.len() * 62;
    let tops: Vec<usize> = rows
        .iter()
        .scan(answer_end + 10, |top, row| {
            let own = *top;
            *top += 70 + row.bars.len() * BAR_HEIGHT;
            Some(own)
        })
        .collect();
    let end =
        tops.last().zip(rows.last()).map_or(answer_end, |(top, row)| top + 70 + row.bars.len() * BAR_HEIGHT);
    let height = end + 90;
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height)
            font-family="Helvetica Neue, Helvetica, Arial, DejaVu Sans, sans-serif" fill=(colour("ink")) {
            rect width="100%" height="100%" fill=(colour("ground")) {}
            @for (place, line) in answer.iter().enumerate() { (text(MARGIN, 100 + place * 62, 48, "bold", line)) }
            @for (row, top) in rows.iter().zip(&tops) { (task(row, *top, &styles)) }
            (text(MARGIN, height - 48, 26, "normal", &foot(weekly, &rows)))
        }
    };
    strip_control_characters(&drawn.into_string())
}

fn foot(weekly: &WeeklySummary, rows: &[TaskRow<'_>]) -> String {
    let runs = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.times.count);
    let (fewest, most) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
    let runs = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    format!("longhaul, up to {}. Medians of {runs} runs each.", weekly.last_day)
}

fn task(row: &TaskRow<'_>, top: usize, styles: &SeriesStyles) -> Markup {
    let longest = row.bars.iter().filter_map(|bar| bar.times.median).fold(f64::MIN_POSITIVE, f64::max);
    html! {
        (text(MARGIN, top + 38, 32, "bold", &row.label))
        text x=(WIDTH - MARGIN) y=(top + 38) font-size="28" text-anchor="end" fill=(colour("muted")) { (row.result) }
        @for (place, bar) in row.bars.iter().enumerate() {
            (bar_line(bar, top + 56 + place * BAR_HEIGHT, longest, &styles.style(bar.target).class()))
        }
    }
}

fn bar_line(bar: &TaskBar<'_>, top: usize, longest: f64, class: &str) -> Markup {
    let length = bar.times.median.map_or(0.0, |median| median / longest * BARS.len() as f64).round();
    html! {
        (text(MARGIN, top + 28, 30, "normal", &charts::truncated(bar.target.as_str(), 11)))
        rect x=(BARS.start) y=(top + 4) width=(length) height=(BAR_HEIGHT - 14) fill=(colour(class)) {}
        (text(BARS.end + 20, top + 28, 30, "normal", &bar.time()))
    }
}

fn text(x: usize, y: usize, size: usize, weight: &str, words: &str) -> Markup {
    html! { text x=(x) y=(y) font-size=(size) font-weight=(weight) { (words) } }
}

/// Returns a colour of the charts, as on a light page.
fn colour(name: &str) -> &'static str {
    let value =
        charts::STYLE.split_once(&format!("--{name}:light-dark(")).and_then(|(_, rest)| rest.split_once(','));
    value.map_or("#000", |(light, _)| light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_charts() {
        assert_eq!((colour("c0"), colour("ink"), colour("none")), ("#0072b2", "#16191d", "#000"));
    }
}
