//! Tests the verdict statistics on simulated worlds, and prints the results as Markdown tables for docs/methodology.md.
//!
//! `cargo run --package longhaul-analysis --features simulation --example simulate -- --replicates 1000`

mod replicate;
mod tables;

use std::process::ExitCode;

/// Default number of replicates per cell, enough to distinguish 2 % from 4 %.
const REPLICATES: u64 = 1000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let replicates = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some(REPLICATES),
        ["--replicates", count] => count.parse().ok().filter(|count| *count > 0),
        _ => None,
    };
    let Some(replicates) = replicates else {
        eprintln!("usage: simulate [--replicates NUMBER]");
        return ExitCode::FAILURE;
    };
    println!(
        "{replicates} replicates of eight weeks in each cell; the report is read every evening. Excludes 1: an interval"
    );
    println!(
        "ever excludes \"no difference\" between equal targets. Misses: an interval ever excludes the truth."
    );
    println!("Power: the first interval that excludes 1 lies on the right side.");
    for table in tables::ALL {
        table(replicates);
    }
    ExitCode::SUCCESS
}
