//! The service manager systemd, in its instance for a user: procedures, parsing of `systemctl` output, and advice
//! for its errors (systemctl(1)).

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::{CommandRunner, Output};
use crate::status::{RunState, ServiceStatus};
use crate::step::{Command, Step, StepError};
use crate::unit::{UNIT_NAME, unit};

/// Found through PATH, because distributions install it in different folders.
const PROGRAM: &str = "systemctl";

/// Returns the steps to install or update the service. `restart` makes a running service use the new unit.
pub(crate) fn install(plan: &ServicePlan) -> Result<Vec<Step>, PlanError> {
    let service = &plan.service;
    let write = Step::Write { path: service.definition_path.clone(), content: unit(plan)?.into_bytes() };
    let mut steps = vec![Step::CreateFolder(plan.log_folder.clone())];
    steps.extend(service.definition_path.parent().map(|folder| Step::CreateFolder(folder.to_owned())));
    steps.push(write);
    steps.extend([&["daemon-reload"][..], &["enable", UNIT_NAME], &["restart", UNIT_NAME]].map(run_step));
    Ok(steps)
}

/// Returns the steps to remove the service. The link that `enable` created is removed by path, in case systemd
/// cannot be reached.
pub(crate) fn remove(service: &Service, status: Option<&ServiceStatus>) -> Vec<Step> {
    let mut steps = vec![];
    if status.is_some_and(|status| status.run_state != RunState::NotLoaded) {
        steps.extend(stop());
    }
    // systemd refuses to disable a unit whose file was deleted by hand.
    if status.is_some_and(|status| status.is_defined) {
        steps.push(run_step(&["disable", UNIT_NAME]));
    }
    steps.push(Step::Remove(service.definition_path.clone()));
    steps.push(Step::Remove(wants_link(service)));
    if status.is_some() {
        steps.push(run_step(&["daemon-reload"]));
    }
    if matches!(status, Some(ServiceStatus { run_state: RunState::Stopped { reason: Some(_) }, .. })) {
        // Without `reset-failed`, systemd would keep listing the unit as failed after its file is gone.
        let forget = Command { accepted_codes: &[1], ..systemctl_command(&["reset-failed", UNIT_NAME]) };
        steps.push(Step::Run(forget));
    }
    steps
}

fn wants_link(service: &Service) -> PathBuf {
    service.definition_path.with_file_name("default.target.wants").join(UNIT_NAME)
}

pub(crate) fn stop() -> Vec<Step> {
    vec![run_step(&["stop", UNIT_NAME])]
}

pub(crate) fn start() -> Vec<Step> {
    vec![run_step(&["start", UNIT_NAME])]
}

pub(crate) fn restart() -> Vec<Step> {
    vec![run_step(&["restart", UNIT_NAME])]
}

fn run_step(arguments: &[&str]) -> Step {
    Step::Run(systemctl_command(arguments))
}

fn systemctl_command(arguments: &[&str]) -> Command {
    let words: Vec<&OsStr> = ["--user"].iter().chain(arguments).map(OsStr::new).collect();
    Command::new(PROGRAM, &words)
}

/// Returns the status of the service.
pub(crate) fn status(service: &Service, runner: &dyn CommandRunner) -> Result<ServiceStatus, StepError> {
    let command = systemctl_command(&[
        "show",
        UNIT_NAME,
        "--property=LoadState,ActiveState,MainPID,Result,ExecMainStatus",
    ]);
    let output = command.output(runner)?;
    if output.code != Some(0) {
        return Err(command.to_error(&output, advice));
    }
    Ok(ServiceStatus { is_defined: service.definition_path.exists(), run_state: run_state(&output.stdout) })
}

/// Parses the output of `show`: `NAME=VALUE` lines, a stable interface (org.freedesktop.systemd1(5)).
fn run_state(output: &str) -> RunState {
    let value = |key: &str| output.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let pid = value("MainPID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0);
    match (value("LoadState"), value("ActiveState")) {
        (_, Some("active" | "reloading" | "deactivating")) => RunState::Running { pid },
        (_, Some("activating")) => RunState::Starting { after: None },
        (Some("not-found"), _) => RunState::NotLoaded,
        _ => RunState::Stopped { reason: failure_text(value("Result"), value("ExecMainStatus")) },
    }
}

fn failure_text(result: Option<&str>, status: Option<&str>) -> Option<String> {
    match (result?, status) {
        ("success", _) => None,
        ("exit-code", Some(status)) => Some(format!("it ended with exit code {status}")),
        (result, _) => Some(format!("systemd says `{result}`")),
    }
}

/// Returns whether the user's services run while the user is not logged in; `None` if that cannot be determined.
pub(crate) fn has_lingering(service: &Service, runner: &dyn CommandRunner) -> Option<bool> {
    let user = service.user.to_string();
    let words = ["show-user", &user, "--property=Linger"].map(OsStr::new);
    let output = Command::new("loginctl", &words).output(runner).ok()?;
    match output.stdout.trim() {
        "Linger=yes" => Some(true),
        "Linger=no" => Some(false),
        _ => None,
    }
}

/// Returns the meaning of an error message of `systemctl`, with advice.
pub(crate) fn advice(output: &Output) -> String {
    const NO_SESSION: &str = "There is no systemd session for this login; under su, sudo, cron or in a container this is common. Log in \
        at the machine or by ssh as the user of the service, or let an administrator run `loginctl enable-linger USER`, then log \
        in again";
    let messages = [
        (
            "not been booted with systemd",
            "This machine does not run systemd. Let your init system start `longhauld --config PATH --database \
             PATH` instead; `longhaul service install --dry-run` shows the whole command",
        ),
        ("connect to bus", NO_SESSION),
        // The words of newer versions: "Failed to connect to user scope bus via local transport: ...".
        ("scope bus via", NO_SESSION),
        (
            "does not exist",
            "systemd does not read the folder of the unit. XDG_CONFIG_HOME is set in this shell, but not for \
             systemd: unset it, or run `systemctl --user import-environment XDG_CONFIG_HOME`, then try again",
        ),
        ("not found", "It is not installed: run `longhaul service install`"),
        ("not loaded", "It is not installed: run `longhaul service install`"),
        ("is masked", "The unit is masked: run `systemctl --user unmask longhaul.service`, then try again"),
        (
            "Job for longhaul.service",
            "The service did not start, or not in time. `longhaul service logs` and `journalctl --user -u longhaul.service` \
             show the reason",
        ),
    ];
    let known = messages.iter().find(|(words, _)| output.message().contains(words));
    known.map_or("See `systemctl --user status longhaul.service`", |(_, meaning)| meaning).to_owned()
}
