//! `longhaul targets clean TARGET`: deletes longhaul's data on a target.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use longhaul_launchd::shell_quote;
use longhaul_measure::sandbox::{CleanMode, CleanReport, FOLDER_PREFIX, MAX_FOREIGN_LISTED};
use longhaul_measure::worker::FailureReport;
use longhaul_measure::{local_folder, platform};
use longhaul_model::Target;
use longhaul_service::worker::{
    EXIT_TIMEOUT, Interruption, RequestOptions, SilentObserver, Worker, end_workers,
};
use longhaul_store::{Error, Reader};
use longhaul_view::units;
use longhaul_view::units::count;

use super::init::prompt::{DefaultAnswer, TerminalPrompter, ask_yes_no};
use super::run::Session;
use crate::arguments::{CleanArgs, GlobalArgs};
use crate::errors::UsageError;
use crate::paths::TargetSources;
use crate::{exit, paths};

/// Maximum duration of one delete operation.
pub const OPERATION_CAP: Duration = Duration::from_secs(60);
/// Time that the operation in flight may take after Ctrl-C or SIGTERM, before its worker is abandoned.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(2);

/// Lists what would be removed, asks, and removes it.
pub fn run(shared: &GlobalArgs, arguments: &CleanArgs) -> anyhow::Result<ExitCode> {
    let config = paths::load_config(shared)?;
    let database = paths::database(shared, &config)?;
    // Only a database that exists is opened for writing, which brings an older one up to date.
    if let Err(error) = Reader::open(&database)
        && !matches!(error, Error::SchemaTooOld { .. })
    {
        return Err(error.into());
    }
    let mounts = platform::mounts().context("read the mount table")?;
    let session = Session::open(database.clone(), &mounts)?;
    let sources = TargetSources { config: &config, database: &database, mounts: &mounts };
    let target = paths::find_target(&arguments.target, sources)
        .map_err(|error| UsageError(format!("{error}. Any other folder: NAME=PATH")))?;
    let mut worker = Worker::new(target, session.launcher.clone());
    let cleaned =
        ask_and_clean(&mut worker, arguments, &session).and_then(|()| print_others(&mut worker, &session));
    end_workers([&mut worker], EXIT_TIMEOUT);
    cleaned.map(|()| exit::OK)
}

fn ask_and_clean(worker: &mut Worker, arguments: &CleanArgs, session: &Session) -> anyhow::Result<()> {
    let target = worker.target().clone();
    let local = session.launcher.local_folder.join(target.name.as_str());
    let local_files = local_folder::count_files(&local);
    let mut clean = |mode| clean(worker, mode, OPERATION_CAP, &session.interruption).map_err(failed);
    let report = clean(CleanMode::List)?;
    if report.is_none() && local_files == 0 {
        let (name, path) = (&target.name, target.path.display());
        crate::output::print_line(format_args!("longhaul has no data for `{name}` in {path}."));
        return Ok(());
    }
    let print = |report: Option<CleanReport>, verb: &str| {
        if local_files > 0 {
            let files = count(local_files, "file");
            crate::output::print_line(format_args!("{verb} {}: {files}", local.display()));
        }
        report.iter().for_each(|report| print_report(report, &target, verb));
    };
    if !arguments.yes {
        print(report, "would remove");
    }
    if !arguments.yes && !confirm("Remove it?")? {
        crate::output::println!("Nothing was removed.");
        return Ok(());
    }
    print(clean(CleanMode::Remove)?, "removed");
    if local.exists() {
        let path = local.display();
        crate::output::print_line(format_args!(
            "stays: {path} (it contains files that longhaul did not create)"
        ));
    }
    Ok(())
}

/// Lists or removes longhaul's data on a target; `None` if there is none. No operation may take longer than `cap`. A hung one
/// ends it soon after an interrupt.
pub fn clean(
    worker: &mut Worker,
    mode: CleanMode,
    cap: Duration,
    interruption: &Interruption,
) -> Result<Option<CleanReport>, FailureReport> {
    let observer = &mut SilentObserver;
    let mut options = RequestOptions { cap, stop_timeout: INTERRUPT_TIMEOUT, interruption, observer };
    worker.clean_sandbox(mode, &mut options)
}

fn failed(report: FailureReport) -> anyhow::Error {
    anyhow::anyhow!(report.failure.message)
}

/// Prints the sandboxes in the target's folder that belong to other targets, machines or databases.
fn print_others(worker: &mut Worker, session: &Session) -> anyhow::Result<()> {
    let mut options = RequestOptions {
        cap: OPERATION_CAP,
        stop_timeout: INTERRUPT_TIMEOUT,
        interruption: &session.interruption,
        observer: &mut SilentObserver,
    };
    let names = worker.other_sandboxes(&mut options).map_err(failed)?;
    let own = format!("{FOLDER_PREFIX}{}-", session.launcher.machine_id);
    let folder = &worker.target().path;
    for name in names {
        let path = folder.join(&name);
        let owner = match name.strip_prefix(&own) {
            Some(target) => {
                let argument = shell_quote(&format!("{target}={}", folder.display()));
                format!("of target `{target}`; `longhaul targets clean {argument}` removes it")
            }
            None => "of another computer, or of an earlier database of this one; if nothing uses it any more, delete it by hand"
                .to_owned(),
        };
        crate::output::print_line(format_args!("stays: {} ({owner})", path.display()));
    }
    Ok(())
}

/// Prints what was or would be removed, and what stays.
pub fn print_report(report: &CleanReport, target: &Target, verb: &str) {
    for (name, files, bytes) in &report.folders {
        let (files, bytes) = (count(*files, "file"), units::bytes(*bytes as f64));
        crate::output::print_line(format_args!("{verb} {name}: {files}, {bytes}"));
    }
    for path in &report.foreign {
        crate::output::print_line(format_args!("stays: {} (not created by longhaul)", path.display()));
    }
    let unlisted = report.foreign_count.saturating_sub(MAX_FOREIGN_LISTED as u64);
    if unlisted > 0 {
        crate::output::println!("stays: {unlisted} more (not created by longhaul)");
    }
    let path = target.path.display();
    crate::output::print_line(match report.sandbox_removed {
        true => format!("{verb} the sandbox in {path}"),
        false => format!("the sandbox in {path} stays, because it contains other files"),
    });
}

/// Asks the user for confirmation. Fails without a terminal.
pub fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(
            UsageError("cannot ask for confirmation without a terminal: give --yes".to_owned()).into()
        );
    }
    Ok(ask_yes_no(&mut TerminalPrompter, question, DefaultAnswer::No)?)
}
