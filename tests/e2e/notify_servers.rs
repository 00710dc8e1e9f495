//! Notifications to a real ntfy server and a real mail server.
//!
//! `tests/notify/build.sh FOLDER` builds both; `LONGHAUL_NOTIFY=FOLDER cargo test --test e2e notify_servers:: -- --ignored`
//! uses them.

use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Zoned;
use rusqlite::Connection;
use serde_json::Value;

use crate::notify::{configure, secret_file, take_away};
use crate::support::daemon::Daemon;
use crate::support::real_programs::{Program, free_port};
use crate::support::{Place, machine};

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/key.pem");
const PASSWORD: &str = "a very secret password";

/// Returns the path of a built program.
fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("LONGHAUL_NOTIFY");
    let folder: PathBuf =
        folder.expect("LONGHAUL_NOTIFY must be a folder built by tests/notify/build.sh").into();
    folder.join(name)
}

fn get(url: &str) -> String {
    ureq::get(url).call().unwrap().body_mut().read_to_string().unwrap()
}

/// A real ntfy server, which keeps its messages over a restart.
struct Ntfy {
    port: u16,
    cache: PathBuf,
}

impl Ntfy {
    fn new(folder: &Path) -> Self {
        Self { port: free_port(), cache: folder.join("ntfy-cache.db") }
    }

    fn start(&self) -> Program {
        let mut command = Command::new(program("ntfy"));
        command.args(["serve", "--listen-http", &format!("127.0.0.1:{}", self.port), "--cache-file"]);
        Program::start(command.arg(&self.cache), self.port)
    }

    fn channel(&self) -> String {
        format!(
            "[notify.channels.phone]\nkind = \"ntfy\"\nurl = \"http://127.0.0.1:{}/longhaul-test\"\n",
            self.port
        )
    }

