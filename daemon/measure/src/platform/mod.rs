//! The one door to the operating system.
//!
//! Everything that differs between systems, and every `unsafe` block, is in this folder; no `cfg` stands elsewhere.
//! [`unix`] holds what POSIX gives on both, `linux.rs` and `macos.rs` what only one of them gives, under the same
//! names. Reading is here and short; meaning is made of what was read by the pure parsers in [`parse`], which compile
//! on every system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::{Counters, Family, Link, Mount, TargetName};

#[cfg(any(target_os = "macos", test))]
#[allow(dead_code, reason = "its callers on macOS turn to it one after the other")]
mod apple_tools;
#[cfg(any(target_os = "macos", test))]
mod child;
mod identity;
mod mapping;
pub mod parse;
mod readings;
mod unix;
mod unknown;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_check;
#[cfg(target_os = "linux")]
mod linux_counters;
#[cfg(target_os = "linux")]
mod linux_host;
#[cfg(target_os = "linux")]
mod linux_probe;
#[cfg(target_os = "linux")]
use {
    linux as system, linux_check as check, linux_counters as counters, linux_host as host,
    linux_probe as probe,
};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
mod macos_check;
#[cfg(target_os = "macos")]
mod macos_counters;
#[cfg(target_os = "macos")]
mod macos_host;
#[cfg(target_os = "macos")]
mod macos_probe;
#[cfg(target_os = "macos")]
use {
    macos as system, macos_check as check, macos_counters as counters, macos_host as host,
    macos_probe as probe,
};

pub use check::{SYSTEM, TOOLS, ask_tool, connection_count};
pub use counters::{disk_counters, readings, server_address};
pub use host::{
    MountWatch, backup_running, battery_percent, is_hot, link_to, low_power_mode, machine_facts,
    memory_pressure, signal_dbm, spins,
};
pub use identity::{FileIdentity, Source, identity_at, identity_of, link_at};
pub use mapping::SharedMapping;
pub use parse::{Attributes, Entry, EntryKind, FINDER_INFO_BYTES, protocol_below, protocol_with};
pub use probe::{FolderWatch, device_of, thread_cpu_ns, without_read_ahead};
pub use system::{
    FINDER_INFO, LISTS_ATTRIBUTES, NOTE_ATTRIBUTE, OWN_CIRCUMSTANCES, attributes_at, config_directory,
    continuous_ns, data_directory, entries, evict, exclude_from_backup, forbid_remote_hang, full_sync,
    getxattr_at, io_policy, list, log_directory, monotonic_ns, mounts, negotiated, peak_memory_bytes, power,
    prepare_worker, service_directory, set_io_policy, shared_file, system_version,
};
pub use unix::{
    Access, RangeLock, Space, close, create_at, error_name, fsync, getxattr, host_name, is_unsupported,
    load_average, lock_range, make_directory_at, open_at, open_directory, open_directory_at, owner_at,
    page_bytes, raise_descriptor_limit, read_at, remove_directory_at, remove_xattr, rename_at,
    resident_share, set_mode, set_times_at, setxattr, space, truncate, unlink_at, user_id,
    utc_offset_seconds, wall_clock_us, write_at,
};

pub use unknown::{UnknownAnswer, unknown_answers};

/// How long the machine has slept since it was started, in nanoseconds: a clock that goes on beside one that stops.
pub fn asleep_ns() -> u64 {
    continuous_ns().saturating_sub(monotonic_ns())
}

/// The counter that is closest to what this process does on a mount: what its disk did for it, or else the narrowest of
/// the mount's own; `None` where nothing counts.
pub fn counters(target: &TargetName, mount: &Mount) -> Option<Counters> {
    if mount.protocol.family() == Family::Local {
        return disk_counters(std::process::id()).ok();
    }
    let reading = counters::phase_readings(target, mount).into_iter().next()?;
    let with_bytes = |known: &Counters| known.read_bytes.is_some();
    reading.counters.into_iter().flatten().filter(with_bytes).min_by_key(|known| known.covers)
}

/// A file of settings that is larger is none, in bytes.
const LONGEST_SETTINGS: u64 = 64 << 10;

/// What is told in the same way of every system: its version, its link to the network, and what files of settings say.
fn common_facts(link: Option<Link>, files: &[PathBuf]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("system".to_owned(), system_version())]);
    if let Some(Link { name, kind, mtu, megabits }) = link {
        facts.insert("link".to_owned(), format!("{name} ({})", kind.name()));
        facts.extend(mtu.map(|mtu| ("mtu".to_owned(), mtu.to_string())));
        facts.extend(megabits.map(|speed| ("link-megabits".to_owned(), speed.to_string())));
    }
    for file in files {
        let length = std::fs::metadata(file).map_or(0, |found| found.len());
        let Some(text) = std::fs::read_to_string(file).ok().filter(|_| length <= LONGEST_SETTINGS) else {
            continue;
        };
        let named = |(key, value)| (format!("{} {key}", file.display()), value);
        facts.extend(parse::settings(&text).into_iter().map(named));
    }
    facts
}

/// An operating system that longhaul runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
}

/// A tool of the operating system, with what the self-check expects of it.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its name with its arguments, as it is shown.
    pub call: &'static str,
    /// The program and its arguments.
    pub command: &'static [&'static str],
    /// What it is expected to print.
    pub expected: &'static str,
    /// Where that is written.
    pub source: &'static str,
}

/// What a folder listing asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Names and kinds.
    Names,
    /// What a Finder-style view shows: kind, size, times, Finder info.
    FinderAttributes,
}

/// How the kernel ranks a thread's I/O against that of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoPolicy {
    /// As any program.
    Default,
    /// Behind everyone else, as Time Machine's own backup daemon.
    Throttled,
}

impl IoPolicy {
    /// The name that is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Throttled => "throttled",
        }
    }
}
