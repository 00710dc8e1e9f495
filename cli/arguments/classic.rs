//! Arguments of `classic` and `profile`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ScaleArgument;

/// Arguments of `classic`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Classic {
    /// What to do instead of a run.
    #[command(subcommand)]
    pub command: Option<ClassicCommand>,
    /// The classic, as `longhaul classic list` names it, or a profile of your own: a file that ends with .toml.
    #[arg(required = true)]
    pub name: Option<String>,
    /// Where: a target of the configuration or the database, or NAME=PATH; may be given several times.
    #[arg(long = "target", value_name = "TARGET")]
    pub targets: Vec<String>,
    /// How many runs; all of them are shown.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// As the original does it, with zeros as content; the output says so.
    #[arg(long)]
    pub as_original: bool,
    /// Published figures beside yours, as multiples.
    #[arg(long)]
    pub published: bool,
    /// How large: `standard` has the original's parameters.
    #[arg(long, value_enum, default_value = "standard")]
    pub scale: ScaleArgument,
    /// After how many seconds a run is booked as hung [default: ten times what it should take].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=864_000))]
    pub cap: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with classics instead of a run.
#[derive(Subcommand)]
pub enum ClassicCommand {
    /// Every classic, with what a run of it writes and reads.
    List,
}

/// What to do with a profile.
#[derive(Subcommand)]
pub enum ProfileCommand {
    /// Reads a profile, and says what a run of it would do.
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Prints the profile of a classic: a sample to begin with.
    Print {
        /// The classic.
        name: String,
    },
}
