//! Arguments of `integrity`.

use clap::Args;

use super::NamedPath;

/// Arguments of `integrity`.
#[derive(Args)]
pub struct IntegrityArgs {
    /// First read back the files that tasks keep on the targets, except your-day and presets, and compare them. Stop the
    /// service first.
    #[arg(long)]
    pub check: bool,
    /// A folder to read back, as NAME=PATH; may be given several times [default: the targets of the configuration].
    #[arg(long = "target", value_name = "NAME=PATH", requires = "check")]
    pub targets: Vec<NamedPath>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
