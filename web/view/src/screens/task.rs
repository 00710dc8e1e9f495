//! One task: its times on each target, day by day and as distributions, and its slowest runs and calls.

use longhaul_analysis::summary::WeeklySummary;
use longhaul_model::{Scale, Task};

use super::{week_charts, words};
use crate::charts::Chart;
use crate::document::Document;
use crate::text::Text;

/// Data of the page of a task.
#[derive(Debug)]
pub struct TaskReport<'a> {
    /// The task.
    pub task: &'static Task,
    /// Summary of the newest week.
    pub weekly: &'a WeeklySummary,
    /// Charts of each metric of the task.
    pub metrics: Vec<MetricCharts>,
    /// The slowest runs and single calls.
    pub slowest: Document,
}

/// Charts of one metric of a task, on all targets.
#[derive(Debug)]
pub struct MetricCharts {
    /// Name of the metric.
    pub label: String,
    /// Its charts, on shared axes.
    pub charts: Vec<Chart>,
}

/// Returns the page of a task.
pub fn task(report: TaskReport<'_>) -> Document {
    let mut document = Document::titled(report.task.name());
    document.paragraph(Text::constant(report.task.summary()));
    if let Some(scale) = report.weekly.scale.filter(|scale| *scale != Scale::Standard) {
        let scale = scale.name();
        document.note(format!(
            "The numbers above are those of the standard scale; here the task runs at the {scale} scale."
        ));
    }
    document.append(times(report.task, report.weekly, report.metrics));
    document.append(report.slowest);
    document
}

fn times(task: &Task, weekly: &WeeklySummary, metrics: Vec<MetricCharts>) -> Document {
    let mut document = Document::new();
    match week_charts::times_of(task.name(), weekly) {
        Some(times) => {
            document.section("times", "Times").chart(times);
        }
        None if metrics.is_empty() => {
            document.paragraph("Not measured yet.");
        }
        None => {
            document.paragraph(
                "No time counts yet: the first two days are a warm-up. The charts show them, too.",
            );
        }
    }
    for (place, metric) in metrics.into_iter().enumerate() {
        document.section(format!("wait-{place}"), words::capitalized(&metric.label));
        document
            .note(
                "The daily charts share their axes. They show the runs of the chosen range, except those of void rounds; the \
                 distribution below them shows only those in the newest epoch of each target. Verdicts also exclude warm-up days.",
            )
            .charts(metric.charts);
    }
    document
}
