//! Finds the configuration, the database and the targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use longhaul_measure::platform::{SYSTEM, System};
use longhaul_model::{Mount, Outcome, ProtocolFamily, Role, Target, TargetName};
use longhaul_service::config::{Config, ConfigLoader};
use longhaul_service::mounts::is_bare_volume;
use longhaul_service::paths;
use longhaul_service::target_path::{SpecialFolders, has_link, real_path, without_dots};
use longhaul_service::worker::Launcher;
use longhaul_store::{Error, Reader, RunFilter};

use crate::arguments::{GlobalArgs, NamedPath};
use crate::errors::UsageError;

/// Returns the configuration: from the given file, from the default file if that exists, or the defaults; in each case with
/// the administrator's settings.
pub fn load_config(shared: &GlobalArgs) -> anyhow::Result<Config> {
    Ok(ConfigLoader::system().read(paths::existing_config_path(shared.config.as_deref()).as_deref())?)
}

/// Returns the path of the database: from the command line, from the configuration, or the default.
pub fn database(shared: &GlobalArgs, config: &Config) -> anyhow::Result<PathBuf> {
    Ok(paths::database_path(shared.database.as_deref(), config)
        .map_err(|error| UsageError(error.to_string()))?)
}

/// Opens the database for reading.
pub fn open_reader(shared: &GlobalArgs) -> anyhow::Result<Reader> {
    let config = load_config(shared)?;
    Ok(Reader::open(&database(shared, &config)?)?)
}

/// Returns the path of the configuration file: from the command line, or the default. The file need not exist.
pub fn config_file(shared: &GlobalArgs) -> anyhow::Result<PathBuf> {
    if let Some(path) = &shared.config {
        return std::path::absolute(path).with_context(|| format!("configuration {}", path.display()));
    }
    let no_home =
        "HOME is not set, so there is no default folder for the configuration: give `--config PATH`";
    paths::default_config_path().ok_or_else(|| UsageError(no_home.to_owned()).into())
}

/// Returns the settings for starting workers: this same program, with local folders next to the database.
pub fn launcher(database: &Path, machine: &str) -> anyhow::Result<Launcher> {
    let program = std::env::current_exe().context("find longhaul's own program file")?;
    Ok(Launcher::for_database(program, database, machine))
}

/// Converts target arguments to targets. A path is made absolute without touching the file system. Its role is that of the folder to
/// which its symbolic links lead; none on a share is looked at.
pub fn parse_targets(arguments: &[NamedPath], mounts: &[Mount]) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for argument in arguments {
        if targets.iter().any(|target| target.name == argument.name) {
            return Err(UsageError(format!("the target name `{}` is used twice", argument.name)).into());
        }
        let path = std::path::absolute(&argument.path)
            .with_context(|| format!("target {}={}", argument.name, argument.path.display()))?;
        let role = default_role_on(SYSTEM, &real_path(&path, mounts), mounts);
        targets.push(Target { name: argument.name.clone(), path, role });
    }
    Ok(targets)
}

/// Returns the targets of the command line, or else those of the configuration. Fails without any.
pub fn given_or_configured(given: Vec<Target>, config: &Config) -> Result<Vec<Target>, UsageError> {
    let targets = if given.is_empty() { config.targets.clone() } else { given };
    if targets.is_empty() { Err(no_target()) } else { Ok(targets) }
}

/// Returns the error if neither the command line nor the configuration names a target.
pub fn no_target() -> UsageError {
    let message = "no target: give `--target NAME=PATH`, or add some to the configuration (`longhaul init`)";
    UsageError(message.to_owned())
}

/// The sources in which a target of the command line is looked up.
#[derive(Clone, Copy)]
pub struct TargetSources<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// Path of the database, which need not exist.
    pub database: &'a Path,
    /// The mount table, which tells the role of a folder.
    pub mounts: &'a [Mount],
}

