//! Runs Apple's command line tools and parses their output. Tests compile this on every system, with scripts
//! in place of the tools.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::keep_awake::KeepAwake;
use super::tool_process::{self, TOOL_TIMEOUT, ToolFailure, ToolOutput};
use super::unrecognized_output;
use crate::parse::{self, NfsMount, SmbSession, ThermalState};
use longhaul_model::{Mount, NegotiatedOptions, NetworkLink, Power, Protocol};

#[cfg(test)]
mod tests;

/// Root folder of Apple's tools: `/`, or in tests a folder with scripts at the same paths.
///
/// The root is passed as a value, not through an environment variable or a global: tests run in parallel in
/// one process, each with its own scripts, and nothing outside can make the service run other programs.
#[derive(Debug, Clone)]
pub struct Tools {
    root: PathBuf,
    timeout: Duration,
}

/// Error of a tool that gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// The tool has no usable output.
    Failed(ToolFailure),
    /// The system denies this program the information, with the first line of the output.
    PermissionDenied(String),
    /// No parser recognizes the output, which begins with this line.
    UnrecognizedOutput(String),
    /// The output does not list the mount point.
    NotListed,
}

impl Tools {
    /// Returns the tools of the operating system.
    pub fn system() -> Self {
        Self { root: PathBuf::from("/"), timeout: TOOL_TIMEOUT }
    }

