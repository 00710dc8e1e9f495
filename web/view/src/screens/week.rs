//! The report of a week in full.

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{
    CONFOUNDING_NOTE, ClientCaching, Comparison, PairSummary, TargetLine, TimeSummary, Verdict, WeeklySummary,
};
use longhaul_model::Role;

use super::checks::{seen_of_all, statements};
use super::round_trips::StatedIn;
use super::{method, problems, recommendation, result, sentences, so_far, week_charts, words, your_day};
use crate::document::{Details, Document};
use crate::environment::Environment;
use crate::event_words::{readable_details, words_without_target};
use crate::table::Table;
use crate::text::Text;
use crate::units;

/// Data of the report of a week.
#[derive(Debug, Clone, Copy)]
pub struct WeekReport<'a> {
    /// Summary of the week.
    pub weekly: &'a WeeklySummary,
    /// Client caching of each target; empty if unknown.
    pub caching: &'a [ClientCaching],
    /// Machine and mounts; `None` omits the section.
    pub environment: Option<&'a Environment>,
}

impl<'a> WeekReport<'a> {
    /// Creates a report of the summary alone.
    pub fn new(weekly: &'a WeeklySummary) -> Self {
        Self { weekly, caching: &[], environment: None }
    }
}

/// Returns the report: the answers, the problems, then everything they rest on.
pub fn week(report: &WeekReport<'_>) -> Document {
    let weekly = report.weekly;
    let mut document = Document::titled(format!("longhaul, week {}", words::dates_and_scale(weekly)));
    document.list(weekly.targets.iter().map(target)).append(answers(weekly));
    document.section("problems", "Problems").append(problems::problems(weekly, usize::MAX));
    document.append(details(report));
    document
}

fn target(target: &TargetLine) -> Text {
    let protocol = target.protocol.as_deref().unwrap_or("protocol not known");
    let role = match target.role {
        Role::Share => "",
        Role::Baseline => ", baseline",
    };
    let since = target.counted_from.as_deref().map_or(String::new(), |day| format!(", counted from {day}"));
    let epochs = if target.epochs > 1 { format!(", {} epochs so far", target.epochs) } else { String::new() };
    Text::new().strong(target.name.to_string()).plain(format!(" ({protocol}{role}{epochs}{since})"))
}

/// Returns the recommendation, and the answer about each pair with its failures and its cost in time.
fn answers(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    let recommended = with_exceptions(Text::new().strong(recommendation::heading(weekly)), weekly);
    let ranking =
        if weekly.scores.len() > 2 { format!(" {}.", words::ranking(weekly)) } else { String::new() };
    let recommended = recommended.plain(ranking);
    let confidence = words::confidence(weekly);
    let rest = if confidence.is_empty() { words::next_step(weekly) } else { Some(confidence.into()) };
    document.paragraph(rest.into_iter().fold(recommended, |text, rest| text.plain(" ").then(rest)));
    document.list(words::unmeasured(weekly));
    for pair in &weekly.pairs {
        document.append(answer(weekly, pair));
    }
    document
}

/// Returns the recommendation with what other shares are faster for.
pub(super) fn with_exceptions(recommended: Text, weekly: &WeeklySummary) -> Text {
    recommendation::exceptions(weekly)
        .into_iter()
        .fold(recommended, |text, found| text.plain(" ").plain(found))
}

/// Returns the answer about a pair with its failures and its cost in time.
pub(super) fn answer(weekly: &WeeklySummary, pair: &PairSummary) -> Document {
    let mut document = Document::new();
    let headline = match &pair.headline {
        Some(headline) => words::toned(sentences::headline_without_round_trip(pair), headline.verdict),
        None => sentences::headline(pair).into(),
    };
    let minutes = pair.weekly_minutes.map(|minutes| words::weekly_minutes(pair, &minutes));
    document
        .paragraph(Text::new().strong(format!("{} and {}", pair.a, pair.b)).plain(": ").then(headline))
        .list(
            pair.headline
                .as_ref()
                .and_then(words::basis)
                .into_iter()
                .chain([sentences::reliability(pair)])
                .chain(statements::freshness_of_pair(weekly, pair))
                .chain(weekly.replay.as_ref().map(your_day::fidelity))
                .chain(minutes),
        );
    document
}

