//! Draws the order of the runs again.

use longhaul_model::RoundStatus;
use longhaul_model::design::run_order;

use crate::share::{OTHER, RoundDesign, SharedResults, SharedRound};

/// Finds the first round whose runs are not in the order that was drawn from the seed. The order depends on the number of rounds
/// before, so a round that was removed is found, too.
pub(super) fn check(share: &SharedResults) -> Vec<String> {
    let Some(seed) = share.seed() else {
        return vec!["its seed is not a number".to_owned()];
    };
    let started = share.rounds.iter().filter(|round| round.status != RoundStatus::Skipped);
    let differs =
        |(index, round): &(u64, &SharedRound)| !follows(share, round, &drawn(share, round, seed, *index));
    match (0..).zip(started).find(differs) {
        Some((index, _)) => {
            vec![format!("the runs of started round {} are not in the order that its seed gives", index + 1)]
        }
        None => vec![],
    }
}

/// Task and target of a run.
type Cell<'a> = (&'a str, usize);

/// Returns the shared runs of a round in the order that is drawn from the seed.
fn drawn<'s>(share: &'s SharedResults, round: &SharedRound, seed: u64, index: u64) -> Vec<Cell<'s>> {
    let RoundDesign { tasks, targets } = &share.plans[round.plan];
    let order = run_order(seed, index, tasks.len(), targets.len());
    let cells = order
        .iter()
        .flat_map(|(task, order)| order.iter().map(|target| (tasks[*task].as_str(), targets[*target])));
    cells.filter(|(task, _)| *task != OTHER).collect()
}

fn follows(share: &SharedResults, round: &SharedRound, drawn: &[Cell<'_>]) -> bool {
    let made: Vec<Cell<'_>> =
        round.runs.iter().map(|run| (run.task.as_str(), share.target_of(run))).collect();
    let is_complete = round.status != RoundStatus::Ok || made.len() == drawn.len();
    is_complete && drawn.starts_with(&made)
}