    /// Returns all messages that the server has.
    fn messages(&self) -> Vec<Value> {
        let text = get(&format!("http://127.0.0.1:{}/longhaul-test/json?poll=1", self.port));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A real mail server that takes mail over an encrypted connection.
struct MailServer {
    smtp: u16,
    http: u16,
    encryption: &'static str,
    _program: Program,
}

impl MailServer {
    /// Starts a server whose connections are encrypted as `encryption` in the configuration says.
    fn start(encryption: &'static str) -> Self {
        let (smtp, http) = (free_port(), free_port());
        let mut command = Command::new(program("mailpit"));
        command.args(["--smtp", &format!("127.0.0.1:{smtp}"), "--listen", &format!("127.0.0.1:{http}")]);
        command.args(["--smtp-tls-cert", CERTIFICATE, "--smtp-tls-key", KEY]);
        command.args(["--smtp-auth-accept-any", "--disable-version-check"]);
        command.arg(if encryption == "tls" { "--smtp-require-tls" } else { "--smtp-require-starttls" });
        let program = Program::start(&mut command, http);
        machine::wait_until("the mail server", || std::net::TcpStream::connect(("127.0.0.1", smtp)).is_ok());
        Self { smtp, http, encryption, _program: program }
    }

    fn channel(&self, place: &Place) -> String {
        let password = secret_file(place, "password", PASSWORD);
        format!(
            "[notify.channels.mail]\nkind = \"email\"\nserver = \"127.0.0.1\"\nport = {}\nencryption = \"{}\"\nuser = \"ada\"\n\
             password-file = \"{}\"\nfrom = \"longhaul <nas@example.com>\"\nto = [\"ada@example.com\"]\n\
             certificate = \"{CERTIFICATE}\"\n",
            self.smtp,
            self.encryption,
            password.display()
        )
    }

    /// Returns all mails that the server has, newest first, each in full.
    fn mails(&self) -> Vec<Value> {
        let read = |path: &str| -> Value {
            serde_json::from_str(&get(&format!("http://127.0.0.1:{}/api/v1/{path}", self.http))).unwrap()
        };
        let list = read("messages");
        let ids = list["messages"].as_array().unwrap().iter().map(|mail| mail["ID"].as_str().unwrap());
        ids.map(|id| read(&format!("message/{id}"))).collect()
    }
}

#[test]
#[ignore = "needs a real ntfy server: tests/notify/build.sh; run with --ignored"]
fn ntfy_gets_title_and_priority_after_an_outage_once() {
    let place = Place::new();
    let ntfy = Ntfy::new(place.root());
    configure(&place, &ntfy.channel());
    let daemon = Daemon::start(&place);
    take_away(&place, &daemon);
    daemon.wait_for("a failure", |status| !status["notify"]["channels"][0]["last_failure"].is_null());
    daemon.kill();
    let _running = ntfy.start();
    let daemon = Daemon::start(&place);
    daemon.wait_for("the delivery", |status| status["notify"]["channels"][0]["sent"] == 1);
    daemon.round();
    daemon.stop();
    let messages = ntfy.messages();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(
        (&message["title"], &message["priority"], &message["tags"][0]),
        (&"a is unavailable".into(), &4.into(), &"target-down".into())
    );
    assert!(message["message"].as_str().unwrap().contains("could not be used for"), "{message}");
    let output = place.longhaul("notify test phone").expect(0);
    assert!(output.out.contains("accepted"), "{output}");
    assert_eq!(ntfy.messages().len(), 2);
}

#[test]
#[ignore = "needs a real mail server: tests/notify/build.sh; run with --ignored"]
fn mail_arrives_encrypted_with_text_and_html() {
    let (place, server) = (Place::new(), MailServer::start("starttls"));
    configure(&place, &server.channel(&place));
    place.longhaul("notify test").expect(0);
    let mails = server.mails();
    let [mail] = mails.as_slice() else { panic!("{mails:?}") };
    assert_eq!(mail["Subject"], "Test from longhaul");
    assert_eq!(mail["To"][0]["Address"], "ada@example.com");
    assert_eq!(mail["From"]["Name"], "longhaul");
    let (text, html) = (mail["Text"].as_str().unwrap(), mail["HTML"].as_str().unwrap());
    assert!(text.starts_with("This is a test.") && html.contains("<h1>Test from longhaul</h1>"), "{mail}");
    let trusts_public_authorities = server.channel(&place).replace("certificate = ", "# ");
    configure(&place, &trusts_public_authorities);
    let output = place.longhaul("notify test").expect(3);
    assert!(output.out.contains("certificate") && !output.out.contains(PASSWORD), "{output}");
}

#[test]
#[ignore = "needs a real mail server: tests/notify/build.sh; run with --ignored"]
fn mail_arrives_over_a_connection_encrypted_from_its_start() {
    let (place, server) = (Place::new(), MailServer::start("tls"));
    configure(&place, &server.channel(&place));
    place.longhaul("notify test").expect(0);
    assert_eq!(server.mails().len(), 1);
    let output = place.longhaul("config").expect(0);
    assert!(output.out.contains("email at 127.0.0.1") && output.out.contains("can be reached"), "{output}");
    configure(&place, &server.channel(&place).replace("certificate = ", "# "));
    let output = place.longhaul("notify test").expect(3);
    assert!(output.out.contains("certificate is not trusted"), "{output}");
}

#[test]
#[ignore = "needs a real mail server: tests/notify/build.sh; run with --ignored"]
fn mail_with_the_weekly_digest_arrives_once() {
    let (place, server) = (Place::new(), MailServer::start("starttls"));
    let weekday = format!("{:?}", Zoned::now().weekday()).to_lowercase();
    let notify = format!("digest = \"{weekday} 00:00\"\n{}", server.channel(&place));
    configure(&place, "");
    let daemon = Daemon::start(&place);
    daemon.round();
    daemon.stop();
    // As if the digest had been switched on long ago.
    let store = Connection::open(place.database()).unwrap();
    store.execute("INSERT INTO notification_state VALUES ('digest:since', '1')", []).unwrap();
    store.close().unwrap();
    configure(&place, &notify);
    for _ in 0..2 {
        let daemon = Daemon::start(&place);
        daemon.wait_for("the digest", |status| status["notify"]["channels"][0]["sent"] == 1);
        daemon.round();
        daemon.stop();
    }
    let mails = server.mails();
    let [mail] = mails.as_slice() else { panic!("{mails:?}") };
    assert!(mail["Subject"].as_str().unwrap().starts_with("longhaul: report of week 20"), "{mail}");
    assert!(mail["Text"].as_str().unwrap().starts_with("# longhaul, week"), "{}", mail["Text"]);
    let html = mail["HTML"].as_str().unwrap();
    assert!(html.contains("<title>longhaul, week 20") && html.contains("</html>"), "{html}");
}
