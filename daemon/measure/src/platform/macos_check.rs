//! Platform calls on macOS that only the self-check uses. The author never ran this code on a Mac.

use super::macos_counters;
use super::tool_process::{TOOL_TIMEOUT, stdout_with_timeout};
use super::types::{System, Tool};

/// Operating system of this build: macOS.
pub const SYSTEM: System = System::MacOs;

/// Tools that longhaul runs to collect facts, with the same arguments. `smbutil statshares` is not listed
/// here: it needs a share.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "nfsstat -m",
        command: &["/usr/bin/nfsstat", "-m", "-f", "JSON"],
        expected: "an object keyed by source, with Mount Point and Current mount parameters; empty without an NFS mount",
        source: "NFS nfsstat/nfsstat.c:2058, do_mountinfo",
    },
    Tool {
        name: "pmset -g batt",
        command: &["/usr/bin/pmset", "-g", "batt"],
        expected: "a first line that names the power source",
        source: "PowerManagement pmset/pmset.m:2267",
    },
    Tool {
        name: "pmset -g",
        command: &["/usr/bin/pmset", "-g"],
        expected: "settings with lowpowermode or powermode",
        source: "PowerManagement pmset/pmset.m:1144",
    },
    Tool {
        name: "pmset -g therm",
        command: &["/usr/bin/pmset", "-g", "therm"],
        expected: "CPU_Speed_Limit (Intel), or a note that no warning level has been recorded",
        source: "man pmset(1)",
    },
    Tool {
        name: "tmutil status",
        command: &["/usr/bin/tmutil", "status"],
        expected: "a property list with Running",
        source: "published outputs; man tmutil(8) does not have this verb",
    },
    Tool {
        name: "tmutil destinationinfo",
        command: &["/usr/bin/tmutil", "destinationinfo"],
        expected: "Name and Kind of each destination; nothing where Full Disk Access is missing",
        source: "man tmutil(8)",
    },
    Tool {
        name: "route -n get default",
        command: &["/sbin/route", "-n", "get", "default"],
        expected: "interface, if there is a default route",
        source: "network_cmds route.tproj/route.c:1847",
    },
    Tool {
        name: "sysctl -i",
        command: &["/usr/sbin/sysctl", "-i", "net.inet.tcp.delayed_ack", "net.smb.fs.version"],
        expected: "one line for each name that exists",
        source: "man sysctl(8)",
    },
];

/// Returns the output of a tool; `None` if it is missing or does not answer within four seconds.
pub fn run_tool(tool: &Tool) -> Option<Vec<u8>> {
    stdout_with_timeout(tool.command, TOOL_TIMEOUT)
}

/// Returns the number of TCP connections to file servers, or the reason why the kernel does not list them.
pub fn connection_count() -> Result<usize, String> {
    macos_counters::connections().map(|found| found.len())
}
