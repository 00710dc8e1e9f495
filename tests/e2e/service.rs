//! Tests of installing, starting, stopping and removing the background service with a real `systemd --user`. On macOS
//! a test cannot start launchd, so only dry runs are checked there.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::daemon::{BUSY, target};
use crate::support::systemd::{self, Systemd};
use crate::support::{Place, TINY_TREES, assert_all_ok, find_sandbox, machine, sandbox, tree};

fn unit(place: &Place) -> PathBuf {
    place.path("home/config/systemd/user/longhaul.service")
}

/// Creates a test environment with both programs and a configuration.
fn ready() -> Place {
    let place = Place::with_programs_in("bin");
    place.configure(TINY_TREES);
    place
}

/// Returns every file below the home.
fn at_home(place: &Place) -> Vec<PathBuf> {
    tree::files(&place.path("home"))
}

/// Returns the command line of a process, without a script interpreter.
fn command_line(process: i32) -> Vec<String> {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap();
    let words = words.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0);
    let words: Vec<String> = words.map(|word| String::from_utf8(word.to_vec()).unwrap()).collect();
    let begin = words.iter().position(|word| word.ends_with("/longhauld")).unwrap();
    words[begin..].to_vec()
}

#[test]
fn install_dry_run_writes_nothing() {
    let place = ready();
    let before = at_home(&place);
    place.longhaul("service install --dry-run").expect(0);
    assert_eq!(at_home(&place), before);
}

#[test]
#[ignore = "needs systemd-analyze; run by name with --ignored"]
fn install_dry_run_prints_a_valid_unit() {
    let place = ready();
    let printed = place.longhaul("service install --dry-run").expect(0);
    let lines = printed.out.lines().skip_while(|line| !line.starts_with("would write"));
    let text: String =
        lines.map(|line| line.strip_prefix("    ").unwrap_or_default().to_owned() + "\n").collect();
    let file = place.path("longhaul.service");
    fs::write(&file, text).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "verify"]).arg(&file).env("XDG_RUNTIME_DIR", place.folder("runtime"));
    let output = verify.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = complaints.lines().filter(|line| line.contains("longhaul.service")).collect();
    assert!(output.status.success() && ours.is_empty(), "{complaints}");
}

