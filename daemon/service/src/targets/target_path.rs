//! Detects folders that are a bad choice for a target, from their paths alone, and follows the symbolic links of a path up to a
//! share: the target itself is never accessed if it may be on one.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use longhaul_measure::platform::{SYSTEM, System};
use longhaul_measure::sandbox::FOLDER_PREFIX;
use longhaul_model::{Mount, Protocol};

use crate::mounts::is_below_in_other_case;

/// Number of symbolic links that a path may lead through, as Linux counts them (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Folders in the home folder of a Mac with the files of iCloud Drive (public report: pvieito.com/2016/11/icloud-locations) and of clouds
/// that use Apple's File Provider (support.google.com/drive/answer/12178485).
const CLOUD_FOLDERS: [&str; 2] = ["Library/Mobile Documents", "Library/CloudStorage"];
/// Names with which folders in the home folder begin that the programs of clouds make (inferred).
const CLOUD_NAMES: [&str; 4] = ["Dropbox", "OneDrive", "Google Drive", "iCloud Drive"];
/// Folders in the home folder that iCloud Drive can synchronize, too (eclecticlight.co, 2024-03-13).
const DESKTOP_FOLDERS: [&str; 2] = ["Desktop", "Documents"];

/// The reason why a folder is a bad choice for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathConcern {
    /// The folder holds the database. Such a target is refused, because measuring it and
    /// storing results would disturb each other.
    DatabaseFolder,
    /// The folder is `/`.
    Root,
    /// The folder is the user's home folder.
    Home,
    /// The folder is one of those that a cloud often synchronizes.
    Synchronized,
    /// The folder is in the test data of a target. Refused, because that data is written and removed.
    TestData,
}

/// The folders that targets are compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialFolders {
    /// The user's home folder. `None`: unknown.
    pub home: Option<PathBuf>,
    /// The folder of the database: as written, and with its symbolic links resolved.
    pub database: Vec<PathBuf>,
}

/// Returns whether a part of a path on a local disk is a symbolic link, so that only a look behind it tells where it leads. Nothing
/// behind the first one is looked at.
pub fn has_link(path: &Path) -> bool {
    let parts: Vec<&Path> = path.ancestors().collect();
    parts.into_iter().rev().any(Path::is_symlink)
}

/// Returns an absolute path without symbolic links, as far as they are on local disks: nothing is looked at that may be on a share, because
/// that may not answer. A path whose links have no end is returned as it is.
pub fn real_path(path: &Path, mounts: &[Mount]) -> PathBuf {
    without_links(path, &|part: &Path| may_block(part, mounts)).unwrap_or_else(|| path.to_owned())
}

/// Returns whether a look at a path may wait for a server.
fn may_block(path: &Path, mounts: &[Mount]) -> bool {
    let leads_through =
        |mount: &Mount| mount.protocol.may_block() && is_below_in_other_case(path, &mount.point);
    // The kernel's own file system for devices has folders such as /dev/shm; other unknown ones may be those of a network.
    let is_known = |mount: &Mount| match &mount.protocol {
        Protocol::Local(_) => true,
        Protocol::Other(kind) => kind == "devtmpfs",
        _ => false,
    };
    !Mount::for_path(mounts, path).is_some_and(is_known) || mounts.iter().any(leads_through)
}

/// Resolves the symbolic links of an absolute path up to a share. `None`: the links have no end.
pub fn without_links(path: &Path, is_on_share: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let first_link = |path: &Path| {
        let parts: Vec<&Path> = path.ancestors().collect();
        let mut local = parts.into_iter().rev().take_while(|part| !is_on_share(part));
        local.find_map(|part| Some((part.to_owned(), std::fs::read_link(part).ok()?)))
    };
    let mut path = without_dots(path);
    for _ in 0..MAX_LINKS {
        let Some((link, to)) = first_link(&path) else { return Some(path) };
        path = without_dots(&link.parent()?.join(to).join(path.strip_prefix(&link).ok()?));
    }
    None
}

