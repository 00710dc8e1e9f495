//! What `uninstall --purge` removes beside the service: the sandboxes of all targets, the results, the configuration, the
//! logs. Files go by their names, and no link is followed. What stays is named.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use longhaul_measure::arena::{Claim, CleanReport, Mode};
use longhaul_measure::inventory::{Inventory, Left, Reason};
use longhaul_measure::model::{Family, Target};
use longhaul_service::config::Config;
use longhaul_service::exclusive::Exclusive;
use longhaul_service::worker::Worker;
use longhaul_store::{Reader, StoredEpoch, StoredTarget};

use super::super::clean;
use super::own_folders::{KnownTargets, Origin, OwnFolder, own_folders};
use super::uninstall::Uninstall;
use crate::arguments::Shared;
use crate::{exit, places};

/// How long a worker that has nothing to do any more may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// What is to go.
pub struct Purge {
    database: PathBuf,
    known: Known,
    targets: Vec<Target>,
    folders: Vec<OwnFolder>,
}

/// Finds out what there is. Touches no target.
pub fn plan(shared: &Shared) -> anyhow::Result<Purge> {
    // what cannot be read can be removed all the same
    let config = places::config(shared).unwrap_or_else(|error| {
        anstream::eprintln!("longhaul: the configuration says nothing of targets and places: {error:#}");
        Config::default()
    });
    let database = places::database(shared, &config)?;
    let known = if database.exists() { Known::read(&database) } else { Ok(Known::default()) };
    let known = known.unwrap_or_else(|error| {
        anstream::eprintln!(
            "longhaul: the test data on targets cannot be found, as the database cannot be read: {error}"
        );
        Known::default()
    });
    let folders = own_folders(&database, &places::config_file(shared)?);
    Ok(Purge { targets: targets(&config, &known), folders, database, known })
}

/// What the database knows.
#[derive(Default)]
struct Known {
    machine: Option<String>,
    targets: Vec<StoredTarget>,
    epochs: Vec<StoredEpoch>,
}

impl Known {
    fn read(database: &Path) -> longhaul_store::Result<Self> {
        let reader = Reader::open(database)?;
        Ok(Self { machine: reader.machine_id()?, targets: reader.targets()?, epochs: reader.epochs()? })
    }
}

