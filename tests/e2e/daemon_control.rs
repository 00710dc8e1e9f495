//! Tests of the background service, its commands and its HTTP API.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::daemon::{BUSY, Daemon, command, http, log, reset_crash_counter, target};
use crate::support::{Place, assert_all_ok, find_sandbox, machine};
use longhaul_service::daemon_address::DaemonAddress;
use longhaul_store::RoundStatus;
use rustix::process::Signal;
use serde_json::Value;

/// Creates a test environment with one target that is measured continuously.
fn place() -> Place {
    let place = Place::new();
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    place
}

#[test]
fn service_runs_rounds_and_status_shows_them() {
    let place = place();
    let daemon = Daemon::start(&place);
    daemon.wait_for_rounds(1);
    let output = place.longhaul("status").expect(0);
    for part in ["longhauld", "a ", "1 of 1 runs ok", "next round", "0 skipped", "longhaul.sqlite"] {
        assert!(output.out.contains(part), "`{part}` is missing:\n{output}");
    }
    let status = place.longhaul("status --json").expect(0).value();
    assert_eq!(status["targets"][0]["name"], "a");
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    assert!(!DaemonAddress::path(&place.database()).exists(), "the address file is removed");
    assert!(machine::workers_of(place.root()).is_empty());
    let logged = std::fs::read_to_string(log(&place)).unwrap();
    assert!(logged.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert!(
        !logged.contains(place.path("a").to_str().unwrap()),
        "the log contains a target path at level info:\n{logged}"
    );
}

#[test]
fn commands_without_a_service_exit_with_code_4() {
    let place = place();
    for call in ["status", "pause", "resume", "round", "status --watch", "dashboard"] {
        place.longhaul(call).expect(4).assert_stderr(&[
            "longhaul service install",
            "longhaul service start",
            "longhauld",
        ]);
    }
    let output = place.longhaul("doctor").expect(3);
    assert!(
        output.out.contains("not running") && output.out.contains("longhaul service install"),
        "{output}"
    );
}

#[test]
fn doctor_warns_if_the_schedule_allows_no_verdict() {
    let place = Place::new();
    place.configure(&(BUSY.replace("8640", "2") + &target("a", &place.folder("a"))));
    let output = place.longhaul("doctor").expect(3);
    assert!(
        output.out.contains("warning  configuration") && output.out.contains("never be a verdict"),
        "{output}"
    );
}

#[test]
fn dashboard_shows_results_and_prints_its_address() {
    let place = place();
    let daemon = Daemon::start(&place);
    daemon.round();
    let output = place.longhaul("dashboard").expect(0);
    let port = daemon.address().unwrap().port;
    let path = output.out.trim().strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap().to_owned();
    let entered = http(port, &format!("GET {path}"), &format!("Host: 127.0.0.1:{port}\r\n"), "").unwrap();
    assert_eq!(entered.0, 303, "to the overview");
    assert!(daemon.page("/").0.contains("<h1"));
    assert!(daemon.page("/runs").0.contains("folder-index"), "the round is listed");
    daemon.stop();
}

#[test]
fn second_service_and_foreground_run_are_refused() {
    let place = place();
    let daemon = Daemon::start(&place);
    let second = command(&place).output().unwrap();
    let printed = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(4));
    assert!(printed.contains(&format!("longhauld, process {}", daemon.pid())), "{printed}");
    let run = place.longhaul("run --workload folder-index").expect(1);
    run.assert_stderr(&[&format!("longhauld, process {}", daemon.pid())]);
    daemon.stop();
}

