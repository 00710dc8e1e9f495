//! `longhaul nas check` and a run with a real SNMP agent, a real node_exporter and a real SSH server.
//!
//! `tests/nas/build.sh FOLDER` gets them; `LONGHAUL_NAS=FOLDER cargo test --test e2e nas_servers:: -- --ignored` uses them.

use std::fs::{self, File};
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul_store::Reader;
use serde_json::Value;

use crate::notify::secret_file;
use crate::support::real_programs::{Program, free_port};
use crate::support::{Place, machine};

/// Bytes that are written and synced at once while a NAS is read.
const BLOCK: usize = 8 << 20;

fn folder() -> PathBuf {
    std::env::var_os("LONGHAUL_NAS")
        .expect("LONGHAUL_NAS must be a folder filled by tests/nas/build.sh")
        .into()
}

/// Returns a command of the unpacked packages, with their libraries.
fn packaged(program: &str) -> Command {
    let root = folder().join("root");
    let libraries = fs::read_dir(root.join("usr/lib")).unwrap().map(|entry| entry.unwrap().path());
    let libraries: Vec<String> = libraries.map(|path| path.display().to_string()).collect();
    let mut command = Command::new(root.join(program));
    command.env("LD_LIBRARY_PATH", libraries.join(":"));
    command
}

/// A running server. It is killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real SNMP agent with a community and two users.
struct Agent {
    port: u16,
    _server: Server,
}

impl Agent {
    fn start(place: &Place) -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let state = place.folder("snmp");
        let config = state.join("agent.conf");
        let text = format!(
            "agentaddress udp:127.0.0.1:{port}\nrocommunity of-the-test 127.0.0.1\n\
             createUser ada SHA-256 \"authenticate-me\" AES \"encrypt-me-too\"\nrouser ada authpriv\n\
             createUser old SHA \"authenticate-me\"\nrouser old auth\n"
        );
        fs::write(&config, text).unwrap();
        let mut command = packaged("usr/sbin/snmpd");
        command.args(["-f", "-Lf", "/dev/null", "-C", "-c"]).arg(&config).args(["-I", "-smux", "-p"]);
        command.arg(state.join("pid")).env("SNMP_PERSISTENT_DIR", &state).env("MIBS", "");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { port, _server: Server(child) }
    }

    /// Returns the configuration with these lines about the access.
    fn config(&self, access: &str) -> String {
        format!("[nas]\nkind = \"snmp\"\nhost = \"127.0.0.1\"\nport = {}\n{access}", self.port)
    }
}

/// Calls `nas check` until the agent is up: it has no TCP port to wait for.
fn check_when_up(place: &Place) -> Value {
    let mut found = Value::Null;
    machine::wait_until("the SNMP agent to answer", || {
        found = place.longhaul("nas check --json").start().value_of_any_exit();
        found["problem"].is_null()
    });
    found
}

/// Calls `nas check` while data is written and synced on this machine, which is the NAS here. Checks that it is seen.
fn check_sees_writes(place: &Place) -> Value {
    let (is_over, file) =
        (AtomicBool::new(false), disk_folder().join(format!("written-{}", std::process::id())));
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let mut file = File::create(&file).unwrap();
                file.write_all(&vec![7; BLOCK]).unwrap();
                file.sync_all().unwrap();
            }
        });
        let found = place.longhaul("nas check --json").start().value_of_any_exit();
        is_over.store(true, Ordering::SeqCst);
        found
    });
    fs::remove_file(&file).unwrap();
    assert!(found["problem"].is_null(), "{found}");
    let disk = &found["disks"][0];
    assert!(
        disk["bytes"].as_u64().unwrap() >= BLOCK as u64 && disk["requests"].as_u64() > Some(0),
        "{found}"
    );
    assert!(disk["busy_share"].as_f64().unwrap() > 0.0, "{found}");
    found
}

