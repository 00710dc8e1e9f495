//! Arguments of `merge` and of `export share`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use longhaul_commons::NasFamily;

use super::values::format_of_file;

/// Arguments of `merge`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MergeArgs {
    /// Subcommand to run instead of merging.
    #[command(subcommand)]
    pub command: Option<MergeCommand>,
    /// Files that `longhaul export share` wrote, one for each machine.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Format of the result [default: that of --output by its name, else text].
    #[arg(long, value_enum)]
    pub format: Option<MergeFormat>,
    /// File to write; an existing one is replaced [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl MergeArgs {
    /// Returns the requested format: that of `--format`, or that of the file by its name.
    pub fn chosen_format(&self) -> MergeFormat {
        let given = self.format.or_else(|| format_of_file(self.output.as_deref()));
        given.unwrap_or(MergeFormat::Text)
    }
}

/// The subcommands of `merge`.
#[derive(Subcommand)]
pub enum MergeCommand {
    /// Check files: compute every figure again, and compare order, times, traffic and histograms.
    Check(MergeCheckArgs),
}

/// Arguments of `merge check`.
#[derive(Args)]
pub struct MergeCheckArgs {
    /// Files that `longhaul export share` wrote.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// A format of merged results.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum MergeFormat {
    /// Text for the terminal.
    Text,
    /// Markdown, for a forum.
    Md,
    /// A single HTML page without scripts and external files.
    Html,
    /// JSON, for programs.
    Json,
}

/// Arguments that only `export share` uses.
#[derive(Args)]
pub struct ShareArgs {
    /// With share: the vendor of the NAS and the number of its disk bays, as in synology/4 or linux.
    #[arg(long, value_name = "VENDOR[/BAYS]")]
    pub nas: Option<NasFamily>,
    /// With share: write the file without asking.
    #[arg(long)]
    pub yes: bool,
}
