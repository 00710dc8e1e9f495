//! The folder `local` beside the database: for each target a folder for what tasks keep on the local disk, and the lock
//! of its worker. The names alone say what in it belongs to longhaul.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::inventory::{Inventory, Left, Owner};
use crate::model::TargetName;
use crate::platform;
use crate::workloads::owns;

/// The only task that keeps files on the local disk.
const TASK: &str = "incremental-backup";

/// The owner of a path that is relative to the folder `local`.
pub fn owner(path: &Path) -> Owner {
    let Some(parts) = path.iter().map(|part| part.to_str()).collect::<Option<Vec<_>>>() else {
        return Owner::Other;
    };
    match parts[..] {
        [name] if is_lock(name) => Owner::File,
        [target] if target.parse::<TargetName>().is_ok() => Owner::PerhapsFolder,
        [_, TASK] => Owner::Folder,
        [_, TASK, files] if is_number(files) => Owner::Folder,
        // A folder of the source has the name that goes with the number of its first file.
        [_, TASK, files, folder] if is_number(files) && is_source_folder(folder) => Owner::Folder,
        [_, TASK, files, folder, name]
            if is_number(files) && owns(TASK, &source_path(files, folder, name)) =>
        {
            Owner::File
        }
        _ => Owner::Other,
    }
}

/// Makes the folder of a target. What is in it can be made again, so no backup needs it; where that cannot be said, backups
/// are only larger.
///
/// # Errors
///
/// If it cannot be made or opened.
pub fn make(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let _ = platform::exclude_from_backup(File::open(folder)?.as_fd());
    Ok(())
}

/// Removes what longhaul keeps for a target in `local/<target>`, the folder too if nothing else is in it. Gives back what
/// is left alone.
pub fn remove(folder: &Path) -> Vec<Left> {
    let (Some(local), Some(target)) = (folder.parent(), folder.file_name()) else { return vec![] };
    let of_target = |path: &Path| match owner(path) {
        _ if path == Path::new(target) => Owner::Folder,
        owner if path.starts_with(target) => owner,
        _ => Owner::Other,
    };
    let mut inventory = Inventory::of(local, &of_target);
    let mut left = inventory.remove();
    // Other targets have their folders and locks beside this one.
    inventory.left.retain(|left| left.path == local || left.path.starts_with(folder));
    left.extend(inventory.left);
    left
}

/// `TARGET-0123456789abcdef.lock`, as [`crate::worker::lock_beside`] says.
fn is_lock(name: &str) -> bool {
    let parts = name.strip_suffix(".lock").and_then(|name| name.rsplit_once('-'));
    let is_hexadecimal = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    parts.is_some_and(|(target, place)| {
        target.parse::<TargetName>().is_ok() && place.len() == 16 && is_hexadecimal(place)
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
    use crate::worker::lock_beside;

    fn of(path: &str) -> Owner {
        owner(Path::new(path))
    }

    #[test]
    fn every_name_that_longhaul_gives_is_recognized() {
        let lock = lock_beside(Path::new("nas-1.local"), Path::new("/mnt/nas"));
        assert_eq!(owner(&lock), Owner::File);
        assert_eq!(of("smb"), Owner::PerhapsFolder);
        for folder in ["", "/600", "/600/folder 0000", "/40000/folder 12345"] {
            assert_eq!(of(&format!("smb/incremental-backup{folder}")), Owner::Folder, "{folder}");
        }
        assert_eq!(of("smb/incremental-backup/600/folder 0001/Dokument 000048 r2.dat"), Owner::File);
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
            assert_eq!(of(foreign), Owner::Other, "{foreign}");
        }
        for folder in ["smb-0123456789abcde.lock", "smb-0123456789ABCDEF.lock", "photos"] {
            assert_eq!(of(folder), Owner::PerhapsFolder, "{folder}");
        }
    }

    #[test]
    fn a_target_loses_what_is_ours_and_no_other_target_does() {
        let root = tempfile::tempdir().unwrap();
        let local = root.path().join("local");
        let source = "incremental-backup/600/folder 0000";
        for name in ["a", "ab"] {
            fs::create_dir_all(local.join(name).join(source)).unwrap();
            fs::write(local.join(name).join(source).join("Dokument 000001 r0.dat"), "x").unwrap();
        }
        fs::write(local.join("a/mine.txt"), "mine").unwrap();
        fs::write(local.join("a-0123456789abcdef.lock"), "held").unwrap();
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