/// Returns a folder on a disk: the temporary folder may be in memory.
fn disk_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn exporter_config(place: &Place) -> (Program, String) {
    let port = free_port();
    let mut command = Command::new(folder().join("node_exporter"));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).current_dir(place.root());
    (
        Program::start(&mut command, port),
        format!("[nas]\nkind = \"node-exporter\"\nurl = \"http://127.0.0.1:{port}/metrics\"\n"),
    )
}

#[test]
#[ignore = "needs a real SNMP agent: tests/nas/build.sh"]
fn snmp_agent_with_a_community_is_read() {
    let place = Place::new();
    let agent = Agent::start(&place);
    let community = secret_file(&place, "community", "of-the-test\n");
    place.configure(&agent.config(&format!("community-file = \"{}\"\n", community.display())));
    check_when_up(&place);
    let found = check_sees_writes(&place);
    assert_eq!(found["missing"], serde_json::json!(["disk-request-time"]), "{found}");
}

#[test]
#[ignore = "needs a real SNMP agent: tests/nas/build.sh"]
fn snmp_agent_is_silent_for_a_wrong_community() {
    let place = Place::new();
    let agent = Agent::start(&place);
    let wrong = secret_file(&place, "wrong", "tops3cret\n");
    place.configure(&agent.config(&format!("community-file = \"{}\"\n", wrong.display())));
    let output = place.longhaul("nas check").expect(3);
    assert!(output.out.contains("did not answer in time"), "{output}");
    assert!(!format!("{output}").contains("tops3cret"), "{output}");
}

#[test]
#[ignore = "needs a real SNMP agent: tests/nas/build.sh"]
fn snmp_users_of_version_3_are_accepted_or_refused() {
    let place = Place::new();
    let agent = Agent::start(&place);
    let (password, second) = (
        secret_file(&place, "password", "authenticate-me\n"),
        secret_file(&place, "second", "encrypt-me-too\n"),
    );
    let (password, second) = (password.display(), second.display());
    let encrypted = format!("encryption = \"aes\"\nencryption-password-file = \"{second}\"\n");
    place.configure(&agent.config(&format!(
        "user = \"ada\"\nauthentication = \"sha256\"\npassword-file = \"{password}\"\n{encrypted}"
    )));
    check_when_up(&place);
    check_sees_writes(&place);
    place.configure(&agent.config(&format!("user = \"old\"\npassword-file = \"{password}\"\n")));
    assert!(check_when_up(&place)["problem"].is_null());
    let wrong_password = format!("password-file = \"{second}\"\n{encrypted}");
    for (access, problem) in [
        (format!("user = \"ada\"\nauthentication = \"sha256\"\n{wrong_password}"), "timeout"),
        (format!("user = \"unknown\"\npassword-file = \"{password}\"\n"), "timeout"),
        (format!("user = \"ada\"\nauthentication = \"sha256\"\npassword-file = \"{password}\"\n"), "refused"),
    ] {
        place.configure(&agent.config(&access));
        let found = place.longhaul("nas check --json").expect(3).value();
        assert_eq!(found["problem"], problem, "{access}: {found}");
        assert!(
            found["message"].as_str().unwrap().contains("check") && found.to_string().contains("encryption")
        );
    }
}

#[test]
#[ignore = "needs a real node_exporter: tests/nas/build.sh"]
fn exporter_tells_everything() {
    let place = Place::new();
    let (_exporter, config) = exporter_config(&place);
    place.configure(&config);
    let found = check_sees_writes(&place);
    assert_eq!(found["missing"], serde_json::json!([]), "{found}");
    assert!(found["processor_share"].as_f64().unwrap() > 0.0, "{found}");
    assert!(found["disks"][0]["request_seconds"].as_f64().unwrap() > 0.0, "{found}");
    let text = place.longhaul("nas check").expect(0).out;
    assert!(text.contains("It reports everything that longhaul asks for."), "{text}");
}

