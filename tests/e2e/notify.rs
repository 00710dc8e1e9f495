//! Tests of notifications: the running service, and receivers that answer, fail, or never answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use tokio::net::TcpSocket;

use crate::support::daemon::{BUSY, Daemon, log, target};
use crate::support::real_programs::free_port;
use crate::support::receiver::WebhookReceiver;
use crate::support::{Place, machine, sandbox};

const TOKEN: &str = "tk_very_secret";

/// Writes a file that only its owner may read, and returns its path.
pub fn secret_file(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.path(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Configures one target, rounds only on request, and these lines from `[notify]` on.
pub fn configure(place: &Place, notify: &str) {
    let rarely = BUSY.replace("8640", "1");
    let target = target("a", &place.folder("a"));
    place.configure(&format!(
        "{rarely}[notify]\ndown-minutes = 0\ndisk-below-percent = 0.0\n{notify}\n{target}"
    ));
}

fn webhook(place: &Place, url: &str) -> String {
    let (url, token) = (secret_file(place, "url", url), secret_file(place, "token", TOKEN));
    format!(
        "[notify.channels.hook]\nkind = \"webhook\"\nurl-file = \"{}\"\ntoken-file = \"{}\"\n",
        url.display(),
        token.display()
    )
}

/// Returns the marker of the target's sandbox.
fn marker(place: &Place) -> PathBuf {
    sandbox(&place.path("a")).join("sandbox.json")
}

/// Makes the target unusable: its sandbox gets the marker of another computer. Returns the true marker.
pub fn take_away(place: &Place, daemon: &Daemon<'_>) -> String {
    daemon.round();
    let path = marker(place);
    let own = fs::read_to_string(&path).unwrap();
    let mut foreign: Value = serde_json::from_str(&own).unwrap();
    foreign["machine"] = "ffffffffffffffff".into();
    fs::write(&path, foreign.to_string()).unwrap();
    daemon.round();
    daemon.wait_for("the target to be down", |status| status["targets"][0]["state"]["name"] == "unavailable");
    own
}

fn channel<'v>(status: &'v Value, key: &str) -> &'v Value {
    &status["notify"]["channels"][0][key]
}

#[test]
fn target_that_is_down_and_back_is_told_once_each() {
    let (place, receiver) = (Place::new(), WebhookReceiver::start());
    configure(&place, &webhook(&place, &receiver.url()));
    let daemon = Daemon::start(&place);
    let own_marker = take_away(&place, &daemon);
    machine::wait_until("the first message", || receiver.titles() == ["a is unavailable"]);
    let message = &receiver.arrived()[0];
    assert_eq!((&message.body["kind"], &message.body["priority"]), (&"target-down".into(), &8.into()));
    assert!(message.head.contains(TOKEN), "{}", message.head);
    assert!(!message.body.to_string().contains(place.root().to_str().unwrap()), "no path leaves the machine");
    daemon.wait_for("the delivery", |status| *channel(status, "sent") == 1);
    daemon.stop();

    let daemon = Daemon::start(&place);
    daemon.round();
    fs::write(marker(&place), own_marker).unwrap();
    daemon.round();
    machine::wait_until("the second message", || receiver.titles().len() == 2);
    assert_eq!(receiver.titles(), ["a is unavailable", "a is back"]);
    assert_no_secret_is_shown(&place, &daemon);
    daemon.stop();
    assert_eq!(receiver.titles().len(), 2);
}

