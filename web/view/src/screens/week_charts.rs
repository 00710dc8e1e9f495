//! Charts of a week. Charts of one kind share their axes, so that equal lengths mean equal ratios.

use std::ops::RangeInclusive;

use longhaul_analysis::summary::{
    Comparison, EventLine, MetricRow, PairSummary, TimesOnTarget, WeeklySummary,
};
use longhaul_model::TargetName;

use super::words;
use crate::charts::{
    Chart, DailyRatios, Forest, ForestGroup, ForestRow, SeriesStyle, SeriesStyles, TimeRow, TimeRows,
    TimesChart,
};
use crate::redaction::redact_event;

/// Returns all charts of a week, as they appear on its page.
pub fn all(weekly: &WeeklySummary) -> Vec<Chart> {
    let pairs = tasks(weekly).into_iter().chain(days(weekly, &weekly.events)).flatten();
    overall(weekly).into_iter().chain(pairs).chain(times(weekly)).collect()
}

/// Returns the chart with the overall comparisons of all pairs; `None` if there is none.
pub fn overall(weekly: &WeeklySummary) -> Option<Chart> {
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let group = |pair: &PairSummary| {
        let headline = pair.headline.as_ref()?;
        let row = forest_row(headline, words::subject(&headline.subject), &styles);
        Some(forest_group(pair, vec![ForestRow { verdict_text: words::pair_verdict_label(pair), ..row }]))
    };
    let forest = Forest {
        id: "overview".to_owned(),
        title: "All tasks together, pair by pair".to_owned(),
        groups: weekly.pairs.iter().filter_map(group).collect(),
        threshold: weekly.settings.threshold,
    };
    (!forest.groups.is_empty()).then(|| forest.draw(Forest::shared_scale([&forest])))
}

/// Returns the chart of each pair with all its tasks; `None` for a pair without a comparison.
pub fn tasks(weekly: &WeeklySummary) -> Vec<Option<Chart>> {
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let forests: Vec<Forest> = weekly.pairs.iter().map(|pair| task_forest(pair, weekly, &styles)).collect();
    let scale = Forest::shared_scale(&forests);
    let has_rows = |forest: &Forest| forest.groups.iter().any(|group| !group.rows.is_empty());
    forests.iter().map(|forest| has_rows(forest).then(|| forest.draw(scale))).collect()
}

fn task_forest(pair: &PairSummary, weekly: &WeeklySummary, styles: &SeriesStyles) -> Forest {
    let comparisons = pair.headline.iter().chain(&pair.tasks);
    let rows = comparisons.map(|task| forest_row(task, words::subject(&task.subject), styles));
    Forest {
        id: format!("tasks-{}-{}", pair.a, pair.b),
        title: format!("{} and {}, task by task", pair.a, pair.b),
        groups: vec![forest_group(pair, rows.collect())],
        threshold: weekly.settings.threshold,
    }
}

fn forest_group(pair: &PairSummary, rows: Vec<ForestRow>) -> ForestGroup {
    ForestGroup { left: pair.b.to_string(), right: pair.a.to_string(), rows }
}

fn forest_row(comparison: &Comparison, label: String, styles: &SeriesStyles) -> ForestRow {
    ForestRow {
        label,
        ratio: comparison.ratio,
        verdict_text: words::verdict_label(comparison.verdict).to_owned(),
        style: comparison.winner().map_or(SeriesStyle::NEUTRAL, |winner| styles.style(winner)),
        fill: words::fill(comparison.verdict),
    }
}

/// Returns the chart of each pair with its daily ratios and the events that concern it; `None` for a pair without an overall
/// comparison.
pub fn days(weekly: &WeeklySummary, events: &[EventLine]) -> Vec<Option<Chart>> {
    days_within(weekly, events, &(i64::MIN..=i64::MAX))
}

/// Like [`days`], with only the days in a range, in days since 1970-01-01.
pub fn days_within(
    weekly: &WeeklySummary,
    events: &[EventLine],
    shown: &RangeInclusive<i64>,
) -> Vec<Option<Chart>> {
    let daily = |pair: &PairSummary| {
        let concerns = |target: &TargetName| *target == pair.a || *target == pair.b;
        let events = events.iter().filter(|event| event.target.as_ref().is_none_or(concerns));
        let events: Vec<EventLine> = events.map(redact_event).collect();
        DailyRatios::from_comparison(pair.headline.as_ref()?, weekly.settings.threshold, &events)?
            .within(shown)
    };
    let all: Vec<Option<DailyRatios>> = weekly.pairs.iter().map(daily).collect();
    let scale = DailyRatios::shared_scale(all.iter().flatten());
    all.iter().map(|days| Some(days.as_ref()?.draw(scale))).collect()
}

/// Returns the charts with the times of all tasks, one for each workload.
pub fn times(weekly: &WeeklySummary) -> Vec<Chart> {
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let workloads = weekly.table.chunk_by(|a, b| a.subject.workload == b.subject.workload);
    workloads.map(|rows| times_of_workload(rows, &styles)).collect()
}

/// Returns the chart with the times of one task; `None` if it was not measured.
pub fn times_of(task: &str, weekly: &WeeklySummary) -> Option<Chart> {
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let mut workloads = weekly.table.chunk_by(|a, b| a.subject.workload == b.subject.workload);
    let rows = workloads.find(|rows| rows.iter().any(|row| row.subject.workload == Some(task)))?;
    Some(times_of_workload(rows, &styles))
}

fn times_of_workload(rows: &[MetricRow], styles: &SeriesStyles) -> Chart {
    let workload = rows.first().and_then(|row| row.subject.workload).unwrap_or("tasks");
    let row = |on: &TimesOnTarget| TimeRow {
        name: on.target.to_string(),
        style: styles.style(&on.target),
        times: on.epoch,
    };
    let task = |metric: &MetricRow| TimeRows {
        label: words::subject(&metric.subject),
        rows: metric.targets.iter().map(row).collect(),
    };
    let chart = TimesChart {
        id: format!("times-{workload}"),
        title: format!("Times of {workload}"),
        tasks: rows.iter().map(task).collect(),
    };
    chart.draw(chart.scale())
}
