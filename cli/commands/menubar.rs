//! `longhaul menubar`: the answer in the menu bar, through SwiftBar or xbar on macOS, or Argos on GNOME.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use jiff::tz::TimeZone;
use longhaul_launchd::shell_quote;
use longhaul_measure::platform;
use longhaul_service::paths::read_history;
use longhaul_service::status::Status;
use longhaul_view::screens::menu_bar::{Menu, menu_bar};

use super::report::{WeeklyInput, missing_shares};
use crate::arguments::{GlobalArgs, MenubarArgs};
use crate::client::connect;
use crate::errors::UsageError;
use crate::{exit, paths};

/// Name of the plugin; the middle part is the time between two calls (README of SwiftBar, "Plugin Naming").
const PLUGIN_NAME: &str = "longhaul.5m.sh";
/// Second line of the plugin, by which longhaul recognizes it.
const PLUGIN_NOTE: &str =
    "# Made by `longhaul menubar --install`; delete this file to remove longhaul from the menu bar.";

/// Prints the menu, or installs the plugin that prints it.
pub fn run(shared: &GlobalArgs, arguments: &MenubarArgs) -> anyhow::Result<ExitCode> {
    if arguments.install {
        return install(shared, arguments.folder.as_deref());
    }
    let client = connect(shared).ok();
    let status: Option<Status> = client.as_ref().and_then(|client| client.status().ok());
    let address = client.as_ref().filter(|_| status.is_some()).map(|client| client.address());
    let stored = paths::open_reader(shared).and_then(|reader| {
        let config = paths::load_config(shared)?;
        let weekly = WeeklyInput::new(read_history(&reader, &config)?, None).weekly();
        Ok((missing_shares(&weekly, &config), weekly))
    });
    let (missing, weekly) = match stored {
        Ok((missing, weekly)) => (missing, Ok(weekly)),
        Err(error) => (vec![], Err(error.to_string())),
    };
    let menu = Menu {
        weekly: weekly.as_ref().map_err(String::as_str),
        former: &missing,
        status: status.as_ref(),
        dashboard: address.as_deref(),
    };
    crate::output::print!("{}", menu_bar(&menu, &TimeZone::system()));
    Ok(exit::OK)
}

fn install(shared: &GlobalArgs, folder: Option<&Path>) -> anyhow::Result<ExitCode> {
    let folder = folder.map(Path::to_owned).or_else(plugin_folder).ok_or_else(|| {
        UsageError(
            "found neither SwiftBar, nor xbar, nor Argos: install one of them, or give its plugin folder with `--folder FOLDER`"
                .to_owned(),
        )
    })?;
    let path = folder.join(PLUGIN_NAME);
    reject_foreign_file(&path)?;
    write_program(&path, &plugin(shared)?).with_context(|| format!("cannot write {}", path.display()))?;
    crate::output::print_line(format_args!(
        "Written: {}. Delete this file to remove longhaul from the menu bar.",
        path.display()
    ));
    Ok(exit::OK)
}

/// Returns the folder in which the installed menu bar program looks for plugins.
fn plugin_folder() -> Option<PathBuf> {
    // `~/Library/Application Support/xbar/plugins` (README of xbar), and `argos` in the folder of the
    // configuration (README of Argos).
    let xbar = std::env::var_os("HOME")
        .map(|home| PathBuf::from(home).join("Library/Application Support/xbar/plugins"));
    let argos = platform::config_directory().map(|folder| folder.with_file_name("argos"));
    [swiftbar_folder(), xbar, argos].into_iter().flatten().find(|folder| folder.is_dir())
}

/// Returns the plugin folder that the user chose in SwiftBar, which has no default; `None` without SwiftBar.
fn swiftbar_folder() -> Option<PathBuf> {
    let mut defaults = Command::new("defaults");
    defaults
        .args(["read", "com.ameba.SwiftBar", "PluginDirectory"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = defaults.output().ok().filter(|output| output.status.success())?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// Refuses a path at which there is a file of another program.
fn reject_foreign_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(text) if text.contains(PLUGIN_NOTE) => Ok(()),
        _ => Err(UsageError(format!(
            "{} exists and was not made by longhaul: move it, or give another folder with `--folder FOLDER`",
            path.display()
        ))
        .into()),
    }
}

/// Returns the plugin: a shell script that calls this program with the same database and configuration.
fn plugin(shared: &GlobalArgs) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("find longhaul's own program file")?;
    let mut words = vec![super::service::lasting_path(&program), PathBuf::from("menubar")];
    for (option, path) in [("--database", &shared.database), ("--config", &shared.config)] {
        let path = path
            .as_ref()
            .map(std::path::absolute)
            .transpose()
            .with_context(|| format!("path of {option}"))?;
        words.extend(path.into_iter().flat_map(|path| [PathBuf::from(option), path]));
    }
    let command: Vec<String> = words.iter().map(|word| shell_quote(&word.to_string_lossy())).collect();
    Ok(format!("#!/bin/sh\n{PLUGIN_NOTE}\nexec {}\n", command.join(" ")))
}

fn write_program(path: &Path, script: &str) -> std::io::Result<()> {
    std::fs::write(path, script)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}
