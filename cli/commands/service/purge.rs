//! The part of `uninstall --purge` after the service is removed: deletes the sandboxes of all targets, the
//! results, the configuration and the logs. Files are recognized by name, links are not followed, and everything
//! that stays is listed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use longhaul_measure::inventory::{Inventory, NotRemoved, NotRemovedReason};
use longhaul_measure::platform;
use longhaul_measure::sandbox::{CleanMode, CleanReport, SandboxLocation};
use longhaul_model::{Hint, Protocol, ProtocolFamily, Target};
use longhaul_service::config::Config;
use longhaul_service::database_lock::DatabaseLock;
use longhaul_service::worker::{EXIT_TIMEOUT, Interruption, Worker, end_workers};
use longhaul_store::{Reader, Store, StoredEpoch, StoredTarget};
use longhaul_view::render::terminal::visible;
use longhaul_view::units::count;

use super::super::{clean, trial};
use super::own_folders::{FolderOwner, KnownTargets, OwnFolder, own_folders};
use crate::arguments::{GlobalArgs, UninstallArgs};
use crate::{errors, exit, paths};

/// The files and folders to delete.
pub struct Purge {
    database: PathBuf,
    database_facts: DatabaseFacts,
    targets: Vec<Target>,
    folders: Vec<OwnFolder>,
    /// False if the database was named and is not that of the configuration, which then stays.
    is_of_config: bool,
}

/// Determines what can be deleted, without touching a target.
pub fn plan(shared: &GlobalArgs) -> anyhow::Result<Purge> {
    // Files can be deleted even if the configuration cannot be read, so that is only reported.
    let config = paths::load_config(shared).unwrap_or_else(|error| {
        let why = errors::text(&error);
        crate::output::eprintln!(
            "longhaul: the configuration cannot be read, so its targets and paths are unknown: {why}"
        );
        Config::default()
    });
    let database = paths::database(shared, &config)?;
    let known = DatabaseFacts::of(&database)?;
    let is_of_config =
        paths::database(&GlobalArgs { database: None, ..shared.clone() }, &config)? == database;
    let config_file = is_of_config.then(|| paths::config_file(shared)).transpose()?;
    let folders = own_folders(&database, config_file.as_deref());
    let configured = if is_of_config { config.targets } else { vec![] };
    let targets = all_targets(configured, &known);
    Ok(Purge { targets, folders, database, database_facts: known, is_of_config })
}

/// The information from the database that a purge needs.
#[derive(Default)]
struct DatabaseFacts {
    state: DatabaseState,
    machine: Option<String>,
    /// Machine ids of the other computers that used the database.
    other_machines: Vec<String>,
    targets: Vec<StoredTarget>,
    epochs: Vec<StoredEpoch>,
}

/// Knowledge that the database gives.
#[derive(Default, PartialEq)]
enum DatabaseState {
    /// Everything, also if there is none.
    #[default]
    Known,
    /// Nothing yet: an older version has written it, so it is brought up to date first.
    Older,
    /// Nothing: it cannot be read.
    Unreadable,
}

impl DatabaseFacts {
    /// Reads a database, which need not exist and is not changed. One that is damaged can be deleted, but has no facts.
    ///
    /// # Errors
    ///
    /// If a newer version has written it, which can read what is on the targets, or if it is in use.
    fn of(database: &Path) -> anyhow::Result<Self> {
        use longhaul_store::Error;
        let without_facts = |state| Ok(Self { state, ..Self::default() });
        match Self::read(database) {
            Ok(facts) => Ok(facts),
            Err(Error::NoDatabase { .. }) => Ok(Self::default()),
            Err(Error::SchemaTooOld { .. }) => without_facts(DatabaseState::Older),
            Err(error @ (Error::SchemaTooNew { .. } | Error::Locked { .. })) => Err(error.into()),
            Err(error) => {
                crate::output::eprintln!(
                    "longhaul: the test data on targets cannot be found, as the database cannot be read: {}",
                    error.one_line()
                );
                without_facts(DatabaseState::Unreadable)
            }
        }
    }

    fn read(database: &Path) -> longhaul_store::Result<Self> {
        let reader = Reader::open(database)?;
        Ok(Self {
            state: DatabaseState::Known,
            machine: reader.own_machine_id()?,
            other_machines: reader.machine_ids_elsewhere()?,
            targets: reader.targets()?,
            epochs: reader.epochs()?,
        })
    }
}

