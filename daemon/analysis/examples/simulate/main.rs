//! Tests the verdict statistics on simulated worlds, and prints the results as Markdown tables for docs/methodology.md.
//!
//! `cargo run --package longhaul-analysis --features simulation --example simulate -- --replicates 1000`

mod claim_day;
mod replicate;
mod report;
mod round_trips;
mod tables;

use std::process::ExitCode;

/// Default number of replicates per cell, enough to distinguish 2 % from 4 %.
const REPLICATES: u64 = 1000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = tables::ALL.as_slice();
    let asked = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some((REPLICATES, all)),
        ["--replicates", count] => positive(count).map(|count| (count, all)),
        ["--replicates", count, "--table", number] => positive(count).zip(table(number)),
        ["--replicates", count, "--table", number, "--world", world] => {
            report::ONLY_WORLD.get_or_init(|| world.to_owned());
            positive(count).zip(table(number))
        }
        _ => None,
    };
    let Some((replicates, tables)) = asked else {
        eprintln!("usage: simulate [--replicates NUMBER [--table NUMBER [--world NAME]]]");
        return ExitCode::FAILURE;
    };
    println!(
        "{replicates} replicates in each cell, of eight weeks if not said otherwise; read every evening. Excludes 1: an interval"
    );
    println!(
        "ever excludes \"no difference\" between equal targets. Misses: an interval ever excludes the truth."
    );
    println!("Power: the first verdict that claims a difference lies on the right side.");
    for table in tables {
        table(replicates);
    }
    ExitCode::SUCCESS
}

fn positive(count: &str) -> Option<u64> {
    count.parse().ok().filter(|count| *count > 0)
}

/// Returns one table, counted from 1.
fn table(number: &str) -> Option<&'static [fn(u64)]> {
    let index = usize::try_from(positive(number)?).ok()? - 1;
    tables::ALL.get(index..=index)
}