#[test]
#[ignore = "needs a real node_exporter: tests/nas/build.sh"]
fn exporter_is_read_around_each_run() {
    let place = Place::new();
    let (_exporter, config) = exporter_config(&place);
    let target = format!("[targets.nas]\npath = \"{}\"\n", place.folder("nas").display());
    place.configure(&(config + crate::support::TINY_TREES + &target));
    place.run(&["folder-index", "photo-batch"], &[]).expect(0);
    let stored = Reader::open(&place.database()).unwrap().nas_use(0..=i64::MAX).unwrap();
    assert_eq!(stored.len(), 2);
    for run in stored {
        let used = run.found.unwrap();
        assert!(used.seconds > 0.0 && used.busiest_disk().is_some(), "{used:?}");
    }
    let export = place.longhaul("export runs --format json").expect(0).out;
    assert!(!export.contains("disk_busy") && !export.contains("processor_share"), "{export}");
}

#[test]
#[ignore = "needs a real SSH server and root: tests/nas/build.sh"]
fn ssh_server_is_read_without_a_question() {
    let place = Place::new();
    let server = SshServer::start(&place);
    place.configure("[nas]\nkind = \"ssh\"\nhost = \"the-nas\"\n");
    let found = server.check(&place).expect(3).value();
    assert_eq!(found["problem"], "refused", "the key of the server is not known yet: {found}");
    server.make_known();
    let found = server.check(&place).expect(0).value();
    assert_eq!(found["missing"], serde_json::json!([]), "{found}");
    assert!(found["disks"][0]["requests"].is_u64(), "{found}");
}

/// A real SSH server for root, and the `ssh` of this machine with a configuration of its own.
struct SshServer {
    state: PathBuf,
    port: u16,
    _program: Program,
}

impl SshServer {
    fn start(place: &Place) -> Self {
        let (state, port) = (place.folder("ssh"), free_port());
        for key in ["host", "key"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(state.join(key));
            assert!(command.status().unwrap().success());
        }
        let at = state.display();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/key.pub\nStrictModes no\n\
             UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n"
        );
        fs::write(state.join("server"), server).unwrap();
        let client = format!(
            "Host the-nas\nHostName 127.0.0.1\nPort {port}\nUser root\nIdentityFile {at}/key\nUserKnownHostsFile {at}/known\n"
        );
        fs::write(state.join("client"), client).unwrap();
        // OpenSSH finds its configuration by the user, not by HOME.
        let wrapper = format!("#!/bin/sh\nexec /usr/bin/ssh -F {at}/client \"$@\"\n");
        fs::write(place.folder("bin").join("ssh"), wrapper).unwrap();
        fs::set_permissions(place.path("bin/ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program::start(&mut Self::command(&state), port);
        Self { state, port, _program: program }
    }

    /// Returns the server's command. Started by root, it needs a user and a folder, which it gets in a mount namespace
    /// of its own.
    fn command(state: &Path) -> Command {
        let users =
            fs::read_to_string("/etc/passwd").unwrap() + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n";
        fs::write(state.join("passwd"), users).unwrap();
        let sshd = packaged("usr/sbin/sshd");
        let script = "mount --bind \"$0/passwd\" /etc/passwd && mount -t tmpfs none /run && mkdir -m 755 /run/sshd && \
                      exec \"$1\" -D -e -f \"$0/server\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(state).arg(sshd.get_program());
        command.envs(sshd.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    /// Prepares `nas check`, which finds the wrapper as `ssh`.
    fn check<'p>(&self, place: &'p Place) -> crate::support::Call<'p> {
        place.longhaul("nas check --json").first_on_path(&place.path("bin"))
    }

    /// Writes the server's key to the known hosts, as a first connection by hand does.
    fn make_known(&self) {
        let key = fs::read_to_string(self.state.join("host.pub")).unwrap();
        fs::write(self.state.join("known"), format!("[127.0.0.1]:{} {key}", self.port)).unwrap();
    }
}
