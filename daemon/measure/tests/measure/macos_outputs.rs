//! Tests the parsers on published outputs of Apple's tools. Each output is one row of the index
//! (fixtures/macos/README.md).

use std::path::{Path, PathBuf};

use longhaul_measure::parse::{self, ThermalState};
use longhaul_model::{LinkKind, NegotiatedOptions, Power};

/// Mount flag `MNT_LOCAL` (xnu bsd/sys/mount.h).
const LOCAL: u32 = 0x1000;

/// One row of the index: a fixture file and its expected result.
struct Fixture {
    file: String,
    command: String,
    exit_code: i32,
    expected: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/macos")
}

fn index() -> Vec<Fixture> {
    let text = std::fs::read_to_string(folder().join("index.tsv")).expect("index.tsv is readable");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, command, exit_code, _macos, source, expected] = cells[..] else {
            panic!("a row needs 6 cells, not {}: {line}", cells.len())
        };
        assert!(!source.is_empty(), "{file} has no source");
        Fixture {
            file: file.to_owned(),
            command: command.to_owned(),
            exit_code: exit_code.parse().expect("an exit code"),
            expected: expected.to_owned(),
        }
    };
    text.lines().skip(1).map(row).collect()
}

impl Fixture {
    fn text(&self) -> String {
        std::fs::read_to_string(folder().join(&self.file)).expect("a fixture")
    }

    /// Returns the tool's standard output: empty if the tool failed, because its error message goes to standard error.
    fn output(&self) -> String {
        if self.exit_code == 0 { self.text() } else { String::new() }
    }

    /// Returns the result of a parser in the notation of the index; `unknown: ` and the first line if it parsed
    /// nothing.
    fn result(&self, parsed: Option<String>) -> String {
        let first = || parse::first_line(self.text().as_bytes()).expect("a line");
        parsed.unwrap_or_else(|| format!("unknown: {}", first()))
    }
}

fn pairs(options: &NegotiatedOptions) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn medium(is_wireless: Option<bool>) -> &'static str {
    match is_wireless {
        Some(true) => "radio",
        Some(false) => "cable",
        None => "unknown",
    }
}

/// Asserts that the parser gives the expected result of the index for every fixture of a command.
fn check(command: &str, parsed: impl Fn(&str) -> Option<String>) {
    let fixtures: Vec<_> = index().into_iter().filter(|fixture| fixture.command == command).collect();
    assert!(!fixtures.is_empty(), "no fixture of {command}");
    let mut wrong = vec![];
    for fixture in &fixtures {
        let result = fixture.result(parsed(&fixture.output()));
        // The index holds only the beginning of a long first line.
        let is_unknown = fixture.expected.starts_with("unknown: ");
        if result != fixture.expected && !(is_unknown && result.starts_with(&fixture.expected)) {
            wrong.push(format!("{}:\n  expected {}\n  found    {result}", fixture.file, fixture.expected));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), fixtures.len(), wrong.join("\n"));
}

#[test]
fn smbutil_statshares() {
    check("smbutil statshares", |text| Some(pairs(&parse::smbutil(text.as_bytes())?)));
}

#[test]
fn smbutil_multichannel() {
    check("smbutil multichannel", |text| {
        let sessions = parse::multichannel(text.as_bytes())?;
        let session = |(point, session): (&PathBuf, &parse::SmbSession)| {
            format!("{} {} {}", point.display(), known(session.received), known(session.sent))
        };
        Some(sessions.iter().map(session).collect::<Vec<_>>().join("; "))
    });
}

