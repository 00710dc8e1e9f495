//! The background service: `longhaul service install`, `uninstall`, `start`, `stop`, `restart` and `logs`.

pub mod logs;
mod own_folders;
mod purge;
pub mod uninstall;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use longhaul_launchd::{
    Manager, RunState, Service, ServicePlan, ServiceStatus, Step, StepError, SystemRunner, execute,
    stable_program,
};
use longhaul_measure::platform;
use longhaul_model::Hint;
use longhaul_service::config::ConfigLoader;
use longhaul_service::status::{Check, CheckStatus};
use longhaul_store::check_database_location;

use crate::arguments::{DryRunArgs, GlobalArgs};
use crate::client::{Client, connect};
use crate::errors::UsageError;
use crate::{exit, paths};

/// Maximum wait for the first response of a service that was just started.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// File name of the daemon, which is installed in the same folder as this program.
const DAEMON_NAME: &str = "longhauld";

/// Installs or updates the service, and starts it.
pub fn install(shared: &GlobalArgs, options: &DryRunArgs) -> anyhow::Result<ExitCode> {
    let manager = Manager::current();
    let plan = plan(shared)?;
    if !options.dry_run {
        // If the status cannot be read, the service manager is unreachable: fail before anything is written.
        manager.status(&plan.service, &SystemRunner)?;
    }
    run_steps(&manager.install(&plan)?, options)?;
    if options.dry_run {
        return Ok(exit::OK);
    }
    let status = manager.status(&plan.service, &SystemRunner)?;
    crate::output::println!("\nlonghaul is installed with {} and {}.", manager.name(), status.run_state);
    print_advice(manager, &plan.service);
    print_target_checks(shared, &status);
    Ok(exit::OK)
}

/// Prints the service's own access to each target. It may differ from that of a terminal, in particular on macOS.
fn print_target_checks(shared: &GlobalArgs, status: &ServiceStatus) {
    let is_alive = matches!(status.run_state, RunState::Running { .. } | RunState::Starting { .. });
    if !is_alive || paths::load_config(shared).is_ok_and(|config| config.targets.is_empty()) {
        return;
    }
    crate::output::println!("The service now checks each target:");
    let print_hint = || crate::output::println!("Run `longhaul doctor` to check its access to each target.");
    let Some(client) = wait_for_service(shared) else { return print_hint() };
    let Ok(checks) = client.doctor() else { return print_hint() };
    let targets = checks.iter().filter(|check| check.name.starts_with("target "));
    crate::render::print(&longhaul_view::screens::doctor::checks(targets));
}

