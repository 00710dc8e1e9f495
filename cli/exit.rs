//! Exit codes, for scripts.

use std::process::ExitCode;

/// The command succeeded.
pub const OK: ExitCode = ExitCode::SUCCESS;
/// An internal error, or an error of this machine.
pub const ERROR: u8 = 1;
/// The command line or the configuration is invalid.
pub const USAGE: u8 = 2;
/// At least one run, target or check failed.
pub const RUN_FAILED: u8 = 3;
/// No background service is running.
pub const NO_SERVICE: u8 = 4;
/// There is not enough data for an answer.
pub const NO_DATA: u8 = 5;
