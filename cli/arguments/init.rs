//! Arguments of `init`.

use clap::Args;
use longhaul_model::Scale;

use super::usage::parse_times;
use super::values::{NamedPath, SCALES, named};

/// Arguments of `init`.
#[derive(Args)]
pub struct InitArgs {
    /// A folder to measure, as NAME=PATH; may be given several times [default: asked interactively].
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<NamedPath>,
    /// Size of the test data [default: asked; with --yes standard].
    #[arg(long, value_parser = named(SCALES))]
    pub scale: Option<Scale>,
    /// Gigabytes that may be read and written on each target in 24 hours; 0 for no limit [default: asked; with
    /// --yes no limit].
    #[arg(long, value_name = "GB", value_parser = parse_gigabytes)]
    pub gigabytes_per_day: Option<f64>,
    /// Large folders that you open a week, for targets whose use cannot be counted [default: asked; with --yes an
    /// ordinary week].
    #[arg(long, value_name = "TIMES", value_parser = parse_times)]
    pub folder_openings: Option<f64>,
    /// Use a prepared configuration from a file or an https URL, after checking it as `longhaul config` does.
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["targets", "scale", "gigabytes_per_day", "folder_openings"])]
    pub from: Option<String>,
    /// Ask no questions; needs --target or --from.
    #[arg(long)]
    pub yes: bool,
    /// Replace an existing configuration.
    #[arg(long)]
    pub force: bool,
}

/// Parses gigabytes, with or without the unit.
pub fn parse_gigabytes(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("GB").trim().parse::<f64>().ok();
    // The configuration stores whole megabytes, so a smaller budget would become zero, which means no limit.
    number
        .filter(|number| (0.001..=1e9).contains(number) || *number == 0.0)
        .ok_or_else(|| format!("`{text}` is not a valid number of gigabytes: give 0, or at least 0.001"))
}