#[test]
fn invalid_config_is_reported_and_valid_one_applied() {
    let place = place();
    let good = BUSY.to_owned() + &target("a", &place.folder("a"));
    let daemon = Daemon::start(&place);
    place.configure("scale = \"quick\"\n\u{1}[[[");
    let status = daemon.wait_for("the problem", |status| status["problems"][0]["code"] == "config");
    assert!(status["problems"][0]["text"].as_str().unwrap().contains("config.toml:2"), "{status}");
    assert_eq!(status["targets"][0]["name"], "a", "the previous configuration stays in force");
    place.longhaul("status").expect(3);
    let overview = place.longhaul("").expect(2);
    assert_eq!(overview.out.matches("Problem:").count(), 1, "{overview}");
    // An editor that truncates the file first leaves it empty for a moment.
    place.configure("");
    let names_no_target = |status: &Value| {
        status["problems"][0]["text"].as_str().is_some_and(|text| text.contains("no target"))
    };
    let status = daemon.wait_for("the problem with the empty file", names_no_target);
    assert_eq!(status["targets"][0]["name"], "a", "{status}");
    daemon.round();
    place.configure(&(good + &target("b", &place.folder("b"))));
    let status = daemon.wait_for("the new target", |status| status["targets"].as_array().unwrap().len() == 2);
    assert!(status["problems"].as_array().unwrap().is_empty(), "{status}");
    daemon.round();
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    assert!(place.stored_runs().iter().any(|run| run["target"] == "b"));
}

