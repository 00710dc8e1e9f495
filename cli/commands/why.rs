//! `longhaul why`: prints in which layer the time of each task is spent.

use std::process::ExitCode;

use longhaul_analysis::attribution::Attribution;
use longhaul_service::paths::{read_attributions, read_history};
use longhaul_view::screens;

use super::report::WeeklyInput;
use crate::arguments::{GlobalArgs, WhyArgs};
use crate::output_format::OutputFormat;
use crate::{exit, paths};

/// Prints the attribution of every metric of every network target.
pub fn run(shared: &GlobalArgs, arguments: &WhyArgs) -> anyhow::Result<ExitCode> {
    let reader = paths::open_reader(shared)?;
    paths::check_known(shared, arguments.target.as_ref())?;
    let is_wanted = |one: &Attribution| arguments.target.as_ref().is_none_or(|target| *target == one.target);
    let history = read_history(&reader, &paths::load_config(shared)?)?;
    let scale = WeeklyInput::new(history, None).weekly().scale;
    let found = read_attributions(&reader, arguments.rounds, scale)?;
    let found: Vec<Attribution> = found.into_iter().filter(is_wanted).collect();
    OutputFormat::from_json_flag(arguments.json).print(|| &found, || screens::why::why(&found))?;
    Ok(if found.is_empty() { ExitCode::from(exit::NO_DATA) } else { exit::OK })
}
