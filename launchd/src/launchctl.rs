//! The service manager launchd: procedures, parsing of `launchctl` output, and advice for its exit codes
//! (launchctl(1)).

use std::ffi::OsStr;
use std::time::Duration;

use crate::agent::{LABEL, STOP_TIMEOUT_SECONDS, THROTTLE_SECONDS, plist};
use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::{CommandRunner, Output};
use crate::status::{RunState, ServiceStatus, is_spawn_failure};
use crate::step::{AwaitedState, Command, Step, StepError};

/// Absolute, because `/bin` is not in the PATH of all jobs and scripts.
pub(crate) const PROGRAM: &str = "/bin/launchctl";
/// Exit codes of `bootout` for an agent that is not loaded (3, ESRCH; 113) or is already stopping (36,
/// EINPROGRESS).
const NOT_LOADED_CODES: &[i32] = &[3, 36, 113];
/// Time that launchd may take to start an agent after `bootstrap`.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that launchd may take to start an agent again: `ThrottleInterval` counts from the previous start
/// (launchd.plist(5)), and it is not documented that `kickstart` ignores it.
const RESTART_TIMEOUT: Duration = Duration::from_secs(THROTTLE_SECONDS as u64 + 5);
/// Time to wait after `bootout`, which returns before the agent has exited; launchd kills it after
/// `STOP_TIMEOUT_SECONDS`.
const STOP_TIMEOUT: Duration = Duration::from_secs(STOP_TIMEOUT_SECONDS as u64 + 10);

/// Returns the steps to install or update the agent: unload the old one, then load the new one.
pub(crate) fn install(plan: &ServicePlan) -> Result<Vec<Step>, PlanError> {
    let service = &plan.service;
    let write = Step::Write { path: service.definition_path.clone(), content: plist(plan)? };
    let folders = service.definition_path.parent().map(|folder| Step::CreateFolder(folder.to_owned()));
    let mut steps = stop(service);
    steps.push(Step::CreateFolder(plan.log_folder.clone()));
    steps.extend(folders);
    steps.push(write);
    steps.extend(load_steps(service));
    Ok(steps)
}

pub(crate) fn remove(service: &Service) -> Vec<Step> {
    let mut steps = stop(service);
    steps.push(Step::Remove(service.definition_path.clone()));
    steps
}

/// Returns the steps to unload the agent until the next login. A signal alone would not do: launchd restarts an
/// agent that exits with a failure.
pub(crate) fn stop(service: &Service) -> Vec<Step> {
    let bootout = Command {
        accepted_codes: NOT_LOADED_CODES,
        ..launchctl_command(&["bootout", &service_target(service)])
    };
    vec![
        Step::Run(bootout),
        Step::Await {
            command: print_command(service),
            state: AwaitedState::NotLoaded,
            timeout: STOP_TIMEOUT,
        },
    ]
}

pub(crate) fn start(service: &Service, status: &ServiceStatus) -> Vec<Step> {
    match status.run_state {
        RunState::NotLoaded => load_steps(service),
        RunState::Running { .. } => vec![],
        RunState::Starting { .. } | RunState::Stopped { .. } | RunState::Unknown { .. } => {
            vec![
                Step::Run(launchctl_command(&["kickstart", &service_target(service)])),
                await_running_step(service, RESTART_TIMEOUT),
            ]
        }
    }
}

pub(crate) fn restart(service: &Service, status: &ServiceStatus) -> Vec<Step> {
    match status.run_state {
        RunState::NotLoaded => load_steps(service),
        RunState::Starting { .. }
        | RunState::Running { .. }
        | RunState::Stopped { .. }
        | RunState::Unknown { .. } => {
            let kickstart = launchctl_command(&["kickstart", "-k", &service_target(service)]);
            vec![Step::Run(kickstart), await_running_step(service, RESTART_TIMEOUT)]
        }
    }
}

/// Returns the steps to load the agent. `enable` comes first, because a disabled agent stays disabled after it is
/// removed.
fn load_steps(service: &Service) -> Vec<Step> {
    let domain = domain(service);
    let mut bootstrap = launchctl_command(&["bootstrap", &domain]);
    bootstrap.arguments.push(service.definition_path.clone().into());
    let enable = launchctl_command(&["enable", &service_target(service)]);
    vec![Step::Run(enable), Step::Run(bootstrap), await_running_step(service, START_TIMEOUT)]
}

fn await_running_step(service: &Service, limit: Duration) -> Step {
    Step::Await { command: print_command(service), state: AwaitedState::Running, timeout: limit }
}

fn print_command(service: &Service) -> Command {
    launchctl_command(&["print", &service_target(service)])
}

fn launchctl_command(arguments: &[&str]) -> Command {
    let words: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    Command::new(PROGRAM, &words)
}

/// Returns the launchd domain of the GUI session of the user.
fn domain(service: &Service) -> String {
    format!("gui/{}", service.user)
}

fn service_target(service: &Service) -> String {
    format!("{}/{LABEL}", domain(service))
}

