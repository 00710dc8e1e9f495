//! The folder whose operations are recorded. It is found by names alone: no target is touched.

use std::path::{Path, PathBuf};

use longhaul_model::{Mount, Protocol, ProtocolFamily, Target};
use longhaul_service::target_path::{without_dots, without_links};

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

    /// Returns the folder with its path as the system names it, without symbolic links. Nothing on a share is touched: it may not
    /// answer.
    ///
    /// # Errors
    ///
    /// [`UsageError`] if the path leads to no folder.
    pub fn existing(self, mounts: &[Mount]) -> anyhow::Result<Self> {
        let is_on_share = |path: &Path| {
            Mount::for_path(mounts, path)
                .is_some_and(|mount| mount.protocol.family() == ProtocolFamily::Network)
        };
        let path = without_links(&self.path, &is_on_share).filter(|path| is_on_share(path) || path.is_dir());
        let path = path.ok_or_else(|| {
            UsageError(format!(
                "there is no folder {}: give a path, or the name of a target",
                self.path.display()
            ))
        })?;
        Ok(Self { protocol: super::protocol(&path, mounts), path })
    }
}

fn of_current_folder(current: &Path, targets: &[Target], mounts: &[Mount]) -> Result<PathBuf, UsageError> {
    let containing = targets.iter().filter(|target| current.starts_with(&target.path));
    if let Some(target) = containing.max_by_key(|target| target.path.components().count()) {
        return Ok(target.path.clone());
    }
    let mount = Mount::for_path(mounts, current);
    match mount.filter(|mount| mount.protocol.family() == ProtocolFamily::Network) {
        Some(mount) => Ok(mount.point.clone()),
        None => Err(UsageError(format!(
            "the current folder {} is not on a share or in a target. Give the folder to record: --on FOLDER",
            current.display()
        ))),
    }
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
    fn links_are_resolved_up_to_a_share() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (folder, share, link) = (root.join("folder"), root.join("share"), root.join("link"));
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("folder", &link).unwrap();
        std::os::unix::fs::symlink("/nowhere", &share).unwrap();
        let mounts = [
            Mount::new("/", "disk", Protocol::Local("ext4".into())),
            Mount::new(&share, "nas", Protocol::Nfs(None)),
        ];
        let existing =
            |given: &Path| RecordedFolder::find(Some(given), &[], &mounts).unwrap().existing(&mounts);
        assert_eq!(existing(&link).unwrap().path, folder);
        assert_eq!(
            existing(&share.join("photos")).unwrap().path,
            share.join("photos"),
            "it is not looked at"
        );
        let missing = existing(&root.join("missing")).unwrap_err().to_string();
        assert!(missing.contains("there is no folder"), "{missing}");
        std::os::unix::fs::symlink(root.join("b"), root.join("a")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("b")).unwrap();
        assert!(existing(&root.join("a")).is_err());
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
