//! What `uninstall --purge` removes beside the service: the arenas of all targets, the results, the configuration, the
//! logs. What cannot be removed is named.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longhaul_measure::arena::{Claim, CleanReport, Mode};
use longhaul_measure::model::{Family, Target};
use longhaul_measure::platform;
use longhaul_service::config::Config;
use longhaul_service::exclusive::Exclusive;
use longhaul_service::worker::Worker;
use longhaul_store::{Reader, StoredEpoch, StoredTarget};

use super::super::clean;
use super::uninstall::Uninstall;
use crate::arguments::Shared;
use crate::{exit, places};

/// What follows the name of a database in the names of the files that SQLite keeps beside it.
const OF_SQLITE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// What follows its name without ending in those of the service: whole endings, and begins of dated ones.
const OF_SERVICE: [&str; 4] = ["lock", "starts", "daemon.json", "daemon.draft"];
const DATED: [&str; 3] = ["damaged-", "kept-", "restored"];
/// The folders of workers and of a trial, beside the database.
const FOLDERS: [&str; 2] = ["local", "try"];

/// What is to go.
pub struct Purge {
    database: PathBuf,
    known: Known,
    targets: Vec<Target>,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
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
    Ok(Purge {
        targets: targets(&config, &known),
        files: files(shared, &database)?,
        folders: FOLDERS.map(|name| database.with_file_name(name)).to_vec(),
        database,
        known,
    })
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

/// The files of longhaul that are there: all in its own folders, and those of a database and a configuration elsewhere.
fn files(shared: &Shared, database: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let beside = database.parent().map(files_in).unwrap_or_default();
    let mut files: Vec<PathBuf> = beside.into_iter().filter(|path| belongs_to(path, database)).collect();
    files.extend(own_folders().iter().flat_map(|folder| files_in(folder)));
    files.extend([places::config_file(shared)?].into_iter().filter(|path| path.is_file()));
    files.sort();
    files.dedup();
    Ok(files)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_file()).collect()
}

/// Whether a file is a database or one that SQLite or the service has put beside it, by its name.
fn belongs_to(path: &Path, database: &Path) -> bool {
    let rest_after =
        |begin: Option<&OsStr>| path.file_name()?.as_encoded_bytes().strip_prefix(begin?.as_encoded_bytes());
    let is = |rest: &[u8], known: &[&str]| known.iter().any(|known| rest == known.as_bytes());
    let begins = |rest: &[u8]| DATED.iter().any(|known| rest.starts_with(known.as_bytes()));
    let of_sqlite =
        rest_after(database.file_name()).is_some_and(|rest| rest.is_empty() || is(rest, &OF_SQLITE));
    let of_service = rest_after(database.file_stem()).and_then(|rest| rest.strip_prefix(b"."));
    of_sqlite || of_service.is_some_and(|rest| is(rest, &OF_SERVICE) || begins(rest))
}

fn own_folders() -> Vec<PathBuf> {
    let folders = [platform::data_directory(), platform::config_directory(), platform::log_directory()];
    let mut folders: Vec<PathBuf> = folders.into_iter().flatten().collect();
    folders.dedup();
    folders
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

    /// Prints what would go.
    pub fn show(&self) {
        for target in &self.targets {
            match self.arena(target) {
                Some(arena) => {
                    anstream::println!("would remove the test data of `{}`: {}", target.name, arena.display())
                }
                None => anstream::println!("nothing was measured on `{}`", target.name),
            }
        }
        let there = self.folders.iter().filter(|folder| folder.is_dir());
        self.files.iter().chain(there).for_each(|path| anstream::println!("would remove {}", path.display()));
    }

    fn arena(&self, target: &Target) -> Option<PathBuf> {
        let claim =
            Claim { target_path: &target.path, target: &target.name, machine: self.known.machine.as_ref()? };
        Some(target.path.join(claim.folder_name()))
    }

    /// Removes it, and names what is left.
    pub fn carry_out(mut self) -> anyhow::Result<ExitCode> {
        // whoever measures still would make anew what is removed
        let exclusive = Exclusive::take(&self.database)?;
        let targets = std::mem::take(&mut self.targets);
        let mut left: Vec<String> = targets.iter().filter_map(|target| self.clean(target)).collect();
        left.extend(self.files.iter().filter_map(|path| refusal(path, fs::remove_file(path))));
        left.extend(self.folders.iter().filter_map(|path| refusal(path, fs::remove_dir_all(path))));
        drop(exclusive);
        left.extend(own_folders().into_iter().filter_map(|folder| remove_own(&folder)));
        if left.is_empty() {
            anstream::println!("Nothing of longhaul is left but its programs.");
            return Ok(exit::OK);
        }
        left.iter().for_each(|what| anstream::eprintln!("longhaul: left behind: {what}"));
        Ok(ExitCode::from(exit::ERROR))
    }

    /// Gives back what is held on a target; says what is left there.
    fn clean(&self, target: &Target) -> Option<String> {
        let (arena, machine) = (self.arena(target)?, self.known.machine.as_ref()?);
        let launcher = match places::launcher(&self.database, machine) {
            Ok(launcher) => launcher,
            Err(error) => return Some(format!("{}: {error}", arena.display())),
        };
        let mut worker = Worker::new(target.clone(), launcher);
        let by_hand = "Once the share is there again, remove that folder by hand";
        match clean::clean(&mut worker, Mode::Remove, &|| false) {
            Ok(Some(report)) => {
                clean::print_report(&report, target, "removed");
                foreign(&report, &arena)
            }
            Ok(None) if self.is_elsewhere(&worker) => {
                Some(format!("{}: the share is not mounted there now. {by_hand}", arena.display()))
            }
            Ok(None) => None,
            Err(error) => Some(format!("{}: {error}. {by_hand}", arena.display())),
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
    (!report.arena_removed).then(|| {
        format!("{}: {} files in it that longhaul did not make", arena.display(), report.foreign.len())
    })
}

fn refusal(path: &Path, result: std::io::Result<()>) -> Option<String> {
    match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Some(format!("{}: {error}", path.display())),
        _ => None,
    }
}

/// Removes a folder of longhaul that is empty now; says what is in it otherwise.
fn remove_own(folder: &Path) -> Option<String> {
    let refused = refusal(folder, fs::remove_dir(folder))?;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        Some(refused)
    } else {
        Some(format!("{}, as it holds {}", folder.display(), names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_put_beside_a_database_belongs_to_it() {
        let belongs = |name: &str| belongs_to(&Path::new("/x").join(name), Path::new("/x/results.sqlite"));
        for name in [
            "results.sqlite",
            "results.sqlite-wal",
            "results.lock",
            "results.daemon.json",
            "results.damaged-17.sqlite",
            "results.damaged-17.sqlite-wal",
        ] {
            assert!(belongs(name), "{name}");
        }
        for name in [
            "results.xlsx",
            "results",
            "results.sqlite.bak",
            "other.lock",
            "my results.sqlite",
            "results.lock2",
        ] {
            assert!(!belongs(name), "{name}");
        }
    }
}
