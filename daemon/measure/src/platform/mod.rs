//! Platform layer: the only module that accesses the operating system directly.
//!
//! Everything that differs between systems, and every `unsafe` block, is in this folder; no `cfg` for a
//! system is used elsewhere. `unix` holds the calls that POSIX provides on both systems; `linux.rs` and
//! `macos.rs` hold those that only one of them provides, under the same names. Code here reads and is short;
//! the pure parsers in [`crate::parse`], which compile on every system, interpret what was read.

use longhaul_model::{CounterSource, Counters, Mount, ProtocolFamily, TargetName};

#[cfg(any(target_os = "macos", test))]
#[allow(dead_code, reason = "macOS does not call every function yet")]
mod apple_tools;
mod common_facts;
mod copy;
mod counter_mapping;
mod file_facts;
mod file_features;
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "used on macOS and in tests only"))]
mod keep_awake;
mod mapping;
mod paths;
mod request_totals;
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "macOS uses more of it"))]
mod tool_process;
mod types;
mod unix;
mod unrecognized_output;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_counters;
#[cfg(target_os = "linux")]
mod linux_host;
#[cfg(target_os = "linux")]
mod linux_probe;
#[cfg(target_os = "linux")]
use {linux as system, linux_counters as counters, linux_host as host, linux_probe as probe};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
mod macos_counters;
#[cfg(target_os = "macos")]
mod macos_host;
#[cfg(target_os = "macos")]
mod macos_probe;
#[cfg(target_os = "macos")]
use {macos as system, macos_counters as counters, macos_host as host, macos_probe as probe};

pub use crate::parse::{
    Attributes, Entry, EntryKind, FINDER_INFO_BYTES, protocol_at, with_negotiated_version,
};
pub use copy::{CopyRange, copy_range, share_blocks};
pub use counters::{connection_count, counts_requests, disk_counters, read_counters, server_address};
pub use file_facts::{FileFacts, open_file_facts, server_facts_at};
pub use file_features::{
    ACCESS_CONTROL_LIST, FINDER_TAGS, RESOURCE_FORK, XattrValue, lock_open_file, preallocate, read_link_at,
    set_created, symlink_at, write_mapped,
};
pub use host::{
    MountWatch, SYSTEM, TOOLS, answer_threads, backup_running, battery_percent, host_id, is_dark_wake,
    is_hot, is_rotational, keep_awake, link_to, low_power_mode, machine_facts, processor_times, run_tool,
    signal_dbm,
};
pub use keep_awake::KeepAwake;
pub use mapping::SharedMapping;
pub use paths::{
    NameBelow, NameChange, change_name_below, create_below, open_below, open_folder_below,
    open_path_only_below, read_attributes_but_access_time, read_handle_attributes, set_handle_times,
};
pub use probe::{FolderWatch, device_of, disable_read_ahead, thread_cpu_ns};
pub use system::{
    FINDER_INFO, LISTS_ATTRIBUTES, TEST_XATTR, attributes_at, can_trust_link_counts, config_directory,
    continuous_ns, data_directory, entries, evict, exclude_from_backup, forbid_remote_hang, full_sync,
    getxattr_at, io_policy, list, log_directory, managed_config_directory, monotonic_ns, mounts, negotiated,
    peak_memory_bytes, power, service_directory, set_io_policy, set_times_at, shared_file, system_version,
};
pub use tool_process::{ToolFailure, ToolOutput, run_with_timeout};
pub use types::{IoPolicy, ListingFields, MountEvent, PhaseCounters, ProcessorTimes, System, Tool};
pub use unix::{
    Access, ByteRange, KEY_ERRORS, LockAction, Space, close, create_at, error_name, fsync, getxattr,
    host_name, ignores_signal, is_unsupported, link_at, load_average, lock_range, make_directory_at, open_at,
    open_directory, open_directory_at, owner_at, page_bytes, raise_descriptor_limit, read_at,
    remove_directory_at, remove_xattr, rename_at, resident_share, set_mode, setxattr, space, truncate,
    unlink_at, user_id, wall_clock, write_at,
};

pub use unrecognized_output::{UnrecognizedOutput, unrecognized_outputs};

/// Returns the time that the machine has slept since it was started, in nanoseconds: the difference of a
/// clock that continues during sleep and one that stops.
pub fn asleep_ns() -> u64 {
    continuous_ns().saturating_sub(monotonic_ns())
}

/// Returns the counters of a mount before or after a phase. The narrowest ones are those of this process on a local disk,
/// otherwise the narrowest ones of the mount that count bytes.
pub fn phase_counters(mount: &Mount) -> PhaseCounters {
    if mount.protocol.family() == ProtocolFamily::Local {
        return PhaseCounters {
            narrowest: disk_counters(std::process::id()).ok(),
            ..PhaseCounters::default()
        };
    }
    let known = counters::read_phase_counters(mount);
    let first = |wanted: &dyn Fn(&&Counters) -> bool| known.iter().find(wanted).cloned();
    PhaseCounters {
        requests: first(&|counters| counters.request_totals.answered.is_some()),
        connections: first(&|counters| counters.source == CounterSource::Connections),
        narrowest: known
            .iter()
            .filter(|counters| counters.read_bytes.is_some())
            .min_by_key(|counters| counters.scope)
            .cloned(),
    }
}

/// Returns the counters of the connections to the server of a mount, without any tool; `None` if the system does not
/// list them.
pub fn connection_counters(target: &TargetName, mount: &Mount) -> Option<Counters> {
    let reading = read_counters(&[(target.clone(), mount.clone())]).into_iter().next()?;
    reading.counters.into_iter().flatten().find(|counters| counters.source == CounterSource::Connections)
}
