//! Arguments of `why`.

use clap::Args;
use longhaul_analysis::attribution::ATTRIBUTED_ROUNDS;
use longhaul_model::TargetName;

/// Arguments of `why`.
#[derive(Args)]
pub struct WhyArgs {
    /// Show only this target.
    #[arg(long, value_name = "NAME")]
    pub target: Option<TargetName>,
    /// Number of the newest rounds to look at.
    #[arg(long, value_name = "NUMBER", default_value_t = ATTRIBUTED_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
