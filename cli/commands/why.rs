//! `longhaul why`: prints in which layer the time of each task is spent.

use std::process::ExitCode;

use longhaul_analysis::attribution::{Attribution, attribute, server_use};
use longhaul_view::screens;

use crate::arguments::{GlobalArgs, WhyArgs};
use crate::{exit, paths, render};

/// Prints the attribution of every metric of every network target.
pub fn run(shared: &GlobalArgs, arguments: &WhyArgs) -> anyhow::Result<ExitCode> {
    let reader = paths::open_reader(shared)?;
    let phases = reader.phase_times(arguments.rounds)?;
    let nas = server_use(&reader.nas_use_of(&phases)?);
    let is_wanted = |one: &Attribution| arguments.target.as_ref().is_none_or(|target| *target == one.target);
    let found: Vec<Attribution> = attribute(&phases, &nas).into_iter().filter(is_wanted).collect();
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&found)?);
    } else {
        render::print(&screens::why::why(&found));
    }
    Ok(exit::OK)
}