/// Returns the sections below the answers and the problems. Sections without content are omitted.
pub fn details(report: &WeekReport<'_>) -> Document {
    let weekly = report.weekly;
    let mut document = Document::new();
    if !weekly.pairs.is_empty() {
        document.section("pairs", "Pair by pair").append(pairs(weekly));
    }
    if weekly.table.is_empty() {
        document.append(times_of_warm_up(weekly));
    } else {
        document.section("times", "Times by task").append(times(weekly));
        document.section("scores", "Scores").table(scores(weekly)).note(method::scores());
        document.append(failures(weekly));
    }
    if !report.caching.is_empty() {
        document.section("caching", "Client caches").list(report.caching.iter().map(sentences::caching));
    }
    document.section("events", "Events of the week").append(events(weekly));
    document.section("left-out", "Excluded data").append(excluded(weekly));
    document.section("method", "Method").list(method::summary_lines(weekly));
    document.subheading("Limits").list(method::LIMITS);
    if let Some(environment) = report.environment {
        document.section("environment", "Environment").append(environment_of(weekly, environment));
    }
    document
}

fn pairs(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    document
        .chart_note(
            "All pairs share the same axes. A filled mark is decided and has the colour and shape of the faster target, or grey if \
             neither is faster. A hollow mark is not decided. Differences within the shaded band are too small to matter. Each line is \
             an interval that stays valid however often you look.",
        )
        .charts(week_charts::tasks(weekly).into_iter().flatten())
        .chart_note("All tasks together, day by day. The grey steps are the interval from all days up to each day.")
        .charts(week_charts::days(weekly, &weekly.events).into_iter().flatten());
    for pair in &weekly.pairs {
        document.subheading(Text::new().target(&pair.a).plain(" and ").target(&pair.b));
        let place = StatedIn::basis_of(pair);
        document.list(pair.by_wait_kind.iter().map(|comparison| sentence_with(pair, comparison, place)));
        let mut tasks = Document::new();
        tasks.list(pair.tasks.iter().map(|one| task(pair, one, place))).append(sequential_weeks(pair));
        document.details(Details { summary: "Task by task".to_owned(), content: tasks });
    }
    document
}

/// Returns the results of the sequential-weeks design with its warning; empty for other designs.
pub(super) fn sequential_weeks(pair: &PairSummary) -> Document {
    let mut document = Document::new();
    if !pair.sequential_weeks.is_empty() {
        document.list(pair.sequential_weeks.iter().map(|weeks| sentences::sequential_weeks(pair, weeks)));
        document.warning(CONFOUNDING_NOTE);
    }
    document
}

/// Returns the result of a comparison, to stand beside its basis, which states the round trip time.
pub(super) fn sentence(pair: &PairSummary, comparison: &Comparison) -> Text {
    sentence_with(pair, comparison, StatedIn::TextAbout(comparison))
}

/// Returns the result of a comparison. What a verdict still needs is left out if the headline of the pair says the same.
fn sentence_with(pair: &PairSummary, comparison: &Comparison, place: StatedIn<'_>) -> Text {
    let text = sentences::comparison_with(comparison, place);
    let outlook = so_far::outlook(comparison, place);
    let is_said = |headline: &Comparison| {
        !headline.verdict.is_decided() && so_far::outlook(headline, place).starts_with(&outlook)
    };
    let shorter = text.strip_suffix(&outlook).filter(|_| pair.headline.as_ref().is_some_and(is_said));
    words::toned(shorter.unwrap_or(&text).trim_end().to_owned(), comparison.verdict)
}

