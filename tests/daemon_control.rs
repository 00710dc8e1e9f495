//! The background service and its control interface, as a person and a script meet them.

#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::PermissionsExt;

use longhaul_service::contact::Contact;
use longhaul_store::RoundStatus;
use rustix::process::Signal;
use serde_json::Value;
use support::daemon::{BUSY, Daemon, command, forgive, http, log, target};
use support::{Place, assert_all_ok, find_arena, machine};

/// A place with a target, and a configuration that measures it all the time.
fn place() -> Place {
    let place = Place::new();
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    place
}

#[test]
fn rounds_are_made_and_status_tells_of_them() {
    let place = place();
    let daemon = Daemon::start(&place);
    daemon.wait_for_rounds(1);
    let said = place.longhaul("status").expect(0);
    for part in ["longhauld", "a ", "1 of 1 runs ok", "next round", "0 skipped", "longhaul.sqlite"] {
        assert!(said.out.contains(part), "`{part}` is missing:\n{said}");
    }
    let status = place.longhaul("status --json").expect(0).value();
    assert_eq!(status["targets"][0]["name"], "a");
    daemon.stop();
    assert_all_ok(&place.stored_runs());
    assert!(!Contact::path(&place.database()).exists(), "nothing is left behind");
    assert!(machine::workers_of(place.root()).is_empty());
    let logged = std::fs::read_to_string(log(&place)).unwrap();
    assert!(logged.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert!(!logged.contains(place.path("a").to_str().unwrap()), "no target path at info level:\n{logged}");
}

#[test]
fn without_a_service_the_exit_code_is_four_and_the_way_to_start_it_is_named() {
    let place = place();
    for call in ["status", "pause", "resume", "round now", "top", "page"] {
        place.longhaul(call).expect(4).complains_of(&["longhaul install", "longhaul start", "longhauld"]);
    }
    let said = place.longhaul("doctor").expect(3);
    assert!(said.out.contains("it does not run") && said.out.contains("longhaul install"), "{said}");
}

#[test]
fn the_doctor_names_a_plan_that_never_leads_to_a_verdict() {
    let place = Place::new();
    place.configure(&(BUSY.replace("8640", "2") + &target("a", &place.folder("a"))));
    let said = place.longhaul("doctor").expect(3);
    assert!(said.out.contains("warning  configuration") && said.out.contains("never be a verdict"), "{said}");
}

#[test]
fn the_page_shows_what_was_measured_and_its_address_is_told() {
    let place = place();
    let daemon = Daemon::start(&place);
    daemon.wait_for_rounds(1);
    let said = place.longhaul("page").expect(0);
    let port = daemon.contact().unwrap().port;
    let path = said.out.trim().strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap().to_owned();
    let entered = http(port, &format!("GET {path}"), &format!("Host: 127.0.0.1:{port}\r\n"), "").unwrap();
    assert_eq!(entered.0, 303, "to the overview");
    assert!(daemon.page("/").0.contains("<h1"));
    assert!(daemon.page("/runs").0.contains("folder-index"), "the round that was made is there");
    daemon.stop();
}

#[test]
fn a_second_service_and_a_run_in_the_foreground_are_refused_naming_the_first() {
    let place = place();
    let daemon = Daemon::start(&place);
    let second = command(&place).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(4));
    assert!(said.contains(&format!("longhauld, process {}", daemon.pid())), "{said}");
    let run = place.longhaul("run --workload folder-index").expect(1);
    run.complains_of(&[&format!("longhauld, process {}", daemon.pid())]);
    daemon.stop();
}

