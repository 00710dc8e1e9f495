//! Arguments of `selfcheck`.

use clap::Args;

use super::values::NamedPath;

/// Arguments of `selfcheck`.
#[derive(Args)]
pub struct SelfCheckArgs {
    /// A folder to check, as NAME=PATH; may be given several times [default: the targets of the configuration, or
    /// else a temporary folder].
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<NamedPath>,
    /// Time after which a call counts as hung, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=15))]
    pub limit: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