fn assert_no_secret_is_shown(place: &Place, daemon: &Daemon<'_>) {
    let outputs = ["status", "status --json", "doctor --json", "config", "export events --format json"];
    let shown = outputs.map(|command| {
        let output = place.longhaul(command).command().output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    let all = format!("{}{}{}", shown.join("\n"), daemon.status(), fs::read_to_string(log(place)).unwrap());
    for secret in [TOKEN, "secret-path"] {
        assert!(!all.contains(secret), "{secret} is shown: {all}");
    }
    assert!(all.contains("notify hook") && all.contains("a notification was sent"), "{all}");
}

#[test]
fn message_survives_an_outage_and_a_restart_once() {
    let place = Place::new();
    // Bound without listening: it refuses connections, and no other test gets the port meanwhile.
    let reserved = TcpSocket::new_v4().unwrap();
    reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = reserved.local_addr().unwrap().port();
    configure(&place, &webhook(&place, &format!("http://127.0.0.1:{port}/hook")));
    let daemon = Daemon::start(&place);
    take_away(&place, &daemon);
    let status = daemon.wait_for("a failure", |status| !channel(status, "last_failure").is_null());
    assert_eq!((channel(&status, "pending"), channel(&status, "sent")), (&1.into(), &0.into()));
    // The exit code is that of a failed target, except while the next round tries it again.
    machine::wait_until("a status of the target that is down", || {
        let mut asked = place.longhaul("status").start();
        let is_failed = asked.wait_for_exit().code() == Some(3);
        is_failed && asked.output_so_far().out.contains("1 pending; failed: connection refused")
    });
    daemon.kill();

    let receiver = WebhookReceiver::start_on(reserved);
    let daemon = Daemon::start(&place);
    machine::wait_until("the message", || !receiver.titles().is_empty());
    daemon.wait_for("the delivery", |status| *channel(status, "sent") == 1);
    daemon.round();
    daemon.stop();
    assert_eq!(receiver.titles(), ["a is unavailable"]);
}

#[test]
fn silent_receiver_disturbs_neither_rounds_nor_the_stop() {
    let (place, receiver) = (Place::new(), WebhookReceiver::start_silent());
    configure(&place, &webhook(&place, &receiver.url()));
    let daemon = Daemon::start(&place);
    take_away(&place, &daemon);
    machine::wait_until("the message", || !receiver.titles().is_empty());
    daemon.round();
    daemon.stop();

    let daemon = Daemon::start(&place);
    daemon.wait_for("the message to be given up", |status| *channel(status, "unanswered") == 1);
    daemon.stop();
    assert_eq!(receiver.titles().len(), 1, "what may have arrived is not repeated");
}

#[test]
fn wrong_channels_are_named_by_config_and_doctor() {
    let place = Place::new();
    let readable = secret_file(&place, "readable", "x");
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
    let channel =
        |name: &str, lines: &str| format!("[notify.channels.{name}]\nkind = \"webhook\"\n{lines}\n");
    let channels = [
        channel("far", "url = \"http://no-such-host.invalid/\""),
        channel("open", &format!("url = \"http://127.0.0.1/\"\ntoken-file = \"{}\"", readable.display())),
        channel("lost", "url-env = \"LONGHAUL_NO_SUCH_VARIABLE\""),
    ];
    configure(&place, &channels.concat());
    let daemon = Daemon::start(&place);
    for command in ["config", "doctor"] {
        let output = place.longhaul(command).expect(3);
        for expected in ["the host name cannot be resolved", "chmod 600", "LONGHAUL_NO_SUCH_VARIABLE"] {
            assert!(output.out.contains(expected), "{command}: {expected} is missing: {output}");
        }
    }
    daemon.stop();
    configure(&place, &channel("hook", "url = \"http://a/\"\ntemplate = '{\"text\": \"{{headline}}\"}'"));
    let output = place.longhaul("config").expect(2);
    assert!(output.err.contains("`text` contains the unknown placeholder `{{headline}}`"), "{output}");
}

#[test]
fn test_message_reaches_the_named_channel() {
    let (place, receiver) = (Place::new(), WebhookReceiver::start());
    configure(&place, &webhook(&place, &receiver.url()));
    let output = place.longhaul("notify test hook").expect(0);
    assert!(output.out.starts_with("ok       hook     webhook http://127.0.0.1:"), "{output}");
    assert_eq!(receiver.titles(), ["Test from longhaul"]);
    assert!(place.longhaul("notify test phone").expect(2).err.contains("known channels: hook"));
    configure(&place, "");
    assert!(place.longhaul("notify test").expect(2).err.contains("no channel is configured"));
}

#[test]
fn test_requests_the_heartbeat_and_hides_its_path() {
    let (place, receiver) = (Place::new(), WebhookReceiver::start());
    configure(&place, &format!("heartbeat-url = \"{}\"", receiver.url()));
    let output = place.longhaul("notify test").expect(0);
    assert!(output.out.starts_with("ok       heartbeat request http://127.0.0.1:"), "{output}");
    assert!(!output.out.contains("secret-path"), "{output}");
    assert!(receiver.arrived()[0].head.starts_with("GET /hook/secret-path HTTP/1.1"));
    configure(&place, &format!("heartbeat-url = \"http://127.0.0.1:{}/\"", free_port()));
    assert!(place.longhaul("notify test").expect(3).out.starts_with("failed   heartbeat"));
}

#[test]
fn heartbeat_is_sent_while_the_service_can_measure() {
    let (place, receiver) = (Place::new(), WebhookReceiver::start());
    configure(&place, &format!("heartbeat-url = \"{}\"", receiver.url()));
    let daemon = Daemon::start(&place);
    daemon.wait_for("a heartbeat", |status| !status["notify"]["heartbeat"]["last_sent_us"].is_null());
    assert!(receiver.arrived()[0].head.starts_with("GET /hook/secret-path HTTP/1.1"));
    let output = place.longhaul("status").expect(0);
    assert!(output.out.contains("the last accepted") && !output.out.contains("secret-path"), "{output}");
    daemon.stop();
}
