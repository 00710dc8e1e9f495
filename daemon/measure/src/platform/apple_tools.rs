//! What Apple's tools are asked, and what their answers mean. Compiled in tests everywhere, where scripts stand in for them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child::{self, Answer, NoAnswer};
use super::parse::{self, Heat, NfsMount, SmbSession};
use super::unknown;
use crate::model::{Link, Mount, Negotiated, Power, Protocol};

#[cfg(test)]
mod tests;

/// How long a tool may take: they answer in milliseconds unless the share that they ask is dead.
const LIMIT: Duration = Duration::from_secs(4);

/// Where Apple's tools are found: at their absolute paths, or in tests below a folder of scripts.
///
/// A value that is handed down, and neither a variable of the environment nor of the process: tests run side by side in
/// one process, each with scripts of its own, and nothing from outside can have the service run other programs.
#[derive(Debug, Clone)]
pub struct Tools {
    root: PathBuf,
    limit: Duration,
}

/// Why a tool told nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// It cannot be started.
    #[error("{tool} cannot be started: {why}")]
    NotStarted {
        /// The tool, with the words that say what it was asked.
        tool: String,
        /// What the system said.
        why: String,
    },
    /// It gave no answer in time, and was killed.
    #[error("{tool} gave no answer within {} ms", limit.as_millis())]
    TimedOut {
        /// The tool.
        tool: String,
        /// The time it had.
        limit: Duration,
    },
    /// It was asked before, gave no answer, and has not ended: it is not asked a second time.
    #[error("{tool} was asked before and has not ended yet")]
    StillRunning {
        /// The tool.
        tool: String,
    },
    /// It may not tell this program.
    #[error("{tool} may not tell: {first_line}")]
    Refused {
        /// The tool.
        tool: String,
        /// What it said.
        first_line: String,
    },
    /// It wrote something that no parser knows.
    #[error("{tool} wrote something that is not known: {first_line}")]
    Unknown {
        /// The tool.
        tool: String,
        /// The first line of it.
        first_line: String,
    },
    /// It knows nothing of what it was asked about.
    #[error("{tool} does not list {}", what.display())]
    NotListed {
        /// The tool.
        tool: String,
        /// What it was asked about.
        what: PathBuf,
    },
}

impl Tools {
    /// Those of the system.
    pub fn system() -> Self {
        Self { root: PathBuf::from("/"), limit: LIMIT }
    }