/// Returns all targets from the configuration and the database; a target that had several paths is listed with
/// each.
fn all_targets(configured: Vec<Target>, known: &DatabaseFacts) -> Vec<Target> {
    let mut targets = configured;
    for StoredTarget { target, .. } in &known.targets {
        let epochs = known.epochs.iter().filter(|epoch| epoch.target == target.name);
        for path in epochs.map(|epoch| &epoch.path).chain([&target.path]) {
            if !targets.iter().any(|other| other.name == target.name && other.path == *path) {
                targets.push(Target { path: path.clone(), ..target.clone() });
            }
        }
    }
    targets
}

/// A path that was not deleted, with the reason.
#[derive(Clone)]
struct Remaining {
    path: PathBuf,
    reason: String,
}

impl std::fmt::Display for Remaining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&visible(&format!("{}: {}", self.path.display(), self.reason)))
    }
}

impl Purge {
    /// Lists what would be deleted and asks the user for confirmation.
    pub fn confirm(&self, arguments: &UninstallArgs) -> anyhow::Result<bool> {
        if arguments.yes {
            return Ok(true);
        }
        self.print();
        clean::confirm("Remove all of this permanently?")
    }

    /// Prints what would be deleted, and what would stay.
    pub fn print(&self) {
        self.print_targets();
        for folder in &self.folders {
            let inventory = folder.inventory(&self.known_targets());
            for entry in inventory.removable() {
                let files = entry.files.map_or(String::new(), |files| format!(" ({})", count(files, "file")));
                crate::output::print_line(format_args!("would remove {}{files}", entry.path.display()));
            }
            if folder.path_owner == FolderOwner::Longhaul
                && folder.path.is_dir()
                && inventory.not_removed.is_empty()
            {
                crate::output::print_line(format_args!("would remove {}", folder.path.display()));
            }
            remaining(folder, inventory.not_removed)
                .iter()
                .for_each(|item| crate::output::println!("would leave {item}"));
        }
    }

    fn print_targets(&self) {
        let verb = if self.database_link().is_some() { "leave" } else { "remove" };
        for target in &self.targets {
            match self.sandbox(target) {
                Some(sandbox) => {
                    let (name, path) = (&target.name, sandbox.display());
                    crate::output::print_line(format_args!("would {verb} the test data of `{name}`: {path}"));
                }
                None if target.path == trial::folder(&self.database)
                    || self.database_facts.state != DatabaseState::Known
                    || !self.database_facts.other_machines.is_empty() => {}
                None => crate::output::println!("nothing was measured on `{}`", target.name),
            }
        }
        if self.database_facts.state == DatabaseState::Older {
            crate::output::println!(
                "would bring the database up to date, and then {verb} the test data of the targets in it"
            );
        }
        let left = [self.unknown_sandboxes(), self.sandboxes_of_others()].concat();
        left.iter().for_each(|item| crate::output::println!("would leave {item}"));
    }

    /// Returns the sandboxes of the other computers that used the database: they may still be in use there.
    fn sandboxes_of_others(&self) -> Vec<Remaining> {
        let machines = self.database_facts.other_machines.iter().map(String::as_str);
        let paths = machines.flat_map(|machine| {
            self.targets.iter().filter_map(move |target| self.sandbox_of(target, machine))
        });
        let reason = "may have test data of a computer that used this database before. If it no longer needs it, remove it by hand";
        paths.map(|path| Remaining { path, reason: reason.to_owned() }).collect()
    }

    /// Returns the sandboxes that may exist and are not known, because the database cannot be read.
    fn unknown_sandboxes(&self) -> Vec<Remaining> {
        if self.database_facts.state != DatabaseState::Unreadable {
            return vec![];
        }
        let reason = "test data, if this machine measured there: which folder it is in was only in the database. Remove it by hand";
        let of_target = |target: &Target| target.path.join(format!(".longhaul-*-{}", target.name));
        let any = PathBuf::from("FOLDER/.longhaul-* on each share that was measured");
        let known: Vec<PathBuf> = self.targets.iter().map(of_target).collect();
        let all = if known.is_empty() { vec![any] } else { known };
        all.into_iter().map(|path| Remaining { path, reason: reason.to_owned() }).collect()
    }

