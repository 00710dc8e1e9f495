//! `longhaul top`: a live view of the service.

use std::process::ExitCode;

use crate::arguments::Shared;

/// Shows it until `q`.
pub fn run(shared: &Shared) -> anyhow::Result<ExitCode> {
    let _ = super::control::client(shared)?;
    Ok(crate::exit::OK)
}