#[test]
fn a_bad_edit_of_the_configuration_is_reported_and_a_good_one_taken() {
    let place = place();
    let good = BUSY.to_owned() + &target("a", &place.folder("a"));
    let daemon = Daemon::start(&place);
    place.configure("scale = \"quick\"\n\u{1}[[[");
    let status = daemon.wait_for("the complaint", |status| status["problems"][0]["word"] == "config");
    assert!(status["problems"][0]["text"].as_str().unwrap().contains("config.toml:2"), "{status}");
    assert_eq!(status["targets"][0]["name"], "a", "the one from before is in force");
    place.longhaul("status").expect(3);
    // As a file is for a moment that somebody writes slowly.
    place.configure("");
    let is_told = |status: &Value| {
        status["problems"][0]["text"].as_str().is_some_and(|text| text.contains("no target"))
    };
    let status = daemon.wait_for("the other complaint", is_told);
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
fn a_configuration_that_is_written_after_the_start_is_taken() {
    let place = Place::new();
    let daemon = Daemon::start(&place);
    assert_eq!(daemon.status()["state"]["name"], "idle");
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a"))));
    daemon.wait_for("the target", |status| status["targets"][0]["name"] == "a");
    daemon.stop();
}

#[test]
fn files_beside_the_configuration_cost_no_descriptors() {
    let test = "files_beside_the_configuration_cost_no_descriptors";
    if let Some(why) = machine::without_proc() {
        return machine::skip(test, why);
    }
    let place = Place::new();
    let local = place.folder("home/config/longhaul/local");
    (0..5000).for_each(|number| std::fs::write(local.join(number.to_string()), "x").unwrap());
    place.configure("scale = \"quick\"\n");
    let daemon = Daemon::start(&place);
    let open = || std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
    let before = open();
    // Each changes the folder, and what comes of the last one shows that it was looked at.
    std::fs::write(local.join("new"), "x").unwrap();
    place.configure(&("scale = \"quick\"\n".to_owned() + &target("a", &place.folder("a"))));
    daemon.wait_for("the target", |status| status["targets"][0]["name"] == "a");
    // The rest is for the database and for connections that come and go.
    assert!(open() < before + 50, "{before} descriptors before, {} after", open());
    daemon.stop();
}

#[test]
fn a_pause_cuts_the_round_short_and_resume_goes_on() {
    let place = Place::new();
    let long = BUSY.replace("files = 40", "files = 40000").replace("8640", "24");
    place.configure(&(long + &target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    place.longhaul("round now").expect(0);
    daemon.wait_for("the round", |status| status["state"]["name"] == "measuring");
    place.longhaul("pause --for 2h").expect(0);
    let status = daemon.wait_for("the pause", |status| status["state"]["name"] == "paused");
    assert!(status["state"]["until_us"].is_i64(), "{status}");
    assert_eq!(status["last"]["reason"], "paused: by the person");
    place.longhaul("resume").expect(0);
    daemon.wait_for("the end of the pause", |status| status["state"]["name"] == "waiting");
    daemon.stop();
    assert_eq!(place.round_ends()[0], Some(RoundStatus::CutShort));
}

#[test]
fn the_log_level_can_be_changed_while_it_runs() {
    let place = place();
    let daemon = Daemon::start(&place);
    place.longhaul("log-level warn").expect(0);
    assert_eq!(daemon.status()["log_level"], "warn");
    place.longhaul("log-level loud").expect(2);
    daemon.stop();
}

#[test]
fn a_stop_in_the_middle_of_a_round_voids_it_and_loses_nothing() {
    let place = Place::new();
    let long = BUSY.replace("files = 40", "files = 40000");
    place.configure(&(long + &target("a", &place.folder("a"))));
    let daemon = Daemon::start(&place);
    daemon.order("round", "{}");
    daemon.wait_for("the round", |status| status["state"]["name"] == "measuring");
    daemon.stop();
    assert_eq!(place.round_ends(), [Some(RoundStatus::Void)]);
}

#[test]
fn five_crashes_in_ten_minutes_lead_to_safe_mode_and_resume_out_of_it() {
    let place = place();
    for _ in 0..5 {
        let daemon = Daemon::start(&place);
        daemon.signal(Signal::KILL);
        daemon.ended();
    }
    let daemon = Daemon::start(&place);
    let status = daemon.status();
    assert_eq!(
        (&status["state"]["name"], &status["problems"][0]["word"]),
        (&"safe-mode".into(), &"safe-mode".into())
    );
    place.longhaul("resume").expect(0);
    daemon.round();
    daemon.stop();
    forgive(&place);
}

#[test]
fn the_interface_answers_its_own_host_and_takes_orders_with_the_token_only() {
    let place = place();
    let daemon = Daemon::start(&place);
    let contact = daemon.contact().unwrap();
    let mode = std::fs::metadata(Contact::path(&place.database())).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ours = format!("Host: 127.0.0.1:{}\r\n", contact.port);
    let code = |request: &str, headers: &str| http(contact.port, request, headers, "{}").unwrap().0;
    assert_eq!(code("GET /api/v1/status", &ours), 200);
    assert_eq!(code("GET /api/v1/status", "Host: evil.example\r\n"), 421);
    assert_eq!(code("GET /api/v1/status", &format!("{ours}Origin: http://evil.example\r\n")), 403);
    assert_eq!(code("POST /api/v1/round", &ours), 401);
    assert_eq!(
        code("POST /api/v1/round", &format!("{ours}Authorization: Bearer {}\r\n", "0".repeat(64))),
        401
    );
    let long = format!("{ours}X: {}\r\n", "x".repeat(40_000));
    assert!(http(contact.port, "GET /api/v1/status", &long, "").is_none_or(|(code, _)| code == 431));
    daemon.stop();
}

#[test]
fn the_doctor_has_the_service_try_each_target_and_names_the_one_that_fails() {
    let place = Place::new();
    let missing = place.path("missing");
    place.configure(&(BUSY.to_owned() + &target("a", &place.folder("a")) + &target("gone", &missing)));
    let logs = place.folder("own-logs");
    let mut daemon = Daemon::spawn_with(&place, &["--log-directory", logs.to_str().unwrap()]);
    daemon.wait_until_ready();
    let said = place.longhaul("doctor --json").expect(3).value();
    let check = |what: &str| {
        let checks = said.as_array().unwrap();
        checks.iter().find(|check| check["what"] == what).unwrap_or_else(|| panic!("{what}: {said}")).clone()
    };
    let verdict = |what: &str| check(what)["verdict"].clone();
    assert!(check("log")["found"].as_str().unwrap().contains("own-logs/"), "{said}");
    assert_eq!((verdict("target a"), verdict("target gone")), ("ok".into(), "failed".into()));
    assert_eq!(
        (verdict("service"), verdict("database"), verdict("clock")),
        ("ok".into(), "ok".into(), "ok".into())
    );
    daemon.stop();
    let left = std::fs::read_dir(support::arena(&place.path("a"))).unwrap().flatten();
    assert!(left.into_iter().all(|entry| entry.file_name() != "doctor"), "its file is gone again");
    place.longhaul("clean a --yes").expect(0);
    assert_eq!(std::fs::read_dir(place.path("a")).unwrap().count(), 0);
}

#[test]
fn top_leaves_the_terminal_as_it_was() {
    let test = "top_leaves_the_terminal_as_it_was";
    if !machine::has("script") {
        return machine::skip(test, "script is not installed, which gives a terminal");
    }
    let place = place();
    let daemon = Daemon::start(&place);
    let call = place.longhaul("top").command();
    let words: Vec<String> = std::iter::once(call.get_program())
        .chain(call.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = std::process::Command::new("script");
    script.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    script.args(["-qec", &format!("stty rows 40 cols 120; {}; stty -a", words.join(" ")), "/dev/null"]);
    script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = script.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"q").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("\u{1b}[?1049h") && text.contains("\u{1b}[?1049l"),
        "it enters and leaves the other screen:\n{text}"
    );
    let after = text.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
    assert!(text.contains("targets"), "{text}");
    daemon.stop();
}

#[test]
fn samples_of_the_last_minute_are_kept_when_the_service_stops() {
    let place = Place::new();
    let a = place.folder("a");
    let calm = "scale = \"quick\"\n[schedule]\nquiet-hours = \"00:00-23:59\"\n";
    let often = "[sampling]\ntouch = \"always\"\nprobe-seconds = 1\n";
    place.configure(&format!("{calm}{often}{}", target("a", &a)));
    let daemon = Daemon::start(&place);
    machine::wait_until("the probe's files", || {
        find_arena(&a).is_some_and(|arena| arena.join("probe/small").exists())
    });
    // Workers tell their samples a minute at a time; a few are asked before this one is over.
    std::thread::sleep(std::time::Duration::from_secs(5));
    daemon.stop();
    let kept = place.longhaul("samples --json").expect(0).value();
    let asked: u64 =
        kept["felt"].as_array().unwrap().iter().map(|felt| felt["count"].as_u64().unwrap()).sum();
    assert!(asked >= 3, "{kept}");
}
