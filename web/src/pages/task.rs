//! The page of one task: its times on each target, day by day and as distributions, and its slowest runs and
//! calls.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use longhaul_analysis::summary::WeeklySummary;
use longhaul_model::time::DAY;
use longhaul_model::{
    History, RoundStatus, RunRecord, TASKS, TargetName, Task, Timestamp, YOUR_DAY, quantile,
};
use longhaul_store::CALL_RETENTION_DAYS;
use longhaul_view::charts::time_scale::event_ticks;
use longhaul_view::charts::{BandChart, Curve, Ecdf, QuantileStep, SeriesStyle, SeriesStyles, TimeScale};
use longhaul_view::render;
use longhaul_view::screens::latency_charts::BAND_QUANTILES;
use longhaul_view::screens::task::{MetricCharts, TaskReport};
use longhaul_view::screens::{self, slowest, words::with_cache};
use longhaul_view::time::local_midnight;
use maud::html;
use serde::Deserialize;

use super::shell::{RangeLink, chart_links, range_picker, read_cache, svg_response};
use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::cache::{CacheEntry, local_zone};
use crate::params::Params;

/// Redirects to the page of the first task.
pub async fn first_task() -> Redirect {
    Redirect::to(&format!("/tasks/{}", TASKS[0].name()))
}

/// Query of the page: the days up to now whose runs the charts show, or `all`; empty for the default.
#[derive(Debug, Default, Deserialize)]
pub struct TaskParams {
    #[serde(default)]
    days: String,
}

/// Windows that the page offers, as its addresses contain them, with their labels.
const RANGES: [(&str, &str); 4] =
    [("1", "24 h"), ("7", "7 d"), (DEFAULT_RANGE, "30 d"), (WHOLE_RANGE, "all")];
const DEFAULT_RANGE: &str = "30";
const WHOLE_RANGE: &str = "all";

impl TaskParams {
    fn days(&self) -> &str {
        if self.days.is_empty() { DEFAULT_RANGE } else { &self.days }
    }

    /// Returns the start of the window.
    fn since(&self, now: Timestamp) -> Result<Timestamp, PageError> {
        match self.days() {
            WHOLE_RANGE => Ok(Timestamp::UNIX_EPOCH),
            days => days
                .parse::<u16>()
                .map(|days| now - u32::from(days) * DAY)
                .map_err(|_| PageError::BadRequest(format!("`{days}` is not a number of days."))),
        }
    }

    fn ranges(&self, task: &str) -> Vec<RangeLink> {
        let link = |(days, label): (&str, &'static str)| RangeLink {
            label,
            address: format!("/tasks/{task}?days={days}"),
            is_current: days == self.days(),
        };
        RANGES.map(link).into_iter().collect()
    }
}

/// Serves the page of a task.
pub async fn task(app: AppState, Path(name): Path<String>, Params(params): Params<TaskParams>) -> Response {
    let now = app.now();
    let since = now - CALL_RETENTION_DAYS * DAY;
    render_page(app, NavItem::Tasks, move |cache| {
        let task = find_task(&name)?;
        let window = Window { task, since: params.since(now)? };
        let (history, weekly) = history_and_week(cache)?;
        let calls = cache.reader.calls(Some(&name), since)?;
        let is_measured = history.runs.iter().any(|run| {
            TASKS[run.workload] == *task && Some(run.scale) == weekly.scale && run.times.get(0).is_some()
        });
        let metrics = if is_measured { metric_charts(&window, &history, &weekly) } else { vec![] };
        let charts = metrics.iter().flat_map(|metric| &metric.charts);
        let links = chart_links(&format!("/tasks/{name}/charts"), &format!("?days={}", params.days()), charts);
        let styles = SeriesStyles::for_targets(&weekly.targets);
        let zone = local_zone();
        let mut slowest = slowest::calls(&calls, weekly.scale, CALL_RETENTION_DAYS, &zone);
        slowest.append(slowest::runs(&history, task.name(), weekly.scale, &zone));
        let report = TaskReport { task, weekly: &weekly, metrics, slowest };
        Ok(html! {
            nav class="tabs" aria-label="Tasks" { ul { @for one in TASKS.iter().filter(|one| is_shown(one, &history, &name)) {
                li { a href={ "/tasks/" (one.name()) } aria-current=[(one.name() == name).then_some("page")] { (one.name()) } }
            } } }
            (range_picker(params.ranges(&name)))
            (render::html::render(&screens::task::task(report), &styles))
            (links)
        })
    })
    .await
}

