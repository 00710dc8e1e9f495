//! Arguments of the commands that are about weeks, and of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::civil::Date;
use longhaul_export::Format;
use longhaul_measure::model::TargetName;
use longhaul_measure::summary::Week;

/// What a summary is made from.
#[derive(Args)]
pub struct Evidence {
    /// From this file, which `longhaul export runs` wrote, instead of the database.
    #[arg(long, value_name = "FILE")]
    pub from_export: Option<PathBuf>,
}

/// Arguments of `week`.
#[derive(Args)]
pub struct WeekArguments {
    /// The ISO week, as in 2026-W46 [default: the current one].
    pub week: Option<Week>,
    /// What the summary is made from.
    #[command(flatten)]
    pub evidence: Evidence,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write one page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Args)]
pub struct Report {
    /// The ISO week, as in 2026-W46 [default: the current one].
    #[arg(long)]
    pub week: Option<Week>,
    /// Write a page that needs nothing else: pictures inside, no network, no script.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a file that somebody else's `longhaul report --beside` shows beside their own.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Show somebody else's file beside one's own; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub beside: Vec<PathBuf>,
    /// What it rests on.
    #[command(flatten)]
    pub evidence: Evidence,
}

/// Arguments of `compare`.
#[derive(Args)]
pub struct Compare {
    /// One share, by its target's name.
    pub a: TargetName,
    /// The other share.
    pub b: TargetName,
    /// What the comparison is made from.
    #[command(flatten)]
    pub evidence: Evidence,
    /// Only this task.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Only rounds from this day on.
    #[arg(long, value_name = "DATE")]
    pub since: Option<Date>,
    /// Before and after this day, or the latest event of this kind.
    #[arg(long, value_name = "DATE|EVENT")]
    pub at: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `verdict`.
#[derive(Args)]
pub struct Verdict {
    /// What the verdicts are made from.
    #[command(flatten)]
    pub evidence: Evidence,
    /// End with 0 if every pair is decided and with 5 if not.
    #[arg(long)]
    pub exit_code: bool,
}

/// What can be exported.
#[derive(ValueEnum, Clone, Copy)]
pub enum ExportedArgument {
    /// The archive: all that verdicts rest on, one row per run and for each target, epoch, round and event.
    Runs,
    /// One row per operation of each phase of each run, with its histogram.
    Ops,
    /// The journal of what may have changed the numbers.
    Events,
}

/// A format of exports.
#[derive(ValueEnum, Clone, Copy)]
pub enum FormatArgument {
    /// Comma-separated values, the names of the columns first.
    Csv,
    /// JSON Lines, one object per row.
    Json,
    /// Apache Parquet; needs --output.
    Parquet,
}

impl From<FormatArgument> for Format {
    fn from(argument: FormatArgument) -> Self {
        match argument {
            FormatArgument::Csv => Self::Csv,
            FormatArgument::Json => Self::Json,
            FormatArgument::Parquet => Self::Parquet,
        }
    }
}

/// Arguments of `export`.
#[derive(Args)]
pub struct Export {
    /// What is exported.
    #[arg(value_enum)]
    pub what: ExportedArgument,
    /// How it is written.
    #[arg(long, value_enum)]
    pub format: FormatArgument,
    /// The first day, as 2026-11-09, or the first moment, as 2026-11-09T18:00:00+01:00; rounds that began before are not
    /// in it.
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// The day or moment after the last.
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// Where it is written; a file that is there is replaced [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
