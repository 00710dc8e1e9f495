//! Arguments of `fidelity`.

use clap::Args;

/// Arguments of `fidelity`.
#[derive(Args)]
pub struct FidelityArgs {
    /// A target to check, by its name or as NAME=PATH; may be given several times [default: the targets of the
    /// configuration].
    #[arg(long = "target", value_name = "NAME[=PATH]")]
    pub targets: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
