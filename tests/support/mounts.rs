//! Real file systems for a test: small ones, read-only ones, and one that hangs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::machine;

/// Tells a test that it runs in mounts of its own.
const INSIDE: &str = "LONGHAUL_TEST_INSIDE";

/// Whether the test runs in mounts of its own. If not, it is run again in them, here, and there is nothing left to do.
///
/// In a mount namespace, anyone may mount, and nothing stays mounted whatever becomes of the test.
pub fn are_our_own(test: &str) -> bool {
    is_apart(test, &["--mount"], |_| ())
}

/// Whether the test runs in namespaces of its own. If not, it is run again in them, with what `prepare` adds to it.
pub fn is_apart(test: &str, namespaces: &[&str], prepare: impl FnOnce(&mut Command)) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return true;
    }
    let user: &[&str] = if machine::is_root() { &[] } else { &["--user", "--map-root-user"] };
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(user).args(namespaces).arg("--");
        command
    };
    if let Err(why) = try_to_mount(unshare()) {
        machine::skip(test, &format!("mounting in a namespace of its own does not work here ({why})"));
        return false;
    }
    let mut again = unshare();
    again.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]).env(INSIDE, test);
    prepare(&mut again);
    let output = again.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "in its own mounts, {test} failed:\n{said}"
    );
    // what was skipped inside has to be seen outside, and tables of what was measured
    said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| eprintln!("\n{line}"));
    said.lines().filter(|line| line.starts_with("| ")).for_each(|line| eprintln!("{line}"));
    false
}

fn try_to_mount(mut unshare: Command) -> Result<(), String> {
    let output = unshare.args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    match output {
        Err(error) => Err(format!("unshare: {error}")),
        Ok(output) if !output.status.success() => {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
        Ok(_) => Ok(()),
    }
}

/// A file system in memory.
pub struct Memory {
    at: PathBuf,
}

impl Memory {
    /// Mounts one of this size in kibibytes.
    pub fn mount(at: &Path, kibibytes: u32) -> Self {
        mount(&["-t", "tmpfs", "-o", &format!("size={kibibytes}k"), "none"], at);
        Self { at: at.to_owned() }
    }

    /// Writes until nothing more fits; the file that is returned holds the space.
    pub fn fill(&self) -> PathBuf {
        let ballast = self.at.join("ballast");
        let mut file = fs::File::options().create(true).append(true).open(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &[7; 4096]).is_ok() {}
        ballast
    }

    /// Gives it places for so many files and folders; 0: for as many as there come.
    pub fn keep_places(&self, places: u32) {
        mount(&["-o", &format!("remount,nr_inodes={places}"), "none"], &self.at);
    }

    /// Lets nobody write any more.
    pub fn make_read_only(&self) {
        mount(&["-o", "remount,ro", "none"], &self.at);
    }

    /// Lets everybody write again.
    pub fn make_writable(&self) {
        mount(&["-o", "remount,rw", "none"], &self.at);
    }

    /// Unmounts it as a person does: not while something on it is open.
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

fn mount(arguments: &[&str], at: &Path) {
    let status = Command::new("mount").args(arguments).arg(at).status().unwrap();
    assert!(status.success(), "mount {arguments:?} {}", at.display());
}

/// A folder, seen through a file system in user space that can be made to hang.
pub struct Fuse {
    at: PathBuf,
    server: Child,
}

impl Fuse {
    /// Why there can be none here, if so.
    pub fn impossible() -> Option<&'static str> {
        if !Path::new("/dev/fuse").exists() {
            return Some("there is no /dev/fuse");
        }
        if !machine::has("bindfs") {
            return Some("bindfs is not installed");
        }
        let probe = tempfile::tempdir().unwrap();
        let (source, at) = (probe.path().join("source"), probe.path().join("at"));
        [&source, &at].iter().for_each(|path| fs::create_dir(path).unwrap());
        Self::try_over(&source, &at, &[]).is_none().then_some("bindfs may not mount here")
    }

    /// Shows `source` at `at`.
    pub fn over(source: &Path, at: &Path) -> Self {
        Self::try_over(source, at, &[]).expect("bindfs mounted a moment ago")
    }

    /// The same, with a server that takes a second for each byte that is written. A call that it has accepted cannot
    /// be interrupted, not even by SIGKILL: as with a share whose server is gone.
    pub fn writing_for_ever(source: &Path, at: &Path) -> Self {
        Self::try_over(source, at, &["--write-rate=1"]).expect("bindfs mounted a moment ago")
    }

    /// Ends the server: every call that waits for it fails.
    pub fn end(&self) {
        self.signal(Signal::KILL);
    }

    fn try_over(source: &Path, at: &Path, options: &[&str]) -> Option<Self> {
        let mut server = Command::new("bindfs");
        server.arg("-f").args(options).arg(source).arg(at).stdout(Stdio::null()).stderr(Stdio::null());
        let mut fuse = Self { at: at.to_owned(), server: server.spawn().ok()? };
        let mut ended = false;
        machine::wait_until("bindfs to mount", || {
            ended = fuse.server.try_wait().unwrap().is_some();
            ended || is_mounted(at)
        });
        (!ended).then_some(fuse)
    }

    /// From now on no call on it returns.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets everything go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        machine::signal(i32::try_from(self.server.id()).unwrap(), signal);
    }
}

impl Drop for Fuse {
    /// Thawed first, so that whoever waits for it ends; then unmounted, which ends the server.
    fn drop(&mut self) {
        self.thaw();
        let at = self.at.as_os_str();
        let unmount = |program: &str, option: &str| {
            Command::new(program)
                .arg(option)
                .arg(at)
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|s| s.success())
        };
        let _ = unmount("fusermount3", "-u")
            || unmount("fusermount", "-u")
            || unmount("umount", "-l")
            || unmount("fusermount3", "-uz");
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn is_mounted(at: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let at = at.to_str().unwrap();
    table.lines().any(|line| line.split(' ').nth(4) == Some(at))
}
