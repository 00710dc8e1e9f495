//! The overview: the current answers, scores, and every task.

use longhaul_analysis::summary::{Scores, WeeklySummary};

use super::{week, week_charts, words};
use crate::document::{Document, Fact};
use crate::units;

/// Returns the scores of a share with its rounds and its hang time.
pub fn scores(scores: &Scores, weekly: &WeeklySummary) -> Document {
    let mut facts = vec![
        Fact::new("Speed", words::speed_text(scores)),
        Fact::new("Smoothness", words::share_text(scores.smoothness)),
        Fact::new("Reliability", words::share_text(scores.reliability)),
    ];
    if let Some(failures) = weekly.failures.iter().find(|failures| failures.target == scores.target) {
        let rounds = format!("{}, of which {} failed", failures.rounds, failures.failed_rounds);
        facts.push(Fact::new("Rounds", rounds));
        facts.push(Fact::new("Hung", units::duration(failures.hung_seconds)));
    }
    let mut document = Document::new();
    document.facts(facts);
    document
}

/// Returns the sections below the first screen: every task of every pair, and the failures.
pub fn details(weekly: &WeeklySummary) -> Document {
    let mut document = Document::new();
    if !weekly.pairs.is_empty() {
        document
            .section("tasks", "Task by task")
            .chart_note(
                "All pairs on one logarithmic axis. A filled mark is decided, a hollow one is not. Differences inside the shaded band do \
                 not matter. Each line is an interval that stays valid however often you look.",
            )
            .charts(week_charts::tasks(weekly).into_iter().flatten());
    }
    document.append(week::failures(weekly));
    document
}
