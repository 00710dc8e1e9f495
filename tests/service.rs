//! The background service as the system runs it: installed, started, stopped and removed by the real systemd, for a
//! person of its own. On macOS launchd cannot be had for a test: there, only what would be done is looked at.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::daemon::{BUSY, target};
use support::systemd::{self, Systemd};
use support::{Place, TINY_TREES, arena, assert_all_ok, find_arena, machine, mounts, tree};

fn unit(place: &Place) -> PathBuf {
    place.path("home/config/systemd/user/longhaul.service")
}

/// A home with the programs and a configuration.
fn ready() -> Place {
    let place = Place::with_programs_in("bin");
    place.configure(TINY_TREES);
    place
}

/// Every file below the home.
fn at_home(place: &Place) -> Vec<PathBuf> {
    tree::files(&place.path("home"))
}

/// The words with which a process was started, without its interpreter.
fn command_line(process: i32) -> Vec<String> {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap();
    let words = words.strip_suffix(b"\0").unwrap().split(|byte| *byte == 0);
    let words: Vec<String> = words.map(|word| String::from_utf8(word.to_vec()).unwrap()).collect();
    let begin = words.iter().position(|word| word.ends_with("/longhauld")).unwrap();
    words[begin..].to_vec()
}

#[test]
fn a_dry_run_shows_a_unit_that_systemd_takes_and_does_nothing() {
    const TEST: &str = "a_dry_run_shows_a_unit_that_systemd_takes_and_does_nothing";
    let place = ready();
    let before = at_home(&place);
    let said = place.longhaul("install --dry-run").expect(0);
    assert_eq!(at_home(&place), before);
    if !machine::has("systemd-analyze") {
        return machine::skip(
            TEST,
            "systemd-analyze is not there: that systemd takes the unit was not looked at",
        );
    }
    let lines = said.out.lines().skip_while(|line| !line.starts_with("would write"));
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
fn without_a_service_manager_nothing_is_written_and_it_is_explained() {
    let place = ready();
    let before = at_home(&place);
    let without = |arguments: &str| {
        let mut command = place.longhaul(arguments).command();
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", place.path("nothing"));
        command.output().unwrap()
    };
    for arguments in ["install", "start", "stop", "restart"] {
        let output = without(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            cfg!(target_os = "macos") || said.contains("no systemd for this login"),
            "{arguments}: {said}"
        );
    }
    assert_eq!(at_home(&place), before);
    fs::create_dir_all(unit(&place).parent().unwrap()).unwrap();
    fs::write(unit(&place), "x").unwrap();
    let output = without("uninstall");
    assert!(output.status.success() && !unit(&place).exists(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_is_missing_for_an_installation_is_said() {
    let place = Place::with_programs_in("bin");
    place.longhaul("install").expect(2).complains_of(&["config.toml", "longhaul init"]);
    place.configure("scale = \"enormous\"");
    place.longhaul("install").expect(2).complains_of(&["config.toml:1"]);
    place.configure(TINY_TREES);
    fs::remove_file(place.path("bin/longhauld")).unwrap();
    place.longhaul("install").expect(2).complains_of(&["bin/longhauld", "belongs beside longhaul"]);
    assert!(!unit(&place).exists());
}

#[test]
fn a_service_is_installed_runs_and_is_gone_again() {
    const TEST: &str = "a_service_is_installed_runs_and_is_gone_again";
    if !systemd::is_our_own(TEST) {
        return;
    }
    let place = ready();
    let before = at_home(&place);
    let Some(systemd) = Systemd::start(TEST, &place) else { return };
    let start = place.longhaul("start").expect(2);
    start.complains_of(&["longhaul install"]);
    let said = place.longhaul("install").expect(0);
    for part in
        ["installed with systemd --user and running, process", "loginctl enable-linger", "longhaul logs"]
    {
        assert!(said.out.contains(part), "`{part}` is not said: {said}");
    }
    let first = systemd.main_process();
    let config = place.path("home/config/longhaul/config.toml").display().to_string();
    let words = ["--config", &config, "--database", &place.database().display().to_string()];
    assert_eq!(command_line(first)[1..], words);
    assert_eq!(systemd.ask(&["is-enabled", "longhaul.service"]), "enabled");
    place.longhaul("install").expect(0);
    let second = systemd.main_process();
    assert_ne!(second, first, "an update starts the new one");
    place.longhaul("restart").expect(0);
    assert_ne!(systemd.main_process(), second);
    assert!(place.longhaul("stop").expect(0).out.contains("longhaul is stopped."));
    assert_eq!(systemd.ask(&["is-active", "longhaul.service"]), "inactive");
    assert!(place.longhaul("start").expect(0).out.contains("longhaul is running"));
    place.longhaul("uninstall").expect(0);
    assert_eq!(systemd.ask(&["show", "longhaul.service", "--property=LoadState", "--value"]), "not-found");
    let left: Vec<PathBuf> = at_home(&place).into_iter().filter(|path| path.starts_with("config")).collect();
    assert_eq!(left, before, "only what was there before");
    assert!(place.longhaul("uninstall").expect(0).out.contains("not installed"));
}

#[test]
fn an_installation_says_what_the_service_may_do() {
    const TEST: &str = "an_installation_says_what_the_service_may_do";
    if !systemd::is_our_own(TEST) {
        return;
    }
    let place = ready();
    let target = |name: &str, path: &Path| format!("[targets.{name}]\npath = \"{}\"\n", path.display());
    let (there, gone) = (target("there", &place.folder("a")), target("gone", &place.path("b")));
    place.configure(&format!("scale = \"quick\"\n{TINY_TREES}{there}{gone}"));
    let Some(_systemd) = Systemd::start(TEST, &place) else { return };
    let said = place.longhaul("install").expect(0);
    let line = |name: &str| said.out.lines().find(|line| line.contains(&format!("target {name} ")));
    assert!(line("there").is_some_and(|line| line.starts_with("ok")), "{said}");
    assert!(line("gone").is_some_and(|line| line.starts_with("failed")), "{said}");
    place.longhaul("uninstall").expect(0);
}

#[test]
fn a_daemon_that_fails_is_started_again_and_its_failure_is_told() {
    const TEST: &str = "a_daemon_that_fails_is_started_again_and_its_failure_is_told";
    if !systemd::is_our_own(TEST) {
        return;
    }
    let place = ready();
    systemd::put_stand_in(&place.path("bin/longhauld"));
    let Some(systemd) = Systemd::start(TEST, &place) else { return };
    fs::write(place.path("home/fail"), "").unwrap();
    place.longhaul("install").expect(1).complains_of(&["Job for longhaul.service failed", "longhaul logs"]);
    let again = "is to be started again after a while";
    assert_eq!(systemd.ask(&["is-active", "longhaul.service"]), "activating", "{again}");
    fs::remove_file(place.path("home/fail")).unwrap();
    assert!(place.longhaul("restart").expect(0).out.contains("running"));
    machine::signal(systemd.main_process(), rustix::process::Signal::KILL);
    machine::wait_until("systemd to notice", || {
        systemd.ask(&["is-active", "longhaul.service"]) == "activating"
    });
    place.longhaul("uninstall").expect(0);
    assert_eq!(systemd.ask(&["show", "longhaul.service", "--property=LoadState", "--value"]), "not-found");
}

#[test]
fn systemd_starts_a_replaced_program_and_no_bad_configuration() {
    const TEST: &str = "systemd_starts_a_replaced_program_and_no_bad_configuration";
    if !systemd::is_our_own(TEST) {
        return;
    }
    let place = Place::with_programs_in("bin");
    let good = BUSY.to_owned() + &target("a", &place.folder("a"));
    place.configure(&good);
    let Some(systemd) = Systemd::start(TEST, &place) else { return };
    let activity = || systemd.ask(&["show", "longhaul.service", "--property=ActiveState", "--value"]);
    place.longhaul("install").expect(0);
    fs::copy(place.path("bin/longhauld"), place.path("bin/new")).unwrap();
    fs::rename(place.path("bin/new"), place.path("bin/longhauld")).unwrap();
    machine::wait_until("systemd to be about to start the other one", || activity() == "activating");
    let code = ["show", "longhaul.service", "--property=ExecMainStatus", "--value"];
    assert_eq!(systemd.ask(&code), "75");
    place.configure("scale = \"enormous\"");
    place.longhaul("restart").expect(1).complains_of(&["longhaul.service failed"]);
    assert_eq!(
        (activity().as_str(), systemd.ask(&code).as_str()),
        ("failed", "2"),
        "it is not started again"
    );
    place.configure(&good);
    place.longhaul("restart").expect(0);
    place.longhaul("uninstall").expect(0);
}

#[test]
fn every_path_that_systemd_can_carry_arrives_unchanged() {
    const TEST: &str = "every_path_that_systemd_can_carry_arrives_unchanged";
    if !systemd::is_our_own(TEST) {
        return;
    }
    let place = Place::with_programs_in("a b 100% %h $HOME ${HOME} ; # 🐚");
    let Some(systemd) = Systemd::start(TEST, &place) else { return };
    let folder = place.folder("q\"uo'te \\ %n $$ ; \n\t\u{1b}[0m\u{85} 🐚");
    let (config, database) = (folder.join("c.toml"), folder.join("d.sqlite"));
    fs::write(&config, TINY_TREES).unwrap();
    let install = place.longhaul("install --config").word(&config).word("--database").word(&database);
    install.expect(0);
    let words = command_line(systemd.main_process());
    assert_eq!(words[0], place.path("a b 100% %h $HOME ${HOME} ; # 🐚/longhauld").display().to_string());
    assert_eq!(Path::new(&words[2]), config);
    assert_eq!(Path::new(&words[4]), database);
    place.longhaul("uninstall").expect(0);
}

#[test]
fn a_path_that_the_service_cannot_be_told_is_refused_before_anything_is_written() {
    use std::os::unix::ffi::OsStringExt;
    let place = ready();
    let database = std::ffi::OsString::from_vec(b"/home/\xff.sqlite".to_vec());
    let install = || place.longhaul("install --dry-run --database").word(&database);
    install().expect(1).complains_of(&["the database is /home/", "UTF-8", "Rename it"]);
    if !cfg!(target_os = "macos") {
        let quoted = Place::with_programs_in("it's");
        quoted.configure(TINY_TREES);
        quoted.longhaul("install --dry-run").expect(1).complains_of(&["the program is", "another folder"]);
    }
}

/// A home with a round on two targets.
fn measured() -> (Place, PathBuf, PathBuf) {
    let place = ready();
    let (a, b) = (place.folder("a"), place.folder("b"));
    assert_all_ok(&place.run(&["folder-index"], &[("a", &a), ("b", &b)]).expect(0).runs());
    (place, a, b)
}

#[test]
fn a_purge_shows_everything_first_and_removes_nothing_unasked() {
    let (place, a, _) = measured();
    let before = tree::identities(&a);
    let said = place.longhaul("uninstall --purge --dry-run").expect(0);
    for path in [arena(&a), place.database(), place.path("home/config/longhaul/config.toml")] {
        assert!(said.out.contains(&format!("{}", path.display())), "{} is not shown: {said}", path.display());
    }
    place.longhaul("uninstall --purge").expect(2).complains_of(&["--yes"]);
    assert_eq!(tree::identities(&a), before);
    assert_eq!(place.stored_runs().len(), 2);
}

#[test]
fn a_purge_leaves_nothing_anywhere() {
    let (place, a, b) = measured();
    let logs = place.folder("home/state/longhaul");
    ["longhaul.log", "longhaul.log.1"].iter().for_each(|name| fs::write(logs.join(name), "x").unwrap());
    let said = place.longhaul("uninstall --purge --yes").expect(0);
    assert!(said.out.contains("Nothing of longhaul is left but its programs."), "{said}");
    assert_eq!(at_home(&place), Vec::<PathBuf>::new());
    assert!(!logs.exists() && !place.data().exists() && !place.path("home/config/longhaul").exists());
    assert_eq!(fs::read_dir(&a).unwrap().count() + fs::read_dir(&b).unwrap().count(), 0);
    place.longhaul("uninstall --purge --yes").expect(0);
}

#[test]
fn a_service_that_runs_is_purged_whole() {
    const TEST: &str = "a_service_that_runs_is_purged_whole";
    if !systemd::is_our_own(TEST) {
        return;
    }
    let (place, a, _) = measured();
    place.configure(&format!("scale = \"quick\"\n{TINY_TREES}[targets.a]\npath = \"{}\"\n", a.display()));
    let Some(systemd) = Systemd::start(TEST, &place) else { return };
    place.longhaul("install").expect(0);
    let daemon = systemd.main_process();
    place.longhaul("uninstall --purge --yes").expect(0);
    assert!(!Path::new(&format!("/proc/{daemon}")).exists(), "the daemon has ended");
    assert_eq!(at_home(&place), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(&a).unwrap().count(), 0);
}

#[test]
fn a_purge_names_what_it_cannot_reach_and_touches_nothing_foreign() {
    let (place, a, b) = measured();
    let diary = place.data().join("diary");
    fs::create_dir(&diary).unwrap();
    fs::write(arena(&b).join("letter.txt"), "mine").unwrap();
    let (hidden, missing) = (place.path("hidden"), arena(&a));
    fs::rename(&a, &hidden).unwrap();
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    said.complains_of(&[
        &missing.display().to_string(),
        "by hand",
        "1 files in it that longhaul did not make",
    ]);
    said.complains_of(&[&format!("{}: it is not longhaul's", diary.display())]);
    assert!(find_arena(&hidden).is_some() && diary.is_dir() && !place.database().exists());
    assert_eq!(fs::read_to_string(find_arena(&b).unwrap().join("letter.txt")).unwrap(), "mine");
}

#[test]
fn a_purge_knows_an_empty_mount_point_from_an_empty_share() {
    const TEST: &str = "a_purge_knows_an_empty_mount_point_from_an_empty_share";
    if let Some(why) = mounts::Fuse::impossible() {
        return machine::skip(TEST, why);
    }
    let place = ready();
    let (source, at) = (place.folder("source"), place.folder("at"));
    let fuse = mounts::Fuse::over(&source, &at);
    assert_all_ok(&place.run(&["folder-index"], &[("nas", &at)]).expect(0).runs());
    drop(fuse);
    let said = place.longhaul("uninstall --purge --yes").expect(1);
    said.complains_of(&["not mounted there now", "by hand"]);
    assert!(find_arena(&source).is_some());
}

#[test]
fn what_cannot_be_read_is_purged_all_the_same() {
    let place = ready();
    fs::create_dir_all(place.data()).unwrap();
    fs::write(place.database(), "this is no database").unwrap();
    place.configure("no = configuration");
    let said = place.longhaul("uninstall --purge --yes").expect(0);
    said.complains_of(&["database cannot be read", "says nothing of targets"]);
    assert_eq!(at_home(&place), Vec::<PathBuf>::new());
}

/// A log with these lines.
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
fn the_log_is_shown_for_people_or_as_it_is() {
    if cfg!(target_os = "macos") {
        return machine::skip(
            "the_log_is_shown_for_people_or_as_it_is",
            "its folder does not follow XDG_STATE_HOME",
        );
    }
    let place = Place::new();
    place.longhaul("logs").expect(5).complains_of(&["longhaul install"]);
    log(&place, &["one", "two", "three"]);
    let said = place.longhaul("logs -n 2").expect(0).out;
    assert_eq!(said.lines().count(), 2);
    assert!(said.contains("INFO  two round=7") && said.ends_with("INFO  three round=7\n"), "{said}");
    assert_eq!(place.longhaul("logs --json").expect(0).lines()[0]["fields"]["message"], "one");
}

#[test]
fn a_log_is_followed_over_its_rotation() {
    if cfg!(target_os = "macos") {
        return machine::skip(
            "a_log_is_followed_over_its_rotation",
            "its folder does not follow XDG_STATE_HOME",
        );
    }
    let place = Place::new();
    let path = log(&place, &["one"]);
    let mut running = place.longhaul("logs -f").start();
    running.wait_for("the first line", |said| said.out.contains("one"));
    append(&path, &["two"]);
    fs::rename(&path, path.with_extension("log.1")).unwrap();
    append(&path, &["three"]);
    running.wait_for("the line in the new file", |said| said.out.contains("three"));
    append(&path, &["four"]);
    let said = running.wait_for("the last line", |said| said.out.contains("four"));
    let words = ["one", "two", "three", "four"];
    assert_eq!(said.out.lines().count(), words.len(), "{said}");
    assert!(said.out.lines().zip(words).all(|(line, word)| line.contains(word)), "{said}");
}
