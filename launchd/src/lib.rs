//! The background service in the operating system: a launchd agent on macOS, a `systemd --user` unit on Linux.
//!
//! A [`ServicePlan`] describes the program to run. [`plist()`] and [`unit()`] render it for the two systems, as
//! pure text. A [`Manager`] converts an operation (install, start, stop, restart, remove) into a list of
//! [`Step`]s: `--dry-run` prints the list, [`execute`] executes it. System tools are only called through a
//! [`CommandRunner`].
//!
//! ```
//! use longhaul_launchd::{Service, ServicePlan, unit};
//!
//! let plan = ServicePlan {
//!     service: Service { definition_path: "/home/ada/.config/systemd/user/longhaul.service".into(), user: 1000 },
//!     program: "/home/ada/.local/bin/longhauld".into(),
//!     config: "/home/ada/.config/longhaul/config.toml".into(),
//!     database: "/home/ada/.local/share/longhaul/longhaul.sqlite".into(),
//!     log_folder: "/home/ada/.local/state/longhaul".into(),
//!     environment: Default::default(),
//! };
//! assert!(unit(&plan).unwrap().contains("ExecStart="));
//! ```

mod agent;
mod execute;
mod launchctl;
mod manager;
mod plan;
mod program;
mod runner;
mod status;
mod step;
mod systemctl;
mod unit;

pub use agent::{LABEL, OUTPUT_FILES, plist};
pub use execute::execute;
pub use manager::Manager;
pub use plan::{PlanError, Service, ServicePlan};
pub use program::{StableProgram, stable_program};
pub use runner::{CommandRunner, Output, RunnerError, SystemRunner};
pub use status::{RunState, ServiceStatus};
pub use step::{AwaitedState, Command, Step, StepError, shell_quote};
pub use unit::{UNIT_NAME, unit};