impl SpecialFolders {
    /// Returns the special folders of this user and of a database. Symbolic links to the database are resolved
    /// only if its path is on a local disk, so that no network mount is accessed.
    pub fn of(database: Option<&Path>, mounts: &[Mount]) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let folder = database.and_then(Path::parent);
        let resolved = folder.filter(|folder| is_local(folder, mounts)).and_then(resolve);
        Self { home, database: folder.map(Path::to_owned).into_iter().chain(resolved).collect() }
    }

    /// Returns the reason why an absolute path is a bad choice. `None`: there is none. Pure: paths are compared
    /// as written, after `.` and `..` are removed.
    pub fn concern(&self, path: &Path) -> Option<PathConcern> {
        self.concern_on(SYSTEM, path)
    }

    fn concern_on(&self, system: System, path: &Path) -> Option<PathConcern> {
        let path = without_dots(path);
        let is = |other: &PathBuf| without_dots(other) == path;
        if self.database.iter().any(is) {
            return Some(PathConcern::DatabaseFolder);
        }
        let prefix = FOLDER_PREFIX.as_bytes();
        let is_test_data = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(prefix);
        if path.components().any(is_test_data) {
            return Some(PathConcern::TestData);
        }
        if path == Path::new("/") {
            return Some(PathConcern::Root);
        }
        if self.home.iter().any(is) {
            return Some(PathConcern::Home);
        }
        self.is_synchronized(system, &path).then_some(PathConcern::Synchronized)
    }

    /// Returns whether a cloud often synchronizes a folder, by its name.
    fn is_synchronized(&self, system: System, path: &Path) -> bool {
        let home = self.home.as_deref().map(without_dots);
        let Some(inner) = home.and_then(|home| path.strip_prefix(home).ok()) else { return false };
        let first = inner.iter().next().map(OsStr::as_encoded_bytes).unwrap_or_default();
        let is_below = |folder: &&str| inner.starts_with(folder);
        // On Linux such a folder is often a mount of its own, made with rclone: a share to measure.
        system == System::MacOs
            && (CLOUD_NAMES.iter().any(|name| first.starts_with(name.as_bytes()))
                || CLOUD_FOLDERS.iter().chain(&DESKTOP_FOLDERS).any(is_below))
    }
}

impl PathConcern {
    /// Returns whether a target at this folder is refused. Otherwise there is only a warning.
    pub fn is_refused(self) -> bool {
        match self {
            Self::DatabaseFolder | Self::TestData => true,
            Self::Root | Self::Home | Self::Synchronized => false,
        }
    }

    /// Returns the advice for the user.
    pub fn advice(self) -> &'static str {
        match self {
            Self::DatabaseFolder => "choose another folder, or move the database with `--database PATH`",
            Self::TestData => "choose a folder that longhaul did not make",
            Self::Root | Self::Home => "create a folder in it for longhaul and use that",
            Self::Synchronized => "use a folder directly in your home folder, such as ~/longhaul-baseline",
        }
    }
}

impl fmt::Display for PathConcern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TestData => "is in the test data of a target, which longhaul writes and removes",
            Self::DatabaseFolder => "is the folder of the database, where longhaul writes its results",
            Self::Root => "is the root of the system's disk: test data would be mixed with system files",
            Self::Synchronized => {
                "may be synchronized with a cloud, which would upload the test data again and again"
            }
            Self::Home => {
                "is your home folder: programs that back it up or synchronize it would include the test data"
            }
        })
    }
}

fn is_local(path: &Path, mounts: &[Mount]) -> bool {
    Mount::for_path(mounts, path).is_some_and(|mount| !mount.protocol.may_block())
}

/// Resolves the symbolic links of the existing part of a path.
fn resolve(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|part| {
        let rest = path.strip_prefix(part).ok()?;
        Some(part.canonicalize().ok()?.join(rest))
    })
}

