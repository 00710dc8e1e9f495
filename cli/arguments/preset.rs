//! Arguments of `preset`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use longhaul_model::Scale;

use super::values::{JsonArgs, SCALES, named};

/// Arguments of `preset`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct PresetArgs {
    /// Subcommand to run instead of a preset.
    #[command(subcommand)]
    pub command: Option<PresetCommand>,
    /// The preset, as `longhaul preset list` names it, or the path of your own profile, which ends with .toml.
    #[arg(required = true)]
    pub name: Option<String>,
    /// A target of the configuration or the database, or NAME=PATH; may be given several times.
    #[arg(long = "target", value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Number of runs; all of them are shown.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Write the same content as the original tool, such as zeros (dd and blogbench); the output says so.
    #[arg(long)]
    pub as_original: bool,
    /// Show published figures next to yours, as multiples.
    #[arg(long)]
    pub published: bool,
    /// Size of the test data; `standard` uses the parameters of the original.
    #[arg(long, value_parser = named(SCALES), default_value = "standard")]
    pub scale: Scale,
    /// Time after which a run is stored as hung, in seconds [default: ten times the expected time].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=864_000))]
    pub cap: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The subcommands of `preset`, which run nothing.
#[derive(Subcommand)]
pub enum PresetCommand {
    /// List the presets, with the bytes that a run writes and reads.
    List(JsonArgs),
    /// Check a profile of your own, and print what a run of it would do.
    Check {
        /// The profile.
        file: PathBuf,
    },
    /// Print the profile of a preset, as a start for your own.
    Print {
        /// Name of the preset.
        name: String,
    },
}
