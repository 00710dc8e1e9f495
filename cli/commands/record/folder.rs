//! The folder whose operations are recorded. It is found by names alone: no target is touched.

use std::path::{Component, Path, PathBuf};

use longhaul_model::{Family, Mount, Protocol, Target};

use crate::errors::UsageError;

/// The folder whose operations are recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedFolder {
    /// Absolute path.
    pub path: PathBuf,
    /// Protocol of its mount, if known.
    pub protocol: Option<Protocol>,
}

impl RecordedFolder {
    /// Returns the folder that was given, as a path or as the name of a target; else the target or the share that contains the
    /// current folder.
    pub fn find(given: Option<&Path>, targets: &[Target], mounts: &[Mount]) -> anyhow::Result<Self> {
        let path = match given {
            Some(given) => match targets.iter().find(|target| Path::new(target.name.as_str()) == given) {
                Some(target) => target.path.clone(),
                None => without_dots(&std::path::absolute(given)?),
            },
            None => of_current_folder(&std::env::current_dir()?, targets, mounts)?,
        };
        let protocol = super::protocol(&path, mounts);
        Ok(Self { path, protocol })
    }
}

fn of_current_folder(current: &Path, targets: &[Target], mounts: &[Mount]) -> Result<PathBuf, UsageError> {
    let containing = targets.iter().filter(|target| current.starts_with(&target.path));
    if let Some(target) = containing.max_by_key(|target| target.path.components().count()) {
        return Ok(target.path.clone());
    }
    let mount = Mount::for_path(mounts, current);
    match mount.filter(|mount| mount.protocol.family() == Family::Network) {
        Some(mount) => Ok(mount.point.clone()),
        None => Err(UsageError(format!(
            "the current folder {} is on no share and in no target. Say whose operations to keep: --on FOLDER",
            current.display()
        ))),
    }
}

/// Resolves `.` and `..` by name.
fn without_dots(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use longhaul_model::Role;

    use super::*;

    fn target(name: &str, path: &str) -> Target {
        Target { name: name.parse().unwrap(), path: path.into(), role: Role::Share }
    }

    fn mounts() -> [Mount; 2] {
        [
            Mount::new("/", "disk", Protocol::Local("ext4".into())),
            Mount::new("/m/nas", "nas", Protocol::Nfs(None)),
        ]
    }

    #[test]
    fn folder_is_a_path_or_the_name_of_a_target() {
        let find = |given: &str| {
            RecordedFolder::find(Some(Path::new(given)), &[target("smb", "/m/smb")], &mounts()).unwrap()
        };
        assert_eq!(find("smb").path, Path::new("/m/smb"));
        assert_eq!(find("/m/nas/../nas/./a").path, Path::new("/m/nas/a"));
        assert_eq!(find("/m/nas/a").protocol, Some(Protocol::Nfs(None)));
    }

    #[test]
    fn current_folder_leads_to_its_target_or_share() {
        let of = |current: &str| {
            of_current_folder(Path::new(current), &[target("photos", "/m/nas/photos")], &mounts())
        };
        assert_eq!(of("/m/nas/photos/2026").unwrap(), Path::new("/m/nas/photos"));
        assert_eq!(of("/m/nas/music").unwrap(), Path::new("/m/nas"));
        assert!(of("/home").unwrap_err().0.contains("--on FOLDER"));
    }
}
