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
    let place = format!(" on {}", count(targets.len(), "target"));
    document.paragraph(format!("{}.", counts_on(&place, totals)));
    if runs.is_empty() {
        return document;
    }
    document.table(times(runs, &targets));
    if totals.failed > 0 {
        let next =
            Text::new().code("longhaul runs").plain(" lists the failed runs; ").code("longhaul runs ID");
        document.paragraph(next.plain(" explains one."));
    } else if totals.ended_by == PlanEnd::User {
        document.paragraph(Text::from("The trial is not complete. Again: ").code("longhaul try").plain("."));
    } else {
        let next =
            Text::from("Two rounds show that it works; they decide nothing. Next: ").code("longhaul init");
        let next = next.plain(" chooses what to compare, then ").code("longhaul service install");
        document.paragraph(next.plain(" measures for weeks."));
    }
    document
}

/// Returns the median time of each task on each target.
fn times(runs: &[Run], targets: &BTreeSet<&TargetName>) -> Table {
    let names = targets.iter().map(|target| target.as_str());
    let mut table = Table::new("Median times").words(["task"]).figures(names);
    let mut seconds: BTreeMap<(&str, &TargetName), Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.outcome == Outcome::Ok) {
        seconds.entry((&run.workload, &run.target)).or_default().push(run.seconds);
    }
    for task in STANDARD_TASKS {
        let cell = |target: &&TargetName| {
            let found = seconds.get(&(task.name(), *target)).and_then(|seconds| median(seconds));
            let was_run = |run: &&Run| run.workload == task.name() && run.target == **target;
            let missing = if runs.iter().any(|run| was_run(&run)) { "failed" } else { NO_VALUE };
            found.map_or_else(|| missing.to_owned(), units::seconds)
        };
        table.row(std::iter::once(task.name().to_owned()).chain(targets.iter().map(cell)));
    }
    table
}
