//! `longhaul selfcheck`: every platform call once, on this machine and on each target.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_launchd::Standing;
use longhaul_measure::model::{Mount, Role, Target};
use longhaul_measure::platform;
use longhaul_measure::selfcheck::{
    Answer, Expectation, Expectations, MACHINE, MachineCheck, Question, Verdict,
};
use longhaul_service::config::Config;
use longhaul_service::exclusive::Exclusive;
use longhaul_service::selfcheck::{Section, SelfCheck, count};
use longhaul_store::Reader;

use super::measure::listen_for_interrupt;
use super::service;
use crate::arguments::{SelfCheckArguments, Shared};
use crate::{exit, places, render};

/// The system's own manager of services, which only the command line asks.
const SERVICE_MANAGER: MachineCheck = MachineCheck {
    call: "service manager",
    expected: Expectations {
        linux: Expectation { text: "it answers", source: "systemctl(1)" },
        macos: Expectation { text: "it answers", source: "man launchctl(1), print" },
    },
    question: Question::Call(service_manager),
};

/// Makes every call and prints the table.
pub fn run(shared: &Shared, arguments: &SelfCheckArguments) -> anyhow::Result<ExitCode> {
    let config = places::config(shared)?;
    let database = places::database(shared, &config)?;
    // A run beside it would wait for these calls, and they for the run.
    let _alone = Exclusive::take(&database)?;
    let launcher = places::launcher(&database, &machine_id(&database))?;
    let mounts = platform::mounts().context("read the mount table")?;
    let (targets, _folder) = targets(arguments, &config, &mounts)?;
    let interrupted = listen_for_interrupt()?;
    let self_check = SelfCheck {
        launcher: &launcher,
        targets: &targets,
        mounts: &mounts,
        limit: Duration::from_secs(arguments.limit),
        interrupted: &|| interrupted.load(Ordering::Relaxed),
    };
    let sections = self_check.run(&[SERVICE_MANAGER]);
    print(&sections, arguments)?;
    let differs = count(&sections, Verdict::Differs) > 0;
    Ok(if differs { ExitCode::from(exit::RUN_FAILED) } else { exit::OK })
}

/// The id in the name of the sandbox: that of the database, so that `longhaul clean` knows it. Without one there may be no
/// database either, and none is made for this.
fn machine_id(database: &Path) -> String {
    let known = Reader::open(database).and_then(|reader| reader.machine_id());
    known.ok().flatten().unwrap_or_else(|| MACHINE.to_owned())
}

/// The targets that are given, those of the configuration, or a temporary folder.
fn targets(
    arguments: &SelfCheckArguments,
    config: &Config,
    mounts: &[Mount],
) -> anyhow::Result<(Vec<Target>, Option<TemporaryFolder>)> {
    let given = places::targets(&arguments.targets, mounts)?;
    if !given.is_empty() || !config.targets.is_empty() {
        return Ok((if given.is_empty() { config.targets.clone() } else { given }, None));
    }
    let folder = TemporaryFolder::new()?;
    let name = "local".parse().context("name the temporary folder")?;
    Ok((vec![Target { name, path: folder.0.clone(), role: Role::Baseline }], Some(folder)))
}

/// A folder on the local disk that goes with this value, if nothing is left in it.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("longhaul-selfcheck-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir(&self.0) {
            anstream::eprintln!("longhaul: left behind: {}: {error}", self.0.display());
        }
    }
}

fn service_manager() -> Answer {
    match service::standing() {
        Ok(Standing { defined: false, .. }) => Answer::ok("answers: not installed"),
        Ok(Standing { activity, .. }) => Answer::ok(format!("answers: {activity}")),
        Err(_) => Answer::unknown("cannot be asked in this login"),
    }
}

fn print(sections: &[Section], arguments: &SelfCheckArguments) -> anyhow::Result<()> {
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&render::selfcheck::json(sections))?);
    } else {
        anstream::println!("{}", render::selfcheck::markdown(sections));
    }
    Ok(())
}
