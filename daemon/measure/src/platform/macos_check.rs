//! What only the self-check asks of macOS. None of it was run on a Mac by its author.

use std::time::Duration;

use super::child::output_within;
use super::{System, Tool, macos_counters};

/// macOS.
pub const SYSTEM: System = System::MacOs;

/// How long a tool may take.
const TOOL_LIMIT: Duration = Duration::from_secs(4);

/// Every tool that longhaul asks for facts, as it asks them. `smbutil statshares` is not here: it needs a share.
pub const TOOLS: &[Tool] = &[
    Tool {
        call: "nfsstat -m",
        command: &["/usr/bin/nfsstat", "-m", "-f", "JSON"],
        expected: "an object by source with Mount Point and Current mount parameters; empty without an NFS mount",
        source: "NFS nfsstat/nfsstat.c, do_mountinfo",
    },
    Tool {
        call: "nfsstat -c",
        command: &["/usr/bin/nfsstat", "-c", "-f", "JSON"],
        expected: "Client Info with RPC Info, all numbers",
        source: "NFS nfsstat/nfsstat.c, printer.c",
    },
    Tool {
        call: "pmset -g batt",
        command: &["/usr/bin/pmset", "-g", "batt"],
        expected: "a first line that names the power source",
        source: "PowerManagement pmset/pmset.c",
    },
    Tool {
        call: "pmset -g",
        command: &["/usr/bin/pmset", "-g"],
        expected: "settings with lowpowermode or powermode",
        source: "PowerManagement pmset/pmset.c",
    },
    Tool {
        call: "pmset -g therm",
        command: &["/usr/bin/pmset", "-g", "therm"],
        expected: "CPU_Speed_Limit (Intel), or a note that no warning level has been recorded",
        source: "man pmset(1)",
    },
    Tool {
        call: "tmutil status",
        command: &["/usr/bin/tmutil", "status"],
        expected: "a property list with Running",
        source: "man tmutil(8)",
    },
    Tool {
        call: "tmutil destinationinfo",
        command: &["/usr/bin/tmutil", "destinationinfo"],
        expected: "Name and Kind of each destination; nothing where Full Disk Access is missing",
        source: "man tmutil(8)",
    },
    Tool {
        call: "route -n get default",
        command: &["/sbin/route", "-n", "get", "default"],
        expected: "interface, if there is a default route",
        source: "network_cmds route.tproj/route.c",
    },
    Tool {
        call: "sysctl -i",
        command: &["/usr/sbin/sysctl", "-i", "net.inet.tcp.delayed_ack", "net.smb.fs.version"],
        expected: "a line for each name that there is",
        source: "man sysctl(8)",
    },
];

/// What a tool prints; `None` if it is not there or gives no answer within four seconds.
pub fn ask_tool(tool: &Tool) -> Option<Vec<u8>> {
    output_within(tool.command, TOOL_LIMIT)
}

/// How many TCP connections there are, or why the kernel does not list them.
pub fn connection_count() -> Result<usize, String> {
    macos_counters::connections().map(|found| found.len())
}