/// Serves one chart of a task as SVG.
pub async fn task_chart(
    app: AppState,
    Path((name, file)): Path<(String, String)>,
    Params(params): Params<TaskParams>,
) -> Response {
    let now = app.now();
    let found = read_cache(app, move |cache| {
        let (history, weekly) = history_and_week(cache)?;
        let window = Window { task: find_task(&name)?, since: params.since(now)? };
        let metrics = metric_charts(&window, &history, &weekly);
        let id = file.strip_suffix(".svg").unwrap_or_default();
        Ok(metrics.into_iter().flat_map(|metric| metric.charts).find(|chart| chart.id == id))
    });
    found.await.map_or_else(|error| error.status().into_response(), svg_response)
}

/// Returns whether a task has a tab: the replay of a recording has one only where it was made.
fn is_shown(task: &Task, history: &History, current: &str) -> bool {
    let has_runs = || history.runs.iter().any(|run| TASKS[run.workload] == *task);
    *task != YOUR_DAY || current == task.name() || has_runs()
}

fn find_task(name: &str) -> Result<&'static Task, PageError> {
    let found = TASKS.iter().find(|task| task.name() == name);
    found.ok_or_else(|| PageError::NotFound(format!("task `{name}`")))
}

fn history_and_week(
    cache: &mut CacheEntry,
) -> Result<(std::sync::Arc<History>, std::sync::Arc<WeeklySummary>), PageError> {
    let newest = cache.newest_week()?;
    Ok((cache.history()?, cache.weekly(newest)?))
}

/// The runs that the charts show: those of a task since a time.
struct Window {
    task: &'static Task,
    since: Timestamp,
}

/// Values of one metric of a task on all targets, as charts that are not drawn yet.
struct MetricValues {
    label: String,
    band_charts: Vec<BandChart>,
    ecdf: Ecdf,
}

/// Draws the charts of each metric: the band charts of its targets on one axis, then the distribution of its times.
fn metric_charts(window: &Window, history: &History, weekly: &WeeklySummary) -> Vec<MetricCharts> {
    let draw = |values: MetricValues| {
        let scale = BandChart::shared_scale(&values.band_charts);
        let bands = values.band_charts.iter().map(|band| band.draw(scale));
        let charts = bands.chain([values.ecdf.draw(Ecdf::shared_scale([&values.ecdf]))]).collect();
        MetricCharts { label: values.label, charts }
    };
    metric_values(window, history, weekly).into_iter().map(draw).collect()
}

/// The runs of one target, with its name and style in charts.
struct TargetRuns<'h> {
    name: TargetName,
    style: SeriesStyle,
    runs: Vec<&'h RunRecord>,
}

/// A metric of a task, with its position in the times of a run.
struct Metric {
    index: usize,
    name: &'static str,
    label: String,
}

fn metric_values(window: &Window, history: &History, weekly: &WeeklySummary) -> Vec<MetricValues> {
    let targets = runs_by_target(window, history, weekly);
    let values = window.task.metrics().iter().enumerate().map(|(index, endpoint)| {
        let label = with_cache(endpoint.activity, endpoint.cache);
        let metric = Metric { index, name: endpoint.name, label };
        let bands = targets.iter().map(|target| BandChart {
            events: event_ticks(&history.events, &target.name),
            ..daily_band_chart(target, &metric)
        });
        MetricValues {
            band_charts: bands.collect(),
            ecdf: Ecdf {
                id: format!("all-{}", metric.name),
                title: format!("Times of {}, in the newest epoch", metric.label),
                curves: targets.iter().map(|target| curve(target, index)).collect(),
            },
            label: metric.label,
        }
    });
    align_time_axes(values.collect())
}

/// Returns the valid runs of a task at the scale of the week, for each target that has any.
fn runs_by_target<'h>(window: &Window, history: &'h History, weekly: &WeeklySummary) -> Vec<TargetRuns<'h>> {
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let void = history.rounds.iter().filter(|round| round.status == Some(RoundStatus::Void));
    let void: BTreeSet<i64> = void.map(|round| round.number).collect();
    let index = TASKS.iter().position(|known| known.name() == window.task.name());
    let counts = |run: &&RunRecord| {
        run.started >= window.since
            && Some(run.workload) == index
            && Some(run.scale) == weekly.scale
            && !void.contains(&run.round)
    };
    let runs: Vec<&RunRecord> = history.runs.iter().filter(counts).collect();
    let targets = history.targets.iter().enumerate().map(|(number, target)| TargetRuns {
        name: target.name.clone(),
        style: styles.style(&target.name),
        runs: runs.iter().copied().filter(|run| run.target == number).collect(),
    });
    targets.filter(|target| !target.runs.is_empty()).collect()
}

