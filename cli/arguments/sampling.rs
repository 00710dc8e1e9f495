//! Arguments of `samples`, `stalls` and `events`.

use clap::{Args, ValueEnum};
use longhaul_measure::model::{Step, TargetName};

use super::Seconds;

/// Which part of what was sampled is shown.
#[derive(Args)]
pub struct Window {
    /// How far back, as 90m, 12h or 7d.
    #[arg(long, value_name = "DURATION", default_value = "7d")]
    pub since: Seconds,
    /// Only of this target.
    #[arg(long, value_name = "NAME")]
    pub target: Option<TargetName>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `samples`.
#[derive(Args)]
pub struct Samples {
    #[command(flatten)]
    pub window: Window,
    /// One line for each step of time, instead of one for the whole window.
    #[arg(long, value_enum, value_name = "STEP")]
    pub by: Option<StepArgument>,
}

/// A step on the command line.
#[derive(ValueEnum, Clone, Copy)]
pub enum StepArgument {
    /// Five minutes; kept for 100 days.
    #[value(name = "5min")]
    FiveMinutes,
    /// An hour; kept for 400 days.
    Hour,
    /// Half a day; kept for 1200 days.
    #[value(name = "12h")]
    HalfDay,
}

impl From<StepArgument> for Step {
    fn from(argument: StepArgument) -> Self {
        match argument {
            StepArgument::FiveMinutes => Self::FiveMinutes,
            StepArgument::Hour => Self::Hour,
            StepArgument::HalfDay => Self::HalfDay,
        }
    }
}
