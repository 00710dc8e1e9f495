//! The background service as the system knows it: a launchd agent on macOS, a `systemd --user` unit on Linux.
//!
//! A [`ServicePlan`] says what is to run. [`plist_of`] and [`unit_of`] write it down for the two systems, as pure text.
//! A [`Manager`] turns what a person wants (install, start, stop, restart, remove) into [`Step`]s: the same list is
//! printed by `--dry-run` and done by [`perform`]. The system's tools are reached through a [`Runner`] only.

mod agent;
mod launchctl;
mod manager;
mod plan;
mod program;
mod runner;
mod step;
mod systemctl;
mod unit;

pub use agent::{LABEL, OUTPUT_FILES, plist_of};
pub use manager::{Activity, Manager, Standing};
pub use plan::{PlanError, Service, ServicePlan};
pub use program::{StableProgram, stable_program};
pub use runner::{Output, Runner, RunnerError, System};
pub use step::{Command, Step, StepError, Until, perform};
pub use unit::{UNIT, unit_of};