#[test]
fn install_without_a_service_manager_writes_nothing() {
    let place = ready();
    let before = at_home(&place);
    let without = |arguments: &str| {
        let mut command = place.longhaul(arguments).command();
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", place.path("nothing"));
        command.output().unwrap()
    };
    for arguments in ["service install", "service start", "service stop", "service restart"] {
        let output = without(arguments);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(
            cfg!(target_os = "macos") || printed.contains("no systemd session for this login"),
            "{arguments}: {printed}"
        );
    }
    assert_eq!(at_home(&place), before);
    fs::create_dir_all(unit(&place).parent().unwrap()).unwrap();
    fs::write(unit(&place), "x").unwrap();
    let output = without("service uninstall");
    assert!(output.status.success() && !unit(&place).exists(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn install_says_what_is_missing() {
    let place = Place::with_programs_in("bin");
    place.longhaul("service install").expect(2).assert_stderr(&["config.toml", "longhaul init"]);
    place.configure("scale = \"enormous\"");
    place.longhaul("service install").expect(2).assert_stderr(&["config.toml:1"]);
    place.configure(TINY_TREES);
    fs::remove_file(place.path("bin/longhauld")).unwrap();
    place
        .longhaul("service install")
        .expect(2)
        .assert_stderr(&["bin/longhauld", "has to be in the same folder as longhaul"]);
    assert!(!unit(&place).exists());
}

#[test]
#[ignore = "needs systemd, and root to create a control group; run by name with --ignored"]
fn service_can_be_installed_run_and_uninstalled() {
    if !systemd::in_own_systemd(service_can_be_installed_run_and_uninstalled) {
        return;
    }
    let place = ready();
    let before = at_home(&place);
    let systemd = Systemd::start(service_can_be_installed_run_and_uninstalled, &place);
    let start = place.longhaul("service start").expect(2);
    start.assert_stderr(&["longhaul service install"]);
    let output = place.longhaul("service install").expect(0);
    for part in [
        "installed with systemd --user and running, process",
        "loginctl enable-linger",
        "longhaul service logs",
    ] {
        assert!(output.out.contains(part), "the output lacks `{part}`: {output}");
    }
    let first = systemd.main_process();
    let config = place.path("home/config/longhaul/config.toml").display().to_string();
    let words = ["--config", &config, "--database", &place.database().display().to_string()];
    assert_eq!(command_line(first)[1..], words);
    assert_eq!(systemd.ask(&["is-enabled", "longhaul.service"]), "enabled");
    place.longhaul("service install").expect(0);
    let second = systemd.main_process();
    assert_ne!(second, first, "an update restarts the daemon");
    place.longhaul("service restart").expect(0);
    assert_ne!(systemd.main_process(), second);
    assert!(place.longhaul("service stop").expect(0).out.contains("longhaul is stopped."));
    assert_eq!(systemd.ask(&["is-active", "longhaul.service"]), "inactive");
    assert!(place.longhaul("service start").expect(0).out.contains("longhaul is running"));
    place.longhaul("service uninstall").expect(0);
    assert_eq!(systemd.ask(&["show", "longhaul.service", "--property=LoadState", "--value"]), "not-found");
    let left: Vec<PathBuf> = at_home(&place).into_iter().filter(|path| path.starts_with("config")).collect();
    assert_eq!(left, before, "only files from before the installation are left");
    assert!(place.longhaul("service uninstall").expect(0).out.contains("not installed"));
}

#[test]
#[ignore = "needs systemd, and root to create a control group; run by name with --ignored"]
fn install_checks_each_target_through_the_service() {
    if !systemd::in_own_systemd(install_checks_each_target_through_the_service) {
        return;
    }
    let place = ready();
    let target = |name: &str, path: &Path| format!("[targets.{name}]\npath = \"{}\"\n", path.display());
    let (existing, missing) = (target("there", &place.folder("a")), target("gone", &place.path("b")));
    place.configure(&format!("scale = \"quick\"\n{TINY_TREES}{existing}{missing}"));
    let _systemd = Systemd::start(install_checks_each_target_through_the_service, &place);
    let output = place.longhaul("service install").expect(0);
    let line = |name: &str| output.out.lines().find(|line| line.contains(&format!("target {name} ")));
    assert!(line("there").is_some_and(|line| line.trim_start().starts_with("ok")), "{output}");
    assert!(line("gone").is_some_and(|line| line.trim_start().starts_with("failed")), "{output}");
    place.longhaul("service uninstall").expect(0);
}

#[test]
#[ignore = "needs systemd, and root to create a control group; run by name with --ignored"]
fn failing_daemon_is_reported_and_restarted() {
    if !systemd::in_own_systemd(failing_daemon_is_reported_and_restarted) {
        return;
    }
    let place = ready();
    systemd::put_stand_in(&place.path("bin/longhauld"));
    let systemd = Systemd::start(failing_daemon_is_reported_and_restarted, &place);
    fs::write(place.path("home/fail"), "").unwrap();
    place
        .longhaul("service install")
        .expect(1)
        .assert_stderr(&["Job for longhaul.service failed", "longhaul service logs"]);
    let message = "systemd waits to restart the daemon";
    assert_eq!(systemd.ask(&["is-active", "longhaul.service"]), "activating", "{message}");
    fs::remove_file(place.path("home/fail")).unwrap();
    assert!(place.longhaul("service restart").expect(0).out.contains("running"));
    machine::signal(systemd.main_process(), rustix::process::Signal::KILL);
    machine::wait_until("systemd to notice", || {
        systemd.ask(&["is-active", "longhaul.service"]) == "activating"
    });
    place.longhaul("service uninstall").expect(0);
    assert_eq!(systemd.ask(&["show", "longhaul.service", "--property=LoadState", "--value"]), "not-found");
}

#[test]
#[ignore = "needs systemd, and root to create a control group; run by name with --ignored"]
fn systemd_restarts_a_new_program_but_no_bad_config() {
    if !systemd::in_own_systemd(systemd_restarts_a_new_program_but_no_bad_config) {
        return;
    }
    let place = Place::with_programs_in("bin");
    let good = BUSY.to_owned() + &target("a", &place.folder("a"));
    place.configure(&good);
    let systemd = Systemd::start(systemd_restarts_a_new_program_but_no_bad_config, &place);
    let activity = || systemd.ask(&["show", "longhaul.service", "--property=ActiveState", "--value"]);
    place.longhaul("service install").expect(0);
    fs::copy(place.path("bin/longhauld"), place.path("bin/new")).unwrap();
    fs::rename(place.path("bin/new"), place.path("bin/longhauld")).unwrap();
    machine::wait_until("systemd to restart the daemon", || activity() == "activating");
    let code = ["show", "longhaul.service", "--property=ExecMainStatus", "--value"];
    assert_eq!(systemd.ask(&code), "75");
    place.configure("scale = \"enormous\"");
    place.longhaul("service restart").expect(1).assert_stderr(&["longhaul.service failed"]);
    assert_eq!(
        (activity().as_str(), systemd.ask(&code).as_str()),
        ("failed", "2"),
        "the daemon is not restarted"
    );
    place.configure(&good);
    place.longhaul("service restart").expect(0);
    place.longhaul("service uninstall").expect(0);
}

#[test]
#[ignore = "needs systemd, and root to create a control group; run by name with --ignored"]
fn paths_with_special_characters_pass_through_systemd() {
    if !systemd::in_own_systemd(paths_with_special_characters_pass_through_systemd) {
        return;
    }
    let place = Place::with_programs_in("a b 100% %h $HOME ${HOME} ; # 🐚");
    let systemd = Systemd::start(paths_with_special_characters_pass_through_systemd, &place);
    let folder = place.folder("q\"uo'te \\ %n $$ ; \n\t\u{1b}[0m\u{85} 🐚");
    let (config, database) = (folder.join("c.toml"), folder.join("d.sqlite"));
    fs::write(&config, TINY_TREES).unwrap();
    let install = place.longhaul("service install --config").arg(&config).arg("--database").arg(&database);
    install.expect(0);
    let words = command_line(systemd.main_process());
    assert_eq!(words[0], place.path("a b 100% %h $HOME ${HOME} ; # 🐚/longhauld").display().to_string());
    assert_eq!(Path::new(&words[2]), config);
    assert_eq!(Path::new(&words[4]), database);
    place.longhaul("service uninstall").expect(0);
}

#[test]
fn path_that_the_unit_cannot_hold_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let place = ready();
    let database = std::ffi::OsString::from_vec(b"/home/\xff.sqlite".to_vec());
    let install = || place.longhaul("service install --dry-run --database").arg(&database);
    install().expect(1).assert_stderr(&["the database is /home/", "UTF-8", "Rename it"]);
    if !cfg!(target_os = "macos") {
        let quoted = Place::with_programs_in("it's");
        quoted.configure(TINY_TREES);
        quoted
            .longhaul("service install --dry-run")
            .expect(1)
            .assert_stderr(&["the program is", "another folder"]);
    }
}

/// Creates a test environment with a round on two targets.
fn measured() -> (Place, PathBuf, PathBuf) {
    let place = ready();
    let (a, b) = (place.folder("a"), place.folder("b"));
    assert_all_ok(&place.run(&["folder-index"], &[("a", &a), ("b", &b)]).expect(0).runs());
    (place, a, b)
}

#[test]
fn purge_lists_everything_and_needs_consent() {
    let (place, a, _) = measured();
    let before = tree::identities(&a);
    let output = place.longhaul("service uninstall --purge --dry-run").expect(0);
    for path in [sandbox(&a), place.database(), place.path("home/config/longhaul/config.toml")] {
        assert!(
            output.out.contains(&format!("{}", path.display())),
            "{} is not shown: {output}",
            path.display()
        );
    }
    place.longhaul("service uninstall --purge").expect(2).assert_stderr(&["--yes"]);
    assert_eq!(tree::identities(&a), before);
    assert_eq!(place.stored_runs().len(), 2);
}

#[test]
fn purge_leaves_nothing_behind() {
    let (place, a, b) = measured();
    let logs = place.folder("home/state/longhaul");
    ["longhaul.log", "longhaul.log.1"].iter().for_each(|name| fs::write(logs.join(name), "x").unwrap());
    let output = place.longhaul("service uninstall --purge --yes").expect(0);
    assert!(output.out.contains("Everything except longhaul's programs was removed."), "{output}");
    assert_eq!(at_home(&place), Vec::<PathBuf>::new());
    assert!(!logs.exists() && !place.data().exists() && !place.path("home/config/longhaul").exists());
    assert_eq!(fs::read_dir(&a).unwrap().count() + fs::read_dir(&b).unwrap().count(), 0);
    place.longhaul("service uninstall --purge --yes").expect(0);
}

#[test]
#[ignore = "needs systemd, and root to create a control group; run by name with --ignored"]
fn purge_stops_and_removes_a_running_service() {
    if !systemd::in_own_systemd(purge_stops_and_removes_a_running_service) {
        return;
    }
    let (place, a, _) = measured();
    place.configure(&format!("scale = \"quick\"\n{TINY_TREES}[targets.a]\npath = \"{}\"\n", a.display()));
    let systemd = Systemd::start(purge_stops_and_removes_a_running_service, &place);
    place.longhaul("service install").expect(0);
    let daemon = systemd.main_process();
    place.longhaul("service uninstall --purge --yes").expect(0);
    assert!(!Path::new(&format!("/proc/{daemon}")).exists(), "the daemon has ended");
    assert_eq!(at_home(&place), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(&a).unwrap().count(), 0);
}

#[test]
fn purge_lists_unreachable_data_and_keeps_foreign_files() {
    let (place, a, b) = measured();
    let foreign_folder = place.data().join("foreign_folder");
    fs::create_dir(&foreign_folder).unwrap();
    fs::write(sandbox(&b).join("letter.txt"), "mine").unwrap();
    let (hidden, missing) = (place.path("hidden"), sandbox(&a));
    fs::rename(&a, &hidden).unwrap();
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&[
        &missing.display().to_string(),
        "by hand",
        "it contains 1 file that longhaul did not create",
    ]);
    output.assert_stderr(&[&format!("{}: it is not longhaul's", foreign_folder.display())]);
    assert!(find_sandbox(&hidden).is_some() && foreign_folder.is_dir() && !place.database().exists());
    assert_eq!(fs::read_to_string(find_sandbox(&b).unwrap().join("letter.txt")).unwrap(), "mine");
}

#[cfg(target_os = "linux")]
#[test]
fn purge_recognizes_an_unmounted_share() {
    use crate::fuse::{Disk, hang::Fuse};
    crate::support::mounts::only_in_own_mounts!(purge_recognizes_an_unmounted_share);
    let (place, disk) = (ready(), Disk::new());
    let at = place.folder("at");
    let fuse = Fuse::of(&disk, &at);
    assert_all_ok(&place.run(&["folder-index"], &[("nas", &at)]).expect(0).runs());
    drop(fuse);
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&["not mounted there now", "by hand"]);
    let _fuse = Fuse::of(&disk, &at);
    assert!(find_sandbox(&at).is_some());
}

