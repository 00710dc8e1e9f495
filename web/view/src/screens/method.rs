//! The method of measuring and deciding, and its limits. Its constants come from the code.

use longhaul_analysis::stats::claim_margin;
use longhaul_analysis::summary::{
    ALPHA, CAP_FACTOR, CAP_SECONDS, EARLY_VERDICT_DAYS, EARLY_VERDICT_RATIO, INSTANT_SECONDS,
    MIN_RATIO_OF_QUARTILES, MIN_SHARE_OF_DAYS, MIN_VERDICT_DAYS, ROUGH_FACTOR, WeeklySummary,
};
use longhaul_model::{PROBE_TIMEOUT_NS, Resolution, SLOW_CALL_NS, TASKS};

use super::words;
use crate::document::Document;
use crate::table::Table;
use crate::units::{self, decimal};

/// Returns the method page.
pub fn method(weekly: &WeeklySummary) -> Document {
    let mut document = Document::titled("How longhaul measures and decides");
    document.section("short", "In three lines").list(summary_lines(weekly));
    document.section("limits", "What the figures do not show").list(LIMITS);
    document.section("constants", "Constants").table(constants(weekly.settings.threshold));
    document.section("tasks", "The tasks").table(tasks());
    document.section("scores", "Scores").paragraph(scores());
    document.section("samples", "Latency probe").paragraph(
        "The latency probe sends small requests to each target: the attributes of a file, 4 KiB that no cache holds and, if enabled, \
         a synced write of 4 KiB. Latency is measured from the scheduled time of a request, so that a stall counts for every request \
         it delayed. Unless the configuration says otherwise, the probe sends requests only while a share is in use, and never wakes one up.",
    );
    let kept = |step: &Resolution| {
        format!("Steps of {} are kept for {} days.", words::step(*step), step.days_kept())
    };
    document.list(Resolution::ALL.iter().map(kept));
    document
}

/// Returns the method in three lines: measuring, deciding, and data that is never combined.
pub fn summary_lines(weekly: &WeeklySummary) -> [String; 3] {
    let percent = |ratio: f64| decimal((ratio - 1.0) * 100.0, 1);
    [
        "Measured: each round runs every task on every target, within minutes and in random order. The value of a day is the \
         median of its rounds' ratios. A verdict uses all days with the current protocol, options and path up to the end of \
         this week; a single week gets no verdict."
            .to_owned(),
        format!(
            "Decided: with at least {MIN_VERDICT_DAYS} days (or at least {EARLY_VERDICT_DAYS} if the whole interval lies beyond ±{} %). A \
             difference matters if the slower share takes at least {} % more time. Where a user waits, a difference below {} s is not \
             noticed. {}",
            percent(EARLY_VERDICT_RATIO),
            percent(weekly.settings.threshold),
            decimal(INSTANT_SECONDS, 3),
            words::guarantee(),
        ),
        format!(
            "Never combined: cold and warm, epochs, sizes of the test data, and times and failures. A failure has no time; in \
             ratios it counts as {} times the usual time, within {} to {} s. The amount of excluded data is reported.",
            decimal(CAP_FACTOR, 1),
            CAP_SECONDS.start(),
            CAP_SECONDS.end(),
        ),
    ]
}

/// Returns the explanation of the scores.
pub fn scores() -> String {
    format!(
        "Speed: the reference share has 100; a share with 120 does all tasks in 100/120 of the time. Smoothness: the proportion of tasks \
         that took less than {} times the usual time of their day. Reliability: the proportion of rounds without a failure. Rank: the \
         position among all shares; a range if it is not decided. The three scores are never combined.",
        decimal(ROUGH_FACTOR, 1),
    )
}

/// Limits of the results, for readers of the report.
pub const LIMITS: [&str; 5] = [
    "The results are only valid for this machine, this network, this server and these tasks.",
    "The system's counters explain only part of why two targets differ; signing, read sizes and caches all contribute.",
    "Cold means that the caches of this machine were emptied, or that the data had rested for a day; a run that could not confirm it \
     is marked as unverified.",
    "Load from users who work on a share during a round is not controlled; it affects all shares of the round equally.",
    "Intervals are valid if days are roughly independent; the report names pairs whose ratio drifts from day to day.",
];

fn percent(share: f64) -> String {
    format!("{} %", decimal(share * 100.0, 1))
}

/// Returns the half widths beyond which a difference is claimed on three days.
fn margins() -> String {
    let on = |days: usize| format!("on day {days}");
    let [first, second, third] = [1, 2, 4].map(|factor| factor * MIN_VERDICT_DAYS);
    let margin = |days| decimal(claim_margin(days), 2);
    let rest = [second, third].map(|days| format!(", {} {}", margin(days), on(days))).concat();
    format!("{} half widths {}{rest}", margin(first), on(first))
}

fn constants(threshold: f64) -> Table {
    let mut table = Table::new("Constants").words(["rule", "value", "reason"]);
    for (what, value, why) in [
        (
            "smallest difference that matters",
            percent(threshold - 1.0),
            "fixed by the first round of this database",
        ),
        (
            "error rate of the overall intervals of all pairs together, at most",
            percent(ALPHA),
            "valid however often you look",
        ),
        ("a verdict needs", format!("{MIN_VERDICT_DAYS} days"), "fewer days say too little about a week"),
        ("a difference is claimed beyond", margins(), "few days say too little about a ratio that drifts"),
        (
            "adjusted for the round trip time if it is known on",
            percent(MIN_SHARE_OF_DAYS),
            "of the days; decided without a look at any result",
        ),
        (
            "and the middle half of the days spans at least",
            percent(MIN_RATIO_OF_QUARTILES - 1.0),
            "below it there are too few distinct conditions",
        ),
        (
            "an early verdict needs",
            format!("{EARLY_VERDICT_DAYS} days"),
            "and the whole interval beyond the next value",
        ),
        (
            "an early verdict needs an interval beyond",
            percent(EARLY_VERDICT_RATIO - 1.0),
            "a difference that every user notices",
        ),
        ("a user notices no difference below", units::seconds(INSTANT_SECONDS), "in what a user waits for"),
        (
            "a failure counts as",
            format!("{} times the usual time", decimal(CAP_FACTOR, 1)),
            "it is never dropped and never zero",
        ),
        (
            "a task is not smooth if it takes",
            format!("{} times the usual time of its day", decimal(ROUGH_FACTOR, 1)),
            "a user notices that",
        ),
        ("a stall is a wait longer than", units::seconds(SLOW_CALL_NS as f64 / 1e9), "each one is listed"),
        (
            "a probe request times out after",
            units::seconds(PROBE_TIMEOUT_NS as f64 / 1e9),
            "it is counted, not timed",
        ),
    ] {
        table.row([what.to_owned(), value, why.to_owned()]);
    }
    table
}

fn tasks() -> Table {
    let mut table = Table::new("Tasks").words(["task", "what it replays", "what is timed"]);
    for workload in TASKS {
        let mut waits: Vec<&str> = workload.metrics().iter().map(|endpoint| endpoint.activity).collect();
        // A time that is measured cold and warm has two metrics.
        waits.dedup();
        table.row([workload.name().to_owned(), workload.summary().to_owned(), waits.join(", ")]);
    }
    table
}