/// Waits for a started service to respond; `None` on timeout.
fn wait_for_service(shared: &GlobalArgs) -> Option<Client> {
    let began = Instant::now();
    while began.elapsed() < START_TIMEOUT {
        if let Ok(client) = connect(shared)
            && client.status().is_ok()
        {
            return Some(client);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    None
}

/// Returns the definition of the service, with absolute paths.
fn plan(shared: &GlobalArgs) -> anyhow::Result<ServicePlan> {
    let config = existing_config(shared)?;
    let database = paths::database(shared, &ConfigLoader::system().read(Some(&config))?)?;
    // The service would end at once.
    check_database_location(&database, &platform::mounts().unwrap_or_default())?;
    let no_home = || UsageError("HOME is not set, so there is no folder for the logs".to_owned());
    Ok(ServicePlan {
        service: service_definition()?,
        program: daemon_path()?,
        config,
        database,
        log_folder: platform::log_directory().ok_or_else(no_home)?,
        environment: xdg_overrides(),
    })
}

/// Returns a check that explains why no service responds, from the state that the service manager reports.
pub fn manager_check() -> Check {
    not_running_check(Manager::current(), service_status())
}

fn not_running_check(manager: Manager, status: anyhow::Result<ServiceStatus>) -> Check {
    let problem = |found: &str, fix: &str| Check::problem("service", CheckStatus::Failed, found, fix);
    let name = manager.name();
    match status {
        Ok(status) if is_not_installed(&status) => {
            let install = "`longhaul service install` starts it now and after each login";
            problem("not running: it is not installed", install)
        }
        Ok(status) => {
            let start = "`longhaul service start` starts it; `longhaul service logs` shows why it ended";
            let found = format!("not running: it is installed with {name} and {}", status.run_state);
            problem(&found, status.run_state.advice().unwrap_or(start))
        }
        Err(error) => {
            let found = format!("not running, and {name} cannot be reached from this login session");
            problem(&found, &unreachable_fix(manager, &error))
        }
    }
}

/// Returns the advice for a service manager that cannot be reached. An agent needs a login at the screen, as the error of launchd says.
fn unreachable_fix(manager: Manager, error: &anyhow::Error) -> String {
    let hint = error.downcast_ref::<StepError>().and_then(Hint::hint);
    let login = match (manager, hint) {
        (Manager::Launchd, Some(hint)) => return hint,
        (Manager::Launchd, None) => "at the screen of this Mac",
        (Manager::Systemd, _) => "at the machine or by ssh",
    };
    format!(
        "log in as the user of the service, {login}, and run `longhaul service install`; or run `longhauld` in a terminal"
    )
}

/// Returns the state of the background service, as the service manager reports it.
pub fn service_status() -> anyhow::Result<ServiceStatus> {
    Ok(Manager::current().status(&service_definition()?, &SystemRunner)?)
}

fn service_definition() -> anyhow::Result<Service> {
    let folder = platform::service_directory().ok_or_else(|| {
        UsageError(
            "HOME is not set, so there is no folder for the definition of a background service".to_owned(),
        )
    })?;
    Ok(Service { definition_path: folder.join(Manager::current().file_name()), user: platform::user_id() })
}

/// Returns the path of the configuration for the service. It has to exist.
fn existing_config(shared: &GlobalArgs) -> anyhow::Result<PathBuf> {
    let path = paths::config_file(shared)?;
    if path.exists() {
        return Ok(path);
    }
    let message = format!("there is no configuration at {}: `longhaul init` creates one", path.display());
    Err(UsageError(message).into())
}

/// Returns the path of the daemon in the folder of this program, in a form that stays valid after updates.
fn daemon_path() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("find longhaul's own program file")?;
    let program = own.with_file_name(DAEMON_NAME);
    if !program.is_file() {
        let message = format!(
            "{} is missing: it has to be in the same folder as longhaul. Install both again",
            program.display()
        );
        return Err(UsageError(message).into());
    }
    Ok(lasting_path(&program))
}

/// Returns the path of a program in a form that stays valid after updates; warns if there is none.
pub fn lasting_path(program: &Path) -> PathBuf {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let found = stable_program(program, &folders, &|path: &Path| path.canonicalize().ok());
    if let Some(warning) = found.warning {
        crate::output::eprintln!("longhaul: {warning}");
    }
    found.path
}

/// Returns the XDG variables that move longhaul's folders. The service has to get them explicitly, since it does
/// not inherit the environment of this shell.
fn xdg_overrides() -> std::collections::BTreeMap<String, std::ffi::OsString> {
    const FOLDERS: [&str; 3] = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
    let moved = FOLDERS.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)));
    moved.filter(|(_, value)| Path::new(value).is_absolute()).collect()
}

/// Prints the steps that only the user can take.
fn print_advice(manager: Manager, service: &Service) {
    match (manager, manager.survives_logout(service, &SystemRunner)) {
        (Manager::Launchd, _) => crate::output::println!(
            "macOS may ask whether longhauld may use files on network volumes: allow it, or all runs there fail. The \
             service runs while you are logged in at the screen."
        ),
        (Manager::Systemd, Some(true)) => {
            crate::output::println!(
                "Lingering is enabled for your user: the service also runs while you are not logged in."
            );
        }
        (Manager::Systemd, Some(false) | None) => crate::output::println!(
            "The service stops when you log out. To keep it running from boot to shutdown, enable lingering: \
             `loginctl enable-linger`."
        ),
    }
    crate::output::println!("`longhaul service logs -f` shows its log.");
}

/// Starts the service.
pub fn start(options: &DryRunArgs) -> anyhow::Result<ExitCode> {
    let (manager, service, status) = installed_service()?;
    let steps = with_log_folder(manager, manager.start(&service, &status), platform::log_directory());
    run_steps(&steps, options)?;
    print_state(options, &service)
}

/// Stops the service until it is started, or until the next login.
pub fn stop(options: &DryRunArgs) -> anyhow::Result<ExitCode> {
    let (manager, service, _) = installed_service()?;
    run_steps(&manager.stop(&service), options)?;
    print_state(options, &service)
}

/// Restarts the service.
pub fn restart(options: &DryRunArgs) -> anyhow::Result<ExitCode> {
    let (manager, service, status) = installed_service()?;
    let steps = with_log_folder(manager, manager.restart(&service, &status), platform::log_directory());
    run_steps(&steps, options)?;
    print_state(options, &service)
}

