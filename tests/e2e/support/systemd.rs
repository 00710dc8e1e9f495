//! Starts a real `systemd --user` for one test, in its own namespaces.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::{Place, machine, mounts};

const PROGRAM: &str = "/usr/lib/systemd/systemd";
const RUNTIME: &str = "/run/user/0";
/// Mount points of cgroup hierarchies, versions 1 and 2. systemd needs its own group in each that exists.
const HIERARCHIES: [&str; 3] = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Perl script that stands in for the daemon. It notifies systemd that it is ready, sends the watchdog signal and
/// ends on SIGTERM. It exits with code 7 while the file `fail` exists in its home.
const STAND_IN: &str = r#"#!/usr/bin/perl
use Socket;
sub notify {
    my $at = $ENV{NOTIFY_SOCKET} or return;
    $at =~ s/^@/\0/;
    socket(my $socket, AF_UNIX, SOCK_DGRAM, 0);
    send($socket, $_[0], 0, pack_sockaddr_un($at));
}
exit 7 if -e "$ENV{HOME}/fail";
$SIG{TERM} = sub { notify("STOPPING=1"); exit 0 };
notify("READY=1");
while (1) { sleep 1; notify("WATCHDOG=1"); }
"#;

/// Replaces the daemon at a path by the stand-in, which fails while the file `fail` exists in its home.
pub fn put_stand_in(path: &Path) {
    // The file may be a link to the real program, which must not be written to.
    fs::remove_file(path).unwrap();
    fs::write(path, STAND_IN).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns true inside the namespaces in which a test can start systemd. Otherwise runs the test again inside them
/// and returns false.
pub fn in_own_systemd(test: impl Fn()) -> bool {
    let test = mounts::name_of(test);
    let is_inside =
        mounts::in_own_namespaces(&test, &["--mount", "--pid", "--fork", "--mount-proc"], |again| {
            again.env("XDG_RUNTIME_DIR", RUNTIME).env_remove("DBUS_SESSION_BUS_ADDRESS");
        });
    if !is_inside {
        groups().iter().for_each(|group| remove_group(&group.join(group_name(&test))));
    }
    is_inside
}

fn groups() -> Vec<PathBuf> {
    HIERARCHIES.iter().map(PathBuf::from).filter(|path| path.join("cgroup.procs").exists()).collect()
}

fn group_name(test: &str) -> String {
    format!("longhaul-test-{test}")
}

/// Removes a control group and the groups below it, children first. Ignores groups that are missing or still in use.
fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// Running `systemd --user` process. It is terminated when dropped.
pub struct Systemd {
    manager: Child,
}

impl Systemd {
    /// Starts systemd for a test environment. Needs root, to create a control group.
    pub fn start(test: impl Fn(), place: &Place) -> Self {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none", "/run"]).status().unwrap();
        assert!(mounted.success());
        // sd_booted(3): systemd checks for this folder to see if the machine was booted with systemd.
        ["/run/systemd/system", RUNTIME].iter().for_each(|path| fs::create_dir_all(path).unwrap());
        let name = group_name(&mounts::name_of(test));
        for group in groups() {
            let own = group.join(&name);
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("cgroup.procs"), "0").unwrap();
        }
        let mut systemd = Self { manager: spawn(place) };
        machine::wait_until("systemd --user to run", || {
            assert_eq!(systemd.manager.try_wait().unwrap(), None, "systemd --user ended");
            is_running()
        });
        systemd
    }

    /// Runs `systemctl --user` with these arguments and returns its standard output.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = systemctl(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns the process id of the daemon.
    pub fn main_process(&self) -> i32 {
        self.ask(&["show", "longhaul.service", "--property=MainPID", "--value"]).parse().unwrap()
    }
}

fn spawn(place: &Place) -> Child {
    let mut command = Command::new(PROGRAM);
    command.arg("--user").env("HOME", place.path("home")).env("XDG_CONFIG_HOME", place.path("home/config"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn is_running() -> bool {
    let output = systemctl(&["is-system-running"]).output().unwrap();
    ["running", "degraded"].contains(&String::from_utf8_lossy(&output.stdout).trim())
}

fn systemctl(arguments: &[&str]) -> Command {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(arguments).stderr(Stdio::null());
    command
}

impl Drop for Systemd {
    fn drop(&mut self) {
        machine::signal(i32::try_from(self.manager.id()).unwrap(), Signal::TERM);
        let _ = self.manager.wait();
    }
}
