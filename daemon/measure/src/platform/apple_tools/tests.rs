use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::*;
use crate::platform::unrecognized_outputs;
use longhaul_model::LinkKind;

/// Timeout that is long enough for a script on a busy machine.
const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// Folder with scripts that replace Apple's tools.
struct Fakes {
    folder: tempfile::TempDir,
}

impl Fakes {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn tools(&self, limit: Duration) -> Tools {
        Tools { root: self.folder.path().to_owned(), timeout: limit }
    }

    /// Writes a script to the path of a tool. Another process writes it: while this process has the file open
    /// for writing, a child that another test starts would inherit the descriptor, and then the script cannot
    /// be run (execve(2), ETXTBSY).
    fn script(&self, tool: &str, lines: &str) {
        let path = self.folder.path().join(tool.trim_start_matches('/'));
        let mut writer = Command::new("/bin/sh")
            .args(["-c", "mkdir -p \"$(dirname \"$1\")\" && cat >\"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        write!(writer.stdin.take().unwrap(), "#!/bin/sh\n{lines}\n").unwrap();
        assert!(writer.wait().unwrap().success());
    }

    /// Installs a tool that prints a captured output.
    fn prints(&self, tool: &str, file: &str) {
        self.script(tool, &format!("cat '{}'", fixture(file)));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn fixture(file: &str) -> String {
    format!("{}/tests/fixtures/macos/{file}", env!("CARGO_MANIFEST_DIR"))
}

fn mount(kind: &[u8], from: &[u8], point: &str) -> Mount {
    let (protocol, source) = parse::statfs(kind, from, 0);
    Mount::new(point, source, protocol)
}

fn share() -> Mount {
    mount(b"smbfs", b"//ada@nas/media", "/Volumes/media")
}

/// Returns the tool whose unrecognized output with this text is recorded.
fn recorded_tool(text: &str) -> Option<String> {
    let recorded = unrecognized_outputs().into_iter().find(|answer| answer.first_line.contains(text));
    recorded.map(|answer| answer.tool)
}

fn unrecognized<T>(line: &str) -> Result<T, ToolError> {
    Err(ToolError::UnrecognizedOutput(line.to_owned()))
}

#[test]
fn a_hanging_tool_is_killed_and_reported() {
    let fakes = Fakes::new();
    let process = fakes.path("process");
    fakes.script("/usr/bin/smbutil", &format!("echo $$ >'{}'; exec sleep 600", process.display()));
    let begin = Instant::now();
    let answer = negotiated_with(&fakes.tools(Duration::from_secs(2)), &share());
    assert_eq!(answer, Err(ToolError::Failed(ToolFailure::TimedOut)));
    assert!(begin.elapsed() < PATIENT);
    let number: i32 = std::fs::read_to_string(process).unwrap().trim().parse().unwrap();
    let number = rustix::process::Pid::from_raw(number).unwrap();
    let is_there = || rustix::process::test_kill_process(number).is_ok();
    while is_there() && begin.elapsed() < PATIENT {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!is_there(), "the tool is still running");
}

/// Returns the reason why a tool has no output.
fn failure<T>(answer: Result<T, ToolError>) -> Option<ToolFailure> {
    match answer {
        Err(ToolError::Failed(failure)) => Some(failure),
        _ => None,
    }
}

#[test]
fn a_tool_that_hung_once_is_run_again() {
    let fakes = Fakes::new();
    let flag = fakes.path("flag");
    let capture = fixture("statshares-sonoma.txt");
    let lines = format!(
        "if [ -e '{0}' ]; then cat '{capture}'; else touch '{0}'; exec sleep 600; fi",
        flag.display()
    );
    fakes.script("/usr/bin/smbutil", &lines);
    let begin = Instant::now();
    // Until the script has started, the first call may time out because the machine is busy.
    while !flag.exists() && begin.elapsed() < PATIENT {
        let first = failure(negotiated_with(&fakes.tools(SHORT), &share()));
        assert!(matches!(first, Some(ToolFailure::TimedOut | ToolFailure::StillRunning)), "{first:?}");
    }
    let mut answer = negotiated_with(&fakes.tools(PATIENT), &share());
    while failure(answer.clone()) == Some(ToolFailure::StillRunning) && begin.elapsed() < PATIENT {
        std::thread::sleep(Duration::from_millis(10));
        answer = negotiated_with(&fakes.tools(PATIENT), &share());
    }
    assert_eq!(answer.unwrap().get("dialect").map(String::as_str), Some("3.1.1"));
}

#[test]
fn a_slow_answer_within_the_timeout_counts() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/nfsstat", &format!("sleep 0.3; cat '{}'", fixture("nfsstat-big-sur.json")));
    let found = nfs_mount_with(&fakes.tools(PATIENT), Path::new("/Users/ada/efs")).unwrap();
    assert_eq!(found.server, "127.0.0.1".parse().ok());
}

#[test]
fn output_counts_even_if_the_tool_then_fails() {
    let fakes = Fakes::new();
    let capture = fixture("../smbutil-macos15.json");
    let complaint = "stat_all_shares : stat_share() failed for /Volumes/other";
    fakes.script("/usr/bin/smbutil", &format!("cat '{capture}'; echo '{complaint}' >&2; exit 60"));
    let options = negotiated_with(&fakes.tools(PATIENT), &share()).unwrap();
    assert_eq!(options.get("dialect").map(String::as_str), Some("3.1.1"));
}

#[test]
fn a_refusal_is_reported_with_its_first_line() {
    let fakes = Fakes::new();
    let refusal = fixture("destination-refused-long.txt");
    fakes.script("/usr/bin/tmutil", &format!("cat '{refusal}' >&2; exit 77"));
    let line = "tmutil: destinationinfo requires Full Disk Access privileges.";
    let answer = destinations_with(&fakes.tools(PATIENT));
    assert_eq!(answer, Err(ToolError::PermissionDenied(line.to_owned())));
    assert_eq!(recorded_tool(line), None, "a refusal is not an unrecognized output");
    let facts = destination_facts_with(&fakes.tools(PATIENT));
    assert_eq!(facts, [("time-machine-destination".to_owned(), format!("not known: {line}"))].into());
}

#[test]
fn an_exit_code_without_output_is_unrecognized() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/nfsstat", "exit 112");
    let mount = || nfs_mount_with(&fakes.tools(PATIENT), Path::new("/Volumes/media"));
    assert_eq!(mount(), unrecognized("no output, exit code 112"));
    fakes.script("/usr/bin/nfsstat", "echo 'nfsstat: a complaint of its own' >&2; exit 112");
    assert_eq!(mount(), unrecognized("nfsstat: a complaint of its own"));
}

#[test]
fn garbage_is_reported_with_its_first_line() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/smbutil", r"printf '\n\377\376\001 what is this\nmore\n'");
    let answer = smb_session_with(&fakes.tools(PATIENT), Path::new("/Volumes/media"));
    assert!(
        matches!(&answer, Err(ToolError::UnrecognizedOutput(line)) if line.ends_with("what is this")),
        "{answer:?}"
    );
    assert_eq!(recorded_tool("what is this").as_deref(), Some("smbutil multichannel"));
}

#[test]
fn endless_output_is_cut_off_and_unrecognized() {
    let fakes = Fakes::new();
    fakes.script("/usr/sbin/diskutil", "exec yes '<plist><key>SolidState</key><true/>'");
    let answer = is_rotational_with(&fakes.tools(PATIENT), Path::new("/"));
    assert_eq!(answer, unrecognized("more than 1 MiB"));
}

#[test]
fn a_large_error_output_does_not_block_the_answer() {
    let fakes = Fakes::new();
    let capture = fixture("batt-discharging.txt");
    fakes.script("/usr/bin/pmset", &format!("head -c 900000 /dev/zero >&2; cat '{capture}'"));
    assert_eq!(power_with(&fakes.tools(PATIENT)), Ok(Power::Battery));
    assert!(keep_awake_with(&fakes.tools(PATIENT)).is_none(), "on battery, sleep is the user's decision");
    assert_eq!(battery_percent_with(&fakes.tools(PATIENT)), Ok(Some(27.0)));
}

#[test]
fn a_missing_tool_cannot_be_started() {
    let failure = failure(power_with(&Fakes::new().tools(PATIENT)));
    assert_eq!(failure, Some(ToolFailure::NotStarted(std::io::ErrorKind::NotFound)));
}

#[test]
fn an_unlisted_mount_is_an_error() {
    let fakes = Fakes::new();
    fakes.prints("/usr/bin/nfsstat", "nfsstat-none.txt");
    let nfs = mount(b"nfs", b"nas:/volume1", "/Volumes/four");
    assert_eq!(negotiated_with(&fakes.tools(PATIENT), &nfs), Err(ToolError::NotListed));
}

/// Outputs of `nfsstat -m` for two mounts of one export: JSON, then text. Made from the format strings of the tool.
const ONE_EXPORT_TWICE: &str = r#"if [ "$*" = '-m -f JSON' ]; then cat <<'END'
{ "nas:/volume1/media": { "Mount Point": "/Volumes/three",
  "Current mount parameters": { "NFS parameters": ["vers=3", "tcp"] } } }
END
else cat <<'END'
/Volumes/four from nas:/volume1/media
  -- Original mount options:
     NFS parameters: vers=4
  -- Current mount parameters:
     NFS parameters: vers=4.0,tcp
     File system locations:
       /volume1/media @ nas (192.168.1.5)
     Status flags: 0x0
/Volumes/three from nas:/volume1/media
  -- Current mount parameters:
     NFS parameters: vers=3,tcp
     Status flags: 0x0
END
fi"#;

#[test]
fn both_mounts_of_one_export_have_their_own_version() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/nfsstat", ONE_EXPORT_TWICE);
    let find = |point: &str| nfs_mount_with(&fakes.tools(PATIENT), Path::new(point));
    let version = |point: &str| find(point).unwrap().negotiated().get("vers").cloned();
    assert_eq!(version("/Volumes/three").as_deref(), Some("3"));
    assert_eq!(version("/Volumes/four").as_deref(), Some("4.0"));
    assert_eq!(find("/Volumes/four").unwrap().server, "192.168.1.5".parse().ok());
    assert_eq!(find("/Volumes/five"), Err(ToolError::NotListed));
}

