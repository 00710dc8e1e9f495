//! Rows of bars: each task with its typical time on every share.

use longhaul_analysis::summary::WeeklySummary;
use maud::{Markup, html};

use crate::charts::SeriesStyles;
use crate::screens::task_rows::{EXPLANATION, TaskBar, TaskRow, task_rows};

/// Width of a bar's drawing, in its own units.
const WIDTH: f64 = 1000.0;

/// Renders the rows of all tasks; a sentence if nothing was measured on a share.
pub fn task_bars(weekly: &WeeklySummary, styles: &SeriesStyles) -> Markup {
    let rows = task_rows(weekly);
    html! {
        @if rows.is_empty() { p { "No task has been measured on a share yet." } }
        @else {
            ul class="task-rows" role="list" { @for row in &rows { (task_row(row, styles)) } }
            p class="muted" {
                (EXPLANATION)
                @if !weekly.table.is_empty() { " " a href={ "/weeks/" (weekly.week) "#times" } { "All figures as a table" } "." }
            }
        }
    }
}

fn task_row(row: &TaskRow<'_>, styles: &SeriesStyles) -> Markup {
    html! {
        li {
            div class="task-name" { (row.label) @if !row.result.is_empty() && !row.is_instant() { " " span class="muted" { (row.result) } } }
            @if row.is_instant() { (instant(row, styles)) }
            @else { ul class="bars" role="list" { @for bar in &row.bars { (bar_line(bar, row.longest(), styles)) } } }
        }
    }
}

/// Renders a task that is instant on every share in one line.
fn instant(row: &TaskRow<'_>, styles: &SeriesStyles) -> Markup {
    html! {
        p class="all-instant" {
            strong { "instant" } " on "
            @for (place, bar) in row.bars.iter().enumerate() {
                @if place > 0 { ", " }
                (styles.legend_mark(bar.target)) (bar.target)
            }
        }
    }
}

fn bar_line(bar: &TaskBar<'_>, longest: f64, styles: &SeriesStyles) -> Markup {
    html! {
        li title=(bar.description()) {
            span class="bar-name" { (styles.legend_mark(bar.target)) (bar.target) }
            (drawing(bar, longest, styles))
            span class="bar-time" { (bar.time()) @if bar.times.failed > 0 { " " span class="serious" { "✗" (bar.times.failed) span class="visually-hidden" { " failed" } } } }
        }
    }
}

/// Draws the bar from zero to the median, and the range of the daily medians.
fn drawing(bar: &TaskBar<'_>, longest: f64, styles: &SeriesStyles) -> Markup {
    let x = |seconds: f64| (seconds / longest * WIDTH).round();
    let style = styles.style(bar.target);
    html! {
        svg class={ "bar " (style.class()) } viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" {
            @if let Some(median) = bar.times.median { path class="solid" d={ "M0 1H" (x(median)) "V9H0Z" } {} }
            @if let Some((low, high)) = bar.times.daily_range {
                path class="whisker" d={ "M" (x(low)) " 5H" (x(high)) "M" (x(low)) " 2.5v5M" (x(high)) " 2.5v5" } {}
            }
        }
    }
}