/// All that are configured and all that were ever measured, each path of each name once.
fn targets(config: &Config, known: &Known) -> Vec<Target> {
    let mut targets = config.targets.clone();
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

/// A path that stays, and the reason.
struct Kept {
    path: PathBuf,
    reason: String,
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl Purge {
    /// Whether the person wants it, having seen it.
    pub fn is_wanted(&self, arguments: &Uninstall) -> anyhow::Result<bool> {
        if arguments.yes {
            return Ok(true);
        }
        self.show();
        clean::confirmed("Remove all of this, for ever?")
    }

    /// Prints what would go, and what would stay.
    pub fn show(&self) {
        self.show_targets();
        for folder in &self.folders {
            let inventory = folder.inventory(&self.known_targets());
            for going in inventory.going() {
                let files = going.files.map_or(String::new(), |files| format!(" ({files} files)"));
                anstream::println!("would remove {}{files}", going.path.display());
            }
            if folder.origin == Origin::Longhaul && folder.path.is_dir() && inventory.left.is_empty() {
                anstream::println!("would remove {}", folder.path.display());
            }
            kept(folder, inventory.left).iter().for_each(|kept| anstream::println!("would leave {kept}"));
        }
    }

    fn show_targets(&self) {
        let verb = if self.database_link().is_some() { "leave" } else { "remove" };
        for target in &self.targets {
            match self.arena(target) {
                Some(arena) => {
                    anstream::println!(
                        "would {verb} the test data of `{}`: {}",
                        target.name,
                        arena.display()
                    );
                }
                None => anstream::println!("nothing was measured on `{}`", target.name),
            }
        }
    }

    fn arena(&self, target: &Target) -> Option<PathBuf> {
        let claim =
            Claim { target_path: &target.path, target: &target.name, machine: self.known.machine.as_ref()? };
        Some(target.path.join(claim.folder_name()))
    }

    fn known_targets(&self) -> KnownTargets {
        KnownTargets {
            names: self.targets.iter().map(|target| target.name.clone()).collect(),
            sandboxes: self.targets.iter().filter_map(|target| self.arena(target)).collect(),
        }
    }

    /// The folder of the database, if it is a symbolic link.
    fn database_link(&self) -> Option<&OwnFolder> {
        let folder =
            self.folders.iter().find(|folder| Some(folder.path.as_path()) == self.database.parent())?;
        folder.link().map(|_| folder)
    }

    /// Removes it, and names what is left.
    pub fn carry_out(self) -> anyhow::Result<ExitCode> {
        let mut left = vec![];
        if self.database_link().is_some() {
            left.extend(
                self.known_targets()
                    .sandboxes
                    .into_iter()
                    .map(|path| Kept { path, reason: "the database that knows of it stays".to_owned() }),
            );
            left.extend(self.remove_files(self.inventories()));
        } else {
            // whoever measures still would make anew what is removed
            let exclusive = Exclusive::take(&self.database)?;
            // taken before workers remove the files that tell a folder of ours from one that only has its name
            let inventories = self.inventories();
            left.extend(self.targets.iter().filter_map(|target| self.clean(target)));
            left.extend(self.remove_files(inventories));
            drop(exclusive);
        }
        let own = self.folders.iter().filter(|folder| folder.origin == Origin::Longhaul);
        let emptied: Vec<Kept> = own.filter_map(|folder| remove_own(&folder.path, &left)).collect();
        left.extend(emptied);
        Ok(conclude(&left))
    }

    fn inventories(&self) -> Vec<Inventory> {
        self.folders.iter().map(|folder| folder.inventory(&self.known_targets())).collect()
    }

    fn remove_files(&self, inventories: Vec<Inventory>) -> Vec<Kept> {
        let mut left = vec![];
        for (folder, mut inventory) in self.folders.iter().zip(inventories) {
            left.extend(kept(folder, std::mem::take(&mut inventory.left)));
            left.extend(kept(folder, inventory.remove()));
        }
        left
    }

    /// Gives back what is held on a target; says what is left there.
    fn clean(&self, target: &Target) -> Option<Kept> {
        let arena = self.arena(target)?;
        let reason = self.clean_sandbox(target, &arena)?;
        Some(Kept { path: arena, reason })
    }

    fn clean_sandbox(&self, target: &Target, arena: &Path) -> Option<String> {
        let launcher = match places::launcher(&self.database, self.known.machine.as_ref()?) {
            Ok(launcher) => launcher,
            Err(error) => return Some(error.to_string()),
        };
        let mut worker = Worker::new(target.clone(), launcher);
        let by_hand = "Once the share is there again, remove that folder by hand";
        let cleaned = clean::clean(&mut worker, Mode::Remove, &|| false);
        // its lock lies in a folder that is to be removed
        worker.dismiss();
        worker.await_end(ENDS_WITHIN);
        match cleaned {
            Ok(Some(report)) => {
                clean::print_report(&report, target, "removed");
                foreign(&report, arena)
            }
            Ok(None) if self.is_elsewhere(&worker) => {
                Some(format!("the share is not mounted there now. {by_hand}"))
            }
            Ok(None) => None,
            Err(error) => Some(format!("{error}. {by_hand}")),
        }
    }

    /// Whether the target was once a share and is a local folder now, as an empty mount point is.
    fn is_elsewhere(&self, worker: &Worker) -> bool {
        let is_local = |family| matches!(family, Family::Local | Family::Other);
        let target = worker.target();
        let here = |epoch: &&StoredEpoch| epoch.target == target.name && epoch.path == target.path;
        let once = self.known.epochs.iter().rfind(here).and_then(|epoch| epoch.protocol.as_ref());
        let now = worker.protocol.as_ref().map(|protocol| protocol.family());
        once.is_some_and(|protocol| !is_local(protocol.family())) && now.is_none_or(is_local)
    }
}

fn foreign(report: &CleanReport, arena: &Path) -> Option<String> {
    let foreign = report.foreign.iter().filter(|path| path.starts_with(arena)).count();
    (!report.arena_removed).then(|| format!("{foreign} files in it that longhaul did not make"))
}

/// Says of what stays in a folder why, and what can be done.
fn kept(folder: &OwnFolder, left: Vec<Left>) -> Vec<Kept> {
    let one = |left: Left| {
        let reason = match (folder.link(), &left.reason) {
            (Some(real), Reason::Link) if left.path == folder.path => {
                format!("{} (to {}). {}", left.reason, real.display(), folder.advice(&real))
            }
            _ => left.reason.to_string(),
        };
        Kept { path: left.path, reason }
    };
    left.into_iter().map(one).collect()
}

/// Removes a folder of longhaul that is empty now; says what is in it where nothing in it was named so far.
fn remove_own(folder: &Path, left: &[Kept]) -> Option<Kept> {
    let error = fs::remove_dir(folder).err().filter(|error| error.kind() != ErrorKind::NotFound)?;
    if left.iter().any(|kept| kept.path.starts_with(folder)) {
        return None;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let reason =
        if names.is_empty() { error.to_string() } else { format!("it still holds {}", names.join(", ")) };
    Some(Kept { path: folder.to_owned(), reason })
}

fn conclude(left: &[Kept]) -> ExitCode {
    if left.is_empty() {
        anstream::println!("Nothing of longhaul is left but its programs.");
        return exit::OK;
    }
    left.iter().for_each(|kept| anstream::eprintln!("longhaul: left behind: {kept}"));
    anstream::eprintln!("longhaul: look at what was left behind, and remove by hand what you do not need");
    ExitCode::from(exit::ERROR)
}