#[test]
fn captured_outputs_give_the_state_of_the_machine() {
    let fakes = Fakes::new();
    let tools = fakes.tools(PATIENT);
    fakes.script(
        "/usr/bin/pmset",
        &format!(
            "case \"$*\" in '-g therm') cat '{}';; '-g') cat '{}';; *) cat '{}';; esac",
            fixture("therm-intel-hot.txt"),
            fixture("pmset-old.txt"),
            fixture("batt-ups.txt")
        ),
    );
    fakes.script(
        "/usr/bin/tmutil",
        &format!(
            "case $1 in status) cat '{}';; *) cat '{}';; esac",
            fixture("tmutil-copying.txt"),
            fixture("destination-none.txt")
        ),
    );
    fakes.prints("/usr/sbin/diskutil", "diskutil-flash.plist");
    assert_eq!((power_with(&tools), battery_percent_with(&tools)), (Ok(Power::Battery), Ok(None)));
    assert_eq!(low_power_with(&tools), Ok(None), "older systems do not have Low Power Mode");
    assert_eq!(thermal_state_with(&tools), Ok(ThermalState::Hot));
    assert_eq!(backup_running_with(&tools), Ok(true));
    assert_eq!(destinations_with(&tools), Ok(vec![]), "an empty list is a valid answer");
    assert_eq!(is_rotational_with(&tools, Path::new("/Volumes/stick")), Ok(None));
}