fn task(pair: &PairSummary, task: &Comparison, place: StatedIn<'_>) -> Text {
    match task.verdict {
        // The sentence says how many rounds the faster target won.
        Verdict::Faster | Verdict::ClearlyFaster => sentence_with(pair, task, place),
        Verdict::NotEnoughData | Verdict::AlreadyClear | Verdict::TooSmall | Verdict::NoRealDifference => {
            let won = format!(" Rounds won: {}.", words::rounds_won(task));
            sentence_with(pair, task, place).plain(if task.rounds.complete > 0 { won } else { String::new() })
        }
    }
}

/// Returns the times of the first days, which no other table counts; empty if there are none.
fn times_of_warm_up(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    let has_times = |pair: &&PairSummary| pair.tasks.iter().any(|task| task.median_seconds.is_some());
    for pair in weekly.pairs.iter().filter(has_times) {
        if document.blocks.is_empty() {
            document.section("times", "Times by task");
        }
        document.table(result::table(pair));
    }
    document
}

fn times(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    document
        .chart_note(
            "The mark is the median of all times after the warm-up. The line is the range of the daily medians. The small bar is the \
             95th percentile, if there are enough values for one. All tasks in a chart share one axis. Failures (✗) have no time.",
        )
        .charts(week_charts::times(weekly))
        .table(times_table(weekly))
        .note(
            "The first columns cover all days after the warm-up, the last four only this week. Failures have no time. A p95 is only \
             shown if enough values lie beyond it.",
        );
    document
}

/// Returns the table with the times of each task on each target.
pub fn times_table(weekly: &WeeklySummary) -> Table {
    let mut table = Table::new("Times of each task on each target").words(["task", "target"]).figures([
        "median",
        "daily range",
        "p95",
        "n",
        "failed",
        "this week",
        "daily range",
        "n",
        "failed",
    ]);
    for row in &weekly.table {
        for on in &row.targets {
            let (task, target) = (words::subject(&row.subject), on.target.to_string());
            let [median, range, p95, count, failed] = times_cells(&on.epoch);
            let [week_median, week_range, _, week_count, week_failed] = times_cells(&on.week);
            table.row([
                task,
                target,
                median,
                range,
                p95,
                count,
                failed,
                week_median,
                week_range,
                week_count,
                week_failed,
            ]);
        }
    }
    table
}

/// Returns the times of each task on each target for a spreadsheet, in seconds. A time that is not known is empty.
pub fn times_for_spreadsheet(weekly: &WeeklySummary) -> Table {
    const FIGURES: [&str; 6] = ["median_s", "lowest_day_s", "highest_day_s", "p95_s", "n", "failed"];
    let of_week = FIGURES.map(|name| format!("week_{name}"));
    let mut table = Table::new("Times of each task on each target")
        .words(["task", "target"])
        .figures(FIGURES)
        .figures(of_week.iter().map(String::as_str));
    for (row, on) in weekly.table.iter().flat_map(|row| row.targets.iter().map(move |on| (row, on))) {
        let names = [words::subject(&row.subject), on.target.to_string()];
        table.row(names.into_iter().chain(numbers(&on.epoch)).chain(numbers(&on.week)));
    }
    table
}

fn numbers(times: &TimeSummary) -> [String; 6] {
    let seconds = |time: Option<f64>| time.map_or(String::new(), |time| format!("{time:.6}"));
    let [low, high] =
        [times.daily_range.map(|(low, _)| low), times.daily_range.map(|(_, high)| high)].map(seconds);
    let [median, p95] = [times.median, times.p95].map(seconds);
    [median, low, high, p95, times.count.to_string(), times.failed.to_string()]
}

