//! The result of `longhaul try`: the time of each task on each target, and the next step.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_model::{Outcome, Run, STANDARD_TASKS, TargetName, median};

use super::NO_VALUE;
use crate::document::Document;
use crate::table::Table;
use crate::text::Text;
use crate::units;
use crate::units::count;

/// Numbers of runs of a plan that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCounts {
    /// Number of stored runs.
    pub runs: u32,
    /// Number of stored runs that failed.
    pub failed: u32,
    /// Reason for the end of the plan.
    pub ended_by: PlanEnd,
}

/// Reason for the end of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanEnd {
    /// Its last round.
    LastRound,
    /// The user.
    User,
}

/// Returns how many of the runs failed: `10 runs, 1 failed, stopped by you`.
pub fn counts(totals: RunCounts) -> String {
    counts_on("", totals)
}

fn counts_on(place: &str, RunCounts { runs, failed, ended_by }: RunCounts) -> String {
    let stopped = match ended_by {
        PlanEnd::LastRound => "",
        PlanEnd::User => ", stopped by you",
    };
    format!("{}{place}, {failed} failed{stopped}", count(runs, "run"))
}

/// Returns the result, in at most twelve lines for the five tasks.
pub fn trial(runs: &[Run], totals: RunCounts) -> Document {
    let mut document = Document::new();
    let targets: BTreeSet<&TargetName> = runs.iter().map(|run| &run.target).collect();
    let place = match targets.len() {
        0 => String::new(),
        number => format!(" on {}", count(number, "target")),
    };
    let title = match (runs.is_empty(), rounds(runs)) {
        (true, _) => String::new(),
        (false, 1) => " Times of 1 round:".to_owned(),
        (false, rounds) => format!(" Median of {rounds} rounds (lowest to highest):"),
    };
    document.paragraph(format!("{}.{title}", counts_on(&place, totals)));
    if !runs.is_empty() {
        document.table(times(runs, &targets));
    }
    if totals.failed > 0 {
        let next =
            Text::new().code("longhaul runs").plain(" lists the failed runs; ").code("longhaul runs ID");
        document.paragraph(next.plain(" explains one."));
    } else if totals.ended_by == PlanEnd::User {
        document.paragraph("The trial is not complete: give the same command again.");
    } else if !runs.is_empty() {
        document.paragraph("Two rounds show that it works; they are too few to name a winner.");
        let next = Text::from("Next: ").code("longhaul init");
        let next = next.plain(" chooses what to compare, then ").code("longhaul service install");
        document.paragraph(next.plain(" measures for weeks."));
    }
    document
}

fn rounds(runs: &[Run]) -> usize {
    runs.iter().map(|run| run.round).collect::<BTreeSet<i64>>().len()
}

/// Returns the median of the times of a task with their range, or of how many of the rounds a single one is.
fn median_and_range(seconds: &[f64], rounds: usize) -> Option<String> {
    let median = units::seconds(median(seconds)?);
    let low = seconds.iter().copied().min_by(f64::total_cmp)?;
    let high = seconds.iter().copied().max_by(f64::total_cmp)?;
    Some(match seconds.len() {
        1 if rounds == 1 => median,
        1 => format!("{median} (1 of {rounds} rounds)"),
        _ => format!("{median} ({} to {})", units::seconds(low), units::seconds(high)),
    })
}

/// Returns the median time of each task on each target, with its range.
fn times(runs: &[Run], targets: &BTreeSet<&TargetName>) -> Table {
    let names = targets.iter().map(|target| target.as_str());
    let rounds = rounds(runs);
    let mut table = Table::new("Median times").words(["task"]).figures(names);
    let mut seconds: BTreeMap<(&str, &TargetName), Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.outcome == Outcome::Ok) {
        seconds.entry((&run.workload, &run.target)).or_default().push(run.seconds);
    }
    for task in STANDARD_TASKS {
        let cell = |target: &&TargetName| {
            let found = seconds.get(&(task.name(), *target));
            let found = found.and_then(|seconds| median_and_range(seconds, rounds));
            let has_failed = |run: &Run| {
                run.workload == task.name() && run.target == **target && run.outcome != Outcome::Void
            };
            let missing = if runs.iter().any(has_failed) { "failed" } else { NO_VALUE };
            found.unwrap_or_else(|| missing.to_owned())
        };
        table.row(std::iter::once(task.name().to_owned()).chain(targets.iter().map(cell)));
    }
    table
}

#[cfg(test)]
mod tests {
    use longhaul_model::Timestamp;

    use super::*;
    use crate::render::terminal;

    fn run(round: i64, seconds: f64) -> Run {
        let new = Run::new(round, "nas".parse().unwrap(), "photo-batch", Timestamp::UNIX_EPOCH);
        Run { seconds, ..new }
    }

    fn shown(runs: &[Run]) -> String {
        let totals = RunCounts { runs: runs.len() as u32, failed: 0, ended_by: PlanEnd::LastRound };
        terminal::render(&trial(runs, totals))
    }

    #[test]
    fn stopped_trial_has_no_failures_and_a_next_step() {
        let stopped = |runs: &[Run]| {
            let totals = RunCounts { runs: runs.len() as u32, failed: 0, ended_by: PlanEnd::User };
            terminal::render(&trial(runs, totals))
        };
        let text = stopped(&[Run { outcome: Outcome::Void, ..run(1, 4.0) }]);
        assert!(text.starts_with("1 run on 1 target, 0 failed, stopped by you."), "{text}");
        assert!(text.contains("photo-batch") && text.matches("failed").count() == 1, "{text}");
        for text in [text, stopped(&[])] {
            assert!(text.ends_with("The trial is not complete: give the same command again.\n"), "{text}");
        }
    }

    #[test]
    fn times_have_their_range_and_number_of_rounds() {
        let text = shown(&[run(1, 4.0), run(2, 5.0)]);
        assert!(
            text.starts_with("2 runs on 1 target, 0 failed. Median of 2 rounds (lowest to highest):"),
            "{text}"
        );
        assert!(text.contains("4.50 s (4.00 s to 5.00 s)"), "{text}");
        assert!(text.contains("they are too few to name a winner.\n\nNext: "), "{text}");
        assert!(text.lines().count() <= 12, "{text}");
        let one = shown(&[run(1, 4.0)]);
        assert!(one.contains("Times of 1 round:") && !one.contains("(4.00 s"), "{one}");
        let failed = Run { outcome: Outcome::Error, ..run(2, 5.0) };
        assert!(shown(&[run(1, 4.0), failed]).contains("4.00 s (1 of 2 rounds)"));
    }
}
