//! The background service: `longhaul install`, `uninstall`, `start`, `stop`, `restart` and `logs`.

pub mod logs;
mod own_folders;
mod purge;
pub mod uninstall;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use longhaul_launchd::{
    Activity, Manager, Service, ServicePlan, Standing, Step, System, perform, stable_program,
};
use longhaul_measure::platform;
use longhaul_service::config::Config;
use longhaul_service::status::{Check, Verdict};

use super::control::client;
use crate::arguments::Shared;
use crate::client::Client;
use crate::{Usage, exit, places};

/// The longest wait for the answer of a service that was just started.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The daemon's program, which lies beside this one.
const DAEMON: &str = "longhauld";

/// Arguments of `install`, `start`, `stop` and `restart`.
#[derive(Args)]
pub struct Doing {
    /// Only print what would be done: files with their content, and commands.
    #[arg(long)]
    pub dry_run: bool,
}

/// Whether steps are done or only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Do,
    Show,
}

impl From<&Doing> for Mode {
    fn from(doing: &Doing) -> Self {
        if doing.dry_run { Self::Show } else { Self::Do }
    }
}

/// Has the service installed, or updated, and running.
pub fn install(shared: &Shared, doing: &Doing) -> anyhow::Result<ExitCode> {
    let manager = Manager::here();
    let plan = plan(shared)?;
    refuse_rivals(manager, &plan.service, doing.into())?;
    if !doing.dry_run {
        // one that cannot be asked cannot be told either, and then nothing is written
        manager.standing(&plan.service, &System)?;
    }
    go_through(&manager.install(&plan)?, doing.into())?;
    if doing.dry_run {
        return Ok(exit::OK);
    }
    let standing = manager.standing(&plan.service, &System)?;
    anstream::println!("\nlonghaul is installed with {} and {}.", manager.name(), standing.activity);
    advise(manager, &plan.service);
    examine_targets(shared, &standing);
    Ok(exit::OK)
}

/// Prints what the service itself may do on each target: a terminal has other rights, on a Mac above all.
fn examine_targets(shared: &Shared, standing: &Standing) {
    let is_alive = matches!(standing.activity, Activity::Running { .. } | Activity::Starting);
    if !is_alive || places::config(shared).is_ok_and(|config| config.targets.is_empty()) {
        return;
    }
    anstream::println!("The service now looks at each target:");
    let later = || anstream::println!("Ask `longhaul doctor` what it may do on each target.");
    let Some(client) = wait_for_service(shared) else { return later() };
    let Ok(checks) = client.doctor() else { return later() };
    let targets = checks.iter().filter(|check| check.what.starts_with("target "));
    targets.for_each(super::doctor::print);
}

/// The service that was started, once it answers; `None` if it does not in time.
fn wait_for_service(shared: &Shared) -> Option<Client> {
    let began = Instant::now();
    while began.elapsed() < ANSWERS_WITHIN {
        if let Ok(client) = client(shared)
            && client.status().is_ok()
        {
            return Some(client);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    None
}

/// What is to run, with everything that it names absolute.
fn plan(shared: &Shared) -> anyhow::Result<ServicePlan> {
    let config = configuration(shared)?;
    let database = places::database(shared, &Config::read(&config)?)?;
    let no_home = || Usage("HOME is not set, so there is no place for the logs".to_owned());
    Ok(ServicePlan {
        service: service()?,
        program: daemon()?,
        config,
        database,
        logs: platform::log_directory().ok_or_else(no_home)?,
        environment: moved_folders(),
    })
}

/// Why no background service answers, as the system's own manager knows it.
pub fn check() -> Check {
    let install = "`longhaul install` has the system start it, now and after each login";
    match standing() {
        Ok(Standing { defined: false, .. }) => {
            Check::bad("service", Verdict::Failed, "it does not run: it is not installed", install)
        }
        Ok(standing) => {
            let found = format!(
                "it does not run: it is installed with {} and {}",
                Manager::here().name(),
                standing.activity
            );
            Check::bad(
                "service",
                Verdict::Failed,
                found,
                "`longhaul start` starts it; `longhaul logs` says why it ended",
            )
        }
        Err(_) => {
            let found =
                format!("it does not run, and {} cannot be asked in this login", Manager::here().name());
            Check::bad("service", Verdict::Failed, found, install)
        }
    }
}

/// The state of the background service, as the system's own manager knows it.
pub fn standing() -> anyhow::Result<Standing> {
    Ok(Manager::here().standing(&service()?, &System)?)
}

fn service() -> anyhow::Result<Service> {
    let folder = platform::service_directory()
        .ok_or_else(|| Usage("HOME is not set, so there is no place for a background service".to_owned()))?;
    Ok(Service { definition: folder.join(Manager::here().file_name()), user: platform::user_id() })
}

/// The configuration that the service is to have; it has to be there.
fn configuration(shared: &Shared) -> anyhow::Result<PathBuf> {
    let path = places::config_file(shared)?;
    if path.exists() {
        return Ok(path);
    }
    let message = format!("there is no configuration at {}: `longhaul init` makes one", path.display());
    Err(Usage(message).into())
}

/// The daemon's program beside this one, by a path that stays.
fn daemon() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("find longhaul's own program file")?;
    let program = own.with_file_name(DAEMON);
    if !program.is_file() {
        let message =
            format!("there is no {}: it belongs beside longhaul. Install both again", program.display());
        return Err(Usage(message).into());
    }
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let found = stable_program(&program, &folders, &|path: &Path| path.canonicalize().ok());
    if let Some(warning) = found.warning {
        anstream::eprintln!("longhaul: {warning}");
    }
    Ok(found.path)
}

/// A person may have moved the folders for data, and the service's environment does not know of it by itself.
fn moved_folders() -> std::collections::BTreeMap<String, std::ffi::OsString> {
    const FOLDERS: [&str; 3] = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
    let moved = FOLDERS.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)));
    moved.filter(|(_, value)| Path::new(value).is_absolute()).collect()
}

