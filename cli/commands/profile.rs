//! `longhaul profile`: checks a task that somebody wrote as data, or prints one to begin with.

use std::path::Path;
use std::process::ExitCode;

use longhaul_measure::bounded;
use longhaul_measure::profile::Profile;
use longhaul_measure::workloads::OwnProfile;
use longhaul_measure::workloads::classic::{Manner, text_of};

use crate::arguments::ProfileCommand;
use crate::{Usage, exit, render};

/// Does what is asked with a profile.
pub fn run(command: &ProfileCommand) -> anyhow::Result<ExitCode> {
    match command {
        ProfileCommand::Check { file } => check(file),
        ProfileCommand::Print { name } => {
            let text = text_of(name).ok_or_else(|| {
                Usage(format!("there is no classic `{name}`: `longhaul classic list` shows all"))
            })?;
            anstream::print!("{text}");
            Ok(exit::OK)
        }
    }
}

fn check(file: &Path) -> anyhow::Result<ExitCode> {
    let profile = read(file)?;
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    OwnProfile::new(name, profile.clone(), Manner::Honest).map_err(Usage)?;
    anstream::print!("{}", render::classic::checked(file, &profile));
    Ok(exit::OK)
}

/// Reads a profile.
pub fn read(file: &Path) -> anyhow::Result<Profile> {
    let text =
        bounded::read_text(file).map_err(|error| Usage(format!("read {}: {error}", file.display())))?;
    let wrong = |error: longhaul_measure::profile::ProfileError| match error.line {
        Some(line) => Usage(format!("{}:{line}: {}", file.display(), error.message)),
        None => Usage(format!("{}: {}", file.display(), error.message)),
    };
    Ok(Profile::parse(&text).map_err(wrong)?)
}
