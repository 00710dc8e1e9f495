//! Tests of how the programs start and exit: descriptor limits, an invalid configuration, and replacement by a new
//! version.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::support::daemon::{BUSY, Daemon, command, log, target};
use crate::support::{Place, assert_all_ok, link, machine};
use longhaul_service::daemon_address::DaemonAddress;
use rustix::process::Signal;
use serde_json::Value;

/// Returns a command that runs a program with a soft limit of 256 descriptors, as a terminal on macOS has.
fn with_few_descriptors(place: &Place, program: &str, words: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -S -n 256; exec \"$0\" \"$@\"", program]).args(words);
    place.at_home(shell)
}

/// Process that is killed when dropped, also if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a process has executed the program, and returns its soft limit of descriptors.
fn descriptors_of(pid: u32, program: &str) -> u64 {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    machine::wait_until("the program to start", || read("comm").trim() == program);
    let limits = read("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn command_line_raises_its_descriptor_limit() {
    let place = Place::new();
    // The command follows a missing log, so it runs until it is killed.
    let mut command =
        with_few_descriptors(&place, env!("CARGO_BIN_EXE_longhaul"), &["service", "logs", "-f"]);
    let child = Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    machine::wait_until("the limit to be raised", || descriptors_of(child.0.id(), "longhaul") > 256);
    let raised = descriptors_of(child.0.id(), "longhaul");
    assert!((4096..=10_240).contains(&raised), "{raised}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn service_raises_its_descriptor_limit() {
    let place = Place::new();
    let command = with_few_descriptors(&place, env!("CARGO_BIN_EXE_longhauld"), &[]);
    let mut daemon = Daemon::spawn_as(&place, command);
    daemon.wait_until_ready();
    let raised = descriptors_of(daemon.pid(), "longhauld");
    assert!((4096..=10_240).contains(&raised), "{raised}");
    daemon.stop();
}

/// Service started from a program file of its own, which a test can replace.
struct Installed {
    place: Place,
}

impl Installed {
    fn new() -> Self {
        let place = Place::new();
        place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
        link(env!("CARGO_BIN_EXE_longhauld"), &place.folder("bin").join("longhauld"));
        Self { place }
    }

    fn command(&self) -> Command {
        self.place.at_home(Command::new(self.place.path("bin/longhauld")))
    }

    /// Replaces the program file by another file, as an upgrade does.
    fn upgrade(&self) {
        fs::copy(self.place.path("bin/longhauld"), self.place.path("bin/new")).unwrap();
        fs::rename(self.place.path("bin/new"), self.place.path("bin/longhauld")).unwrap();
    }
}

#[test]
fn replaced_program_exits_for_its_service_manager() {
    let installed = Installed::new();
    let place = &installed.place;
    let mut command = installed.command();
    command.env("INVOCATION_ID", "0123456789abcdef0123456789abcdef");
    let mut daemon = Daemon::spawn_as(place, command);
    daemon.wait_until_ready();
    daemon.round();
    installed.upgrade();
    assert_eq!(daemon.wait_for_exit().code(), Some(75));
    assert!(!place.database().with_extension("starts").exists(), "the exit is not counted as a crash");
    assert!(!DaemonAddress::path(&place.database()).exists(), "the address file is removed");
    assert!(place.round_ends().iter().all(Option::is_some), "no round is open");
    assert_all_ok(&place.stored_runs());
    machine::wait_for_no_worker(place.root());
}

#[test]
fn replaced_program_without_manager_asks_for_restart() {
    let installed = Installed::new();
    let mut daemon = Daemon::spawn_as(&installed.place, installed.command());
    daemon.wait_until_ready();
    daemon.round();
    installed.upgrade();
    let status = daemon.wait_for("the problem", |status| status["problems"][0]["code"] == "program-replaced");
    let text = status["problems"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("longhauld was replaced by another version: restart it"), "{text}");
    let output = installed.place.longhaul("status").expect(3);
    assert!(output.out.contains("restart it"), "{output}");
    daemon.round();
    daemon.stop();
    assert_all_ok(&installed.place.stored_runs());
}

/// Starts the service with the environment variable that launchd sets.
fn under_launchd<'a>(place: &'a Place, label: &str) -> Daemon<'a> {
    let mut command = command(place);
    command.env("XPC_SERVICE_NAME", label);
    Daemon::spawn_as(place, command)
}

/// Returns the number of error records in the service's log.
fn errors_logged(place: &Place) -> usize {
    let text = fs::read_to_string(log(place)).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["level"] == "ERROR").count()
}

#[test]
fn invalid_config_under_launchd_is_logged_once() {
    let place = Place::new();
    place.configure("scale = \"enormous\"\n");
    let mut daemon = under_launchd(&place, "org.longhaul.agent");
    machine::wait_until("the error", || daemon.stderr().contains("config.toml:1"));
    // The same error is not logged again. A different one is, which shows that the file was read again.
    place.configure("scale = \"enormous\"\n\n");
    place.configure("\nscale = \"enormous\"\n");
    machine::wait_until("the other error", || daemon.stderr().contains("config.toml:2"));
    assert_eq!(daemon.address(), None, "the service does not run");
    place.configure("scale = \"quick\"\n[log]\nlevel = \"debug\"\n");
    daemon.wait_until_ready();
    let output = daemon.stderr();
    assert_eq!((output.lines().count(), errors_logged(&place)), (2, 2), "{output}");
    assert_eq!(daemon.status()["log_level"], "debug");
    daemon.stop();
}

#[test]
fn sigterm_ends_the_wait_for_a_valid_config() {
    let place = Place::new();
    place.configure("scale = \"enormous\"\n");
    let daemon = under_launchd(&place, "org.longhaul.agent");
    machine::wait_until("the error", || daemon.stderr().contains("config.toml:1"));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait_for_exit().signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn invalid_config_in_a_terminal_exits_with_code_2() {
    let place = Place::new();
    place.configure("scale = \"enormous\"\n");
    assert_eq!(under_launchd(&place, "0").wait_for_exit().code(), Some(2));
}
