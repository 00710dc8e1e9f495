//! systemd's own tool, for the instance of a user: the procedures, what it prints, and what its complaints mean
//! (systemctl(1)).

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::manager::{Activity, Standing};
use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::Runner;
use crate::step::{Command, Step, StepError};
use crate::unit::{UNIT, unit_of};

/// By its name, as distributions differ in where it is.
pub(crate) const PROGRAM: &str = "systemctl";

/// As for an update: a service that runs is started anew, by the new unit.
pub(crate) fn install(plan: &ServicePlan) -> Result<Vec<Step>, PlanError> {
    let service = &plan.service;
    let write = Step::Write { path: service.definition.clone(), content: unit_of(plan)?.into_bytes() };
    let mut steps = vec![Step::Folder(plan.logs.clone())];
    steps.extend(service.definition.parent().map(|folder| Step::Folder(folder.to_owned())));
    steps.push(write);
    steps.extend([&["daemon-reload"][..], &["enable", UNIT], &["restart", UNIT]].map(user));
    Ok(steps)
}

/// What `enable` leaves beside the unit is removed by name, for the case that systemd cannot be asked.
pub(crate) fn remove(service: &Service, standing: Option<&Standing>) -> Vec<Step> {
    let mut steps = vec![];
    let knows = standing.is_some_and(|standing| standing.defined || standing.activity != Activity::Absent);
    if knows {
        steps.push(user(&["disable", "--now", UNIT]));
    }
    steps.push(Step::Remove(service.definition.clone()));
    steps.push(Step::Remove(wanted(service)));
    if standing.is_some() {
        steps.push(user(&["daemon-reload"]));
    }
    if matches!(standing, Some(Standing { activity: Activity::Stopped { how: Some(_) }, .. })) {
        // a failure that is remembered would keep the name of the unit alive
        let forget = Command { fine: &[1], ..command(&["reset-failed", UNIT]) };
        steps.push(Step::Run(forget));
    }
    steps
}

fn wanted(service: &Service) -> PathBuf {
    service.definition.with_file_name("default.target.wants").join(UNIT)
}

pub(crate) fn stop() -> Vec<Step> {
    vec![user(&["stop", UNIT])]
}

pub(crate) fn start() -> Vec<Step> {
    vec![user(&["start", UNIT])]
}

pub(crate) fn restart() -> Vec<Step> {
    vec![user(&["restart", UNIT])]
}

fn user(arguments: &[&str]) -> Step {
    Step::Run(command(arguments))
}

fn command(arguments: &[&str]) -> Command {
    let words: Vec<&OsStr> = ["--user"].iter().chain(arguments).map(OsStr::new).collect();
    Command::new(PROGRAM, &words)
}

/// How the service stands.
pub(crate) fn standing(service: &Service, runner: &dyn Runner) -> Result<Standing, StepError> {
    let command = command(&["show", UNIT, "--property=LoadState,ActiveState,MainPID,Result,ExecMainStatus"]);
    let output = command.ask(runner)?;
    if output.code != Some(0) {
        return Err(command.failure(&output));
    }
    Ok(Standing { defined: service.definition.exists(), activity: activity(&output.out) })
}

/// What `show` says: `NAME=VALUE` lines, which are an interface (org.freedesktop.systemd1(5)).
fn activity(said: &str) -> Activity {
    let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let pid = value("MainPID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0);
    match (value("LoadState"), value("ActiveState")) {
        (_, Some("active" | "reloading" | "deactivating")) => Activity::Running { pid },
        (_, Some("activating")) => Activity::Starting,
        (Some("not-found"), _) => Activity::Absent,
        _ => Activity::Stopped { how: failure(value("Result"), value("ExecMainStatus")) },
    }
}

fn failure(result: Option<&str>, status: Option<&str>) -> Option<String> {
    match (result?, status) {
        ("success", _) => None,
        ("exit-code", Some(status)) => Some(format!("it ended with exit code {status}")),
        (result, _) => Some(format!("systemd says `{result}`")),
    }
}

/// Whether the service of this user goes on when nobody is logged in; `None` where that cannot be asked.
pub(crate) fn lingers(service: &Service, runner: &dyn Runner) -> Option<bool> {
    let user = service.user.to_string();
    let words = ["show-user", &user, "--property=Linger"].map(OsStr::new);
    let output = Command::new("loginctl", &words).ask(runner).ok()?;
    match output.out.trim() {
        "Linger=yes" => Some(true),
        "Linger=no" => Some(false),
        _ => None,
    }
}

/// What a complaint means, and what to do.
pub(crate) fn meaning(said: &str) -> &'static str {
    let complaints = [
        (
            "not been booted with systemd",
            "This machine does not run systemd. Let what starts your programs start `longhauld --config PATH --database \
             PATH` instead; `longhaul install --dry-run` shows the whole command",
        ),
        (
            "connect to bus",
            "There is no systemd for this login: with su, sudo, cron or in a container there often is none. Log in at \
             the machine or by ssh as the user who is to run it, or let an administrator say `loginctl enable-linger \
             USER`, then log in again",
        ),
        (
            "does not exist",
            "systemd does not look where the unit was written. XDG_CONFIG_HOME is set in this shell, but not for \
             systemd: unset it, or `systemctl --user import-environment XDG_CONFIG_HOME`, then try again",
        ),
        ("not found", "It is not installed: `longhaul install`"),
        ("not loaded", "It is not installed: `longhaul install`"),
        ("is masked", "The unit was masked: `systemctl --user unmask longhaul.service`, then try again"),
        (
            "Job for longhaul.service",
            "The daemon did not come up, or not in time. `longhaul logs` and `journalctl --user -u longhaul.service` \
             say why",
        ),
    ];
    let known = complaints.iter().find(|(words, _)| said.contains(words));
    known.map_or("`systemctl --user status longhaul.service` may say more", |(_, meaning)| meaning)
}
