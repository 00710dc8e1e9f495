//! Folders that are no good place to measure, told by their paths alone: a target is never touched for this.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use longhaul_measure::model::{Family, Mount};

/// What is the matter with a target's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathConcern {
    /// It is the folder of the database. Refused: what is measured and what is written would get in each other's way.
    DatabaseFolder,
    /// It is `/`.
    Root,
    /// It is the home folder of the user.
    Home,
}

/// The folders that a target is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialFolders {
    /// The home folder, if it is known.
    pub home: Option<PathBuf>,
    /// The folder of the database as it is written, and with its links resolved.
    pub database: Vec<PathBuf>,
}

impl SpecialFolders {
    /// Those of this user and of a database. Links that lead to the database are resolved where its path is not on a
    /// network by its name; there nothing is touched.
    pub fn of(database: Option<&Path>, mounts: &[Mount]) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let folder = database.and_then(Path::parent);
        let resolved = folder.filter(|folder| is_local(folder, mounts)).and_then(resolve);
        Self { home, database: folder.map(Path::to_owned).into_iter().chain(resolved).collect() }
    }

    /// What is the matter with a path, which is absolute; `None`: nothing. Pure: paths are compared as they are written,
    /// without `.` and `..`.
    pub fn concern(&self, path: &Path) -> Option<PathConcern> {
        let path = tidy(path);
        let is = |other: &PathBuf| tidy(other) == path;
        if self.database.iter().any(is) {
            return Some(PathConcern::DatabaseFolder);
        }
        if path == Path::new("/") {
            return Some(PathConcern::Root);
        }
        self.home.iter().any(is).then_some(PathConcern::Home)
    }
}

impl PathConcern {
    /// Whether nothing is measured there.
    pub fn is_refused(self) -> bool {
        match self {
            Self::DatabaseFolder => true,
            Self::Root | Self::Home => false,
        }
    }

    /// What the user can do.
    pub fn advice(self) -> &'static str {
        match self {
            Self::DatabaseFolder => {
                "name another folder, or keep the database elsewhere with `--database PATH`"
            }
            Self::Root | Self::Home => "name a folder in it that you made for this",
        }
    }
}

impl fmt::Display for PathConcern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DatabaseFolder => "is the folder of the database, where longhaul writes its results",
            Self::Root => "is the root of the system's disk: test data would lie beside the system",
            Self::Home => {
                "is your home folder: what backs up or synchronizes it would take the test data along"
            }
        })
    }
}

fn is_local(path: &Path, mounts: &[Mount]) -> bool {
    let family = Mount::of_path(mounts, path).map(|mount| mount.protocol.family());
    matches!(family, Some(Family::Local | Family::Other))
}

/// A path without links, as far as it exists.
fn resolve(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|part| {
        let rest = path.strip_prefix(part).ok()?;
        Some(part.canonicalize().ok()?.join(rest))
    })
}

/// A path without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            part => tidy.push(part),
        }
    }
    tidy
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
    fn each_special_folder_is_told_however_it_is_written() {
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
    fn folders_above_below_and_beside_them_are_fine() {
        for path in ["/home", "/home/ada/baseline", "/big", "/big/longhaul/x", "/big/longhaul2", "/mnt/nas"] {
            assert_eq!(concern(path), None, "{path}");
        }
        assert_eq!(SpecialFolders::default().concern(Path::new("/home/ada")), None);
    }

    #[test]
    fn a_home_that_holds_the_database_is_refused() {
        let folders = SpecialFolders { home: Some("/home/ada".into()), database: vec!["/home/ada".into()] };
        assert_eq!(folders.concern(Path::new("/home/ada")), Some(PathConcern::DatabaseFolder));
    }

    #[test]
    fn links_to_the_database_are_resolved_and_no_network_is_touched() {
        use longhaul_measure::model::{Negotiated, Protocol};
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mount = |protocol| Mount {
            point: root.path().to_owned(),
            source: "x".to_owned(),
            protocol,
            negotiated: Negotiated::new(),
            read_only: false,
            free_bytes: None,
            total_bytes: None,
            server: None,
            device: None,
        };
        let database = link.join("new/results.sqlite");
        let of = |protocol| SpecialFolders::of(Some(&database), &[mount(protocol)]);
        let real = real.canonicalize().unwrap().join("new");
        assert_eq!(of(Protocol::Local("ext4".into())).concern(&real), Some(PathConcern::DatabaseFolder));
        assert_eq!(of(Protocol::Nfs(None)).concern(&real), None);
        assert_eq!(of(Protocol::Nfs(None)).concern(&link.join("new")), Some(PathConcern::DatabaseFolder));
    }
}