/// Adds a step that creates the log folder before launchd starts the agent: without it launchd cannot open the log files, and reports
/// exit code 78 although the program never ran (public report: NousResearch/hermes-agent#78129).
fn with_log_folder(manager: Manager, steps: Vec<Step>, log_folder: Option<PathBuf>) -> Vec<Step> {
    match log_folder {
        Some(folder) if manager == Manager::Launchd && !steps.is_empty() => {
            [Step::CreateFolder(folder)].into_iter().chain(steps).collect()
        }
        _ => steps,
    }
}

fn installed_service() -> anyhow::Result<(Manager, Service, ServiceStatus)> {
    let (manager, service) = (Manager::current(), service_definition()?);
    let status = manager.status(&service, &SystemRunner)?;
    if is_not_installed(&status) {
        return Err(
            UsageError("the service is not installed: run `longhaul service install`".to_owned()).into()
        );
    }
    Ok((manager, service, status))
}

fn is_not_installed(status: &ServiceStatus) -> bool {
    !status.is_defined && status.run_state == RunState::NotLoaded
}

fn print_state(options: &DryRunArgs, service: &Service) -> anyhow::Result<ExitCode> {
    if !options.dry_run {
        crate::output::println!(
            "longhaul is {}.",
            Manager::current().status(service, &SystemRunner)?.run_state
        );
    }
    Ok(exit::OK)
}

/// Executes and prints the steps, or only prints them with the content of all files.
fn run_steps(steps: &[Step], options: &DryRunArgs) -> anyhow::Result<()> {
    match options.dry_run {
        false => {
            execute(steps, &SystemRunner, &mut |step| crate::output::print_line(format_args!("{step}")))?;
        }
        true if steps.is_empty() => crate::output::println!("would do nothing"),
        true => steps.iter().for_each(print_step),
    }
    Ok(())
}

fn print_step(step: &Step) {
    crate::output::print_line(format_args!("would {step}"));
    if let Step::Write { content, .. } = step {
        let text = String::from_utf8_lossy(content);
        text.lines().for_each(|line| crate::output::println!("{}", format!("    {line}").trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use longhaul_launchd::{CommandRunner, Output, RunnerError};

    use super::*;

    /// launchctl, which responds to every command with one output.
    struct Answering(Output);

    impl CommandRunner for Answering {
        fn run(&self, _: &str, _: &[OsString], _: Duration) -> Result<Output, RunnerError> {
            Ok(self.0.clone())
        }

        fn sleep(&self, _: Duration) {}
    }

    fn service() -> Service {
        Service { definition_path: "/nonexistent/org.longhaul.agent.plist".into(), user: 501 }
    }

    #[test]
    fn doctor_does_not_advise_ssh_on_a_mac_without_a_session() {
        let stderr = include_str!("../../../launchd/tests/fixtures/launchctl/print-112.txt").to_owned();
        let print = Answering(Output { code: Some(112), stdout: String::new(), stderr });
        let fix = |manager| {
            let error = Manager::Launchd.status(&service(), &print).unwrap_err();
            not_running_check(manager, Err(error.into())).fix.unwrap()
        };
        let on_a_mac = fix(Manager::Launchd);
        assert!(on_a_mac.contains("over ssh alone it does not work"), "{on_a_mac}");
        assert!(!on_a_mac.contains("or by ssh"), "{on_a_mac}");
        assert!(fix(Manager::Systemd).contains("at the machine or by ssh"));
    }

    #[test]
    fn doctor_says_what_to_do_if_launchd_cannot_start_the_agent() {
        let stdout = include_str!("../../../launchd/tests/fixtures/launchctl/print-ex-config.txt").to_owned();
        let print = Answering(Output { code: Some(0), stdout, stderr: String::new() });
        let status = Manager::Launchd.status(&service(), &print).unwrap();
        let check = not_running_check(Manager::Launchd, Ok(status));
        assert!(check.message.ends_with("starting again, after last exit code 78: EX_CONFIG"), "{check:?}");
        assert!(check.fix.unwrap().contains("open its log files"));
    }

    #[test]
    fn log_folder_is_created_before_launchd_starts_the_agent() {
        let steps = |manager: Manager, run_state| {
            let status = ServiceStatus { is_defined: true, run_state };
            let steps = manager.start(&service(), &status);
            let steps = with_log_folder(manager, steps, Some("/Users/ada/Library/Logs/longhaul".into()));
            steps.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let stopped = || RunState::Stopped { reason: None };
        let created = "create the folder /Users/ada/Library/Logs/longhaul";
        assert_eq!(steps(Manager::Launchd, stopped())[0], created);
        assert!(steps(Manager::Launchd, RunState::Running { pid: None }).is_empty(), "nothing is started");
        assert!(!steps(Manager::Systemd, stopped()).contains(&created.to_owned()), "systemd needs none");
    }
}
