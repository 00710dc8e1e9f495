//! longhaul's side of the benchmarks against other tools, for the scripts in `tests/bench`.
//!
//! The program writes to any given path, outside of a sandbox, and its results say nothing about a share.

mod traffic;

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use longhaul_demo::synthetic_history;
use longhaul_measure::bench::{Bench, BenchResult, timed_fs_overhead};
use longhaul_measure::platform::peak_memory_bytes;
use serde_json::{Value, json};

/// Buffer size of the listing in bytes, equal to the capacity of a pipe.
const PIPE_BUFFER_BYTES: usize = 64 << 10;

/// Command line.
#[derive(Parser)]
#[command(name = "longhaul-bench", about = "longhaul's side of the benchmarks against other tools")]
struct Cli {
    /// Benchmark to run.
    #[command(subcommand)]
    command: BenchCommand,
}

/// Benchmark.
#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Walk a tree and list size, time and path of each entry, as find does
    Walk {
        /// Tree to walk
        path: PathBuf,
        /// File to write the listing to
        #[arg(long, default_value = "/dev/null")]
        listing: PathBuf,
    },
    /// Make a folder equal to another, with fsync, as rsync does
    Copy {
        /// Source folder
        from: PathBuf,
        /// Destination folder
        to: PathBuf,
    },
    /// Read 4 KiB at random offsets of a file, as fio does
    RandomRead {
        /// File to read
        path: PathBuf,
        /// Duration in seconds
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// Write a new file from its start to its end and sync it, as fio does
    SequentialWrite {
        /// File to write, which must not exist
        path: PathBuf,
        /// Bytes per call
        #[arg(long, default_value_t = 1 << 20)]
        block: usize,
        /// Total bytes, rounded down to whole blocks
        #[arg(long, default_value_t = 1 << 30)]
        bytes: u64,
    },
    /// Read a file from its start to its end, as fio does
    SequentialRead {
        /// File to read
        path: PathBuf,
        /// Bytes per call
        #[arg(long, default_value_t = 1 << 20)]
        block: usize,
    },
    /// Create the test data of folder-index and of photo-batch, equally many bytes of each
    Corpus {
        /// Folder to create both in
        path: PathBuf,
        /// Bytes of each kind
        #[arg(long, default_value_t = 1 << 30)]
        bytes: u64,
    },
    /// Measure the overhead of timing a file operation
    TimingOverhead,
    /// Create a tree of small files to walk
    Tree {
        /// Folder to create it in
        path: PathBuf,
        /// Number of files
        #[arg(long, default_value_t = 100_000)]
        files: u64,
    },
    /// Create a database with synthetic results: 4 targets, 17 rounds a day, 4 workloads
    SyntheticHistory {
        /// Database to create
        database: PathBuf,
        /// Number of weeks
        #[arg(long, default_value_t = 52)]
        weeks: u32,
    },
    /// Read the traffic counters of some mounts before and after a shell command
    Traffic {
        /// Folders on the mounts
        paths: Vec<PathBuf>,
        /// Shell command
        #[arg(long)]
        around: String,
    },
    /// Create the source tree of a backup
    Source {
        /// Folder to create it in
        path: PathBuf,
        /// Number of files
        #[arg(long, default_value_t = 5_000)]
        files: u64,
        /// Seed of sizes and contents; file names do not depend on it
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Runs a benchmark and prints one line of JSON per result.
fn main() -> anyhow::Result<()> {
    let command = Cli::parse().command;
    let bench = Bench::new().context("cannot make a recorder")?;
    match command {
        BenchCommand::Walk { path, listing } => {
            let out =
                File::create(&listing).with_context(|| format!("cannot write {}", listing.display()))?;
            let mut out = BufWriter::with_capacity(PIPE_BUFFER_BYTES, out);
            print_measurement("walk", &bench.walk(&path, &mut out)?);
        }
        BenchCommand::Copy { from, to } => print_measurement("copy", &bench.copy(&from, &to)?),
        BenchCommand::RandomRead { path, seconds } => {
            print_measurement("random-read", &bench.random_read(&path, seconds)?)
        }
        BenchCommand::SequentialWrite { path, block, bytes } => {
            let blocks = bytes.checked_div(block as u64).context("a block needs at least one byte")?;
            print_measurement("sequential-write", &bench.sequential_write(&path, block, blocks)?)
        }
        BenchCommand::SequentialRead { path, block } => {
            anyhow::ensure!(block > 0, "a block needs at least one byte");
            print_measurement("sequential-read", &bench.sequential_read(&path, block)?)
        }
        BenchCommand::Corpus { path, bytes } => {
            print_measurement("corpus-tree", &bench.corpus_tree(&path.join("tree"), bytes)?);
            print_measurement("corpus-photos", &bench.corpus_photos(&path.join("photos"), bytes)?);
        }
        BenchCommand::TimingOverhead => {
            let cost = serde_json::to_value(timed_fs_overhead()?)?;
            print_line("timing-overhead", cost);
        }
        BenchCommand::Tree { path, files } => print_measurement("tree", &bench.tree(&path, files)?),
        BenchCommand::SyntheticHistory { database, weeks } => {
            let began = Instant::now();
            let filled = synthetic_history::fill_database(&database, synthetic_history::BEGIN, 7 * weeks)?;
            let seconds = began.elapsed().as_secs_f64();
            print_line(
                "synthetic-history",
                json!({"rounds": filled.rounds, "runs": filled.runs, "seconds": seconds}),
            );
        }
        BenchCommand::Traffic { paths, around } => {
            traffic::measure_traffic(&paths, &around)?
                .into_iter()
                .for_each(|line| print_line("traffic", line));
        }
        BenchCommand::Source { path, files, seed } => {
            print_measurement("source", &bench.source(&path, files, seed)?)
        }
    }
    Ok(())
}

fn print_measurement(name: &str, measured: &BenchResult) {
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