fn times_cells(times: &TimeSummary) -> [String; 5] {
    let range =
        times.daily_range.map(|(low, high)| format!("{} to {}", units::seconds(low), units::seconds(high)));
    [
        units::seconds_or_none(times.median),
        super::or_no_value(range),
        units::seconds_or_none(times.p95),
        times.count.to_string(),
        times.failed.to_string(),
    ]
}

fn scores(weekly: &WeeklySummary) -> Table {
    let is_checked = !weekly.freshness.is_empty();
    let mut table = Table::new("Speed, smoothness and reliability of each share")
        .words(["target"])
        .figures(["speed", "smoothness", "reliability", "rank"])
        .figures(is_checked.then_some("changes seen"));
    for scores in &weekly.scores {
        let freshness = weekly.freshness.iter().find(|freshness| freshness.target == scores.target);
        let seen = is_checked.then(|| super::or_no_value(freshness.map(seen_of_all)));
        let cells = [
            scores.target.to_string(),
            words::speed_text(scores, &weekly.scores),
            words::share_text(scores.smoothness),
            words::share_text(scores.reliability),
            words::rank_range(scores),
        ];
        table.row(cells.into_iter().chain(seen));
    }
    table
}

/// Returns the section about the failures of each target; empty if none was measured.
pub(super) fn failures(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    if weekly.failures.is_empty() {
        return document;
    }
    let mut table = Table::new("Failures of each target after its warm-up").words(["target"]).figures([
        "rounds",
        "failed rounds",
        "episodes",
        "hung runs",
        "hang time",
        "error runs",
        "unavailable rounds",
    ]);
    for failures in &weekly.failures {
        table.row([
            failures.target.to_string(),
            failures.rounds.to_string(),
            failures.failed_rounds.to_string(),
            failures.episodes.to_string(),
            failures.hung_runs.to_string(),
            units::duration(failures.hung_seconds),
            failures.error_runs.to_string(),
            failures.unavailable_rounds.to_string(),
        ]);
    }
    document.section("failures", "Failures and time waited").table(table).note(
        "Consecutive failing rounds are one episode. A run that hangs ends at its cap, and its hang time counts up to then.",
    );
    document
}

fn events(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    let mut table = Table::new("Events of the week").words(["time", "target", "event", "details"]);
    for event in &weekly.events {
        let target = event.target.as_ref().map_or("machine", |target| target.as_str());
        // The summary has local times already.
        let detail = readable_details(&event.kind, &event.detail, &TimeZone::UTC);
        table.row([&event.at, target, &words_without_target(event), &detail]);
    }
    if table.rows.is_empty() {
        document.paragraph("No events.")
    } else {
        document.table(table)
    };
    document
}

fn excluded(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    document.paragraph(words::rounds(weekly) + ".");
    if weekly.rounds.reasons.is_empty() && weekly.excluded.is_empty() {
        document.paragraph("Nothing was excluded.");
    }
    let reasons = weekly.rounds.reasons.iter();
    let reasons = reasons.map(|(reason, rounds)| {
        format!("{}: {}", units::count(*rounds, "round"), words::round_reason(reason))
    });
    let runs = weekly.excluded.iter().map(|excluded| {
        format!("Excluded from the verdicts: {} {}", units::count(excluded.runs, "run"), excluded.reason)
    });
    document.list(reasons.chain(runs));
    document
}

fn environment_of(weekly: &WeeklySummary, environment: &Environment) -> Document {
    let mut table = Table::new("Targets and their negotiated options").words([
        "target",
        "protocol",
        "role",
        "negotiated",
        "counted from",
    ]);
    let known = |value: Option<String>| value.unwrap_or("not known".to_owned());
    for target in &weekly.targets {
        table.row([
            target.name.to_string(),
            known(target.protocol.clone()),
            target.role.name().to_owned(),
            known(environment.negotiated_text(&target.name)),
            super::or_no_value(target.counted_from.clone()),
        ]);
    }
    let mut document = Document::new();
    document.paragraph(format!("When this was made: {}.", environment.summary())).table(table);
    document
}
