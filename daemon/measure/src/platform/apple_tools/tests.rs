use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::*;
use crate::model::LinkKind;
use crate::platform::unknown_answers;

/// Long enough for a script on a machine that is busy.
const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// Scripts that stand in for Apple's tools, in a folder of their own.
struct Fakes {
    folder: tempfile::TempDir,
}

impl Fakes {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn tools(&self, limit: Duration) -> Tools {
        Tools { root: self.folder.path().to_owned(), limit }
    }

    /// Puts a script at the path of a tool. It is written by another process: as long as this one had it open for writing,
    /// a child that another test starts would have too, and then it cannot be run (execve(2), ETXTBSY).
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

    /// A tool that prints a capture, and ends with 0 or as it did.
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
    Mount {
        point: point.into(),
        source,
        protocol,
        negotiated: Negotiated::new(),
        read_only: false,
        free_bytes: None,
        total_bytes: None,
        server: None,
        device: None,
    }
}

fn share() -> Mount {
    mount(b"smbfs", b"//ada@nas/media", "/Volumes/media")
}

fn is_noted(line: &str) -> bool {
    unknown_answers().iter().any(|answer| answer.first_line.contains(line))
}

#[test]
fn a_tool_that_hangs_is_killed_and_unanswered() {
    let fakes = Fakes::new();
    let process = fakes.path("process");
    fakes.script("/usr/bin/smbutil", &format!("echo $$ >'{}'; exec sleep 600", process.display()));
    let begin = Instant::now();
    let answer = negotiated_with(&fakes.tools(Duration::from_secs(2)), &share());
    let tool = "smbutil statshares".to_owned();
    assert_eq!(answer, Err(ToolError::TimedOut { tool, limit: Duration::from_secs(2) }));
    assert!(begin.elapsed() < PATIENT);
    let number: i32 = std::fs::read_to_string(process).unwrap().trim().parse().unwrap();
    let number = rustix::process::Pid::from_raw(number).unwrap();
    let is_there = || rustix::process::test_kill_process(number).is_ok();
    while is_there() && begin.elapsed() < PATIENT {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!is_there(), "it was left running");
}

#[test]
fn a_tool_that_hung_once_is_asked_again() {
    let fakes = Fakes::new();
    let flag = fakes.path("flag");
    let capture = fixture("statshares-sonoma.txt");
    let lines = format!(
        "if [ -e '{0}' ]; then cat '{capture}'; else touch '{0}'; exec sleep 600; fi",
        flag.display()
    );
    fakes.script("/usr/bin/smbutil", &lines);
    let begin = Instant::now();
    // until the script has begun, its first answer may be late for another reason
    while !flag.exists() && begin.elapsed() < PATIENT {
        let first = negotiated_with(&fakes.tools(SHORT), &share());
        assert!(
            matches!(first, Err(ToolError::TimedOut { .. } | ToolError::StillRunning { .. })),
            "{first:?}"
        );
    }
    let mut answer = negotiated_with(&fakes.tools(PATIENT), &share());
    while matches!(answer, Err(ToolError::StillRunning { .. })) && begin.elapsed() < PATIENT {
        std::thread::sleep(Duration::from_millis(10));
        answer = negotiated_with(&fakes.tools(PATIENT), &share());
    }
    assert_eq!(answer.unwrap().get("dialect").map(String::as_str), Some("3.1.1"));
}

#[test]
fn an_answer_that_is_late_but_in_time_counts() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/nfsstat", &format!("sleep 0.3; cat '{}'", fixture("nfsstat-big-sur.json")));
    let found = nfs_mount_with(&fakes.tools(PATIENT), Path::new("/Users/ada/efs")).unwrap();
    assert_eq!(found.server, "127.0.0.1".parse().ok());
}

#[test]
fn an_answer_counts_though_the_tool_fails_for_the_rest() {
    let fakes = Fakes::new();
    let capture = fixture("../smbutil-macos15.json");
    let complaint = "stat_all_shares : stat_share() failed for /Volumes/other";
    fakes.script("/usr/bin/smbutil", &format!("cat '{capture}'; echo '{complaint}' >&2; exit 60"));
    let told = negotiated_with(&fakes.tools(PATIENT), &share()).unwrap();
    assert_eq!(told.get("dialect").map(String::as_str), Some("3.1.1"));
}

