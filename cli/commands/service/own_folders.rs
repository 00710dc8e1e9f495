//! The folders of this machine that longhaul writes to, and every name that it gives to a file there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use longhaul_launchd::OUTPUT_FILES;
use longhaul_measure::inventory::{Inventory, Left, Owner, Reason};
use longhaul_measure::local;
use longhaul_measure::model::TargetName;
use longhaul_measure::platform;
use longhaul_service::config::Config;
use longhaul_service::{LOG_FILE, OLDER_LOG_FILES, places};

/// What follows the name of a database in the names of the files that SQLite keeps beside it.
const OF_SQLITE: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// What follows its name without ending, and a dot, in those of the service.
const OF_SERVICE: [&str; 4] = ["lock", "starts", "daemon.json", "daemon.draft"];
/// The same for databases that the service moved aside at an instant.
const MOVED_ASIDE: [&str; 2] = ["damaged-", "kept-"];
/// The same for a copy that the service was making.
const RESTORED: &str = "restored";
/// The folder of what tasks keep for each target, beside the database.
const LOCAL: &str = "local";
/// The target of `longhaul try`, beside the database.
const TRY: &str = "try";
/// The configuration, unless another file is named.
const CONFIG_FILE: &str = "config.toml";

/// What longhaul knows of its targets.
#[derive(Debug, Default)]
pub struct KnownTargets {
    /// Their names.
    pub names: Vec<TargetName>,
    /// Their sandboxes, which workers remove.
    pub sandboxes: Vec<PathBuf>,
}

/// A folder that longhaul writes to.
#[derive(Debug)]
pub struct OwnFolder {
    /// Its path.
    pub path: PathBuf,
    /// Whose folder it is.
    pub origin: Origin,
    roles: Vec<Role>,
}

/// Whose folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Longhaul's: it is removed when it is empty.
    Longhaul,
    /// The person's, who named a database or a configuration in it. Other files in it are none of longhaul's business.
    Person,
}

/// What a folder holds.
#[derive(Debug)]
enum Role {
    Database(PathBuf),
    Config(PathBuf),
    Logs,
}

/// All folders, those of longhaul first.
pub fn own_folders(database: &Path, config: &Path) -> Vec<OwnFolder> {
    let default_database = places::database(None, &Config::default()).ok();
    let default_config = platform::config_directory().map(|folder| folder.join(CONFIG_FILE));
    let logs = platform::log_directory().map(|folder| (folder, Role::Logs));
    let of_file =
        |path: &Path, role: fn(PathBuf) -> Role| Some((path.parent()?.to_owned(), role(path.to_owned())));
    let own = [
        default_database.and_then(|path| of_file(&path, Role::Database)),
        default_config.and_then(|path| of_file(&path, Role::Config)),
        logs,
    ];
    let named = [of_file(database, Role::Database), of_file(config, Role::Config)];
    let own = own.into_iter().flatten().map(|folder| (Origin::Longhaul, folder));
    let named = named.into_iter().flatten().map(|folder| (Origin::Person, folder));
    let mut folders: Vec<OwnFolder> = vec![];
    for (origin, (path, role)) in own.chain(named) {
        match folders.iter_mut().find(|folder| folder.path == path) {
            Some(folder) => folder.roles.push(role),
            None => folders.push(OwnFolder { path, origin, roles: vec![role] }),
        }
    }
    folders
}

impl OwnFolder {
    /// What is in it.
    pub fn inventory(&self, targets: &KnownTargets) -> Inventory {
        let mut inventory = Inventory::of(&self.path, &|path| self.owner(path, targets));
        if self.origin == Origin::Person {
            inventory.left.retain(|left| self.concerns_us(left, targets));
        }
        inventory
    }

    /// Whether something that stays in a folder of the person has to be told: a link with a name of ours, or what lies in
    /// a folder of ours.
    fn concerns_us(&self, left: &Left, targets: &KnownTargets) -> bool {
        let relative = left.path.strip_prefix(&self.path).unwrap_or(&left.path);
        match left.reason {
            _ if relative.components().count() != 1 => true,
            Reason::Unrecognized => false,
            Reason::Link | Reason::Refused(_) => self.owner(relative, targets) != Owner::Other,
        }
    }

    fn owner(&self, path: &Path, targets: &KnownTargets) -> Owner {
        if targets.sandboxes.contains(&self.path.join(path)) {
            return Owner::Sandbox;
        }
        let owners = self.roles.iter().map(|role| role.owner(path, targets));
        owners.into_iter().find(|owner| *owner != Owner::Other).unwrap_or(Owner::Other)
    }

    /// Where it leads to if it is a symbolic link.
    pub fn link(&self) -> Option<PathBuf> {
        let to = fs::read_link(&self.path).ok()?;
        Some(self.path.parent().unwrap_or(Path::new("/")).join(to))
    }

    /// What a person can do whose folder is a symbolic link to another one.
    pub fn advice(&self, real: &Path) -> String {
        let database = self.roles.iter().find_map(|role| match role {
            Role::Database(path) => path.file_name(),
            Role::Config(_) | Role::Logs => None,
        });
        match database {
            Some(name) => format!(
                "`longhaul --database {} uninstall --purge` removes what is there; then remove the link",
                real.join(name).display()
            ),
            None => format!("Remove what you do not need in {}, then the link", real.display()),
        }
    }
}