#[test]
fn purge_removes_unreadable_database_and_config() {
    let place = ready();
    fs::create_dir_all(place.data()).unwrap();
    fs::write(place.database(), "this is no database").unwrap();
    place.configure("no = configuration");
    let output = place.longhaul("service uninstall --purge --yes").expect(1);
    output.assert_stderr(&[
        "database cannot be read",
        "its targets and paths are unknown",
        "FOLDER/.longhaul-*",
    ]);
    assert_eq!(at_home(&place), Vec::<PathBuf>::new());
}

/// Appends records with these messages to the log, and returns its path.
fn log(place: &Place, lines: &[&str]) -> PathBuf {
    let path = place.folder("home/state/longhaul").join("longhaul.log");
    append(&path, lines);
    path
}

fn append(path: &Path, lines: &[&str]) {
    let mut file = fs::File::options().append(true).create(true).open(path).unwrap();
    for message in lines {
        writeln!(file, r#"{{"timestamp":"2026-11-20T12:00:00Z","level":"INFO","fields":{{"message":"{message}","round":7}}}}"#)
            .unwrap();
    }
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "the log folder does not follow XDG_STATE_HOME")]
fn log_is_shown_as_text_or_json() {
    let place = Place::new();
    place.longhaul("service logs").expect(5).assert_stderr(&["longhaul service install"]);
    log(&place, &["one", "two", "three"]);
    let output = place.longhaul("service logs -n 2").expect(0).out;
    assert_eq!(output.lines().count(), 2);
    assert!(output.contains("INFO  two round=7") && output.ends_with("INFO  three round=7\n"), "{output}");
    assert_eq!(place.longhaul("service logs --json").expect(0).lines()[0]["fields"]["message"], "one");
}

#[test]
#[cfg_attr(target_os = "macos", ignore = "the log folder does not follow XDG_STATE_HOME")]
fn log_is_followed_across_a_rotation() {
    let place = Place::new();
    let path = log(&place, &["one"]);
    let mut running = place.longhaul("service logs -f").start();
    running.wait_for("the first line", |output| output.out.contains("one"));
    append(&path, &["two"]);
    fs::rename(&path, path.with_extension("log.1")).unwrap();
    append(&path, &["three"]);
    running.wait_for("the line in the new file", |output| output.out.contains("three"));
    append(&path, &["four"]);
    let output = running.wait_for("the last line", |output| output.out.contains("four"));
    let words = ["one", "two", "three", "four"];
    assert_eq!(output.out.lines().count(), words.len(), "{output}");
    assert!(output.out.lines().zip(words).all(|(line, word)| line.contains(word)), "{output}");
}