    /// Asks a command, whose program is named by its absolute path, and reads its answer.
    fn ask<T>(&self, command: &[&str], parsed: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, ToolError> {
        let tool = name(command);
        let answer = self.answer(command).map_err(|why| no_answer(&tool, why, self.limit))?;
        if let Some(known) = parsed(&answer.output) {
            unknown::note(&tool, None);
            return Ok(known);
        }
        let first_line = first_line(&answer);
        if first_line.contains("requires Full Disk Access") || first_line.contains("Operation not permitted")
        {
            return Err(ToolError::Refused { tool, first_line });
        }
        unknown::note(&tool, Some(&first_line));
        Err(ToolError::Unknown { tool, first_line })
    }

    /// The same, of an answer that is text.
    fn ask_text<T>(&self, command: &[&str], parsed: impl FnOnce(&str) -> Option<T>) -> Result<T, ToolError> {
        self.ask(command, |output| parsed(&String::from_utf8_lossy(output)))
    }

    fn answer(&self, command: &[&str]) -> Result<Answer, NoAnswer> {
        let nothing = NoAnswer::NotStarted(std::io::ErrorKind::NotFound);
        let (program, arguments) = command.split_first().ok_or(nothing)?;
        let program = self.root.join(program.trim_start_matches('/'));
        let words: Vec<&str> = program.to_str().into_iter().chain(arguments.iter().copied()).collect();
        child::ask(&words, self.limit)
    }
}

/// `nfsstat -m` for `/usr/bin/nfsstat -m -f JSON`: the tool and the first word that follows it.
fn name(command: &[&str]) -> String {
    let program = command.first().and_then(|program| program.rsplit('/').next());
    program.into_iter().chain(command.get(1).copied()).collect::<Vec<_>>().join(" ")
}

fn no_answer(tool: &str, why: NoAnswer, limit: Duration) -> ToolError {
    let tool = tool.to_owned();
    match why {
        NoAnswer::NotStarted(kind) => ToolError::NotStarted { tool, why: kind.to_string() },
        NoAnswer::TimedOut => ToolError::TimedOut { tool, limit },
        NoAnswer::StillRunning => ToolError::StillRunning { tool },
        NoAnswer::TooLong => {
            let first_line = "more than a MiB".to_owned();
            unknown::note(&tool, Some(&first_line));
            ToolError::Unknown { tool, first_line }
        }
    }
}

/// What an answer is shown by: its output, or else its complaint.
fn first_line(answer: &Answer) -> String {
    let line = parse::first_line(&answer.output).or_else(|| parse::first_line(&answer.complaint));
    line.unwrap_or_else(|| match answer.code {
        Some(code) => format!("nothing, and exit code {code}"),
        None => "nothing".to_owned(),
    })
}

/// What was negotiated on a mount. Has the key `dialect` for SMB and `vers` for NFS where known.
///
/// `smbutil` asks the mount with `statfs` first and so may hang (SMBClient smbutil/statshares.c); `nfsstat` does not if
/// it is given no path (NFS nfsstat/nfsstat.c, `do_mountinfo`).
pub fn negotiated_with(tools: &Tools, mount: &Mount) -> Result<Negotiated, ToolError> {
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

fn smb_share_with(tools: &Tools, point: &Path) -> Result<Negotiated, ToolError> {
    let point = point.to_string_lossy();
    tools.ask(&["/usr/bin/smbutil", "statshares", "-m", &point, "-f", "JSON"], parse::smbutil)
}

/// What the SMB session below a mount has counted, with its server. Asks the mount with `statfs`.
pub fn smb_session_with(tools: &Tools, point: &Path) -> Result<SmbSession, ToolError> {
    let asked = point.to_string_lossy();
    let command = ["/usr/bin/smbutil", "multichannel", "-m", &asked, "-i", "-x", "-f", "JSON"];
    let mut sessions = tools.ask(&command, parse::multichannel)?;
    sessions.remove(point).ok_or_else(|| not_listed(&command, point))
}

/// An NFS mount: its parameters, its server, how it is doing. Asks no mount.
pub fn nfs_mount_with(tools: &Tools, point: &Path) -> Result<NfsMount, ToolError> {
    let command = ["/usr/bin/nfsstat", "-m", "-f", "JSON"];
    let mounts = tools.ask(&command, parse::nfsstat)?;
    mounts.into_iter().find(|mount| mount.point == point).ok_or_else(|| not_listed(&command, point))
}

fn not_listed(command: &[&str], what: &Path) -> ToolError {
    ToolError::NotListed { tool: name(command), what: what.to_owned() }
}

const BATTERY: [&str; 3] = ["/usr/bin/pmset", "-g", "batt"];

/// What the machine runs on.
pub fn power_with(tools: &Tools) -> Result<Power, ToolError> {
    tools.ask_text(&BATTERY, parse::pmset)
}

/// Charge of the battery in percent; `None` without one.
pub fn battery_percent_with(tools: &Tools) -> Result<Option<f64>, ToolError> {
    tools.ask_text(&BATTERY, |text| parse::pmset(text).map(|_| parse::pmset_percent(text)))
}

/// Whether Low Power Mode is on; `None` on a Mac that does not have it.
pub fn low_power_with(tools: &Tools) -> Result<Option<bool>, ToolError> {
    tools.ask_text(&["/usr/bin/pmset", "-g"], |text| {
        let told = parse::pmset_low_power(text);
        (told.is_some() || text.contains("power settings")).then_some(told)
    })
}

/// What is recorded of heat.
pub fn heat_with(tools: &Tools) -> Result<Heat, ToolError> {
    tools.ask_text(&["/usr/bin/pmset", "-g", "therm"], parse::pmset_heat)
}

/// Whether Time Machine makes a backup just now.
pub fn backup_running_with(tools: &Tools) -> Result<bool, ToolError> {
    tools.ask_text(&["/usr/bin/tmutil", "status"], parse::tmutil_running)
}

/// Where Time Machine backs up to. Some releases want Full Disk Access for that, and refuse.
pub fn destinations_with(tools: &Tools) -> Result<Vec<String>, ToolError> {
    tools.ask_text(&["/usr/bin/tmutil", "destinationinfo"], parse::tmutil_destinations)
}

/// The same, as facts of the machine. What the tool does not tell is one too: a fact that is missing would say that there
/// is no destination. It is missing only where the tool gave no answer at all.
pub fn destination_facts_with(tools: &Tools) -> BTreeMap<String, String> {
    let key = |place: usize| format!("time-machine-destination {}", place + 1);
    match destinations_with(tools) {
        Ok(found) => found.into_iter().enumerate().map(|(place, found)| (key(place), found)).collect(),
        Err(ToolError::Refused { first_line, .. } | ToolError::Unknown { first_line, .. }) => {
            [("time-machine-destination".to_owned(), format!("not known: {first_line}"))].into()
        }
        Err(_) => BTreeMap::new(),
    }
}

/// The interface that leads to an address, or to the network by default; `None` without a route. An IPv6 address has to be
/// announced (route(8)).
pub fn link_with(tools: &Tools, to: Option<IpAddr>) -> Result<Option<Link>, ToolError> {
    let to = to.map(|to| to.to_canonical());
    let family = to.filter(IpAddr::is_ipv6).map(|_| "-inet6");
    let to = to.map_or_else(|| "default".to_owned(), |to| to.to_string());
    let words = ["/sbin/route", "-n", "get"].into_iter().chain(family).chain([to.as_str()]);
    let route = tools.ask_text(&words.collect::<Vec<_>>(), parse::route_interface);
    match route {
        Ok(name) => Ok(Some(interface_with(tools, name))),
        Err(ToolError::Unknown { tool, first_line }) if first_line.ends_with("not in table") => {
            unknown::note(&tool, None);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What is not told of an interface stays open.
fn interface_with(tools: &Tools, name: String) -> Link {
    let found = tools.ask_text(&["/sbin/ifconfig", &name], parse::ifconfig).ok();
    let is_wireless = found.and_then(|found| found.is_wireless).or_else(|| port_is_wireless(tools, &name));
    let mtu = found.and_then(|found| found.mtu);
    Link { kind: parse::link_kind(&name, None, is_wireless), mtu, megabits: None, name }
}

/// By the name of the port, where the medium does not tell.
fn port_is_wireless(tools: &Tools, device: &str) -> Option<bool> {
    let command = ["/usr/sbin/networksetup", "-listallhardwareports"];
    let ports = tools.ask_text(&command, parse::hardware_ports).ok()?;
    ports.iter().find(|port| port.device == device)?.is_wireless()
}

/// Whether the disk below a local mount spins; `None` where it does not tell.
pub fn spins_with(tools: &Tools, point: &Path) -> Result<Option<bool>, ToolError> {
    let point = point.to_string_lossy();
    tools.ask_text(&["/usr/sbin/diskutil", "info", "-plist", &point], |text| {
        text.contains("<plist").then(|| parse::diskutil_spins(text))
    })
}
