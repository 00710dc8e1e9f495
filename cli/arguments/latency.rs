//! Arguments of `latency`, `stalls` and `events`.

use clap::Args;
use longhaul_model::{Resolution, TargetName};

use super::values::{DurationArg, named};

/// Window of time and target to show.
#[derive(Args)]
pub struct HistoryArgs {
    /// Length of the window, such as 90m, 12h or 7d.
    #[arg(long, value_name = "DURATION", default_value = "7d")]
    pub since: DurationArg,
    /// Show only this target.
    #[arg(long, value_name = "NAME")]
    pub target: Option<TargetName>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `stalls`.
#[derive(Args)]
pub struct StallArgs {
    #[command(flatten)]
    pub history: HistoryArgs,
    /// Print only the causes of slow calls.
    #[arg(long)]
    pub causes: bool,
}

/// Arguments of `latency`.
#[derive(Args)]
pub struct LatencyArgs {
    #[command(flatten)]
    pub history: HistoryArgs,
    /// Print one line for each step of time, instead of one for the whole window.
    #[arg(long, value_parser = named(STEPS), value_name = "STEP")]
    pub by: Option<Resolution>,
}

/// Steps of time with their names and help.
const STEPS: &[(Resolution, &str, &str)] = &[
    (Resolution::FiveMinutes, "5min", "Steps of five minutes, which are stored for 100 days"),
    (Resolution::Hour, "hour", "Steps of an hour, which are stored for 400 days"),
    (Resolution::HalfDay, "12h", "Steps of half a day, which are stored for 1200 days"),
];
