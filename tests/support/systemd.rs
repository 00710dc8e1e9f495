//! A real `systemd --user` for one test, in namespaces of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::{Place, machine, mounts};

const PROGRAM: &str = "/usr/lib/systemd/systemd";
const RUNTIME: &str = "/run/user/0";
/// Hierarchies of control groups in which systemd wants a group of its own: of version 1 and 2.
const HIERARCHIES: [&str; 3] = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// What stands in for the daemon where the real one is not built, or must not be: it says that it is ready, lives, and ends when it is
/// told to.
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

/// Puts a daemon where it is to be installed: the real one if it is built, else the stand-in.
pub fn put_daemon(path: &Path) {
    match option_env!("CARGO_BIN_EXE_longhauld") {
        Some(real) => drop(fs::copy(real, path).unwrap()),
        None => put_stand_in(path),
    }
}

/// Puts a daemon there that fails while there is a file `fail` in its home.
pub fn put_stand_in(path: &Path) {
    fs::write(path, STAND_IN).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whether the test runs where it can have a systemd of its own. If not, it is run again there.
pub fn is_our_own(test: &str) -> bool {
    if !Path::new(PROGRAM).exists() || !machine::is_root() {
        machine::skip(test, "a systemd of its own needs systemd, and root for its control group");
        return false;
    }
    let is_inside = mounts::is_apart(test, &["--mount", "--pid", "--fork", "--mount-proc"], |again| {
        again.env("XDG_RUNTIME_DIR", RUNTIME).env_remove("DBUS_SESSION_BUS_ADDRESS");
    });
    if !is_inside {
        groups().iter().for_each(|group| remove_group(&group.join(group_name(test))));
    }
    is_inside
}

fn groups() -> Vec<PathBuf> {
    HIERARCHIES.iter().map(PathBuf::from).filter(|path| path.join("cgroup.procs").exists()).collect()
}

fn group_name(test: &str) -> String {
    format!("longhaul-test-{test}")
}

/// Groups that are empty, from the leaves up; what is not there, or not empty yet, does no harm.
fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// A `systemd --user` that runs.
pub struct Systemd {
    manager: Child,
}

impl Systemd {
    /// Starts one for a home. `None`: it does not run here, which is said.
    pub fn start(test: &str, place: &Place) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none", "/run"]).status().unwrap();
        assert!(mounted.success());
        // systemd asks by this folder whether a systemd runs the machine
        ["/run/systemd/system", RUNTIME].iter().for_each(|path| fs::create_dir_all(path).unwrap());
        for group in groups() {
            let own = group.join(group_name(test));
            if fs::create_dir_all(&own).is_err() || fs::write(own.join("cgroup.procs"), "0").is_err() {
                machine::skip(test, &format!("there can be no control group in {}", group.display()));
                return None;
            }
        }
        let mut systemd = Self { manager: spawn(place) };
        let mut ended = None;
        machine::wait_until("systemd --user to run", || {
            ended = systemd.manager.try_wait().unwrap();
            ended.is_some() || is_running()
        });
        if let Some(status) = ended {
            machine::skip(test, &format!("systemd --user does not run here ({status})"));
            return None;
        }
        Some(systemd)
    }

    /// What `systemctl --user` says to this.
    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = systemctl(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The process of the daemon.
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
