//! Arguments of `latency`, `stalls` and `events`.

use clap::{Args, ValueEnum};
use longhaul_model::{Resolution, TargetName};

use super::values::DurationArg;

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
    #[arg(long, value_enum, value_name = "STEP")]
    pub by: Option<ResolutionArg>,
}

/// A step of time on the command line.
#[derive(ValueEnum, Clone, Copy)]
pub enum ResolutionArg {
    /// Steps of five minutes, which are stored for 100 days.
    #[value(name = "5min")]
    FiveMinutes,
    /// Steps of an hour, which are stored for 400 days.
    Hour,
    /// Steps of half a day, which are stored for 1200 days.
    #[value(name = "12h")]
    HalfDay,
}

impl From<ResolutionArg> for Resolution {
    fn from(argument: ResolutionArg) -> Self {
        match argument {
            ResolutionArg::FiveMinutes => Self::FiveMinutes,
            ResolutionArg::Hour => Self::Hour,
            ResolutionArg::HalfDay => Self::HalfDay,
        }
    }
}
