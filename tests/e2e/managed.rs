//! Tests of the administrator's file, which no user's file, argument or environment changes, and of `init --from`.
//!
//! The programs read the file in the system's folder. Each test that needs one has its own /etc, in its own mount namespace.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use longhaul_service::config::{ConfigLoader, ManagedFile};

use crate::support::daemon::{BUSY, Daemon, log, target};
use crate::support::mounts::{mount, only_in_own_mounts};
use crate::support::receiver::WebhookReceiver;
use crate::support::{Place, TINY_TREES, tree};

const SYSTEM_FILE: &str = "/etc/longhaul/managed.toml";

/// Replaces /etc by a copy of what programs need of it, with this file of the administrator.
fn administrate(place: &Place, text: &str) {
    let etc = place.folder("etc");
    for name in ["passwd", "group", "hosts", "nsswitch.conf", "localtime"] {
        let _ = fs::copy(Path::new("/etc").join(name), etc.join(name));
    }
    fs::create_dir(etc.join("longhaul")).unwrap();
    mount(&["--bind", etc.to_str().unwrap()], Path::new("/etc"));
    set_mode(Path::new("/etc/longhaul"), 0o755);
    fs::write(SYSTEM_FILE, text).unwrap();
    set_mode(Path::new(SYSTEM_FILE), 0o644);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn config_path(place: &Place) -> PathBuf {
    place.path("home/config/longhaul/config.toml")
}

fn prepared(place: &Place, text: &str) -> PathBuf {
    let path = place.path("site.toml");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn administrators_settings_hold_and_are_told() {
    only_in_own_mounts!(administrators_settings_hold_and_are_told);
    let place = Place::new();
    administrate(&place, "scale = \"quick\"\nfixed = [\"telemetry\"]\n[limits]\ncap-seconds = 60\n");
    place.configure("# mine\nscale = \"large\"\n[limits]\ncap-seconds = 60\nmegabytes-per-day = 7\n");
    let output = place.longhaul("config").expect(0);
    for part in [
        "scale     quick  (set by the administrator)",
        "fixed     limits.cap-seconds = 60  (set by the administrator), /etc/longhaul/managed.toml:4",
        "fixed     telemetry cannot be set by users",
        "not used  scale in line 2: the administrator has set it in /etc/longhaul/managed.toml; remove the line",
    ] {
        assert!(output.out.contains(part), "the output lacks `{part}`: {output}");
    }
    assert!(!output.out.contains("not used  limits"), "an equal value is no difference: {output}");
    let output = place.longhaul("config --print").expect(0);
    assert!(output.out.contains("#: cap-seconds = 60  # set by the administrator"), "{output}");
    let output = place.longhaul("doctor").expect(3);
    assert!(
        output.out.contains("not used, because the administrator has set it")
            && output.out.contains("scale (line 2)"),
        "{output}"
    );
}

#[test]
fn arguments_do_not_change_fixed_settings() {
    only_in_own_mounts!(arguments_do_not_change_fixed_settings);
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let text = format!(
        "scale = \"quick\"\nworkloads = [\"folder-index\"]\ndatabase = \"{}\"\nfixed = [\"targets\"]\n\
         [limits]\ncap-seconds = 60\n[fleet]\nto = \"/fleet\"\nsite = \"oslo\"\n{TINY_TREES}{}",
        place.database().display(),
        target("a", &a)
    );
    administrate(&place, &text);
    for (arguments, setting) in [
        ("run --scale large", "scale = \"quick\""),
        ("run --workload dd", "workloads = [\"folder-index\"]"),
        ("run --cap 61", "limits.cap-seconds = 60"),
        ("run --database /tmp/other.sqlite", "database = "),
        ("report --database /tmp/other.sqlite", "database = "),
        ("preset dd --target a --cap 61", "limits.cap-seconds = 60"),
        ("export fleet --to /tmp/other", "fleet.to = \"/fleet\""),
        ("export fleet --to s3://other --check", "fleet.to = \"/fleet\""),
        ("export fleet --site mine", "fleet.site = \"oslo\""),
    ] {
        let option = arguments.split(' ').find(|word| word.starts_with("--") && *word != "--target").unwrap();
        place.longhaul(arguments).expect(2).assert_stderr(&[
            option,
            "the administrator sets",
            setting,
            SYSTEM_FILE,
        ]);
    }
    for command in [
        "run",
        "try",
        "fidelity",
        "integrity --check",
        "init --yes",
        "selfcheck",
        "freshness measure",
        "freshness helper",
    ] {
        let other = place.longhaul(command).target("mine", &b).expect(2);
        other.assert_stderr(&["--target mine", "fixes `targets`", SYSTEM_FILE]);
        place.longhaul(command).target("a", &b).expect(2).assert_stderr(&["--target a", SYSTEM_FILE]);
    }
    assert_eq!(tree::files(&b).len(), 0, "nothing was written to the other folder");
    // The same values as the administrator's are no difference.
    let call = place.longhaul("run --scale quick --workload folder-index --cap 60").target("a", &a);
    call.expect(0);
}

#[test]
fn trial_keeps_to_the_administrators_budget() {
    only_in_own_mounts!(trial_keeps_to_the_administrators_budget);
    let place = Place::new();
    administrate(&place, "[limits]\nmegabytes-per-day = 0\n");
    let share = place.folder("share");
    let refused = place.longhaul("try").target("share", &share).expect(5);
    refused.assert_stderr(&["stopped before the next round", "the configuration allows 0"]);
    assert_eq!(tree::files(&share).len(), 0, "nothing was written");
}

#[test]
fn file_that_users_could_change_stops_everything() {
    only_in_own_mounts!(file_that_users_could_change_stops_everything);
    let place = Place::new();
    administrate(&place, "scale = \"quick\"\n");
    place.configure("scale = \"large\"\n");
    let file = Path::new(SYSTEM_FILE);
    let refused = |reason: &str| {
        for command in ["config", "run", "config --print"] {
            place.longhaul(command).expect(2).assert_stderr(&[
                "the administrator's file",
                SYSTEM_FILE,
                reason,
            ]);
        }
    };
    set_mode(file, 0o666);
    refused("chmod go-w");
    set_mode(file, 0o644);
    set_mode(file.parent().unwrap(), 0o777);
    refused("its folder can be changed by others");
    set_mode(file.parent().unwrap(), 0o755);
    fs::rename(file, "/etc/other.toml").unwrap();
    symlink("/etc/other.toml", file).unwrap();
    refused("symbolic link");
    fs::remove_file(file).unwrap();
    fs::write(file, "scala = 1\n").unwrap();
    place.longhaul("config").expect(2).assert_stderr(&["/etc/longhaul/managed.toml:1: unknown key `scala`"]);
}

#[test]
fn environment_does_not_redirect_managed_telemetry() {
    only_in_own_mounts!(environment_does_not_redirect_managed_telemetry);
    let place = Place::new();
    let elsewhere = WebhookReceiver::start();
    administrate(&place, "fixed = [\"telemetry\"]\n");
    let mut command = place.longhaul("telemetry check").command();
    let output = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", elsewhere.url()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no collector is configured"), "{text}");
    assert!(elsewhere.arrived().is_empty());
}