/// Removes `.` and `..` from a path, by name.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normalized.pop()),
            Component::CurDir => {}
            part => normalized.push(part),
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concern(path: &str) -> Option<PathConcern> {
        let folders = SpecialFolders {
            home: Some("/home/ada".into()),
            database: vec!["/home/ada/.local/share/longhaul".into(), "/big/longhaul".into()],
        };
        folders.concern(Path::new(path))
    }

    #[test]
    fn folder_in_test_data_is_refused() {
        let found = concern("/mnt/nfs/.longhaul-0123-nfs/photos").unwrap();
        assert!(found == PathConcern::TestData && found.is_refused());
        assert_eq!(concern("/mnt/nfs/longhaul-data"), None);
    }

    #[test]
    fn folder_that_a_cloud_synchronizes_causes_a_warning() {
        let folders = SpecialFolders { home: Some("/Users/ada".into()), database: vec![] };
        let concern = |system, inner: &str| folders.concern_on(system, &Path::new("/Users/ada").join(inner));
        for inner in [
            "Library/Mobile Documents/com~apple~CloudDocs/x",
            "Library/CloudStorage",
            "Library/./CloudStorage/OneDrive-Work",
            "Dropbox",
            "Dropbox (Work)/x",
            "OneDrive - Work",
            "Google Drive/My Drive",
            "iCloud Drive (Archive)",
        ] {
            assert_eq!(concern(System::MacOs, inner), Some(PathConcern::Synchronized), "{inner}");
            assert_eq!(concern(System::Linux, inner), None, "{inner}");
        }
        for inner in ["Desktop", "Documents/x"] {
            assert_eq!(concern(System::MacOs, inner), Some(PathConcern::Synchronized), "{inner}");
            assert_eq!(concern(System::Linux, inner), None, "{inner}");
        }
        for inner in ["longhaul-baseline", "Desktops", "Library/Logs", "x/Dropbox", "../eve/Dropbox"] {
            assert_eq!(concern(System::MacOs, inner), None, "{inner}");
        }
        assert!(!PathConcern::Synchronized.is_refused());
    }

    #[test]
    fn special_folders_are_detected_however_they_are_written() {
        for path in
            ["/big/longhaul", "/big/longhaul/", "/big/./x/../longhaul", "/home/ada/.local/share/longhaul"]
        {
            assert_eq!(concern(path), Some(PathConcern::DatabaseFolder), "{path}");
        }
        for path in ["/", "/.", "/..", "/home/..", "//"] {
            assert_eq!(concern(path), Some(PathConcern::Root), "{path}");
        }
        for path in ["/home/ada", "/home/ada/", "/home/ada/x/.."] {
            assert_eq!(concern(path), Some(PathConcern::Home), "{path}");
        }
    }

    #[test]
    fn folders_above_below_and_next_to_them_are_allowed() {
        for path in ["/home", "/home/ada/baseline", "/big", "/big/longhaul/x", "/big/longhaul2", "/mnt/nas"] {
            assert_eq!(concern(path), None, "{path}");
        }
        assert_eq!(SpecialFolders::default().concern(Path::new("/home/ada")), None);
    }

    #[test]
    fn links_are_followed_up_to_a_share() {
        use longhaul_model::Protocol;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [link, real, other] = ["link", "real", "other"].map(|name| root.join(name));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        std::os::unix::fs::symlink(&other, real.join("inner")).unwrap();
        let local = || Mount::new("/", "disk", Protocol::Local("ext4".into()));
        let path = link.join("inner/x");
        assert_eq!(real_path(&path, &[local()]), other.join("x"));
        for protocol in [Protocol::Nfs(None), Protocol::Other("autofs".into()), Protocol::Other("9p".into())]
        {
            let mounts = [local(), Mount::new(&real, "nas", protocol)];
            assert_eq!(real_path(&path, &mounts), real.join("inner/x"), "the share is not looked at");
        }
        assert_eq!(real_path(&path, &[]), path, "nothing is known about the path");
        let in_other_case = Mount::new(root.join("LINK"), "nas", Protocol::Smb(None));
        assert_eq!(real_path(&path, &[local(), in_other_case]), path, "it may lead to the share");
    }

    #[test]
    fn home_folder_that_holds_the_database_is_refused() {
        let folders = SpecialFolders { home: Some("/home/ada".into()), database: vec!["/home/ada".into()] };
        assert_eq!(folders.concern(Path::new("/home/ada")), Some(PathConcern::DatabaseFolder));
    }

    #[test]
    fn database_links_are_resolved_on_local_disks_only() {
        use longhaul_model::Protocol;
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mount = |protocol| Mount::new(root.path(), "x", protocol);
        let database = link.join("new/results.sqlite");
        let folders = |protocol| SpecialFolders::of(Some(&database), &[mount(protocol)]);
        let real = real.canonicalize().unwrap().join("new");
        assert_eq!(folders(Protocol::Local("ext4".into())).concern(&real), Some(PathConcern::DatabaseFolder));
        assert_eq!(folders(Protocol::Nfs(None)).concern(&real), None);
        assert_eq!(
            folders(Protocol::Nfs(None)).concern(&link.join("new")),
            Some(PathConcern::DatabaseFolder)
        );
    }
}