    /// Returns the sandbox of a target. `None`: nothing was measured, or the target was the folder of `longhaul try`, and is gone.
    /// No other target is looked at, because a share may not answer.
    fn sandbox(&self, target: &Target) -> Option<PathBuf> {
        self.sandbox_of(target, self.database_facts.machine.as_ref()?)
    }

    /// Like [`Purge::sandbox`], for any computer, by its machine id.
    fn sandbox_of(&self, target: &Target, machine: &str) -> Option<PathBuf> {
        if target.path == trial::folder(&self.database) && !target.path.exists() {
            return None;
        }
        let claim = SandboxLocation { target_path: &target.path, target: &target.name, machine };
        Some(target.path.join(claim.folder_name()))
    }

    fn known_targets(&self) -> KnownTargets {
        KnownTargets {
            names: self.targets.iter().map(|target| target.name.clone()).collect(),
            sandboxes: self.targets.iter().filter_map(|target| self.sandbox(target)).collect(),
        }
    }

    /// Returns the folder of the database, if it is a symbolic link.
    fn database_link(&self) -> Option<&OwnFolder> {
        let folder =
            self.folders.iter().find(|folder| Some(folder.path.as_path()) == self.database.parent())?;
        folder.link_target().map(|_| folder)
    }

    /// Deletes everything and prints what is left.
    pub fn execute(mut self) -> anyhow::Result<ExitCode> {
        let mut left = self.unknown_sandboxes();
        if self.database_link().is_some() {
            left.extend(self.known_targets().sandboxes.into_iter().map(|path| Remaining {
                path,
                reason: "the database that refers to it is not removed".to_owned(),
            }));
            left.extend(self.remove_files(self.inventories()));
        } else {
            // The lock keeps a running measurement from creating deleted files again.
            let mounts = platform::mounts().context("read the mount table")?;
            let exclusive = DatabaseLock::acquire(&self.database, &mounts)?;
            if self.database_facts.state == DatabaseState::Older {
                drop(Store::open(&self.database, &mounts)?);
                self.database_facts = DatabaseFacts::read(&self.database)?;
                self.targets = all_targets(std::mem::take(&mut self.targets), &self.database_facts);
            }
            // The inventory is taken first, because workers delete the files by which longhaul's own folders are
            // recognized.
            let inventories = self.inventories();
            left.extend(self.targets.iter().filter_map(|target| self.clean_target(target)));
            left.extend(self.remove_files(inventories));
            drop(exclusive);
        }
        let own = self.folders.iter().filter(|folder| folder.path_owner == FolderOwner::Longhaul);
        let emptied: Vec<Remaining> =
            own.filter_map(|folder| remove_empty_folder(&folder.path, &left)).collect();
        left.extend(emptied);
        // Not counted as left behind: it is not known if there is any, and it may still be in use.
        self.sandboxes_of_others().iter().for_each(|item| crate::output::println!("note: {item}"));
        Ok(self.print_remaining(&left))
    }

    fn inventories(&self) -> Vec<Inventory> {
        self.folders.iter().map(|folder| folder.inventory(&self.known_targets())).collect()
    }

    fn remove_files(&self, inventories: Vec<Inventory>) -> Vec<Remaining> {
        let mut left = vec![];
        for (folder, mut inventory) in self.folders.iter().zip(inventories) {
            left.extend(remaining(folder, std::mem::take(&mut inventory.not_removed)));
            left.extend(remaining(folder, inventory.remove()));
        }
        left
    }

    /// Prints what is left. Returns the exit code.
    fn print_remaining(&self, left: &[Remaining]) -> ExitCode {
        if left.is_empty() {
            let kept = if self.is_of_config { "" } else { ", the configuration and the usual results" };
            crate::output::println!("Everything except longhaul's programs was removed{kept}.");
            return exit::OK;
        }
        left.iter().for_each(|item| crate::output::eprintln!("longhaul: left behind: {item}"));
        crate::output::eprintln!("longhaul: check what was left behind, and remove what you do not need");
        ExitCode::from(exit::ERROR)
    }

    /// Deletes the sandbox of a target; returns what is left of it.
    fn clean_target(&self, target: &Target) -> Option<Remaining> {
        let sandbox = self.sandbox(target)?;
        let reason = self.clean_sandbox(target)?;
        Some(Remaining { path: sandbox, reason })
    }

