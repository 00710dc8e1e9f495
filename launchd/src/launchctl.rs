//! launchd's own tool: the procedures, what it prints, and what its exit codes mean (launchctl(1)).

use std::ffi::OsStr;
use std::time::Duration;

use crate::agent::{BETWEEN_STARTS_SECONDS, LABEL, STOP_SECONDS, plist_of};
use crate::manager::{Activity, Standing};
use crate::plan::{PlanError, Service, ServicePlan};
use crate::runner::{Output, Runner};
use crate::step::{Command, Step, StepError, Until};

/// By its path: jobs and scripts do not all have it in theirs.
pub(crate) const PROGRAM: &str = "/bin/launchctl";
/// What `bootout` says of an agent that is not loaded (3, ESRCH; 113) or is on its way out (36, EINPROGRESS).
const NOT_THERE: &[i32] = &[3, 36, 113];
/// How long launchd takes to have an agent running that it has just been given.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long it takes to start an agent again: `ThrottleInterval` counts from the start before (launchd.plist(5)), and it is
/// not documented that `kickstart` passes over it.
const RESTART_LIMIT: Duration = Duration::from_secs(BETWEEN_STARTS_SECONDS as u64 + 5);
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
        Activity::Starting | Activity::Stopped { .. } | Activity::Unknown { .. } => {
            vec![Step::Run(launchctl(&["kickstart", &target(service)])), running(service, RESTART_LIMIT)]
        }
    }
}

pub(crate) fn restart(service: &Service, standing: &Standing) -> Vec<Step> {
    match standing.activity {
        Activity::Absent => load(service),
        Activity::Starting
        | Activity::Running { .. }
        | Activity::Stopped { .. }
        | Activity::Unknown { .. } => {
            let kickstart = launchctl(&["kickstart", "-k", &target(service)]);
            vec![Step::Run(kickstart), running(service, RESTART_LIMIT)]
        }
    }
}

/// `enable` first: an agent that was once disabled stays so over its removal.
fn load(service: &Service) -> Vec<Step> {
    let domain = domain(service);
    let mut bootstrap = launchctl(&["bootstrap", &domain]);
    bootstrap.arguments.push(service.definition.clone().into());
    let enable = launchctl(&["enable", &target(service)]);
    vec![Step::Run(enable), Step::Run(bootstrap), running(service, START_LIMIT)]
}

fn running(service: &Service, limit: Duration) -> Step {
    Step::Await { command: print(service), until: Until::Running, limit }
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
        Some(0) | Some(113) if !lacks_domain(&output) => {
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

/// What `print` says. Its text is declared to be no interface, so only a few lines are looked for, at the depth of the
/// agent itself; what is below belongs to its endpoints, coalitions and triggers.
pub(crate) fn activity(output: &Output) -> Activity {
    if output.code != Some(0) {
        return Activity::Absent;
    }
    let value = |key: &str| own_lines(&output.out).find_map(|line| value_of(line, key));
    match value("state") {
        Some("running") => Activity::Running { pid: value("pid").and_then(|pid| pid.parse().ok()) },
        Some("spawn scheduled" | "xpcproxy" | "spawning") => Activity::Starting,
        Some(state) => Activity::Stopped { how: Some(last_end(value).unwrap_or_else(|| state.to_owned())) },
        None => Activity::Unknown {
            first_line: output.out.lines().next().unwrap_or_default().trim_end().to_owned(),
        },
    }
}

/// How an agent last ended. A signal or a reason stands in the place of the exit code (published answers:
/// tests/fixtures/launchctl); a code may have its name behind it, as in `78: EX_CONFIG`.
fn last_end<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let named = |key: &str| Some(format!("{key} {}", value(key)?));
    match value("last exit code") {
        Some("(never exited)") => Some("it has not run yet".to_owned()),
        _ => ["last terminating signal", "last exit reason", "last exit code"]
            .iter()
            .find_map(|key| named(key)),
    }
}

/// The lines of the agent itself: those that are indented as the first one below its name. launchctl writes tabs; what
/// people paste has blanks, four or eight for each.
fn own_lines(text: &str) -> impl Iterator<Item = &str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = text.lines().filter(|line| !line.trim().is_empty()).map(indent).find(|indent| *indent > 0);
    text.lines().filter(move |line| Some(indent(line)) == own)
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.trim().strip_prefix(key)?.strip_prefix(" = ")
}

/// Whether launchd says that there is no session of the user at the screen: with 125, or with these words, which come with
/// 112 or 113 from `print` and with 5 from `bootstrap` (published answers: tests/fixtures/launchctl).
fn lacks_domain(output: &Output) -> bool {
    let words = ["Could not find domain for user gui", "Domain does not support specified action"];
    let said = |text: &str| words.iter().any(|words| text.contains(words));
    matches!(output.code, Some(112 | 125))
        || output.code != Some(0) && (said(&output.err) || said(&output.out))
}

/// What an exit code means, and what to do.
pub(crate) fn meaning(output: &Output) -> String {
    let known = match output.code {
        _ if lacks_domain(output) => {
            "nobody is logged in at the screen of this Mac, and without that there is no place for an agent: its \
             shares would not be mounted either. Log in there (over ssh alone it does not work), then try again"
        }
        Some(5) => {
            "launchd did not take the agent: it is still ending, or disabled, or its plist or the folder of its logs \
             is not as launchd wants it, or nobody is logged in at the screen. Try again in ten seconds; then `plutil \
             -lint` the plist, and look into System Settings > General > Login Items, whether longhaul is switched off \
             there"
        }
        Some(17) => "launchd has the agent already. `longhaul restart` starts it anew",
        Some(37) => "launchd is still busy with the agent. Try again in ten seconds",
        Some(113) => "launchd does not know the agent. `longhaul install` makes it known",
        Some(119) => {
            "the agent is disabled. Switch longhaul on in System Settings > General > Login Items, then try again"
        }
        _ => "",
    };
    match (known, output.code) {
        ("", Some(code)) => format!("`launchctl error {code}` says what the code means"),
        ("", None) => "try it again".to_owned(),
        (known, _) => known.to_owned(),
    }
}
