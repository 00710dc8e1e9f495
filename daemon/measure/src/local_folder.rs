//! Folder `local` next to the database. It holds, for each target, a folder with the files that workloads
//! keep on the local disk, and the lock of the target's worker. Names alone decide which files in it belong
//! to longhaul.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::inventory::{Inventory, NotRemoved, Ownership};
use crate::workloads::Workload;
use crate::workloads::incremental_backup::IncrementalBackup;
use crate::{platform, private_files};
use longhaul_model::TargetName;

/// Name of the only workload that keeps files on the local disk.
const BACKUP_WORKLOAD: &str = "incremental-backup";

/// Returns the ownership of a path that is relative to the folder `local`.
pub fn ownership(path: &Path) -> Ownership {
    let Some(parts) = path.iter().map(|part| part.to_str()).collect::<Option<Vec<_>>>() else {
        return Ownership::Other;
    };
    match parts[..] {
        [name] if is_lock(name) => Ownership::File,
        [target] if target.parse::<TargetName>().is_ok() => Ownership::PossibleFolder,
        [_, BACKUP_WORKLOAD] => Ownership::Folder,
        [_, BACKUP_WORKLOAD, files] if is_number(files) => Ownership::Folder,
        // The number in the name of a source folder follows from the number of its first file. The next arm
        // checks it for each file.
        [_, BACKUP_WORKLOAD, files, folder] if is_number(files) && is_source_folder(folder) => {
            Ownership::Folder
        }
        [_, BACKUP_WORKLOAD, files, folder, name]
            if is_number(files) && IncrementalBackup.owns(&source_path(files, folder, name)) =>
        {
            Ownership::File
        }
        _ => Ownership::Other,
    }
}

/// Creates the folder of a target and excludes it from backups, because its files can be created again. If
/// the exclusion fails, backups only become larger.
///
/// # Errors
///
/// If the folder cannot be created or opened.
pub fn create(folder: &Path) -> io::Result<()> {
    private_files::create_folder(folder)?;
    let _ = platform::exclude_from_backup(File::open(folder)?.as_fd());
    Ok(())
}

/// Removes longhaul's files for a target in `local/<target>`, and the folder itself if nothing else is in it.
/// Returns the entries that were not removed.
pub fn remove(folder: &Path) -> Vec<NotRemoved> {
    let Some(inventory) = inventory(folder) else { return vec![] };
    let mut left = inventory.remove();
    left.extend(inventory.not_removed);
    left
}

/// Returns the number of files that [`remove`] would remove.
pub fn count_files(folder: &Path) -> usize {
    let removable = inventory(folder).map_or(vec![], |inventory| inventory.removable());
    removable.iter().map(|found| found.files.unwrap_or(1)).sum()
}

/// Lists the files for a target in `local/<target>`; `None` for any other path.
fn inventory(folder: &Path) -> Option<Inventory> {
    let (local, target) = (folder.parent()?, folder.file_name()?);
    let of_target = |path: &Path| match ownership(path) {
        _ if path == Path::new(target) => Ownership::Folder,
        owner if path.starts_with(target) => owner,
        _ => Ownership::Other,
    };
    let mut inventory = Inventory::scan(local, &of_target);
    // The folder `local` also holds folders and locks of other targets: they are not part of this result.
    inventory.not_removed.retain(|left| left.path == local || left.path.starts_with(folder));
    Some(inventory)
}

/// Returns whether a name has the form `TARGET-0123456789abcdef.lock`, as [`crate::worker::lock_path`] makes
/// it.
fn is_lock(name: &str) -> bool {
    let parts = name.strip_suffix(".lock").and_then(|name| name.rsplit_once('-'));
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    parts.is_some_and(|(target, hash)| {
        target.parse::<TargetName>().is_ok() && hash.len() == 16 && is_hexadecimal(hash)
    })
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok_and(|number| number.to_string() == text)
}

fn is_source_folder(name: &str) -> bool {
    let digits = name.strip_prefix("folder ");
    digits.is_some_and(|digits| digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn source_path(files: &str, folder: &str, name: &str) -> std::path::PathBuf {
    [files, folder, name].iter().collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::worker::lock_path;

    fn owner_of(path: &str) -> Ownership {
        ownership(Path::new(path))
    }

    #[test]
    fn every_name_that_longhaul_uses_is_recognized() {
        let lock = lock_path(Path::new("nas-1.local"), Path::new("/mnt/nas"));
        assert_eq!(ownership(&lock), Ownership::File);
        assert_eq!(owner_of("smb"), Ownership::PossibleFolder);
        for folder in ["", "/600", "/600/folder 0000", "/40000/folder 12345"] {
            assert_eq!(owner_of(&format!("smb/incremental-backup{folder}")), Ownership::Folder, "{folder}");
        }
        assert_eq!(
            owner_of("smb/incremental-backup/600/folder 0001/Dokument 000048 r2.dat"),
            Ownership::File
        );
    }

    #[test]
    fn no_other_name_is_recognized() {
        for foreign in [
            "-0123456789abcdef.lock",
            "my photos",
            "smb/notes",
            "smb/incremental-backup/+600",
            "smb/incremental-backup/600/folder 1",
            "smb/incremental-backup/600/folder 0000/Dokument 000048 r2.dat",
            "smb/incremental-backup/600/folder 0001/Dokument 000048 r2.dat.bak",
            "smb/incremental-backup/+600/folder 0001/Dokument 000048 r2.dat",
            "smb/incremental-backup/600/folder 0001/x/Dokument 000048 r2.dat",
        ] {
            assert_eq!(owner_of(foreign), Ownership::Other, "{foreign}");
        }
        for folder in ["smb-0123456789abcde.lock", "smb-0123456789ABCDEF.lock", "photos"] {
            assert_eq!(owner_of(folder), Ownership::PossibleFolder, "{folder}");
        }
    }

    #[test]
    fn removal_deletes_only_longhauls_files_of_one_target() {
        let root = tempfile::tempdir().unwrap();
        let local = root.path().join("local");
        let source = "incremental-backup/600/folder 0000";
        for name in ["a", "ab"] {
            fs::create_dir_all(local.join(name).join(source)).unwrap();
            fs::write(local.join(name).join(source).join("Dokument 000001 r0.dat"), "x").unwrap();
        }
        fs::write(local.join("a/mine.txt"), "mine").unwrap();
        fs::write(local.join("a-0123456789abcdef.lock"), "held").unwrap();
        assert_eq!((count_files(&local.join("a")), count_files(&local.join("never"))), (1, 0));
        let left: Vec<_> = remove(&local.join("a")).into_iter().map(|left| left.path).collect();
        assert_eq!(left, [local.join("a/mine.txt")]);
        assert!(local.join("a/mine.txt").exists() && !local.join("a/incremental-backup").exists());
        assert!(local.join("ab").join(source).join("Dokument 000001 r0.dat").exists());
        fs::remove_file(local.join("a/mine.txt")).unwrap();
        assert!(remove(&local.join("a")).is_empty() && !local.join("a").exists());
        assert!(local.join("a-0123456789abcdef.lock").exists());
        assert!(remove(&local.join("never")).is_empty());
    }
}