    /// Runs a command, whose program is given by its absolute path, and parses its output.
    fn run_parsed<T>(
        &self,
        command: &[&str],
        parsed: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, ToolError> {
        let tool = tool_name(command);
        let first_line = match self.run(command) {
            Ok(answer) => match parsed(&answer.stdout) {
                Some(known) => {
                    unrecognized_output::record(&tool, None);
                    return Ok(known);
                }
                None => first_line(&answer),
            },
            Err(ToolFailure::OutputTooLong) => "more than 1 MiB".to_owned(),
            Err(failure) => return Err(ToolError::Failed(failure)),
        };
        if first_line.contains("requires Full Disk Access") || first_line.contains("Operation not permitted")
        {
            return Err(ToolError::PermissionDenied(first_line));
        }
        unrecognized_output::record(&tool, Some(&first_line));
        Err(ToolError::UnrecognizedOutput(first_line))
    }

    /// Runs a command like `run_parsed`, and parses its output as text.
    fn run_parsed_text<T>(
        &self,
        command: &[&str],
        parsed: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ToolError> {
        self.run_parsed(command, |output| parsed(&String::from_utf8_lossy(output)))
    }

    fn run(&self, command: &[&str]) -> Result<ToolOutput, ToolFailure> {
        let no_program = ToolFailure::NotStarted(std::io::ErrorKind::NotFound);
        let (program, arguments) = command.split_first().ok_or(no_program)?;
        let program = self.root.join(program.trim_start_matches('/'));
        let words: Vec<&str> = program.to_str().into_iter().chain(arguments.iter().copied()).collect();
        tool_process::run_with_timeout(&words, self.timeout)
    }
}

/// Returns the tool with its first argument: `nfsstat -m` for `/usr/bin/nfsstat -m -f JSON`.
fn tool_name(command: &[&str]) -> String {
    let program = command.first().and_then(|program| program.rsplit('/').next());
    program.into_iter().chain(command.get(1).copied()).collect::<Vec<_>>().join(" ")
}

/// Returns the first line of the output, or else of the error output, for use in messages.
fn first_line(answer: &ToolOutput) -> String {
    let line = parse::first_line(&answer.stdout).or_else(|| parse::first_line(&answer.stderr));
    line.unwrap_or_else(|| match answer.exit_code {
        Some(code) => format!("no output, exit code {code}"),
        None => "no output".to_owned(),
    })
}

/// Returns the negotiated options of a mount, with the key `dialect` for SMB and `vers` for NFS if known.
///
/// `smbutil` first calls `statfs` on the mount and so may hang (SMBClient smbutil/statshares.c:881); `nfsstat`
/// does not if it is given no path (NFS nfsstat/nfsstat.c:2058, `do_mountinfo`).
pub fn negotiated_with(tools: &Tools, mount: &Mount) -> Result<NegotiatedOptions, ToolError> {
    match mount.protocol {
        Protocol::Smb(_) => smb_share_with(tools, &mount.point),
        Protocol::Nfs(_) => nfs_mount_with(tools, &mount.point).map(|found| found.negotiated()),
        Protocol::Afp
        | Protocol::Webdav
        | Protocol::Sftp
        | Protocol::Fuse(_)
        | Protocol::Local(_)
        | Protocol::Other(_) => Ok(mount.negotiated.clone()),
    }
}

fn smb_share_with(tools: &Tools, point: &Path) -> Result<NegotiatedOptions, ToolError> {
    let point = point.to_string_lossy();
    tools.run_parsed(&["/usr/bin/smbutil", "statshares", "-m", &point, "-f", "JSON"], parse::smbutil)
}

/// Returns the counters and the server of a mount's SMB session. The tool calls `statfs` on the mount.
pub fn smb_session_with(tools: &Tools, point: &Path) -> Result<SmbSession, ToolError> {
    let path = point.to_string_lossy();
    let command = ["/usr/bin/smbutil", "multichannel", "-m", &path, "-i", "-x", "-f", "JSON"];
    let mut sessions = tools.run_parsed(&command, parse::multichannel)?;
    sessions.remove(point).ok_or(ToolError::NotListed)
}

/// Returns an NFS mount with its parameters, its server and its state. No mount is accessed.
///
/// JSON output is keyed by the source, so that of two mounts of one export, such as one of NFS 3 and one of NFS 4, it has
/// only one (NFS nfsstat/printer.c:313). The text output has both.
pub fn nfs_mount_with(tools: &Tools, point: &Path) -> Result<NfsMount, ToolError> {
    let command = ["/usr/bin/nfsstat", "-m", "-f", "JSON"];
    let mut mounts = tools.run_parsed(&command, parse::nfsstat)?;
    // Without any mount the text is empty, which would count as unrecognized.
    if !mounts.is_empty() && mounts.iter().all(|mount| mount.point != point) {
        mounts = tools.run_parsed(&command[..2], parse::nfsstat)?;
    }
    mounts.into_iter().find(|mount| mount.point == point).ok_or(ToolError::NotListed)
}

const BATTERY: [&str; 3] = ["/usr/bin/pmset", "-g", "batt"];

/// Returns the power source of the machine.
pub fn power_with(tools: &Tools) -> Result<Power, ToolError> {
    tools.run_parsed_text(&BATTERY, parse::pmset)
}

/// Returns the battery charge in percent; `None` without a battery.
pub fn battery_percent_with(tools: &Tools) -> Result<Option<f64>, ToolError> {
    tools.run_parsed_text(&BATTERY, |text| parse::pmset(text).map(|_| parse::pmset_percent(text)))
}

/// Returns whether Low Power Mode is on; `None` on a Mac that does not have it.
pub fn low_power_with(tools: &Tools) -> Result<Option<bool>, ToolError> {
    tools.run_parsed_text(&["/usr/bin/pmset", "-g"], |text| {
        let enabled = parse::pmset_low_power(text);
        (enabled.is_some() || text.contains("power settings")).then_some(enabled)
    })
}

/// Returns whether the Mac is awake without its graphics; `None` if it does not tell.
pub fn dark_wake_with(tools: &Tools) -> Result<Option<bool>, ToolError> {
    tools.run_parsed_text(&["/usr/bin/pmset", "-g", "systemstate"], |text| Some(parse::pmset_dark_wake(text)))
}

/// Returns the recorded thermal state.
pub fn thermal_state_with(tools: &Tools) -> Result<ThermalState, ToolError> {
    tools.run_parsed_text(&["/usr/bin/pmset", "-g", "therm"], parse::pmset_thermal_state)
}

/// Returns whether a Time Machine backup is running.
pub fn backup_running_with(tools: &Tools) -> Result<bool, ToolError> {
    tools.run_parsed_text(&["/usr/bin/tmutil", "status"], parse::tmutil_running)
}

/// Returns the Time Machine destinations. Some releases require Full Disk Access for this and refuse without
/// it.
pub fn destinations_with(tools: &Tools) -> Result<Vec<String>, ToolError> {
    tools.run_parsed_text(&["/usr/bin/tmutil", "destinationinfo"], parse::tmutil_destinations)
}

/// Returns the Time Machine destinations as facts about the machine. A refusal and an unrecognized output are
/// facts too, because a missing fact would mean that there is no destination. The result is empty if the tool
/// gave no answer at all.
pub fn destination_facts_with(tools: &Tools) -> BTreeMap<String, String> {
    let key = |index: usize| format!("time-machine-destination {}", index + 1);
    match destinations_with(tools) {
        Ok(found) => found.into_iter().enumerate().map(|(index, found)| (key(index), found)).collect(),
        Err(ToolError::PermissionDenied(first_line) | ToolError::UnrecognizedOutput(first_line)) => {
            [("time-machine-destination".to_owned(), format!("not known: {first_line}"))].into()
        }
        Err(ToolError::Failed(_) | ToolError::NotListed) => BTreeMap::new(),
    }
}

/// Returns the interface that leads to an address, or that of the default route; `None` without a route. An
/// IPv6 address needs the option `-inet6` (route(8)).
pub fn link_with(tools: &Tools, to: Option<IpAddr>) -> Result<Option<NetworkLink>, ToolError> {
    let to = to.map(|to| to.to_canonical());
    let family = to.filter(IpAddr::is_ipv6).map(|_| "-inet6");
    let to = to.map_or_else(|| "default".to_owned(), |to| to.to_string());
    let route = ["/sbin/route", "-n", "get"];
    let words: Vec<&str> = route.into_iter().chain(family).chain([to.as_str()]).collect();
    match tools.run_parsed_text(&words, parse::route_interface) {
        Ok(name) => Ok(Some(interface_with(tools, name))),
        // The tool reports a missing route as an error, but it is a valid answer.
        Err(ToolError::UnrecognizedOutput(first_line)) if first_line.ends_with("not in table") => {
            unrecognized_output::record(&tool_name(&words), None);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns an interface with its link properties. Properties that the tools do not report stay unknown.
fn interface_with(tools: &Tools, name: String) -> NetworkLink {
    let found = tools.run_parsed_text(&["/sbin/ifconfig", &name], parse::ifconfig).ok();
    let is_wireless = found.and_then(|found| found.is_wireless).or_else(|| port_is_wireless(tools, &name));
    let mtu = found.and_then(|found| found.mtu);
    NetworkLink { kind: parse::link_kind(&name, None, is_wireless), mtu, megabits: None, name }
}

/// Returns whether an interface is wireless, judged by the name of its hardware port. This is used if
/// `ifconfig` does not report the medium.
fn port_is_wireless(tools: &Tools, device: &str) -> Option<bool> {
    let command = ["/usr/sbin/networksetup", "-listallhardwareports"];
    let ports = tools.run_parsed_text(&command, parse::hardware_ports).ok()?;
    ports.iter().find(|port| port.device == device)?.is_wireless()
}

/// Prevents idle sleep while the Mac runs on mains power. `None` if the tool cannot be started, if the power
/// source is unknown, and on battery, where sleep is the user's decision.
pub fn keep_awake_with(tools: &Tools) -> Option<KeepAwake> {
    let is_on_mains = power_with(tools) == Ok(Power::Mains);
    is_on_mains.then(|| KeepAwake::start(&tools.root.join("usr/bin/caffeinate")))?
}

/// Returns whether the disk of a local mount is rotational; `None` if the tool does not report it.
pub fn is_rotational_with(tools: &Tools, point: &Path) -> Result<Option<bool>, ToolError> {
    let point = point.to_string_lossy();
    tools.run_parsed_text(&["/usr/sbin/diskutil", "info", "-plist", &point], |text| {
        text.contains("<plist").then(|| parse::diskutil_spins(text))
    })
}
