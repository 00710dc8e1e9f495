//! Where things are on this machine, and which targets are meant.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use longhaul_measure::model::{Family, Mount, Role, Target};
use longhaul_service::config::Config;
use longhaul_service::places;
use longhaul_service::target_path::SpecialFolders;
use longhaul_service::worker::Launcher;
use longhaul_store::Reader;

use crate::Usage;
use crate::arguments::{Shared, TargetArgument};

/// The configuration: of the file that was given, of the default file if it is there, or the defaults.
pub fn config(shared: &Shared) -> anyhow::Result<Config> {
    match places::config_file(shared.config.as_deref()) {
        Some(path) => Ok(Config::read(&path)?),
        None => Ok(Config::default()),
    }
}

/// The database: as on the command line, as in the configuration, or in the data folder.
pub fn database(shared: &Shared, config: &Config) -> anyhow::Result<PathBuf> {
    Ok(places::database(shared.database.as_deref(), config).map_err(|error| Usage(error.to_string()))?)
}

/// What is kept, for reading.
pub fn reader(shared: &Shared) -> anyhow::Result<Reader> {
    let config = config(shared)?;
    Ok(Reader::open(&database(shared, &config)?)?)
}

/// The configuration file: as on the command line, or in the configuration folder. It need not be there.
pub fn config_file(shared: &Shared) -> anyhow::Result<PathBuf> {
    if let Some(path) = &shared.config {
        return std::path::absolute(path).with_context(|| format!("configuration {}", path.display()));
    }
    let folder = longhaul_measure::platform::config_directory().ok_or_else(|| {
        Usage("HOME is not set, so the configuration needs a place: give `--config PATH`".to_owned())
    })?;
    Ok(folder.join("config.toml"))
}

/// How workers are started: this same program, with their own folders beside the database.
pub fn launcher(database: &Path, machine: &str) -> anyhow::Result<Launcher> {
    let local = database.parent().unwrap_or(Path::new("/")).join("local");
    Ok(Launcher {
        program: std::env::current_exe().context("find longhaul's own program file")?,
        arguments: vec!["worker".to_owned()],
        machine: machine.to_owned(),
        local,
        probe: None,
        samples: None,
    })
}

/// The targets that are meant by arguments. A path is made absolute by name only; it is not touched.
pub fn targets(arguments: &[TargetArgument], mounts: &[Mount]) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for argument in arguments {
        if targets.iter().any(|target| target.name == argument.name) {
            return Err(Usage(format!("the target name `{}` is given twice", argument.name)).into());
        }
        let path = std::path::absolute(&argument.path)
            .with_context(|| format!("target {}={}", argument.name, argument.path.display()))?;
        let role = role(&path, mounts);
        targets.push(Target { name: argument.name.clone(), path, role });
    }
    Ok(targets)
}

/// Refuses targets that would be measured where the results are written, and warns of those that are no good place. Their
/// paths are compared; none is touched.
pub fn check_paths(targets: &[Target], folders: &SpecialFolders) -> anyhow::Result<()> {
    for target in targets {
        let Some(concern) = folders.concern(&target.path) else { continue };
        let text =
            format!("target `{}`: {} {concern}; {}", target.name, target.path.display(), concern.advice());
        if concern.is_refused() {
            return Err(Usage(text).into());
        }
        anstream::eprintln!("longhaul: {text}");
    }
    Ok(())
}

fn role(path: &Path, mounts: &[Mount]) -> Role {
    match Mount::of_path(mounts, path).map(|mount| mount.protocol.family()) {
        Some(Family::Local) => Role::Baseline,
        Some(Family::Network | Family::Fuse | Family::Other) | None => Role::Share,
    }
}
