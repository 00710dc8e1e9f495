//! How the programs begin and end: what they need of the system, a configuration that is wrong, another version in their place.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use longhaul_service::contact::Contact;
use rustix::process::Signal;
use serde_json::Value;
use support::daemon::{BUSY, Daemon, at_home, command, log, target};
use support::{Place, assert_all_ok, machine};

/// A command that begins with few descriptors, as a terminal on macOS does, and becomes a program.
fn with_few_descriptors(place: &Place, program: &str, words: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -S -n 256; exec \"$0\" \"$@\"", program]).args(words);
    at_home(shell, place)
}

/// A process that is killed when the test is done with it, however that ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The soft limit of descriptors of a process, once it is the program of this name.
fn descriptors_of(pid: u32, program: &str) -> u64 {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    machine::wait_until("the program to begin", || read("comm").trim() == program);
    let limits = read("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn the_command_line_raises_its_limit_of_descriptors() {
    let test = "the_command_line_raises_its_limit_of_descriptors";
    if let Some(why) = machine::without_proc() {
        return machine::skip(test, why);
    }
    let place = Place::new();
    // It follows a log that is not there, until it is ended.
    let mut command = with_few_descriptors(&place, env!("CARGO_BIN_EXE_longhaul"), &["logs", "-f"]);
    let child = Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    machine::wait_until("the limit to be raised", || descriptors_of(child.0.id(), "longhaul") > 256);
    let raised = descriptors_of(child.0.id(), "longhaul");
    assert!((4096..=10_240).contains(&raised), "{raised}");
}

#[test]
fn the_service_raises_its_limit_of_descriptors() {
    let test = "the_service_raises_its_limit_of_descriptors";
    if let Some(why) = machine::without_proc() {
        return machine::skip(test, why);
    }
    let place = Place::new();
    let command = with_few_descriptors(&place, env!("CARGO_BIN_EXE_longhauld"), &[]);
    let mut daemon = Daemon::spawn_as(&place, command);
    daemon.wait_until_ready();
    let raised = descriptors_of(daemon.pid(), "longhauld");
    assert!((4096..=10_240).contains(&raised), "{raised}");
    daemon.stop();
}

/// The service from a program file of its own, which a test can replace.
struct Installed {
    place: Place,
}

impl Installed {
    fn new() -> Self {
        let place = Place::new();
        place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
        fs::copy(env!("CARGO_BIN_EXE_longhauld"), place.folder("bin").join("longhauld")).unwrap();
        Self { place }
    }

    fn command(&self) -> Command {
        at_home(Command::new(self.place.path("bin/longhauld")), &self.place)
    }

    /// Puts another file in the place of the program, as an upgrade does.
    fn upgrade(&self) {
        fs::copy(self.place.path("bin/longhauld"), self.place.path("bin/new")).unwrap();
        fs::rename(self.place.path("bin/new"), self.place.path("bin/longhauld")).unwrap();
    }
}

#[test]
fn a_replaced_program_ends_in_order_for_its_manager() {
    let installed = Installed::new();
    let place = &installed.place;
    let mut command = installed.command();
    command.env("INVOCATION_ID", "0123456789abcdef0123456789abcdef");
    let mut daemon = Daemon::spawn_as(place, command);
    daemon.wait_until_ready();
    daemon.wait_for_rounds(1);
    installed.upgrade();
    assert_eq!(daemon.ended().code(), Some(75));
    assert!(!place.database().with_extension("starts").exists(), "it is no crash");
    assert!(!Contact::path(&place.database()).exists(), "nothing is left behind");
    assert!(place.round_ends().iter().all(Option::is_some), "no round is open");
    assert_all_ok(&place.stored_runs());
    machine::wait_for_no_worker(place.root());
}

#[test]
fn a_replaced_program_without_a_manager_asks_for_a_restart() {
    let installed = Installed::new();
    let mut daemon = Daemon::spawn_as(&installed.place, installed.command());
    daemon.wait_until_ready();
    daemon.wait_for_rounds(1);
    installed.upgrade();
    let status = daemon.wait_for("the problem", |status| status["problems"][0]["word"] == "replaced");
    let text = status["problems"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("longhauld was replaced by another version: restart it"), "{text}");
    let said = installed.place.longhaul("status").expect(3);
    assert!(said.out.contains("restart it"), "{said}");
    daemon.round();
    daemon.stop();
    assert_all_ok(&installed.place.stored_runs());
}

/// A service under launchd, as its variable says.
fn under_launchd<'a>(place: &'a Place, label: &str) -> Daemon<'a> {
    let mut command = command(place);
    command.env("XPC_SERVICE_NAME", label);
    Daemon::spawn_as(place, command)
}

/// The errors in the log of a place.
fn errors_logged(place: &Place) -> usize {
    let text = fs::read_to_string(log(place)).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["level"] == "ERROR").count()
}

#[test]
fn under_launchd_a_bad_configuration_is_told_once_and_waited_for() {
    let place = Place::new();
    place.configure("scale = \"enormous\"\n");
    let mut daemon = under_launchd(&place, "org.longhaul.agent");
    machine::wait_until("the complaint", || daemon.said().contains("config.toml:1"));
    // The same again is no news; something else that is wrong is, and shows that the file was looked at.
    place.configure("scale = \"enormous\"\n\n");
    place.configure("\nscale = \"enormous\"\n");
    machine::wait_until("the other complaint", || daemon.said().contains("config.toml:2"));
    assert_eq!(daemon.contact(), None, "it does not run");
    place.configure("scale = \"quick\"\n[log]\nlevel = \"debug\"\n");
    daemon.wait_until_ready();
    let said = daemon.said();
    assert_eq!((said.lines().count(), errors_logged(&place)), (2, 2), "{said}");
    assert_eq!(daemon.status()["log_level"], "debug");
    daemon.stop();
}

#[test]
fn a_wait_for_the_configuration_ends_at_once_when_told() {
    let place = Place::new();
    place.configure("scale = \"enormous\"\n");
    let daemon = under_launchd(&place, "org.longhaul.agent");
    machine::wait_until("the complaint", || daemon.said().contains("config.toml:1"));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn a_bad_configuration_in_a_terminal_ends_the_program() {
    let place = Place::new();
    place.configure("scale = \"enormous\"\n");
    assert_eq!(under_launchd(&place, "0").ended().code(), Some(2));
}