#[test]
fn commands_that_edit_the_configuration_refuse_fixed_settings() {
    only_in_own_mounts!(commands_that_edit_the_configuration_refuse_fixed_settings);
    let place = Place::new();
    administrate(&place, "[usage-profile]\nfolder-openings = 5\n");
    place.configure("# mine\n");
    let output = place.longhaul("usage set folder-openings=6").expect(2);
    output.assert_stderr(&["usage-profile.folder-openings", "the administrator sets", SYSTEM_FILE]);
    assert_eq!(fs::read_to_string(config_path(&place)).unwrap(), "# mine\n");
    place.longhaul("usage set photo-sessions=2").expect(0);
}

#[test]
fn service_follows_the_administrators_file() {
    only_in_own_mounts!(service_follows_the_administrators_file);
    let place = Place::new();
    let (a, b) = (place.folder("a"), place.folder("b"));
    administrate(&place, &format!("fixed = [\"targets\"]\n[log]\nlevel = \"warn\"\n{}", target("a", &a)));
    place.configure(&format!("{}{}", BUSY.replace("8640", "1"), target("b", &b)));
    let mut daemon = Daemon::spawn_with(&place, &["--log-level", "debug"]);
    daemon.wait_until_ready();
    let names = |status: &serde_json::Value| {
        let targets = status["targets"].as_array().cloned().unwrap_or_default();
        targets.iter().map(|target| target["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&daemon.status()), ["a"]);
    let written = fs::read_to_string(log(&place)).unwrap();
    assert!(written.contains("targets.b") && !written.contains("\"level\":\"DEBUG\""), "{written}");
    let output = place.longhaul("service log-level debug").expect(1);
    output.assert_stderr(&["log.level", SYSTEM_FILE]);
    fs::write(SYSTEM_FILE, target("c", &a)).unwrap();
    daemon.wait_for("the new settings", |status| names(status) == ["b", "c"]);
    daemon.stop();
}

#[test]
fn prepared_configuration_is_checked_shown_and_written() {
    let place = Place::new();
    let site = prepared(&place, &format!("scale = \"quick\"\n{}", target("nas", &place.folder("nas"))));
    let from = |arguments: &str| place.longhaul(&format!("init --from {} {arguments}", site.display()));
    let output = from("--yes").expect(0);
    assert!(output.out.contains("added    scale = \"quick\"") && output.out.contains("Written:"), "{output}");
    assert_eq!(fs::read(config_path(&place)).unwrap(), fs::read(&site).unwrap());
    assert!(from("--yes").expect(0).out.contains("Unchanged:"), "a second call changes nothing");
    prepared(&place, &fs::read_to_string(&site).unwrap().replace("quick", "large"));
    let before = fs::read_to_string(config_path(&place)).unwrap();
    let output = from("--yes").expect(2);
    output.assert_stderr(&["--force replaces it"]);
    assert!(output.out.contains("changed  scale = \"large\"  (was \"quick\")"), "{output}");
    assert_eq!(fs::read_to_string(config_path(&place)).unwrap(), before);
    from("--yes --force").expect(0);
    assert_eq!(fs::read(config_path(&place)).unwrap(), fs::read(&site).unwrap());
}

#[test]
fn faulty_prepared_configuration_writes_nothing() {
    let place = Place::new();
    let missing = place.path("no-token");
    let channel = format!(
        "[notify.channels.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.sh/topic\"\ntoken-file = \"{}\"\n",
        missing.display()
    );
    for (text, code, expected) in [
        ("scale = \"quick\"\n\nscala = 1\n", 2, "site.toml:3: unknown key `scala`; did you mean `scale`?"),
        ("[targets.a]\npath = \"relative\"\n", 2, "site.toml:2: "),
        (channel.as_str(), 3, "Nothing was written: correct this in "),
    ] {
        let site = prepared(&place, text);
        let output = place.longhaul("init --yes --force --from").arg(&site).expect(code);
        assert!(output.to_string().contains(expected), "{output}");
        assert!(!config_path(&place).exists());
    }
    for (source, code, expected) in [
        ("http://example.com/a.toml", 2, "http://example.com/a.toml is not encrypted; use https"),
        ("file:///etc/passwd", 2, "read a configuration from"),
        ("/dev/zero", 1, "read a configuration from"),
        ("/no/such/file", 1, "read a configuration from"),
    ] {
        place.longhaul("init --yes --from").arg(source).expect(code).assert_stderr(&[expected]);
    }
    place.longhaul("init --from a.toml --scale quick").expect(2).assert_stderr(&["cannot be used with"]);
}

#[test]
fn examples_for_administrators_are_valid() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/managed"));
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let list = |name: &str| plist::from_file::<_, plist::Value>(folder.join(name)).unwrap();
    let profile = list("longhaul.mobileconfig");
    let payloads = profile.as_dictionary().unwrap()["PayloadContent"].as_array().unwrap();
    let payload = |kind: &str| {
        let has_type = |found: &&plist::Dictionary| found["PayloadType"].as_string() == Some(kind);
        payloads.iter().filter_map(plist::Value::as_dictionary).find(has_type).unwrap().clone()
    };
    let background = payload("com.apple.servicemanagement");
    let rule = background["Rules"].as_array().unwrap()[0].as_dictionary().unwrap().clone();
    assert_eq!(rule["RuleType"].as_string(), Some("Label"));
    let label = rule["RuleValue"].as_string().unwrap();
    assert!(include_str!("../../launchd/src/manager.rs").contains(&format!("\"{label}.plist\"")), "{label}");
    let privacy = payload("com.apple.TCC.configuration-profile-policy");
    let volumes = &privacy["Services"].as_dictionary().unwrap()["SystemPolicyNetworkVolumes"];
    let identity = volumes.as_array().unwrap()[0].as_dictionary().unwrap();
    assert_eq!(identity["Identifier"].as_string(), Some("/usr/local/bin/longhauld"));
    assert_eq!(identity["Allowed"].as_boolean(), Some(true));
    let script = list("longhaul.pkginfo").as_dictionary().unwrap()["postinstall_script"]
        .as_string()
        .unwrap()
        .to_owned();
    let settings =
        script.split("<<'SETTINGS'\n").nth(1).unwrap().split("SETTINGS\n").next().unwrap().to_owned();
    for managed in [settings, text("managed.toml")] {
        let place = Place::new();
        let path = place.path("managed.toml");
        fs::write(&path, &managed).unwrap();
        set_mode(&path, 0o644);
        let owner = rustix::process::getuid().as_raw();
        let loader = ConfigLoader::new(ManagedFile { path, owner });
        let config = loader.read(None).unwrap();
        assert_eq!(config.targets.len(), 2);
        assert!(config.managed.covering("targets.other.path").is_some());
    }
    let documented = include_str!("../../docs/managed.md");
    for name in fs::read_dir(folder).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        assert!(documented.contains(&name), "docs/managed.md does not mention {name}");
    }
}
