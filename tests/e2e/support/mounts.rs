//! Runs tests in their own namespaces, and mounts small or read-only file systems there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::machine;

/// Environment variable with the name of the test that runs in its own namespaces.
const INSIDE: &str = "LONGHAUL_TEST_INSIDE";

/// Returns true inside the test's own mount namespace. Otherwise runs the test again inside one and returns false.
/// Panics if that fails.
///
/// In its own mount namespace an unprivileged user can mount, and nothing stays mounted if the test crashes.
pub fn in_own_mounts(test: impl Fn()) -> bool {
    in_own_namespaces(&name_of(test), &["--mount"], |_| ())
}

/// Lets the rest of the named test, whose first line this is, run inside its own mount namespace only: see [`in_own_mounts`].
macro_rules! only_in_own_mounts {
    ($test:ident) => {
        if !$crate::support::mounts::in_own_mounts($test) {
            return;
        }
    };
}
pub(crate) use only_in_own_mounts;

/// Returns the name of a test as the test program lists it, such as `hang::database_on_fuse_is_refused`.
pub fn name_of(test: impl Fn()) -> String {
    let path = std::any::type_name_of_val(&test);
    path.split_once("::").map_or(path, |(_, name)| name).to_owned()
}

/// Returns true inside the test's own namespaces. Otherwise runs the test again inside them, with the command as
/// changed by `prepare`, and returns false.
pub fn in_own_namespaces(test: &str, namespaces: &[&str], prepare: impl FnOnce(&mut Command)) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return true;
    }
    let user: &[&str] = if machine::is_root() { &[] } else { &["--user", "--map-root-user"] };
    let mut again = Command::new("unshare");
    again.args(user).args(namespaces).arg("--").arg(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--include-ignored", "--nocapture"]).env(INSIDE, test);
    prepare(&mut again);
    let output = again.output().expect("unshare(1) starts");
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{test} failed in its own namespaces, which need root or unprivileged user namespaces:\n{printed}"
    );
    // The inner test's output is captured: print its result tables again.
    printed.lines().filter(|line| line.starts_with("| ")).for_each(|line| eprintln!("{line}"));
    false
}

/// Mounted tmpfs. It is unmounted when dropped.
pub struct Memory {
    at: PathBuf,
}

impl Memory {
    /// Mounts a tmpfs of this size in KiB.
    pub fn mount(at: &Path, kibibytes: u32) -> Self {
        mount(&["-t", "tmpfs", "-o", &format!("size={kibibytes}k"), "none"], at);
        Self { at: at.to_owned() }
    }

    /// Writes until the file system is full. Returns the file to delete to free the space.
    pub fn fill(&self) -> PathBuf {
        let ballast = self.at.join("ballast");
        let mut file = fs::File::options().create(true).append(true).open(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
        ballast
    }

    /// Limits the number of inodes; 0 removes the limit.
    pub fn limit_inodes(&self, places: u32) {
        mount(&["-o", &format!("remount,nr_inodes={places}"), "none"], &self.at);
    }

    /// Remounts the file system read-only.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro", "none"], &self.at);
    }

    /// Remounts the file system for reading and writing.
    pub fn make_writable(&self) {
        mount(&["-o", "remount,rw", "none"], &self.at);
    }

    /// Unmounts the file system as a user does. Returns false if a file on it is open.
    pub fn eject(&self) -> bool {
        let status = Command::new("umount").arg(&self.at).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// Shows a file or folder at a second path.
pub fn bind(from: &Path, at: &Path) {
    mount(&["--bind", from.to_str().unwrap()], at);
}

/// Removes what is mounted at a path.
pub fn unmount(at: &Path) {
    let status = Command::new("umount").arg(at).status().unwrap();
    assert!(status.success(), "umount {}", at.display());
}

/// Runs mount(8) in the namespace of the test.
pub fn mount(arguments: &[&str], at: &Path) {
    let status = Command::new("mount").args(arguments).arg(at).status().unwrap();
    assert!(status.success(), "mount {arguments:?} {}", at.display());
}
