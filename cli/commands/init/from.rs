//! `longhaul init --from`: takes over a configuration that was prepared elsewhere.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use longhaul_measure::platform;
use longhaul_measure::private_files::Overwrite;
use longhaul_service::config::{Config, ConfigLoader};
use longhaul_service::status::CheckStatus;
use longhaul_view::screens;

use super::differences::differences;
use super::overwrite_policy;
use super::prompt::{DefaultAnswer, Prompter, TerminalPrompter, ask_yes_no};
use super::source::Source;
use crate::arguments::{GlobalArgs, InitArgs};
use crate::commands::config::{checks, print_ignored};
use crate::config_file::write_text;
use crate::{exit, paths, render};

/// Reads a configuration, checks it as `longhaul config` does, shows the differences, and writes it.
pub fn run(shared: &GlobalArgs, arguments: &InitArgs, source: &str) -> anyhow::Result<ExitCode> {
    let source = Source::parse(source)?;
    let text = source.read()?;
    let path = paths::config_file(shared)?;
    let config = ConfigLoader::system().parse(&text, source.name())?;
    print_ignored(&config);
    if !is_usable(shared, &config)? {
        let name = source.name().display();
        crate::output::print_line(format_args!("Nothing was written: correct this in {name}."));
        return Ok(ExitCode::from(exit::RUN_FAILED));
    }
    let before = read_existing(&path)?;
    if before.as_deref() == Some(&text) {
        crate::output::print_line(format_args!("Unchanged: {}", path.display()));
        return Ok(exit::OK);
    }
    print_differences(before.as_deref(), &text);
    match permission(&path, arguments, &mut TerminalPrompter)? {
        Some(overwrite) => write(&path, &text, overwrite),
        None => {
            crate::output::println!("Nothing was written.");
            Ok(exit::OK)
        }
    }
}

/// Returns false if a check of the configuration failed; prints all checks.
fn is_usable(shared: &GlobalArgs, config: &Config) -> anyhow::Result<bool> {
    let database = paths::database(shared, config)?;
    let mounts = platform::mounts().context("read the mount table")?;
    paths::check_paths(&config.targets, Some(&database), &mounts)?;
    paths::check_links(&config.targets, &mounts)?;
    let checks = checks(config, &database);
    if !checks.is_empty() {
        render::print(&screens::doctor::checks(&checks));
    }
    Ok(checks.iter().all(|check| check.status != CheckStatus::Failed))
}

/// Reads the existing configuration. One that is not valid can be replaced too.
fn read_existing(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn print_differences(before: Option<&str>, text: &str) {
    match differences(before.unwrap_or_default(), text) {
        Ok(lines) if lines.is_empty() => {
            crate::output::println!("The settings stay the same; comments or layout differ.");
        }
        Ok(lines) => {
            let heading = before.map_or("Settings:", |_| "Changes to the existing configuration:");
            crate::output::println!("{heading}");
            lines.iter().for_each(crate::output::print_line);
        }
        Err(_) => {
            crate::output::println!(
                "The existing configuration is not valid TOML, so differences cannot be shown."
            )
        }
    }
}

/// Returns whether the file may be written, and replaced if it exists. `None`: the user declines.
fn permission(
    path: &Path,
    arguments: &InitArgs,
    ask: &mut dyn Prompter,
) -> anyhow::Result<Option<Overwrite>> {
    let overwrite = overwrite_policy(path, arguments, ask)?;
    let is_asked = path.exists() || arguments.yes;
    let question = format!("Write this to {}?", path.display());
    if overwrite.is_none() || is_asked || ask_yes_no(ask, &question, DefaultAnswer::Yes)? {
        return Ok(overwrite);
    }
    Ok(None)
}

fn write(path: &Path, text: &str, overwrite: Overwrite) -> anyhow::Result<ExitCode> {
    write_text(path, text, overwrite)?;
    crate::output::print_line(format_args!("Written: {}", path.display()));
    crate::output::println!(
        "Next: `longhaul doctor` checks the targets; `longhaul service install` measures for weeks."
    );
    Ok(exit::OK)
}