#[test]
fn a_link_is_wireless_only_if_its_port_says_so() {
    let fakes = Fakes::new();
    let tools = fakes.tools(PATIENT);
    fakes.prints("/usr/sbin/networksetup", "ports-macbook.txt");
    let link = |route: &str, interface: &str| {
        fakes.prints("/sbin/route", route);
        fakes.prints("/sbin/ifconfig", interface);
        link_with(&tools, "192.0.2.2".parse().ok()).unwrap().unwrap()
    };
    let wifi = link("route-default.txt", "ifconfig-wifi.txt");
    assert_eq!((wifi.name.as_str(), wifi.kind, wifi.mtu), ("en0", LinkKind::Wireless, Some(1500)));
    assert_eq!(link("route-default.txt", "ifconfig-2500.txt").kind, LinkKind::Wired);
    assert_eq!(
        link("route-nas.txt", "ifconfig-unplugged.txt").kind,
        LinkKind::Unknown,
        "en7 is not a listed port"
    );
    assert_eq!(link("route-vpn.txt", "ifconfig-utun.txt").kind, LinkKind::Tunnel);
    fakes.script("/sbin/route", &format!("cat '{}' >&2; exit 1", fixture("route-none.txt")));
    assert_eq!(link_with(&tools, None), Ok(None), "a missing route is not an error");
    assert_eq!(recorded_tool("not in table"), None);
}

#[test]
fn a_mac_on_mains_power_stays_awake_during_a_round() {
    let fakes = Fakes::new();
    fakes.prints("/usr/bin/pmset", "batt-desktop.txt");
    let tools = fakes.tools(PATIENT);
    assert!(keep_awake_with(&tools).is_none(), "without the tool the round still runs");
    let words = fakes.path("words");
    let script = format!("echo $$ \"$@\" > {0}.new; mv {0}.new {0}\nexec sleep 600", words.display());
    fakes.script("/usr/bin/caffeinate", &script);
    let keep_awake = keep_awake_with(&tools).unwrap();
    let until = Instant::now() + PATIENT;
    while !words.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let written = std::fs::read_to_string(&words).unwrap();
    let (process, arguments) = written.trim().split_once(' ').unwrap();
    assert_eq!(arguments, format!("-i -w {}", std::process::id()));
    drop(keep_awake);
    let status = Command::new("/bin/kill").args(["-0", process]).stderr(Stdio::null()).status().unwrap();
    assert!(!status.success(), "the tool ends with the round");
}