#[test]
fn nfsstat_mounts() {
    check("nfsstat -m", |text| {
        let mount = |mount: &parse::NfsMount| {
            let status = mount.status.as_ref().map(|flags| flags.join(","));
            let options = pairs(&mount.negotiated());
            let words = [
                mount.point.display().to_string(),
                options,
                format!("server={}", known(mount.server)),
                format!("status={}", known(status)),
            ];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        Some(parse::nfsstat(text.as_bytes())?.iter().map(mount).collect::<Vec<_>>().join("; "))
    });
}

#[test]
fn pmset_battery() {
    check("pmset -g batt", |text| {
        let power = match parse::pmset(text)? {
            Power::Mains => "mains",
            Power::Battery => "battery",
        };
        Some(format!("{power} {}", known(parse::pmset_percent(text))))
    });
}

#[test]
fn pmset_heat() {
    check("pmset -g therm", |text| {
        Some(
            match parse::pmset_thermal_state(text)? {
                ThermalState::Hot => "hot",
                ThermalState::Cool => "cool",
                ThermalState::NotRecorded => "not recorded",
            }
            .to_owned(),
        )
    });
}

#[test]
fn pmset_settings() {
    check("pmset -g", |text| Some(format!("low-power={}", yes_or_no(parse::pmset_low_power(text)?))));
}

#[test]
fn tmutil_status() {
    check("tmutil status", |text| Some(format!("running={}", yes_or_no(parse::tmutil_running(text)?))));
}

#[test]
fn tmutil_destinations() {
    check("tmutil destinationinfo", |text| Some(parse::tmutil_destinations(text)?.join("; ")));
}

/// Tests the `statfs` parser on outputs of `mount`, which prints the values of `statfs`: type, source and flags
/// (diskdev_cmds mount.tproj/mount.c).
#[test]
fn mount_table() {
    check("mount", |text| {
        let row = |line: &str| {
            let (from, rest) = line.split_once(" on ")?;
            let (point, options) = rest.rsplit_once(" (")?;
            let options: Vec<&str> = options.trim_end_matches(')').split(", ").collect();
            let flags = if options.contains(&"local") { LOCAL } else { 0 };
            let (protocol, source) = parse::statfs(options[0].as_bytes(), from.as_bytes(), flags);
            Some(format!("{point} {protocol} {source}"))
        };
        Some(text.lines().map(row).collect::<Option<Vec<_>>>()?.join("; "))
    });
}

#[test]
fn interface() {
    check("ifconfig", |text| {
        let found = parse::ifconfig(text)?;
        Some(format!("mtu={} medium={}", known(found.mtu), medium(found.is_wireless)))
    });
}

#[test]
fn route() {
    check("route -n get", |text| Some(format!("interface={}", parse::route_interface(text)?)));
}

#[test]
fn hardware_ports() {
    check("networksetup -listallhardwareports", |text| {
        let port = |port: &parse::HardwarePort| format!("{}={}", port.device, medium(port.is_wireless()));
        Some(parse::hardware_ports(text)?.iter().map(port).collect::<Vec<_>>().join(" "))
    });
}

#[test]
fn disk() {
    check("diskutil info -plist", |text| {
        let is_plist = text.contains("<plist");
        let spins = parse::diskutil_spins(text).map_or("unknown", yes_or_no);
        is_plist.then(|| format!("spins={spins}"))
    });
}

#[test]
fn wifi_and_multigigabit_ethernet_are_distinguished() {
    let text = |file: &str| std::fs::read_to_string(folder().join(file)).expect("a fixture");
    let ports = parse::hardware_ports(&text("ports-macbook.txt")).expect("ports");
    let kind = |name: &str, file: &str| {
        let is_wireless = parse::ifconfig(&text(file)).expect("an interface").is_wireless;
        let by_port =
            || ports.iter().find(|port| port.device == name).and_then(parse::HardwarePort::is_wireless);
        parse::link_kind(name, None, is_wireless.or_else(by_port))
    };
    assert_eq!(kind("en0", "ifconfig-wifi.txt"), LinkKind::Wireless);
    assert_eq!(kind("en9", "ifconfig-2500.txt"), LinkKind::Wired);
    assert_eq!(kind("bridge0", "ifconfig-bridge.txt"), LinkKind::Wired);
    assert_eq!(kind("en8", "ifconfig-unplugged.txt"), LinkKind::Unknown);
}

#[test]
fn no_parser_accepts_the_output_of_another_tool() {
    for fixture in index() {
        let (text, command) = (fixture.text(), fixture.command.as_str());
        let bytes = text.as_bytes();
        let found = [
            ("smbutil statshares", parse::smbutil(bytes).is_some()),
            ("nfsstat -m", parse::nfsstat(bytes).is_some_and(|mounts| !mounts.is_empty())),
            ("pmset -g batt", parse::pmset(&text).is_some()),
            ("pmset -g therm", parse::pmset_thermal_state(&text).is_some()),
            ("pmset -g", parse::pmset_low_power(&text).is_some()),
            ("tmutil status", parse::tmutil_running(&text).is_some()),
            ("tmutil destinationinfo", parse::tmutil_destinations(&text).is_some()),
            ("ifconfig", parse::ifconfig(&text).is_some()),
            ("route -n get", parse::route_interface(&text).is_some()),
            ("networksetup -listallhardwareports", parse::hardware_ports(&text).is_some()),
            ("diskutil info -plist", parse::diskutil_spins(&text).is_some()),
        ];
        for (parser, is_accepted) in found {
            assert!(
                !is_accepted || parser == command,
                "{} was accepted by the parser of `{parser}`",
                fixture.file
            );
        }
    }
}

#[test]
fn index_lists_every_fixture_once() {
    let is_in_folder = |name: &String| !name.starts_with("../");
    let mut listed: Vec<String> =
        index().into_iter().map(|fixture| fixture.file).filter(is_in_folder).collect();
    let entries = std::fs::read_dir(folder()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut files: Vec<String> =
        names.filter(|name| !matches!(name.as_str(), "index.tsv" | "README.md")).collect();
    listed.sort();
    files.sort();
    assert_eq!(listed, files);
}
