//! The local folders that longhaul writes to, and all file names that it uses there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use longhaul_launchd::OUTPUT_FILES;
use longhaul_measure::inventory::{Inventory, NotRemoved, NotRemovedReason, Ownership};
use longhaul_measure::{local_folder, platform};
use longhaul_model::TargetName;
use longhaul_service::config::Config;
use longhaul_service::{own_files, paths, recordings};

/// Folder next to the database with the local files of tasks for each target.
const LOCAL_FOLDER: &str = "local";
/// Folder next to the database that `longhaul try` uses as local target.
const TRY_FOLDER: &str = "try";
/// Default file name of the configuration.
const CONFIG_FILE: &str = "config.toml";

/// Targets that are known from the configuration and the database.
#[derive(Debug, Default)]
pub struct KnownTargets {
    /// Names of the targets.
    pub names: Vec<TargetName>,
    /// Paths of their sandboxes, which workers delete.
    pub sandboxes: Vec<PathBuf>,
}

/// A local folder that longhaul writes to.
#[derive(Debug)]
pub struct OwnFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Owner of the folder.
    pub path_owner: FolderOwner,
    roles: Vec<Role>,
}

/// The owner of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderOwner {
    /// Created by longhaul: the folder is removed when it is empty.
    Longhaul,
    /// Chosen by the user for the database or the configuration. Other files in it are not reported.
    User,
}

/// The use of a folder by longhaul, with the path of the file in it.
#[derive(Debug)]
enum Role {
    Database(PathBuf),
    Config(PathBuf),
    Logs,
}

/// Returns the local folders of an installation, those created by longhaul first. `config`: its configuration, to which the default
/// folders belong as well; `None` if the database was named and is not that of the configuration: then both stay, with the results
/// in the default database.
pub fn own_folders(database: &Path, config: Option<&Path>) -> Vec<OwnFolder> {
    let default_database = config.and_then(|_| paths::database_path(None, &Config::default()).ok());
    let default_config = config.and(platform::config_directory()).map(|folder| folder.join(CONFIG_FILE));
    let logs = platform::log_directory().map(|folder| (folder, Role::Logs));
    let of_file =
        |path: &Path, role: fn(PathBuf) -> Role| Some((path.parent()?.to_owned(), role(path.to_owned())));
    let own = [
        default_database.and_then(|path| of_file(&path, Role::Database)),
        default_config.and_then(|path| of_file(&path, Role::Config)),
        logs,
    ];
    let named = [of_file(database, Role::Database), config.and_then(|path| of_file(path, Role::Config))];
    let own = own.into_iter().flatten().map(|folder| (FolderOwner::Longhaul, folder));
    let named = named.into_iter().flatten().map(|folder| (FolderOwner::User, folder));
    let mut folders: Vec<OwnFolder> = vec![];
    for (origin, (path, role)) in own.chain(named) {
        match folders.iter_mut().find(|folder| folder.path == path) {
            Some(folder) => folder.roles.push(role),
            None => folders.push(OwnFolder { path, path_owner: origin, roles: vec![role] }),
        }
    }
    folders
}

impl OwnFolder {
    /// Returns the files in the folder that can be deleted, and those that stay.
    pub fn inventory(&self, targets: &KnownTargets) -> Inventory {
        let mut inventory = Inventory::scan(&self.path, &|path| self.path_owner(path, targets));
        if self.path_owner == FolderOwner::User {
            inventory.not_removed.retain(|left| self.is_ours(left, targets));
        }
        inventory
    }

    /// Returns whether something that stays in a folder of the user has to be reported: a link with one of
    /// longhaul's file names, or an entry in a subfolder of longhaul.
    fn is_ours(&self, left: &NotRemoved, targets: &KnownTargets) -> bool {
        let relative = left.path.strip_prefix(&self.path).unwrap_or(&left.path);
        match left.reason {
            _ if relative.components().count() != 1 => true,
            NotRemovedReason::Unrecognized => false,
            NotRemovedReason::SymbolicLink | NotRemovedReason::Refused(_) => {
                self.path_owner(relative, targets) != Ownership::Other
            }
        }
    }

    fn path_owner(&self, path: &Path, targets: &KnownTargets) -> Ownership {
        if targets.sandboxes.contains(&self.path.join(path)) {
            return Ownership::Sandbox;
        }
        let owners = self.roles.iter().map(|role| role.path_owner(path, targets));
        owners.into_iter().find(|owner| *owner != Ownership::Other).unwrap_or(Ownership::Other)
    }

    /// Returns the target of the folder's symbolic link; `None` if the folder is not a link.
    pub fn link_target(&self) -> Option<PathBuf> {
        let to = fs::read_link(&self.path).ok()?;
        Some(self.path.parent().unwrap_or(Path::new("/")).join(to))
    }

    /// Returns advice for a user whose folder is a symbolic link to another one.
    pub fn link_advice(&self, real: &Path) -> String {
        let database = self.roles.iter().find_map(|role| match role {
            Role::Database(path) => path.file_name(),
            Role::Config(_) | Role::Logs => None,
        });
        match database {
            Some(name) => format!(
                "`longhaul --database {} service uninstall --purge` removes what is there; then remove the link",
                real.join(name).display()
            ),
            None => format!("Remove what you do not need in {}, then the link", real.display()),
        }
    }
}