/// Gives all band charts of the page the same time axis.
fn align_time_axes(mut all: Vec<MetricValues>) -> Vec<MetricValues> {
    let spans = || all.iter().flat_map(|waits| &waits.band_charts).map(|band| band.time.span);
    let first = spans().map(|(from, _)| from).min().unwrap_or_default();
    let last = spans().map(|(_, to)| to).max().unwrap_or_default();
    all.iter_mut().flat_map(|waits| &mut waits.band_charts).for_each(|band| band.time.span = (first, last));
    all
}

/// Returns a chart with one band per day, over all epochs. A day pools two epochs only if the epoch changed on it.
fn daily_band_chart(target: &TargetRuns<'_>, metric: &Metric) -> BandChart {
    let zone = local_zone();
    let mut days: BTreeMap<Timestamp, (Vec<f64>, u64)> = BTreeMap::new();
    for run in &target.runs {
        let (times, failed) = days.entry(local_midnight(run.started, &zone)).or_default();
        times.extend(run.times.get(metric.index));
        *failed += u64::from(run.outcome.is_failure());
    }
    let first = days.keys().next().copied().unwrap_or_default();
    let last = days.keys().last().copied().unwrap_or_default() + DAY;
    BandChart {
        id: format!("days-{}-{}", metric.name, target.name),
        title: format!("{}, {}", target.name, metric.label),
        name: target.name.to_string(),
        style: target.style,
        steps: days.into_iter().map(|(at, (times, failed))| quantile_step(at, &times, failed)).collect(),
        table_steps: vec![],
        table_step: DAY,
        step: DAY,
        time: TimeScale { span: (first, last), zone },
        events: vec![],
    }
}

fn quantile_step(at: Timestamp, times: &[f64], failed: u64) -> QuantileStep {
    let all = BAND_QUANTILES.map(|q| quantile(times, q));
    QuantileStep {
        at,
        quantiles: all.iter().all(Option::is_some).then(|| all.map(Option::unwrap_or_default)),
        max: times.iter().copied().reduce(f64::max),
        count: times.len() as u64,
        failed,
    }
}

/// Returns the distribution of the times on one target, from its newest epoch only: epochs are never pooled.
fn curve(target: &TargetRuns<'_>, index: usize) -> Curve {
    let epoch = target.runs.iter().map(|run| run.epoch).max();
    let own = target.runs.iter().filter(|run| Some(run.epoch) == epoch);
    let mut times: Vec<f64> = own.clone().filter_map(|run| run.times.get(index)).collect();
    times.sort_by(f64::total_cmp);
    Curve {
        name: target.name.to_string(),
        style: target.style,
        times,
        failed: own.filter(|run| run.outcome.is_failure()).count(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use longhaul_analysis::summary::{WeeklyQuery, summarize_week};
    use longhaul_model::{MetricTimes, Outcome, Role, Scale, TargetRecord};
    use longhaul_view::Document;

    use super::*;
    use crate::cache::current_week;

    /// Returns a run of the first task on the only target.
    fn run(epoch: i64, seconds: f64) -> RunRecord {
        RunRecord {
            number: epoch,
            round: epoch,
            epoch,
            target: 0,
            workload: 0,
            scale: Scale::Standard,
            outcome: Outcome::Ok,
            started: Timestamp::UNIX_EPOCH + epoch as u32 * DAY,
            seconds,
            times: MetricTimes::NONE.with(0, seconds),
            rtt: None,
        }
    }

    #[test]
    fn distribution_shows_and_names_only_the_newest_epoch() {
        let query = WeeklyQuery { week: current_week(), scale: None, since: None, zone: TimeZone::UTC };
        let mut weekly = summarize_week(&History::default(), &query);
        weekly.scale = Some(Scale::Standard);
        let history = History {
            targets: vec![TargetRecord { name: "smb".parse().unwrap(), role: Role::Share }],
            runs: vec![run(1, 2.0), run(2, 3.0)],
            ..History::default()
        };
        let window = Window { task: find_task(TASKS[0].name()).unwrap(), since: Timestamp::UNIX_EPOCH };
        let values = metric_values(&window, &history, &weekly);
        let distribution = &values[0].ecdf;
        assert_eq!(distribution.curves[0].times, [3.0]);
        assert!(distribution.title.contains("newest epoch"), "{}", distribution.title);
        let metrics = metric_charts(&window, &history, &weekly);
        let report = TaskReport { task: window.task, weekly: &weekly, metrics, slowest: Document::new() };
        let text = render::markdown::render(&screens::task::task(report));
        assert!(text.contains("newest epoch"), "{text}");
    }
}
