//! What the tables share: their header, and the one comparison that most of them read.

use longhaul_analysis::summary::{Comparison, WeeklySummary};
use longhaul_model::TASKS;

/// Workload with one metric, for tables about a single comparison.
pub const ONE_TASK: [&str; 1] = ["incremental-backup"];
/// Last day of the eight simulated weeks.
pub const LAST_DAY: i64 = 55;

/// Prints the title and the header of a table.
pub fn header(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

/// Returns the indices of workloads in [`TASKS`].
pub fn places(names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| TASKS.iter().position(|known| known.name() == *name)).collect()
}

/// Returns the comparison of the first task of the first pair.
pub fn first_comparison(weekly: &WeeklySummary) -> Option<&Comparison> {
    weekly.pairs.first()?.tasks.first()
}
