//! Tries the statistics of the verdict on seeded worlds, and prints what came out as Markdown.
//!
//! `cargo run --release --package longhaul-measure --example simulate -- --replicates 2000`

mod replicate;
mod tables;

use std::process::ExitCode;

/// Enough to tell 2 % from 4 %.
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
        "{replicates} replicates of eight weeks in each cell. FALSE: some look excludes \"no difference\" though"
    );
    println!(
        "there is none. MISS: some look excludes the truth. POWER: the first look that decides is right."
    );
    for table in tables::ALL {
        table(replicates);
    }
    ExitCode::SUCCESS
}
