//! launchd's own tool: the procedures, what it prints, and what its exit codes mean (launchctl(1)).

use std::ffi::OsStr;
use std::time::Duration;

use crate::agent::{LABEL, STOP_SECONDS, plist_of};
use crate::manager::{Activity, Standing};
use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::{Output, Runner};
use crate::step::{Command, Step, StepError, Until};

/// By its path: jobs and scripts do not all have it in theirs.
pub(crate) const PROGRAM: &str = "/bin/launchctl";
/// What `bootout` says of an agent that is not loaded (3, ESRCH; 113) or is on its way out (36, EINPROGRESS).
const NOT_THERE: &[i32] = &[3, 36, 113];
/// How long launchd takes to have an agent running.
const START_LIMIT: Duration = Duration::from_secs(10);
/// `bootout` returns before the agent has ended, which may take until it is killed.
const END_LIMIT: Duration = Duration::from_secs(STOP_SECONDS as u64 + 10);

/// Labels under which Homebrew runs a formula's service, which would be a second one.
const HOMEBREW_LABELS: [&str; 2] = ["homebrew.mxcl.longhaul", "sh.brew.longhaul"];

/// As for an update: out with what is there, then the new one.
pub(crate) fn install(plan: &ServicePlan) -> Result<Vec<Step>, PlanError> {
    let service = &plan.service;
    let write = Step::Write { path: service.definition.clone(), content: plist_of(plan)? };
    let folders = service.definition.parent().map(|folder| Step::Folder(folder.to_owned()));
    let mut steps = stop(service);
    steps.push(Step::Folder(plan.logs.clone()));
    steps.extend(folders);
    steps.push(write);
    steps.extend(load(service));
    Ok(steps)
}

pub(crate) fn remove(service: &Service) -> Vec<Step> {
    let mut steps = stop(service);
    steps.push(Step::Remove(service.definition.clone()));
    steps
}

/// Out of launchd until the next login: one that is only told to end would be started again if it fails in ending.
pub(crate) fn stop(service: &Service) -> Vec<Step> {
    let bootout = Command { fine: NOT_THERE, ..launchctl(&["bootout", &target(service)]) };
    vec![Step::Run(bootout), Step::Await { command: print(service), until: Until::Gone, limit: END_LIMIT }]
}

pub(crate) fn start(service: &Service, standing: &Standing) -> Vec<Step> {
    match standing.activity {
        Activity::Absent => load(service),
        Activity::Running { .. } => vec![],
        Activity::Starting | Activity::Stopped { .. } => {
            vec![Step::Run(launchctl(&["kickstart", &target(service)])), running(service)]
        }
    }
}

pub(crate) fn restart(service: &Service, standing: &Standing) -> Vec<Step> {
    match standing.activity {
        Activity::Absent => load(service),
        Activity::Starting | Activity::Running { .. } | Activity::Stopped { .. } => {
            vec![Step::Run(launchctl(&["kickstart", "-k", &target(service)])), running(service)]
        }
    }
}

/// `enable` first: an agent that was once disabled stays so over its removal.
fn load(service: &Service) -> Vec<Step> {
    let domain = domain(service);
    let mut bootstrap = launchctl(&["bootstrap", &domain]);
    bootstrap.arguments.push(service.definition.clone().into());
    vec![Step::Run(launchctl(&["enable", &target(service)])), Step::Run(bootstrap), running(service)]
}

fn running(service: &Service) -> Step {
    Step::Await { command: print(service), until: Until::Running, limit: START_LIMIT }
}

fn print(service: &Service) -> Command {
    launchctl(&["print", &target(service)])
}

fn launchctl(arguments: &[&str]) -> Command {
    let words: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    Command::new(PROGRAM, &words)
}

/// The domain of who is logged in at the screen.
fn domain(service: &Service) -> String {
    format!("gui/{}", service.user)
}

fn target(service: &Service) -> String {
    format!("{}/{LABEL}", domain(service))
}

/// How the agent stands.
pub(crate) fn standing(service: &Service, runner: &dyn Runner) -> Result<Standing, StepError> {
    let command = print(service);
    let output = command.ask(runner)?;
    match output.code {
        Some(0) | Some(113) => {
            Ok(Standing { defined: service.definition.exists(), activity: activity(&output) })
        }
        _ => Err(command.failure(&output)),
    }
}

/// Services of other installers that would run beside ours.
pub(crate) fn rivals(service: &Service, runner: &dyn Runner) -> Result<Vec<&'static str>, StepError> {
    let mut found = vec![];
    for label in HOMEBREW_LABELS {
        let output = launchctl(&["print", &format!("{}/{label}", domain(service))]).ask(runner)?;
        if output.code == Some(0) {
            found.push(label);
        }
    }
    Ok(found)
}

/// What `print` says. Its text is declared to be no interface, so only three lines are looked for, at the depth of the
/// agent itself; what is below belongs to its endpoints and triggers.
pub(crate) fn activity(output: &Output) -> Activity {
    if output.code != Some(0) {
        return Activity::Absent;
    }
    let value =
        |key: &str| output.out.lines().filter(|line| depth(line) == 1).find_map(|line| value_of(line, key));
    let pid = value("pid").and_then(|pid| pid.parse().ok());
    match value("state") {
        Some("running") => Activity::Running { pid },
        Some("spawn scheduled" | "xpcproxy" | "spawning") => Activity::Starting,
        state => Activity::Stopped {
            how: match (value("last exit code"), state) {
                (Some(code), _) => Some(format!("last exit code {code}")),
                (None, state) => state.map(str::to_owned),
            },
        },
    }
}

/// How deep a line is: by tabs, or by four blanks as in copies.
fn depth(line: &str) -> usize {
    let blank = line.len() - line.trim_start().len();
    if line.starts_with('\t') { blank } else { blank.div_ceil(4) }
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.trim().strip_prefix(key)?.strip_prefix(" = ")
}

/// What an exit code means, and what to do.
pub(crate) fn meaning(code: Option<i32>) -> String {
    let known = match code {
        Some(5) => {
            "launchd did not take the agent: it is still ending, or disabled, or its plist or the folder of its logs \
             is not as launchd wants it. Try again in ten seconds; then `plutil -lint` the plist, and look into System \
             Settings > General > Login Items, whether longhaul is switched off there"
        }
        Some(37) => "launchd is still busy with the agent. Try again in ten seconds",
        Some(113) => "launchd does not know the agent. `longhaul install` makes it known",
        Some(119) => {
            "the agent is disabled. Switch longhaul on in System Settings > General > Login Items, then try again"
        }
        Some(125) => {
            "nobody is logged in at the screen of this Mac, and without that there is no place for an agent: its \
             shares would not be mounted either. Log in there (over ssh alone it does not work), then try again"
        }
        _ => "",
    };
    match (known, code) {
        ("", Some(code)) => format!("`launchctl error {code}` says what the code means"),
        ("", None) => "try it again".to_owned(),
        (known, _) => known.to_owned(),
    }
}