fn refuse_rivals(manager: Manager, service: &Service, mode: Mode) -> anyhow::Result<()> {
    let rivals = match mode {
        Mode::Do => manager.rivals(service, &System)?,
        Mode::Show => manager.rivals(service, &System).unwrap_or_default(),
    };
    match rivals.first() {
        None => Ok(()),
        Some(rival) => Err(Usage(format!(
            "Homebrew runs longhaul already ({rival}), and two would measure each other: `brew services stop longhaul` \
             first"
        ))
        .into()),
    }
}

/// What a person has to know that longhaul cannot do for them.
fn advise(manager: Manager, service: &Service) {
    match (manager, manager.survives_logout(service, &System)) {
        (Manager::Launchd, _) => anstream::println!(
            "macOS may ask whether longhauld may use files on network volumes: allow it, or every run there fails. It \
             runs while you are logged in at the screen."
        ),
        (Manager::Systemd, Some(true)) => {
            anstream::println!("Your services linger: it also runs while nobody is logged in.");
        }
        (Manager::Systemd, Some(false) | None) => anstream::println!(
            "It stops when you log out for the last time, unless your services linger: `loginctl enable-linger` lets it \
             run from the machine's start to its end."
        ),
    }
    anstream::println!("`longhaul logs -f` shows what it does.");
}

/// Starts the service.
pub fn start(doing: &Doing) -> anyhow::Result<ExitCode> {
    let (manager, service, standing) = installed()?;
    go_through(&manager.start(&service, &standing), doing.into())?;
    conclude(doing, &service)
}

/// Stops the service until it is started, or until the next login.
pub fn stop(doing: &Doing) -> anyhow::Result<ExitCode> {
    let (manager, service, _) = installed()?;
    go_through(&manager.stop(&service), doing.into())?;
    conclude(doing, &service)
}

/// Stops the service and starts it.
pub fn restart(doing: &Doing) -> anyhow::Result<ExitCode> {
    let (manager, service, standing) = installed()?;
    go_through(&manager.restart(&service, &standing), doing.into())?;
    conclude(doing, &service)
}

fn installed() -> anyhow::Result<(Manager, Service, Standing)> {
    let (manager, service) = (Manager::here(), service()?);
    let standing = manager.standing(&service, &System)?;
    if is_absent(&standing) {
        return Err(Usage("the service is not installed: `longhaul install`".to_owned()).into());
    }
    Ok((manager, service, standing))
}

fn is_absent(standing: &Standing) -> bool {
    !standing.defined && standing.activity == Activity::Absent
}

fn conclude(doing: &Doing, service: &Service) -> anyhow::Result<ExitCode> {
    if !doing.dry_run {
        anstream::println!("longhaul is {}.", Manager::here().standing(service, &System)?.activity);
    }
    Ok(exit::OK)
}

/// Does steps, telling each; or only shows them, with all that would be written.
fn go_through(steps: &[Step], mode: Mode) -> anyhow::Result<()> {
    match mode {
        Mode::Do => perform(steps, &System, &mut |step| anstream::println!("{step}"))?,
        Mode::Show if steps.is_empty() => anstream::println!("would do nothing"),
        Mode::Show => steps.iter().for_each(show),
    }
    Ok(())
}

fn show(step: &Step) {
    anstream::println!("would {step}");
    if let Step::Write { content, .. } = step {
        let text = String::from_utf8_lossy(content);
        text.lines().for_each(|line| anstream::println!("{}", format!("    {line}").trim_end()));
    }
}
