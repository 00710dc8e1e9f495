//! Types that the code for both systems shares.

use longhaul_model::Counters;

/// Operating system that longhaul runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
}

/// Tool of the operating system, with the output that the self-check expects.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Name of the tool with its arguments, as shown to users.
    pub name: &'static str,
    /// Program and its arguments.
    pub command: &'static [&'static str],
    /// Description of the expected output.
    pub expected: &'static str,
    /// Source of the expectation, such as a man page.
    pub source: &'static str,
}

/// Event of the mount table that a watch reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountEvent {
    /// Something was mounted, unmounted or changed.
    Changed,
    /// A file system has given its server up, so that the system unmounts it by force. Only a Mac reports it.
    Dead,
}

/// Fields that a folder listing requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingFields {
    /// Names and kinds of the entries.
    Names,
    /// Fields of a Finder-style view: kind, size, times, Finder info.
    FinderAttributes,
}

/// Priority of I/O in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoPolicy {
    /// Default priority, the same as for any program.
    Default,
    /// Lower priority than all other programs, as used by Time Machine's own backup daemon.
    Throttled,
}

impl IoPolicy {
    /// Returns the name that is stored and shown to users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Throttled => "throttled",
        }
    }
}

/// Counters of a target at the start or the end of a phase.
#[derive(Debug, Clone, Default)]
pub struct PhaseCounters {
    /// Counters with the narrowest scope that count bytes; `None` if there are none.
    pub narrowest: Option<Counters>,
    /// Counters that have times of requests; `None` if there are none.
    pub requests: Option<Counters>,
    /// Counters of the TCP connections to the server; `None` if there are none.
    pub connections: Option<Counters>,
}

/// Processor times of this machine that belong to a target, since its start, in microseconds. `None` means that the system
/// does not report the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTimes {
    /// Processor time of this process.
    pub used_us: Option<u64>,
    /// Time in which a thread of this process was ready and waited for a processor. Threads that have ended are not
    /// included.
    pub waited_us: Option<u64>,
    /// Both times together of threads of the kernel that handle answers of servers.
    pub kernel_us: Option<u64>,
}
