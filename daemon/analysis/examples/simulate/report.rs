//! Header, worlds and comparison that the tables use.

use std::sync::OnceLock;

use longhaul_analysis::simulation::World;
use longhaul_analysis::summary::{Comparison, PairSummary};
use longhaul_model::TASKS;

/// Workload with one metric, for tables about a single comparison.
pub const ONE_TASK: [&str; 1] = ["incremental-backup"];
/// Last day of the eight simulated weeks.
pub const LAST_DAY: i64 = 55;

/// Name of the only world to print; unset for all worlds.
pub static ONLY_WORLD: OnceLock<String> = OnceLock::new();

/// Returns true if a world is to be printed.
pub fn is_asked_for(world: &World) -> bool {
    ONLY_WORLD.get().is_none_or(|only| world.name == only)
}

/// Prints the title and the header of a table.
pub fn header(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

/// Returns the indices of workloads in [`TASKS`].
pub fn places(names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| TASKS.iter().position(|known| known.name() == *name)).collect()
}

/// Returns the comparison of the first task of the first pair.
pub fn first_comparison(pairs: &[PairSummary]) -> Option<&Comparison> {
    pairs.first()?.tasks.first()
}
