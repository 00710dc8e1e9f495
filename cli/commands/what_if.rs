//! `longhaul what-if`: predicts how long each task would take with another network or disk.

use std::process::ExitCode;

use longhaul_analysis::prediction::{AssumedChange, timed_runs, what_if};
use longhaul_service::paths::read_history;
use longhaul_view::json::WhatIfJson;
use longhaul_view::screens;

use super::report::WeeklyInput;
use crate::arguments::{GlobalArgs, WhatIfArgs};
use crate::errors::UsageError;
use crate::output_format::OutputFormat;
use crate::{exit, paths};

/// Prints the prediction for every metric of every network target.
pub fn run(shared: &GlobalArgs, arguments: &WhatIfArgs) -> anyhow::Result<ExitCode> {
    let change = arguments.change();
    if change == AssumedChange::default() {
        let usage = "say what would change: `--rtt 20ms`, `--bandwidth 100mbit` or `--disk ssd`";
        return Err(UsageError(usage.to_owned()).into());
    }
    let reader = paths::open_reader(shared)?;
    let history = read_history(&reader, &paths::load_config(shared)?)?;
    let scale = WeeklyInput::new(history, None).weekly().scale;
    let phases = reader.phase_times(arguments.rounds, scale)?;
    let nas = reader.nas_use_of(&phases)?;
    let answers = what_if(&timed_runs(&phases, &nas), change);
    let forms = || answers.iter().map(WhatIfJson::from).collect::<Vec<_>>();
    OutputFormat::from_json_flag(arguments.json)
        .print(forms, || screens::what_if::what_if(change, &answers))?;
    let is_answered = answers.iter().any(|one| one.changed.is_ok());
    Ok(if is_answered { exit::OK } else { ExitCode::from(exit::NO_DATA) })
}