impl Role {
    /// Returns the owner of a path in a folder with this role.
    fn path_owner(&self, path: &Path, targets: &KnownTargets) -> Ownership {
        let mut parts = path.iter();
        let (Some(first), rest) = (parts.next(), parts.as_path()) else { return Ownership::Other };
        match (self, rest.as_os_str().is_empty()) {
            (Self::Database(_), true)
                if [LOCAL_FOLDER, TRY_FOLDER, recordings::FOLDER].iter().any(|folder| first == *folder) =>
            {
                Ownership::Folder
            }
            (_, true) if self.has_file(first) => Ownership::File,
            (Self::Database(_), false) if first == LOCAL_FOLDER => owner_in_local(rest, targets),
            (Self::Database(_), false) if first == recordings::FOLDER => owner_in_recordings(rest),
            _ => Ownership::Other,
        }
    }

    fn has_file(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        match self {
            Self::Database(database) => own_files::belongs_to_database(name, database),
            Self::Config(config) => config.file_name().is_some_and(|config| is_config(name, config)),
            Self::Logs => is_log(name),
        }
    }
}

/// Returns the owner of a path below `local`. The folder of a known target belongs to longhaul even if it is
/// empty.
fn owner_in_local(path: &Path, targets: &KnownTargets) -> Ownership {
    let is_known = || targets.names.iter().any(|name| path == Path::new(name.as_str()));
    match local_folder::ownership(path) {
        Ownership::PossibleFolder if is_known() => Ownership::Folder,
        owner => owner,
    }
}

fn owner_in_recordings(path: &Path) -> Ownership {
    let is_recording = path.to_str().is_some_and(recordings::is_recording_file);
    if is_recording { Ownership::File } else { Ownership::Other }
}

/// Returns whether a file is the configuration, or the temporary file that `init` writes first.
fn is_config(name: &[u8], config: &OsStr) -> bool {
    let rest = name.strip_prefix(config.as_encoded_bytes());
    rest.is_some_and(|rest| rest.is_empty() || own_files::is_number(rest.strip_prefix(b".new-")))
}

/// Returns whether a file is the log, a rotated log, or one of the output files that launchd writes.
fn is_log(name: &[u8]) -> bool {
    own_files::is_log(name) || OUTPUT_FILES.into_iter().any(|known| name == known.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(role: &Role, path: &str) -> Ownership {
        role.path_owner(Path::new(path), &KnownTargets::default())
    }

    #[test]
    fn only_known_files_next_to_a_database_are_owned() {
        let role = Role::Database("/x/results.sqlite".into());
        for name in [
            "results.sqlite",
            "results.sqlite-wal",
            "results.lock",
            "results.daemon.json",
            "results.damaged-17.sqlite",
            "results.damaged-17.sqlite-wal",
            "results.kept-1700000000000000.sqlite",
            "results.restored.sqlite-journal",
        ] {
            assert_eq!(owner(&role, name), Ownership::File, "{name}");
        }
        for name in [
            "results.xlsx",
            "results",
            "results.sqlite.bak",
            "other.lock",
            "my results.sqlite",
            "results.lock2",
            "results.kept-notes.txt",
            "results.kept-17.txt",
            "results.kept-.sqlite",
            "results.restored",
            "notes/results.sqlite",
        ] {
            assert_eq!(owner(&role, name), Ownership::Other, "{name}");
        }
    }

    #[test]
    fn database_without_extension_is_recognized() {
        let role = Role::Database("/x/results".into());
        for name in ["results", "results-wal", "results.lock", "results.damaged-17."] {
            assert_eq!(owner(&role, name), Ownership::File, "{name}");
        }
        assert_eq!(owner(&role, "results.txt"), Ownership::Other);
    }

    #[test]
    fn logs_and_configs_are_recognized_by_full_names() {
        for name in ["longhaul.log", "longhaul.log.1", "longhaul.log.3", "stdout.log", "stderr.log"] {
            assert_eq!(owner(&Role::Logs, name), Ownership::File, "{name}");
        }
        for name in ["longhaul.log.4", "longhaul.log.old", "mine.log", "x/longhaul.log", "longhaul.lo"] {
            assert_eq!(owner(&Role::Logs, name), Ownership::Other, "{name}");
        }
        let role = Role::Config("/x/my.toml".into());
        assert_eq!(["my.toml", "my.toml.new-17"].map(|name| owner(&role, name)), [Ownership::File; 2]);
        for name in ["my.toml.bak", "my.toml.new-", "config.toml", "my.toml.new-x"] {
            assert_eq!(owner(&role, name), Ownership::Other, "{name}");
        }
    }

    #[test]
    fn recordings_are_owned_and_other_files_beside_them_are_not() {
        let role = Role::Database("/x/results.sqlite".into());
        assert_eq!(owner(&role, "recordings"), Ownership::Folder);
        assert_eq!(owner(&role, "recordings/day-1.recording"), Ownership::File);
        for name in ["recordings/notes.txt", "recordings/a/day-1.recording", "day-1.recording"] {
            assert_eq!(owner(&role, name), Ownership::Other, "{name}");
        }
    }

    #[test]
    fn empty_folder_of_a_known_target_is_owned() {
        let role = Role::Database("/x/results.sqlite".into());
        let targets = KnownTargets { names: vec!["smb".parse().unwrap()], sandboxes: vec![] };
        assert_eq!(role.path_owner(Path::new("local/smb"), &targets), Ownership::Folder);
        assert_eq!(role.path_owner(Path::new("local/bin"), &targets), Ownership::PossibleFolder);
        assert_eq!(role.path_owner(Path::new("try/notes.txt"), &targets), Ownership::Other);
        assert_eq!(Role::Logs.path_owner(Path::new("local"), &targets), Ownership::Other);
    }
}