/// Returns the status of the agent.
pub(crate) fn status(service: &Service, runner: &dyn CommandRunner) -> Result<ServiceStatus, StepError> {
    let command = print_command(service);
    let output = command.output(runner)?;
    match output.code {
        Some(0) | Some(113) if !has_no_gui_session(&output) => {
            Ok(ServiceStatus { is_defined: service.definition_path.exists(), run_state: run_state(&output) })
        }
        _ => Err(command.to_error(&output, advice)),
    }
}

/// Parses the output of `launchctl print`. Apple declares the text not to be an interface, so only a few lines are
/// read, and only at the indentation of the agent itself; deeper lines belong to its endpoints, coalitions and
/// triggers.
pub(crate) fn run_state(output: &Output) -> RunState {
    if output.code != Some(0) {
        return RunState::NotLoaded;
    }
    let value = |key: &str| agent_lines(&output.stdout).find_map(|line| value_of(line, key));
    match value("state") {
        Some("running") => RunState::Running { pid: value("pid").and_then(|pid| pid.parse().ok()) },
        Some("spawn scheduled" | "xpcproxy" | "spawning") => {
            RunState::Starting { after: failure_text(value) }
        }
        Some(state) => {
            RunState::Stopped { reason: Some(last_exit_text(value).unwrap_or_else(|| state.to_owned())) }
        }
        None => RunState::Unknown {
            first_line: output.stdout.lines().next().unwrap_or_default().trim_end().to_owned(),
        },
    }
}

/// Describes the last exit of an agent. A signal or an exit reason replaces the exit code (published outputs:
/// tests/fixtures/launchctl); a code may be followed by its name, as in `78: EX_CONFIG`.
fn last_exit_text<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let named = |key: &str| Some(format!("{key} {}", value(key)?));
    match value("last exit code") {
        Some("(never exited)") => Some("it has not run yet".to_owned()),
        _ => ["last terminating signal", "last exit reason", "last exit code"]
            .iter()
            .find_map(|key| named(key)),
    }
}

/// Describes why an agent has to start again; `None` if it has not run yet, or ended without a failure. launchd prints
/// `job state = spawn failed` for a program that it could not start (tests/fixtures/launchctl/print-ex-config.txt).
fn failure_text<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let is_failure = !matches!(value("last exit code"), Some("(never exited)" | "0"));
    let exit = last_exit_text(&value).filter(|_| is_failure);
    match exit {
        exit if value("job state") != Some("spawn failed") => exit,
        Some(exit) if is_spawn_failure(&exit) => Some(exit),
        Some(exit) => Some(format!("{exit} (spawn failed)")),
        None => Some("a failed start (spawn failed)".to_owned()),
    }
}

/// Returns the lines of the agent itself: those with the indentation of the first line below its name. launchctl
/// indents with tabs; published outputs often have four or eight spaces for each.
fn agent_lines(text: &str) -> impl Iterator<Item = &str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = text.lines().filter(|line| !line.trim().is_empty()).map(indent).find(|indent| *indent > 0);
    text.lines().filter(move |line| Some(indent(line)) == own)
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.trim().strip_prefix(key)?.strip_prefix(" = ")
}

/// Returns whether launchd reports that the user has no GUI session: by exit code 125, or by these messages, which
/// come with 112 or 113 from `print` and with 5 from `bootstrap` (published outputs: tests/fixtures/launchctl).
fn has_no_gui_session(output: &Output) -> bool {
    let words = ["Could not find domain for user gui", "Domain does not support specified action"];
    let said = |text: &str| words.iter().any(|words| text.contains(words));
    matches!(output.code, Some(112 | 125))
        || output.code != Some(0) && (said(&output.stderr) || said(&output.stdout))
}

/// Returns the meaning of an exit code, with advice.
pub(crate) fn advice(output: &Output) -> String {
    let known = match output.code {
        _ if has_no_gui_session(output) => {
            "no one is logged in at the screen of this Mac, which an agent needs: its \
             shares would not be mounted either. Log in there (over ssh alone it does not work), then try again"
        }
        Some(5) => {
            "launchd did not load the agent: it is still stopping, it is disabled, its plist or log folder is invalid, \
             or no one is logged in at the screen. Try again in ten seconds; then check the plist with `plutil \
             -lint`, and check in System Settings > General > Login Items whether longhaul is switched off \
             there"
        }
        Some(17) => "launchd has already loaded the agent. Run `longhaul service restart`",
        Some(37) => "launchd is still busy with the agent. Try again in ten seconds",
        Some(113) => "launchd does not know the agent. Run `longhaul service install`",
        Some(119) => {
            "the agent is disabled. Switch longhaul on in System Settings > General > Login Items, then try again"
        }
        _ => "",
    };
    match (known, output.code) {
        ("", Some(code)) => format!("`launchctl error {code}` prints the meaning of the code"),
        ("", None) => "try again".to_owned(),
        (known, _) => known.to_owned(),
    }
}