    fn clean_sandbox(&self, target: &Target) -> Option<String> {
        let launcher = match paths::launcher(&self.database, self.database_facts.machine.as_ref()?) {
            Ok(launcher) => launcher,
            Err(error) => return Some(error.to_string()),
        };
        let mut worker = Worker::new(target.clone(), launcher);
        let by_hand = "Once the share is mounted again, remove that folder by hand";
        let cleaned =
            clean::clean(&mut worker, CleanMode::Remove, clean::OPERATION_CAP, &Interruption::default());
        // The lock file of the worker is in a folder that is deleted later, so the worker has to exit first.
        end_workers([&mut worker], EXIT_TIMEOUT);
        match cleaned {
            Ok(Some(report)) => {
                clean::print_report(&report, target, "removed");
                foreign_files_text(&report)
            }
            Ok(None) if self.is_unmounted_share(&worker) => {
                Some(format!("the share is not mounted there now. {by_hand}"))
            }
            Ok(None) => None,
            Err(report) => Some(format!("{}. {by_hand}", report.failure.message)),
        }
    }

    /// Returns whether the target was a share but is a local folder now, like an empty mount point.
    fn is_unmounted_share(&self, worker: &Worker) -> bool {
        let is_share = |protocol: &Protocol| protocol.family() != ProtocolFamily::Local;
        let target = worker.target();
        let here = |epoch: &&StoredEpoch| epoch.target == target.name && epoch.path == target.path;
        let once = self.database_facts.epochs.iter().rfind(here).and_then(|epoch| epoch.protocol.as_ref());
        once.is_some_and(is_share) && !worker.protocol.as_ref().is_some_and(is_share)
    }
}

fn foreign_files_text(report: &CleanReport) -> Option<String> {
    let files = count(report.foreign_count, "file");
    (!report.sandbox_removed).then(|| format!("it contains {files} that longhaul did not create"))
}

/// Returns the paths that stay in a folder, each with the reason and with advice.
fn remaining(folder: &OwnFolder, left: Vec<NotRemoved>) -> Vec<Remaining> {
    let one = |left: NotRemoved| {
        let reason = match (folder.link_target(), &left.reason) {
            (Some(real), NotRemovedReason::SymbolicLink) if left.path == folder.path => {
                format!("{} (to {}). {}", left.reason, real.display(), folder.link_advice(&real))
            }
            _ => left.reason.to_string(),
        };
        Remaining { path: left.path, reason }
    };
    left.into_iter().map(one).collect()
}

/// Deletes one of longhaul's folders if it is empty. Otherwise returns its contents, unless something in it was
/// already reported.
fn remove_empty_folder(folder: &Path, left: &[Remaining]) -> Option<Remaining> {
    let error = fs::remove_dir(folder).err().filter(|error| error.kind() != ErrorKind::NotFound)?;
    if left.iter().any(|item| item.path.starts_with(folder)) {
        return None;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let reason =
        if names.is_empty() { error.to_string() } else { format!("it still contains {}", names.join(", ")) };
    Some(Remaining { path: folder.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_foreign_files_are_counted_although_some_are_listed() {
        let report =
            CleanReport { foreign: vec!["/m/x".into()], foreign_count: 500, ..CleanReport::default() };
        let expected = "it contains 500 files that longhaul did not create";
        assert_eq!(foreign_files_text(&report).as_deref(), Some(expected));
    }

    #[test]
    fn test_data_of_another_computer_is_named_and_stays() {
        let role = longhaul_model::Role::Share;
        let target = Target { name: "smb".parse().unwrap(), path: "/m/smb".into(), role };
        let facts =
            DatabaseFacts { other_machines: vec!["0123456789abcdef".to_owned()], ..DatabaseFacts::default() };
        let purge = Purge {
            database: "/d/longhaul.sqlite".into(),
            database_facts: facts,
            targets: vec![target],
            folders: vec![],
            is_of_config: true,
        };
        let left: Vec<PathBuf> = purge.sandboxes_of_others().into_iter().map(|item| item.path).collect();
        assert_eq!(left, [Path::new("/m/smb/.longhaul-0123456789abcdef-smb")]);
        assert!(purge.known_targets().sandboxes.is_empty(), "it is not deleted");
    }
}