impl Role {
    /// The owner of a path in a folder of this role.
    fn owner(&self, path: &Path, targets: &KnownTargets) -> Owner {
        let mut parts = path.iter();
        let (Some(first), rest) = (parts.next(), parts.as_path()) else { return Owner::Other };
        match (self, rest.as_os_str().is_empty()) {
            (Self::Database(_), true) if first == LOCAL || first == TRY => Owner::Folder,
            (_, true) if self.has_file(first) => Owner::File,
            (Self::Database(_), false) if first == LOCAL => owner_in_local(rest, targets),
            _ => Owner::Other,
        }
    }

    fn has_file(&self, name: &OsStr) -> bool {
        let name = name.as_encoded_bytes();
        match self {
            Self::Database(database) => belongs_to(name, database),
            Self::Config(config) => config.file_name().is_some_and(|config| is_config(name, config)),
            Self::Logs => is_log(name),
        }
    }
}

/// The folder of a target that is known is longhaul's even if it is empty.
fn owner_in_local(path: &Path, targets: &KnownTargets) -> Owner {
    let is_known = || targets.names.iter().any(|name| path == Path::new(name.as_str()));
    match local::owner(path) {
        Owner::PerhapsFolder if is_known() => Owner::Folder,
        owner => owner,
    }
}

/// Whether a file is a database, or one that SQLite or the service has put beside it.
fn belongs_to(name: &[u8], database: &Path) -> bool {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().as_encoded_bytes().to_owned();
    let (file, stem, extension) =
        (part(database.file_name()), part(database.file_stem()), part(database.extension()));
    let is_of_sqlite =
        |rest: Option<&[u8]>| rest.is_some_and(|rest| OF_SQLITE.iter().any(|known| rest == known.as_bytes()));
    if is_of_sqlite(name.strip_prefix(&file[..])) {
        return true;
    }
    let Some(rest) = name.strip_prefix(&stem[..]).and_then(|rest| rest.strip_prefix(b".")) else {
        return false;
    };
    // `damaged-17.sqlite-wal` without its ending is `damaged-17`.
    let without_ending = OF_SQLITE.iter().find_map(|known| {
        let ending = [b".", &extension[..], known.as_bytes()].concat();
        rest.strip_suffix(&ending[..])
    });
    let is_dated =
        |word: &[u8]| MOVED_ASIDE.iter().any(|known| is_number(word.strip_prefix(known.as_bytes())));
    OF_SERVICE.iter().any(|known| rest == known.as_bytes())
        || without_ending.is_some_and(|word| word == RESTORED.as_bytes() || is_dated(word))
}

/// The configuration, and what `init` writes before it has its name.
fn is_config(name: &[u8], config: &OsStr) -> bool {
    let rest = name.strip_prefix(config.as_encoded_bytes());
    rest.is_some_and(|rest| rest.is_empty() || is_number(rest.strip_prefix(b".new-")))
}

/// The log, its older parts, and what launchd writes for the service.
fn is_log(name: &[u8]) -> bool {
    let older = (1..=OLDER_LOG_FILES).map(|number| format!("{LOG_FILE}.{number}"));
    let names = OUTPUT_FILES.into_iter().chain([LOG_FILE]).map(str::to_owned).chain(older);
    names.into_iter().any(|known| name == known.as_bytes())
}

fn is_number(text: Option<&[u8]>) -> bool {
    text.is_some_and(|text| !text.is_empty() && text.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(role: &Role, path: &str) -> Owner {
        role.owner(Path::new(path), &KnownTargets::default())
    }

    #[test]
    fn only_what_was_put_beside_a_database_belongs_to_it() {
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
            assert_eq!(owner(&role, name), Owner::File, "{name}");
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
            assert_eq!(owner(&role, name), Owner::Other, "{name}");
        }
    }

    #[test]
    fn a_database_without_ending_is_recognized_too() {
        let role = Role::Database("/x/results".into());
        for name in ["results", "results-wal", "results.lock", "results.damaged-17."] {
            assert_eq!(owner(&role, name), Owner::File, "{name}");
        }
        assert_eq!(owner(&role, "results.txt"), Owner::Other);
    }

    #[test]
    fn logs_and_configurations_are_recognized_by_whole_names() {
        for name in ["longhaul.log", "longhaul.log.1", "longhaul.log.3", "stdout.log", "stderr.log"] {
            assert_eq!(owner(&Role::Logs, name), Owner::File, "{name}");
        }
        for name in ["longhaul.log.4", "longhaul.log.old", "mine.log", "x/longhaul.log", "longhaul.lo"] {
            assert_eq!(owner(&Role::Logs, name), Owner::Other, "{name}");
        }
        let role = Role::Config("/x/my.toml".into());
        assert_eq!(["my.toml", "my.toml.new-17"].map(|name| owner(&role, name)), [Owner::File; 2]);
        for name in ["my.toml.bak", "my.toml.new-", "config.toml", "my.toml.new-x"] {
            assert_eq!(owner(&role, name), Owner::Other, "{name}");
        }
    }

    #[test]
    fn the_folder_of_a_known_target_is_ours_even_if_empty() {
        let role = Role::Database("/x/results.sqlite".into());
        let targets = KnownTargets { names: vec!["smb".parse().unwrap()], sandboxes: vec![] };
        assert_eq!(role.owner(Path::new("local/smb"), &targets), Owner::Folder);
        assert_eq!(role.owner(Path::new("local/bin"), &targets), Owner::PerhapsFolder);
        assert_eq!(role.owner(Path::new("try/notes.txt"), &targets), Owner::Other);
        assert_eq!(Role::Logs.owner(Path::new("local"), &targets), Owner::Other);
    }
}