#[test]
fn a_refusal_is_told_with_its_first_line() {
    let fakes = Fakes::new();
    let refusal = fixture("destination-refused-long.txt");
    fakes.script("/usr/bin/tmutil", &format!("cat '{refusal}' >&2; exit 77"));
    let error = destinations_with(&fakes.tools(PATIENT)).unwrap_err().to_string();
    let line = "tmutil: destinationinfo requires Full Disk Access privileges.";
    assert_eq!(error, format!("tmutil destinationinfo may not tell: {line}"));
    assert!(!is_noted(line), "what is refused is known well enough");
    let facts = destination_facts_with(&fakes.tools(PATIENT));
    assert_eq!(facts, [("time-machine-destination".to_owned(), format!("not known: {line}"))].into());
}

#[test]
fn an_exit_code_without_an_answer_is_unknown() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/nfsstat", "exit 112");
    let first_line = "nothing, and exit code 112".to_owned();
    let tool = "nfsstat -m".to_owned();
    let mount = || nfs_mount_with(&fakes.tools(PATIENT), Path::new("/Volumes/media"));
    assert_eq!(mount(), Err(ToolError::Unknown { tool, first_line }));
    fakes.script("/usr/bin/nfsstat", "echo 'nfsstat: a complaint of its own' >&2; exit 112");
    let error = mount().unwrap_err().to_string();
    assert!(error.ends_with("nfsstat: a complaint of its own"), "{error}");
}

#[test]
fn garbage_is_unknown_with_its_first_line() {
    let fakes = Fakes::new();
    fakes.script("/usr/bin/smbutil", r"printf '\n\377\376\001 what is this\nmore\n'");
    let error = smb_session_with(&fakes.tools(PATIENT), Path::new("/Volumes/media")).unwrap_err();
    assert!(matches!(&error, ToolError::Unknown { .. }), "{error}");
    assert!(error.to_string().ends_with("what is this"), "{error}");
    assert!(is_noted("what is this"));
}

#[test]
fn megabytes_are_unknown_however_long_they_go_on() {
    let fakes = Fakes::new();
    fakes.script("/usr/sbin/diskutil", "exec yes '<plist><key>SolidState</key><true/>'");
    let error = spins_with(&fakes.tools(PATIENT), Path::new("/")).unwrap_err().to_string();
    assert_eq!(error, "diskutil info wrote something that is not known: more than a MiB");
}

#[test]
fn megabytes_of_complaints_hold_up_no_answer() {
    let fakes = Fakes::new();
    let capture = fixture("batt-discharging.txt");
    fakes.script("/usr/bin/pmset", &format!("head -c 900000 /dev/zero >&2; cat '{capture}'"));
    assert_eq!(power_with(&fakes.tools(PATIENT)), Ok(Power::Battery));
    assert_eq!(battery_percent_with(&fakes.tools(PATIENT)), Ok(Some(27.0)));
}

#[test]
fn a_tool_that_is_missing_is_named() {
    let error = power_with(&Fakes::new().tools(PATIENT)).unwrap_err().to_string();
    assert!(error.starts_with("pmset -g cannot be started: "), "{error}");
}

#[test]
fn a_mount_that_is_not_listed_is_no_empty_answer() {
    let fakes = Fakes::new();
    fakes.prints("/usr/bin/nfsstat", "nfsstat-none.txt");
    let nfs = mount(b"nfs", b"nas:/volume1", "/Volumes/four");
    let error = negotiated_with(&fakes.tools(PATIENT), &nfs).unwrap_err().to_string();
    assert_eq!(error, "nfsstat -m does not list /Volumes/four");
}

#[test]
fn real_captures_tell_what_the_machine_is_like() {
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
    assert_eq!(low_power_with(&tools), Ok(None), "an older system does not have it");
    assert_eq!(heat_with(&tools), Ok(Heat::Hot));
    assert_eq!(backup_running_with(&tools), Ok(true));
    assert_eq!(destinations_with(&tools), Ok(vec![]), "that there is none is an answer");
    assert_eq!(spins_with(&tools, Path::new("/Volumes/stick")), Ok(None));
}

#[test]
fn the_link_is_radio_only_where_a_port_says_so() {
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
    assert_eq!(link("route-nas.txt", "ifconfig-unplugged.txt").kind, LinkKind::Unknown, "en7 is no port");
    assert_eq!(link("route-vpn.txt", "ifconfig-utun.txt").kind, LinkKind::Tunnel);
    fakes.script("/sbin/route", &format!("cat '{}' >&2; exit 1", fixture("route-none.txt")));
    assert_eq!(link_with(&tools, None), Ok(None), "no route is no failure");
    assert!(!is_noted("not in table"));
}