#[test]
fn config_written_after_the_start_is_applied() {
    let place = Place::new();
    let daemon = Daemon::start(&place);
    assert_eq!(daemon.status()["state"]["name"], "idle");
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    daemon.wait_for("the target", |status| status["targets"][0]["name"] == "a");
    daemon.stop();
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn files_next_to_the_config_use_no_descriptors() {
    let place = Place::new();
    let local = place.folder("home/config/longhaul/local");
    (0..5000).for_each(|number| std::fs::write(local.join(number.to_string()), "x").unwrap());
    place.configure("scale = \"quick\"\n");
    let daemon = Daemon::start(&place);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    let before = open();
    // Both writes change the watched folder; the new target shows that the service has handled the change.
    std::fs::write(local.join("new"), "x").unwrap();
    place.configure(&("scale = \"quick\"\n".to_owned() + &target("a", &place.folder("a"))));
    daemon.wait_for("the target", |status| status["targets"][0]["name"] == "a");
    // The tolerance of 50 is for the database and for connections of other requests.
    assert!(open() < before + 50, "{before} descriptors before, {} after", open());
    daemon.stop();
}

#[test]
fn pause_cuts_the_round_short_and_resume_continues() {
    let place = Place::new();
    let long = BUSY.replace("files = 40", "files = 40000").replace("8640", "24");
    place.configure(&(long + &target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    place.longhaul("round").expect(0);
    daemon.wait_for("the round", |status| status["state"]["name"] == "measuring");
    place.longhaul("pause --for 2h").expect(0);
    let status = daemon.wait_for("the pause", |status| status["state"]["name"] == "paused");
    assert!(status["state"]["until_us"].is_i64(), "{status}");
    assert_eq!(status["last_round"]["reason"], "paused: paused by the user");
    let started = place.longhaul("round").expect(0);
    assert!(started.out.contains("the pause stays"), "{started}");
    let measuring = daemon.wait_for("a round in the pause", |status| status["state"]["name"] == "measuring");
    assert_eq!(measuring["is_paused"], true, "{measuring}");
    let shown = place.longhaul("status").expect(0);
    assert!(shown.out.contains("paused after this round"), "{shown}");
    place.longhaul("resume").expect(0);
    let is_resumed = |status: &Value| status["state"]["name"] == "measuring" && status["is_paused"].is_null();
    daemon.wait_for("the end of the pause during that round", is_resumed);
    place.longhaul("pause --for 2h").expect(0);
    daemon.wait_for("the end of that round", |status| status["state"]["name"] == "paused");
    place.longhaul("resume").expect(0);
    daemon.wait_for("the end of the pause", |status| status["state"]["name"] == "waiting");
    daemon.stop();
    assert_eq!(place.round_ends()[0], Some(RoundStatus::CutShort));
}

#[test]
fn round_in_progress_is_not_the_next_one() {
    let place = Place::new();
    let long = BUSY.replace("files = 40", "files = 40000");
    place.configure(&(long + &target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    daemon.wait_for("a later next round", |status| {
        let (now, next) = (status["now_us"].as_i64(), status["next_round_us"].as_i64());
        status["state"]["name"] == "measuring" && next > now
    });
    daemon.stop();
}

#[test]
fn log_level_can_be_changed_at_run_time() {
    let place = place();
    let daemon = Daemon::start(&place);
    place.longhaul("service log-level warn").expect(0);
    assert_eq!(daemon.status()["log_level"], "warn");
    place.longhaul("service log-level loud").expect(2);
    daemon.stop();
}

#[test]
fn stop_during_a_round_voids_the_round() {
    let place = Place::new();
    let long = BUSY.replace("files = 40", "files = 40000");
    place.configure(&(long + &target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    daemon.send_command("round", "{}");
    daemon.wait_for("the round", |status| status["state"]["name"] == "measuring");
    daemon.stop();
    assert_eq!(place.round_ends(), [Some(RoundStatus::Void)]);
}

#[test]
fn five_crashes_cause_safe_mode_and_resume_ends_it() {
    let place = place();
    for _ in 0..5 {
        let daemon = Daemon::start(&place);
        daemon.signal(Signal::KILL);
        daemon.wait_for_exit();
    }
    let daemon = Daemon::start(&place);
    let status = daemon.status();
    assert_eq!(
        (&status["state"]["name"], &status["problems"][0]["code"]),
        (&"safe-mode".into(), &"safe-mode".into())
    );
    place.longhaul("resume").expect(0);
    daemon.round();
    daemon.signal(Signal::KILL);
    daemon.wait_for_exit();
    let daemon = Daemon::start(&place);
    assert_ne!(daemon.status()["state"]["name"], "safe-mode", "one crash after the resume is no loop");
    daemon.stop();
    reset_crash_counter(&place);
}

#[test]
fn api_checks_host_origin_and_token() {
    let place = place();
    let daemon = Daemon::start(&place);
    let address = daemon.address().unwrap();
    let mode = std::fs::metadata(DaemonAddress::path(&place.database())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ours = format!("Host: 127.0.0.1:{}\r\n", address.port);
    let code = |request: &str, headers: &str| http(address.port, request, headers, "{}").unwrap().0;
    assert_eq!(code("GET /api/v1/status", &ours), 200);
    assert_eq!(code("GET /api/v1/status", "Host: evil.example\r\n"), 421);
    assert_eq!(code("GET /api/v1/status", &format!("{ours}Origin: http://evil.example\r\n")), 403);
    assert_eq!(code("POST /api/v1/round", &ours), 401);
    assert_eq!(
        code("POST /api/v1/round", &format!("{ours}Authorization: Bearer {}\r\n", "0".repeat(64))),
        401
    );
    let long = format!("{ours}X: {}\r\n", "x".repeat(40_000));
    assert!(http(address.port, "GET /api/v1/status", &long, "").is_none_or(|(code, _)| code == 431));
    daemon.stop();
}

#[test]
fn doctor_checks_each_target_through_the_service() {
    let place = Place::new();
    let missing = place.path("missing");
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a")) + &target("gone", &missing)));
    let logs = place.folder("own-logs");
    let mut daemon = Daemon::spawn_with(&place, &["--log-directory", logs.to_str().unwrap()]);
    daemon.wait_until_ready();
    let output = place.longhaul("doctor --json").expect(3).value();
    let check = |what: &str| {
        let checks = output.as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == what)
            .unwrap_or_else(|| panic!("{what}: {output}"))
            .clone()
    };
    let verdict = |what: &str| check(what)["status"].clone();
    assert!(check("log")["message"].as_str().unwrap().contains("own-logs/"), "{output}");
    assert_eq!((verdict("target a"), verdict("target gone")), ("ok".into(), "failed".into()));
    assert_eq!(
        (verdict("service"), verdict("database"), verdict("clock")),
        ("ok".into(), "ok".into(), "ok".into())
    );
    daemon.stop();
    let left = std::fs::read_dir(crate::support::sandbox(&place.path("a"))).unwrap().flatten();
    assert!(left.into_iter().all(|entry| entry.file_name() != "doctor"), "the file of the check is removed");
    place.longhaul("targets clean a --yes").expect(0);
    assert_eq!(std::fs::read_dir(place.path("a")).unwrap().count(), 0);
}

/// Starts `status --watch` in a terminal that script(1) provides. When it has ended, stty(1) prints the state of that terminal.
fn watch_in_a_terminal(place: &Place) -> Child {
    let call = place.longhaul("status --watch").command();
    let words: Vec<String> = std::iter::once(call.get_program())
        .chain(call.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script");
    script.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    script.args(["-qec", &format!("stty rows 40 cols 120; {}; stty -a", words.join(" ")), "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    script.spawn().expect("script(1), which provides a terminal, starts")
}

/// Reads what a program prints until it contains a text, and returns it.
fn read_until(output: &mut impl Read, text: &str) -> Vec<u8> {
    let (began, mut printed, mut part) = (Instant::now(), vec![], [0; 4096]);
    while !String::from_utf8_lossy(&printed).contains(text) {
        let length = output.read(&mut part).unwrap();
        printed.extend_from_slice(&part[..length]);
        let is_in_time = length > 0 && began.elapsed() < machine::TIMEOUT;
        assert!(is_in_time, "`{text}` was not printed: {}", String::from_utf8_lossy(&printed));
    }
    printed
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "script(1) has other options here")]
fn status_watch_shows_a_restart_and_restores_the_terminal() {
    let place = place();
    let daemon = Daemon::start(&place);
    let mut child = watch_in_a_terminal(&place);
    let mut output = child.stdout.take().unwrap();
    let mut printed = read_until(&mut output, "; rounds:");
    daemon.stop();
    printed.extend(read_until(&mut output, "no longhaul service is running"));
    let restarted = Daemon::start(&place);
    printed.extend(read_until(&mut output, "; rounds:"));
    child.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    output.read_to_end(&mut printed).unwrap();
    child.wait().unwrap();
    restarted.stop();
    let text = String::from_utf8_lossy(&printed);
    assert!(
        text.contains("\u{1b}[?1049h") && text.contains("\u{1b}[?1049l"),
        "it enters and leaves the alternate screen:\n{text}"
    );
    let after = text.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
    assert!(text.contains("longhauld ") && text.contains("q: quit"), "{text}");
}

#[test]
fn status_watch_as_json_ends_with_its_reader() {
    let place = place();
    let daemon = Daemon::start(&place);
    let mut command = place.longhaul("status --watch --json").command();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    read_until(&mut output, "}\n");
    daemon.stop();
    read_until(&mut output, "null\n");
    let restarted = Daemon::start(&place);
    read_until(&mut output, "}\n");
    drop(output);
    let mut ended = None;
    machine::wait_until("longhaul to end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(ended.unwrap().success());
    restarted.stop();
}

#[test]
fn samples_of_the_last_minute_are_stored_on_stop() {
    let place = Place::new();
    let a = place.folder("a");
    let calm = "scale = \"quick\"\n[schedule]\nquiet-hours = \"00:00-23:59\"\n";
    let often = "[sampling]\nprobe-when = \"always\"\nprobe-interval-seconds = 1\n";
    place.configure(&format!("{calm}{often}{}", target("a", &a)));
    let daemon = Daemon::start(&place);
    machine::wait_until("the probe's files", || {
        find_sandbox(&a).is_some_and(|sandbox| sandbox.join("probe/write").exists())
    });
    // Workers report samples once a minute; the service stops before the first minute is over.
    std::thread::sleep(std::time::Duration::from_secs(5));
    daemon.stop();
    let stored = place.longhaul("latency --json").expect(0).value();
    let samples: u64 =
        stored["rows"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert!(samples >= 3, "{stored}");
}
