//! Arguments of `freshness`.

use clap::{Args, Subcommand};
use longhaul_model::TargetName;

use super::values::NamedPath;

/// Arguments of `freshness`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct FreshnessArgs {
    /// Subcommand to run instead of showing what was measured.
    #[command(subcommand)]
    pub command: Option<FreshnessCommand>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The subcommands of `freshness`.
#[derive(Subcommand)]
pub enum FreshnessCommand {
    /// Measure now: change files through one target, and look for the changes through all others of its folder.
    #[command(after_help = "Example: longhaul freshness measure --through nfs")]
    Measure(MeasureArgs),
    /// Measure changes that are made on the NAS itself: prints a shell line to run there, and looks for the changes.
    #[command(after_help = "Example: longhaul freshness helper --target smb --folder /volume1/media")]
    Helper(HelperArgs),
}

/// Arguments of `freshness measure`.
#[derive(Args)]
pub struct MeasureArgs {
    /// A target as NAME=PATH; may be given several times [default: the shares of the configuration].
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<NamedPath>,
    /// Name of the target through which the changes are made [default: each target in turn].
    #[arg(long, value_name = "NAME")]
    pub through: Option<TargetName>,
    /// Number of changes of each kind. Clients cache few folders (Linux: 16), so more would spoil the result.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=5))]
    pub changes: u16,
    /// Time for which each change is looked for, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub limit: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `freshness helper`.
#[derive(Args)]
pub struct HelperArgs {
    /// A target of the configuration or the database, or NAME=PATH.
    #[arg(long, value_name = "TARGET")]
    pub target: String,
    /// Folder of the target on the NAS. Without it, replace FOLDER in the line.
    #[arg(long, value_name = "FOLDER", default_value = "FOLDER", hide_default_value = true)]
    pub folder: String,
    /// Number of changes of each kind.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=5))]
    pub changes: u16,
    /// Time for which each change is looked for, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub limit: u64,
    /// Print JSON; the line goes to standard error.
    #[arg(long)]
    pub json: bool,
}
