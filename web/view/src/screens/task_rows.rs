//! Each task with its typical time on every share, for rows of bars.

use longhaul_analysis::summary::{
    Comparison, INSTANT_SECONDS, MetricRow, SoFar, Subject, TimeSummary, TimesOnTarget, WeeklySummary,
};
use longhaul_model::{Role, TargetName};

use super::words;
use crate::units;

/// Explains the bars.
pub const EXPLANATION: &str = "Each bar is the median of all times after the warm-up (in the first days, of all times), the thin line the range of the daily medians. Bars \
     start at zero; each task has a scale of its own. Instant is below 0.1 s. ✗ counts the runs that failed.";

/// A metric with its times on all shares.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow<'w> {
    /// Name of the metric, for example `opening a large folder, cold`.
    pub label: String,
    /// Result of the comparison in a few words; empty if there is nothing to compare.
    pub result: String,
    /// Times on each share.
    pub bars: Vec<TaskBar<'w>>,
}

/// Times of a metric on one share.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskBar<'w> {
    /// Name of the share.
    pub target: &'w TargetName,
    /// Times in seconds.
    pub times: TimeSummary,
}

impl TaskBar<'_> {
    /// Returns the typical time in words.
    pub fn time(&self) -> String {
        match self.times.median {
            None => "no time yet".to_owned(),
            Some(median) if median < INSTANT_SECONDS => "instant".to_owned(),
            Some(median) => units::seconds(median),
        }
    }

    /// Returns what the bar shows, as a sentence.
    pub fn description(&self) -> String {
        let TimeSummary { median, daily_range, count, failed, .. } = self.times;
        let range = daily_range.map_or(String::new(), |(low, high)| {
            format!(", daily medians from {} to {}", units::seconds(low), units::seconds(high))
        });
        format!(
            "{}: median {}{range}; {}, {failed} failed",
            self.target,
            units::seconds_or_none(median),
            units::count(count, "measurement")
        )
    }
}

impl TaskRow<'_> {
    /// Returns true if the task is instant on every share.
    pub fn is_instant(&self) -> bool {
        self.bars.iter().all(|bar| bar.times.median.is_some_and(|median| median < INSTANT_SECONDS))
    }

    /// Returns the longest time that is drawn, in seconds: at least that of what is instant.
    pub fn longest(&self) -> f64 {
        let ends =
            self.bars.iter().flat_map(|bar| [bar.times.median, bar.times.daily_range.map(|(_, high)| high)]);
        ends.flatten().fold(INSTANT_SECONDS, f64::max)
    }
}

/// Returns a row for each metric that was measured on a share.
pub fn task_rows(weekly: &WeeklySummary) -> Vec<TaskRow<'_>> {
    let is_share = |name: &TargetName| {
        weekly.targets.iter().any(|target| target.name == *name && target.role == Role::Share)
    };
    let rows = weekly.table.iter().map(|metric: &MetricRow| TaskRow {
        label: words::subject(&metric.subject),
        result: result(weekly, &metric.subject),
        bars: metric.targets.iter().filter(|on| is_share(&on.target)).map(bar).collect(),
    });
    let rows: Vec<TaskRow<'_>> = rows.filter(|row| !row.bars.is_empty()).collect();
    if rows.is_empty() { rows_of_warm_up(weekly) } else { rows }
}

/// Returns the rows of the first days, which no table counts: the medians of the rounds that compare two shares.
fn rows_of_warm_up(weekly: &WeeklySummary) -> Vec<TaskRow<'_>> {
    let mut rows: Vec<TaskRow<'_>> = vec![];
    for task in weekly.pairs.iter().flat_map(|pair| &pair.tasks) {
        let label = words::subject(&task.subject);
        let Some((a, b)) = task.median_seconds else { continue };
        let place = rows.iter().position(|row| row.label == label).unwrap_or_else(|| {
            rows.push(TaskRow { label, result: result(weekly, &task.subject), bars: vec![] });
            rows.len() - 1
        });
        let SoFar { rounds, failed_a, failed_b, .. } = task.so_far;
        for (target, median, failed) in [(&task.a, a, failed_a), (&task.b, b, failed_b)] {
            if rows[place].bars.iter().all(|bar| bar.target != target) {
                let (median, count) = (Some(median), rounds - failed);
                let times = TimeSummary { median, count, failed, ..TimeSummary::default() };
                rows[place].bars.push(TaskBar { target, times });
            }
        }
    }
    rows
}

fn bar(on: &TimesOnTarget) -> TaskBar<'_> {
    TaskBar { target: &on.target, times: on.epoch }
}

/// Returns the verdicts about a metric in a few words. A share is named only if it is decided to be faster than each other one.
fn result(weekly: &WeeklySummary, subject: &Subject) -> String {
    let compared = weekly.pairs.iter().flat_map(|pair| &pair.tasks).filter(|task| task.subject == *subject);
    let compared: Vec<&Comparison> = compared.collect();
    let wins_all = |name: &&TargetName| {
        let mut own = compared.iter().filter(|task| task.a == **name || task.b == **name).peekable();
        own.peek().is_some()
            && own.all(|task| task.winner() == Some(*name) && !task.is_contradicted_by_mean())
    };
    let names = compared.iter().flat_map(|task| [&task.a, &task.b]);
    let fastest = names.into_iter().find(wins_all);
    match fastest {
        Some(name) => format!("{name} is fastest"),
        None if compared.is_empty() => String::new(),
        None if compared.iter().any(|task| !task.verdict.is_decided()) => "not decided yet".to_owned(),
        None if compared.iter().any(|task| task.winner().is_some()) => "no share beats all others".to_owned(),
        None => "no difference that matters".to_owned(),
    }
}
