//! `longhaul bench`: our side of the comparisons with other tools, for the scripts in `tests/bench/`.
//!
//! Hidden from help: it writes wherever it is told to, outside any arena, and says nothing about a share.

mod traffic;
mod year;

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Subcommand;
use longhaul_measure::bench::{Bench, Measured, context_cost};
use longhaul_measure::platform::peak_memory_bytes;
use serde_json::{Value, json};

use crate::arguments::Shared;

/// Bytes between two write calls of a listing: the same as a pipe holds.
const LISTING_BYTES: usize = 64 << 10;

/// One comparison.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Walk a tree and list size, time and path of each entry, as find does
    Walk {
        /// The tree
        path: PathBuf,
        /// Where the listing goes
        #[arg(long, default_value = "/dev/null")]
        listing: PathBuf,
    },
    /// Make a folder equal to another with sync, as rsync does
    Copy {
        /// The source
        from: PathBuf,
        /// The destination
        to: PathBuf,
    },
    /// Read 4 KiB at random places of a file, as fio does
    RandomRead {
        /// The file
        path: PathBuf,
        /// For how many seconds
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// Write a new file from its begin to its end and sync it, as fio does
    SequentialWrite {
        /// The file, which must not exist
        path: PathBuf,
        /// Bytes of one call
        #[arg(long, default_value_t = 1 << 20)]
        block: usize,
        /// Bytes in all, rounded down to whole blocks
        #[arg(long, default_value_t = 1 << 30)]
        bytes: u64,
    },
    /// Read a file from its begin to its end, as fio does
    SequentialRead {
        /// The file
        path: PathBuf,
        /// Bytes of one call
        #[arg(long, default_value_t = 1 << 20)]
        block: usize,
    },
    /// Make what folder-index and photo-batch read, half and half
    Corpus {
        /// The folder that gets both
        path: PathBuf,
        /// Bytes of each
        #[arg(long, default_value_t = 1 << 30)]
        bytes: u64,
    },
    /// Measure what the door for file operations adds to each of them
    ContextCost,
    /// Make a tree of small files to walk
    Tree {
        /// The folder that gets it
        path: PathBuf,
        /// How many files
        #[arg(long, default_value_t = 100_000)]
        files: u64,
    },
    /// Make a database as it is after weeks of measuring: 4 targets, 17 rounds a day, 4 tasks; see --database
    Year {
        /// How many weeks
        #[arg(long, default_value_t = 52)]
        weeks: u32,
    },
    /// Look at the counters below some folders before and after a shell command
    Traffic {
        /// The folders
        paths: Vec<PathBuf>,
        /// The command
        #[arg(long)]
        around: String,
    },
    /// Make the source tree of a backup
    Source {
        /// The folder that gets it
        path: PathBuf,
        /// How many files
        #[arg(long, default_value_t = 5_000)]
        files: u64,
        /// Another seed gives the same names with other sizes and bytes
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Does it and prints one line of JSON per result.
pub fn run(shared: &Shared, command: BenchCommand) -> anyhow::Result<()> {
    let bench = Bench::new().context("cannot make a recorder")?;
    match command {
        BenchCommand::Walk { path, listing } => {
            let out =
                File::create(&listing).with_context(|| format!("cannot write {}", listing.display()))?;
            let mut out = BufWriter::with_capacity(LISTING_BYTES, out);
            print("walk", &bench.walk(&path, &mut out)?);
        }
        BenchCommand::Copy { from, to } => print("copy", &bench.copy(&from, &to)?),
        BenchCommand::RandomRead { path, seconds } => {
            print("random-read", &bench.random_read(&path, seconds)?)
        }
        BenchCommand::SequentialWrite { path, block, bytes } => {
            let blocks = bytes.checked_div(block as u64).context("a block needs at least one byte")?;
            print("sequential-write", &bench.sequential_write(&path, block, blocks)?)
        }
        BenchCommand::SequentialRead { path, block } => {
            anyhow::ensure!(block > 0, "a block needs at least one byte");
            print("sequential-read", &bench.sequential_read(&path, block)?)
        }
        BenchCommand::Corpus { path, bytes } => {
            print("corpus-tree", &bench.corpus_tree(&path.join("tree"), bytes)?);
            print("corpus-photos", &bench.corpus_photos(&path.join("photos"), bytes)?);
        }
        BenchCommand::ContextCost => {
            let cost = serde_json::to_value(context_cost()?)?;
            print_line("context-cost", cost);
        }
        BenchCommand::Tree { path, files } => print("tree", &bench.tree(&path, files)?),
        BenchCommand::Year { weeks } => {
            let database = shared.database.as_ref().context("say where with --database PATH")?;
            let began = Instant::now();
            let filled = year::fill(database, (year::BEGIN_US, weeks))?;
            let seconds = began.elapsed().as_secs_f64();
            print_line("year", json!({"rounds": filled.rounds, "runs": filled.runs, "seconds": seconds}));
        }
        BenchCommand::Traffic { paths, around } => {
            traffic::around(&paths, &around)?.into_iter().for_each(|line| print_line("traffic", line));
        }
        BenchCommand::Source { path, files, seed } => print("source", &bench.source(&path, files, seed)?),
    }
    Ok(())
}

fn print(name: &str, measured: &Measured) {
    print_line(
        name,
        json!({
            "seconds": measured.seconds,
            "count": measured.count,
            "bytes": measured.bytes,
            "per_second": measured.per_second(),
            "bytes_per_second": measured.bytes_per_second(),
            "peak_memory_bytes": peak_memory_bytes(),
        }),
    );
}

fn print_line(name: &str, mut facts: Value) {
    facts["bench"] = name.into();
    println!("{facts}");
}