/// Returns a target by NAME=PATH, by its name in the configuration, or by its name in the database.
pub fn find_target(text: &str, sources: TargetSources<'_>) -> anyhow::Result<Target> {
    let TargetSources { config, database, mounts } = sources;
    if let Ok(argument) = text.parse() {
        return parse_targets(&[argument], mounts)?.pop().context("one argument names one target");
    }
    let is_meant = |target: &&Target| target.name.as_str() == text;
    // Before the database is opened: one that is older is brought up to date later.
    if let Some(found) = config.targets.iter().find(is_meant) {
        return Ok(found.clone());
    }
    let stored: Vec<Target> = match Reader::open(database) {
        Err(Error::NoDatabase { .. }) => vec![],
        reader => reader?.targets()?.into_iter().map(|stored| stored.target).collect(),
    };
    let found = stored.iter().find(is_meant).cloned();
    found.ok_or_else(|| {
        let known = config.targets.iter().chain(&stored);
        let names: BTreeSet<&str> = known.map(|target| target.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { Vec::from_iter(names).join(", ") };
        UsageError(format!("there is no target `{text}`; known targets: {names}")).into()
    })
}

/// Returns targets as [`find_target`] does, and refuses a name that is used twice.
pub fn find_targets(texts: &[String], sources: TargetSources<'_>) -> anyhow::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for text in texts {
        let target = find_target(text, sources)?;
        if targets.iter().any(|other| other.name == target.name) {
            return Err(UsageError(format!("the target name `{}` is used twice", target.name)).into());
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Refuses a name that [`find_target`] does not find, so that a mistyped name is not taken for a target without results.
pub fn check_known(shared: &GlobalArgs, given: Option<&TargetName>) -> anyhow::Result<()> {
    let Some(given) = given else { return Ok(()) };
    let config = load_config(shared)?;
    let database = database(shared, &config)?;
    let sources = TargetSources { config: &config, database: &database, mounts: &[] };
    find_target(given.as_str(), sources).map(drop)
}

/// Returns a sentence about two targets that are one folder, if there are any: a comparison of it with itself says nothing.
pub fn same_folder(targets: &[Target]) -> Option<String> {
    targets.iter().enumerate().find_map(|(index, target)| {
        let other =
            targets[..index].iter().find(|other| without_dots(&other.path) == without_dots(&target.path))?;
        let path = target.path.display();
        Some(format!("targets `{}` and `{}` are one folder: {path}", other.name, target.name))
    })
}

/// A target whose folder does not exist now, or whose share or disk is not mounted.
pub struct MissingFolder {
    /// Name of the target.
    pub name: TargetName,
    /// Sentence with the missing folder and what to do.
    pub warning: String,
}

/// Refuses targets that are no folders, and returns a warning for each that does not exist now. Only targets on local disks are
/// looked at, and none behind a symbolic link, because a share may not answer.
pub fn missing_folders(targets: &[Target], mounts: &[Mount]) -> anyhow::Result<Vec<MissingFolder>> {
    missing_folders_on(SYSTEM, targets, mounts)
}

fn missing_folders_on(
    system: System,
    targets: &[Target],
    mounts: &[Mount],
) -> anyhow::Result<Vec<MissingFolder>> {
    let mut missing = vec![];
    let is_local = |path: &Path| default_role_on(system, path, mounts) == Role::Baseline && !has_link(path);
    check_links(targets, mounts)?;
    for Target { name, path, .. } in targets {
        let path_text = path.display();
        let found = if is_unmounted_volume(system, path, mounts) {
            format!("nothing is mounted at {}", path.iter().take(3).collect::<PathBuf>().display())
        } else if !is_local(path) || path.is_dir() {
            continue;
        } else if path.exists() {
            return Err(UsageError(format!("target `{name}`: {path_text} is not a folder")).into());
        } else {
            format!("there is no {path_text}")
        };
        let warning = format!("target `{name}`: {found} now; mount the share, or correct the path");
        missing.push(MissingFolder { name: name.clone(), warning });
    }
    Ok(missing)
}

/// Refuses targets of the command line whose folder does not exist now: a round without them would be stored.
pub fn check_folders(given: &[Target], mounts: &[Mount]) -> anyhow::Result<()> {
    match missing_folders(given, mounts)?.into_iter().next() {
        Some(missing) => Err(UsageError(missing.warning).into()),
        None => Ok(()),
    }
}

/// Like [`check_folders`], for targets of which some were given by their name: these may be away for a while.
pub fn check_given_folders(texts: &[String], targets: &[Target], mounts: &[Mount]) -> anyhow::Result<()> {
    let with_path = texts.iter().zip(targets).filter(|(text, _)| text.contains('='));
    check_folders(&with_path.map(|(_, target)| target.clone()).collect::<Vec<_>>(), mounts)
}

/// Refuses targets that are symbolic links themselves, as each run would. None on a share is looked at.
pub fn check_links(targets: &[Target], mounts: &[Mount]) -> Result<(), UsageError> {
    for Target { name, path, .. } in targets {
        if let Some(real) = linked_folder(path, mounts) {
            return Err(UsageError(format!(
                "target `{name}`: {} is a symbolic link to {}. Give the path that it leads to: a link could later lead to another \
                 folder",
                path.display(),
                real.display()
            )));
        }
    }
    Ok(())
}

/// Returns the folder to which a path leads whose last part is a symbolic link on a local disk; `None` for another path.
fn linked_folder(path: &Path, mounts: &[Mount]) -> Option<PathBuf> {
    let path = without_dots(path);
    let entry = real_path(path.parent()?, mounts).join(path.file_name()?);
    let real = real_path(&entry, mounts);
    (real != entry).then_some(real)
}

/// Refuses targets in folders where the results are written, and warns of other unsuitable folders. Only the paths
/// are compared; no target is touched.
pub fn check_paths(targets: &[Target], database: Option<&Path>, mounts: &[Mount]) -> anyhow::Result<()> {
    let folders = SpecialFolders::of(database, mounts);
    for target in targets {
        let Some(concern) = folders.concern(&target.path) else { continue };
        let text =
            format!("target `{}`: {} {concern}; {}", target.name, target.path.display(), concern.advice());
        if concern.is_refused() {
            return Err(UsageError(text).into());
        }
        crate::output::eprintln!("longhaul: {text}");
    }
    Ok(())
}

/// Refuses targets of the command line that the administrator has set differently, or does not allow.
pub fn check_managed_targets(given: &[Target], config: &Config) -> anyhow::Result<()> {
    for target in given {
        let same = |known: &Target| known.name == target.name && known.path == target.path;
        if config.targets.iter().any(same) {
            continue;
        }
        let (option, key) = (format!("--target {}", target.name), format!("targets.{}.path", target.name));
        config.managed.check_option(&option, &key).map_err(|error| UsageError(error.to_string()))?;
    }
    Ok(())
}

/// Refuses to measure a configured target in another folder, and warns if another one has results from elsewhere: they would begin
/// anew there.
pub fn check_known_paths(targets: &[Target], config: &Config, database: &Path) -> anyhow::Result<()> {
    for target in targets {
        let name = &target.name;
        match known_elsewhere(target, config, database)? {
            Some(KnownPath::Configured(known)) => {
                let message = format!(
                    "target `{name}` is {} in the configuration, and its results would begin anew in another folder: give this one \
                     another name",
                    known.display()
                );
                return Err(UsageError(message).into());
            }
            Some(KnownPath::Stored(known)) => crate::output::eprintln!(
                "longhaul: `{name}` was measured in {} before: its results begin anew here, and the earlier ones no longer count",
                known.display()
            ),
            None => {}
        }
    }
    Ok(())
}

/// Another path under which a target is known.
pub enum KnownPath {
    /// In the configuration.
    Configured(PathBuf),
    /// In the database, from its newest epoch.
    Stored(PathBuf),
}

/// Returns the other path under which a target is known, if there is one.
pub fn known_elsewhere(
    target: &Target,
    config: &Config,
    database: &Path,
) -> anyhow::Result<Option<KnownPath>> {
    let elsewhere = |known: &Target| known.name == target.name && known.path != target.path;
    if let Some(known) = config.targets.iter().find(|known| elsewhere(known)) {
        return Ok(Some(KnownPath::Configured(known.path.clone())));
    }
    // A database that cannot be opened is reported when it is opened for the measurement.
    let Ok(reader) = Reader::open(database) else { return Ok(None) };
    let name = Some(target.name.clone());
    let filter = RunFilter { target: name, outcome: Some(Outcome::Ok), ..RunFilter::default() };
    if reader.run_count(&filter)? == 0 {
        // A path that was mistyped has no results.
        return Ok(None);
    }
    let newest = reader.epochs()?.into_iter().rfind(|epoch| epoch.target == target.name);
    Ok(newest.filter(|epoch| epoch.path != target.path).map(|epoch| KnownPath::Stored(epoch.path)))
}

fn default_role_on(system: System, path: &Path, mounts: &[Mount]) -> Role {
    match Mount::for_path(mounts, path).map(|mount| mount.protocol.family()) {
        // What is to be mounted there is a share.
        Some(ProtocolFamily::Local) if is_unmounted_volume(system, path, mounts) => Role::Share,
        Some(ProtocolFamily::Local) => Role::Baseline,
        Some(ProtocolFamily::Network | ProtocolFamily::Fuse | ProtocolFamily::Other) | None => Role::Share,
    }
}

/// Returns true if nothing is mounted on a Mac at the name in `/Volumes` of a path, and no symbolic link such as `/Volumes/Macintosh HD` is
/// there. The path is looked at only on the start disk.
fn is_unmounted_volume(system: System, path: &Path, mounts: &[Mount]) -> bool {
    is_bare_volume(system, path, mounts) && !has_link(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Protocol;

    #[test]
    fn target_behind_a_link_has_the_role_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (link, real) = (root.join("link"), root.join("real"));
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let argument = |path: &Path| format!("n={}", path.join("x").display()).parse::<NamedPath>().unwrap();
        let disk = Mount::new("/", "disk", Protocol::Local("ext4".to_owned()));
        let mounts = [disk, Mount::new(&real, "nas:/x", Protocol::Nfs(None))];
        for (path, role) in [(&link, Role::Share), (&real, Role::Share), (&root, Role::Baseline)] {
            let targets = parse_targets(&[argument(path)], &mounts).unwrap();
            let found = &targets[0];
            assert_eq!((&found.path, found.role), (&path.join("x"), role));
        }
    }

    #[test]
    fn target_in_a_missing_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        // Behind a symbolic link, as /tmp is on a Mac, no folder is looked at.
        let folder = folder.path().canonicalize().unwrap();
        let check = |protocol: Protocol, path: PathBuf| {
            let target = Target { name: "a".parse().unwrap(), path, role: Role::Share };
            check_folders(&[target], &[Mount::new("/", "disk", protocol)]).map_err(|error| error.to_string())
        };
        let local = || Protocol::Local("apfs".to_owned());
        let link = folder.join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(check(local(), link.clone()).unwrap_err().contains("link is a symbolic link to "));
        assert_eq!(check(Protocol::Smb(None), link.clone()), Ok(()), "a share is not looked at");
        assert_eq!(check(local(), link.join("x")), Ok(()), "a link above the folder is followed");
        let refused = check(local(), folder.join("nope")).unwrap_err();
        assert!(refused.starts_with("target `a`: there is no "), "{refused}");
        assert!(refused.contains("mount the share"), "{refused}");
        assert_eq!(check(local(), folder.clone()), Ok(()));
        assert_eq!(check(Protocol::Smb(None), folder.join("nope")), Ok(()), "a share may not answer");
    }

    #[test]
    fn volume_of_a_mac_without_a_mount_is_a_missing_share() {
        let local = || Mount::new("/", "disk", Protocol::Local("apfs".to_owned()));
        let path = Path::new("/Volumes/longhaul-test/x");
        let bare = [local()];
        let mounted = [local(), Mount::new("/Volumes/longhaul-test", "//nas/x", Protocol::Smb(None))];
        assert_eq!(default_role_on(System::MacOs, path, &bare), Role::Share);
        assert_eq!(default_role_on(System::Linux, path, &bare), Role::Baseline);
        let targets = [Target { name: "a".parse().unwrap(), path: path.to_owned(), role: Role::Share }];
        let missing = missing_folders_on(System::MacOs, &targets, &bare).unwrap();
        assert_eq!(
            missing[0].warning,
            "target `a`: nothing is mounted at /Volumes/longhaul-test now; mount the share, or correct the path"
        );
        assert!(missing_folders_on(System::MacOs, &targets, &mounted).unwrap().is_empty());
    }
}
