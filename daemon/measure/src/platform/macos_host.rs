//! State of the machine during a measurement, on macOS, from Apple's own tools, which run as child processes
//! with a timeout, and the processor times of this process. The mount table is watched with `EVFILT_FS`, because
//! `notify` watches only files and folders. The author never ran this code on a Mac.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::apple_tools::{self, Tools};
use super::common_facts::common_facts;
use super::keep_awake::KeepAwake;
use super::macos::clock_ns;
use super::tool_process::{TOOL_TIMEOUT, stdout_with_timeout};
use super::types::{MountEvent, ProcessorTimes, System, Tool};
use crate::parse;
use longhaul_model::{Mount, NetworkLink};
use parking_lot::Mutex;

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

/// Longest wait for the id of the hardware, which the kernel knows soon after it was started.
const HOST_ID_TIMEOUT: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };

/// Returns the id of the hardware, the same after each installation of the system; `None` if the kernel does not tell it (xnu
/// bsd/kern/sys_generic.c:2191). It is confidential: only a salted digest of it may be stored.
pub fn host_id() -> Option<String> {
    let mut id = [0_u8; 16];
    // SAFETY: a `uuid_t` has 16 bytes, which are written to `id`; the timeout is only read.
    let status = unsafe { libc::gethostuuid(id.as_mut_ptr(), &HOST_ID_TIMEOUT) };
    if status == 0 { parse::machine_id(&format!("{:032x}", u128::from_be_bytes(id))) } else { None }
}

/// Returns the battery charge in percent, from `pmset -g batt`.
pub fn battery_percent() -> Option<f64> {
    apple_tools::battery_percent_with(&Tools::system()).ok().flatten()
}

/// Prevents idle sleep of the Mac during a round on mains power: see [`KeepAwake`].
pub fn keep_awake() -> Option<KeepAwake> {
    apple_tools::keep_awake_with(&Tools::system())
}

/// Returns whether Low Power Mode is on, from `pmset -g`.
pub fn low_power_mode() -> Option<bool> {
    apple_tools::low_power_with(&Tools::system()).ok().flatten()
}

/// Returns whether the Mac is in a DarkWake: awake for some work, and about to sleep again.
pub fn is_dark_wake() -> Option<bool> {
    apple_tools::dark_wake_with(&Tools::system()).ok().flatten()
}

/// Returns whether the machine throttles itself, from the thermal pressure that the system publishes, and
/// from `pmset -g therm`, which reports throttling on Intel only.
pub fn is_hot() -> Option<bool> {
    let pressure = thermal_pressure().and_then(parse::is_heavy_pressure);
    parse::is_too_hot(pressure, apple_tools::thermal_state_with(&Tools::system()).ok())
}

unsafe extern "C" {
    /// Function of Libnotify (notify.h), part of libSystem; the libc crate lacks this one and the next two.
    /// All three return 0 (`NOTIFY_STATUS_OK`) on success.
    fn notify_register_check(name: *const c_char, token: *mut c_int) -> u32;
    fn notify_get_state(token: c_int, state: *mut u64) -> u32;
    fn notify_cancel(token: c_int) -> u32;
}

/// Returns the level of thermal pressure, from which `NSProcessInfo.thermalState` is derived too
/// (Libc include/libkern/OSThermalNotification.h:67). No privilege is needed, and
/// the hardware is not queried.
fn thermal_pressure() -> Option<u64> {
    let (mut token, mut state) = (0, 0);
    // SAFETY: the name ends in NUL, and the token is written to an integer.
    if unsafe { notify_register_check(c"com.apple.system.thermalpressurelevel".as_ptr(), &mut token) } != 0 {
        return None;
    }
    // SAFETY: a token that was registered a moment ago; the state is written to an integer of 64 bits.
    let status = unsafe { notify_get_state(token, &mut state) };
    // SAFETY: the same token, which is not used again.
    unsafe { notify_cancel(token) };
    (status == 0).then_some(state)
}

/// Returns whether a Time Machine backup is running, from `tmutil status`.
pub fn backup_running() -> Option<bool> {
    apple_tools::backup_running_with(&Tools::system()).ok()
}

/// Returns the interface that leads to a server, or that of the default route. No packet is sent.
pub fn link_to(server: Option<IpAddr>) -> Option<NetworkLink> {
    apple_tools::link_with(&Tools::system(), server).ok().flatten()
}

/// Kernel settings that may change results (docs/macos.md; the first four: xnu bsd/kern/uipc_socket2.c:2973,
/// bsd/netinet/tcp_input.c:219, tcp_output.c:241, tcp_input.c:162). `net.smb.fs` is not among them: its names
/// come and go with the first share that is mounted.
const KERNEL_SETTINGS: [&str; 8] = [
    "kern.ipc.maxsockbuf",
    "net.inet.tcp.autorcvbufmax",
    "net.inet.tcp.autosndbufmax",
    "net.inet.tcp.delayed_ack",
    "net.inet.tcp.mssdflt",
    "net.inet.tcp.recvspace",
    "net.inet.tcp.sendspace",
    "net.inet.tcp.win_scale_factor",
];
/// Configuration files for mounting shares (nfs.conf(5), nsmb.conf(5)).
const MOUNT_CONFIG_FILES: [&str; 2] = ["/etc/nfs.conf", "/etc/nsmb.conf"];
/// Configuration file of the user for mounting SMB shares, relative to the home folder.
const OWN_FILE: &str = "Library/Preferences/nsmb.conf";

/// Returns facts about the machine for the event log: values that change seldom and may change results.
/// `sysctl -i` leaves out names that this system does not have.
pub fn machine_facts() -> BTreeMap<String, String> {
    let own = std::env::home_dir().map(|home| home.join(OWN_FILE));
    let files: Vec<_> = MOUNT_CONFIG_FILES.iter().map(PathBuf::from).chain(own).collect();
    let mut facts = common_facts(link_to(None), &files);
    let mut command = vec!["/usr/sbin/sysctl", "-i"];
    command.extend(KERNEL_SETTINGS);
    let settings = stdout_with_timeout(&command, TOOL_TIMEOUT);
    facts.extend(
        settings.map(|text| parse::colon_separated(&String::from_utf8_lossy(&text))).unwrap_or_default(),
    );
    facts.extend(apple_tools::destination_facts_with(&Tools::system()));
    facts
}

/// Time after which `diskutil` runs again for a device of which it told nothing.
const DISKUTIL_RETRY: Duration = Duration::from_mins(10);

/// Returns whether the disk of a local file system is rotational, from `diskutil info -plist`. The tool runs
/// until it has answered once for each device, because its answer does not change and takes a moment.
pub fn is_rotational(mount: &Mount) -> Option<bool> {
    static KNOWN: Mutex<BTreeMap<String, (Instant, Option<bool>)>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock();
    let is_usable =
        |(at, answer): &&(Instant, Option<bool>)| answer.is_some() || at.elapsed() < DISKUTIL_RETRY;
    if let Some((_, answer)) = known.get(&mount.source).filter(is_usable) {
        return *answer;
    }
    let answer = apple_tools::is_rotational_with(&Tools::system(), &mount.point).ok().flatten();
    known.insert(mount.source.clone(), (Instant::now(), answer));
    answer
}

/// Returns `None`: macOS reports the signal strength through the CoreWLAN framework, and no framework is
/// linked.
pub fn signal_dbm() -> Option<i32> {
    None
}

/// Returns no threads, because the times of threads of the kernel are for root (`task_for_pid(0)`).
pub fn answer_threads() -> Vec<u32> {
    vec![]
}

/// Returns the processor time of this process until now (`CLOCK_PROCESS_CPUTIME_ID`; Libc gen/clock_gettime.c:94).
pub fn processor_times(_: &[u32]) -> ProcessorTimes {
    let used_us = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID) / 1000;
    ProcessorTimes { used_us: Some(used_us), ..ProcessorTimes::default() }
}

/// Watch that reports changes of the mount table without accessing any mount, with `EVFILT_FS` (xnu
/// bsd/vfs/vfs_subr.c:5140, `fs_filtops`), which needs no privilege. It reports that something changed, not what.
pub struct MountWatch {
    queue: OwnedFd,
}

/// Mount events that are watched: VQ_MOUNT, VQ_UNMOUNT, VQ_DEAD and VQ_UPDATE of xnu bsd/sys/mount.h:507.
const WANTED: u32 = 0x8 | 0x10 | DEAD | 0x100;
/// VQ_DEAD. smbfs reports it after 60 seconds without its server for a soft mount and 600 for a hard one (SMBClient
/// kernel/netsmb/smb_conn.h:778-779), and the mount is then unmounted by force (kernel/smbfs/smbfs_vfsops.c:558-576).
const DEAD: u32 = 0x20;

impl MountWatch {
    /// Starts to watch the mount table.
    ///
    /// # Errors
    ///
    /// If the kernel cannot create an event queue.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no arguments; the answer is checked.
        let number = unsafe { libc::kqueue() };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was opened a moment ago, and nothing else owns it.
        let queue = unsafe { OwnedFd::from_raw_fd(number) };
        let wanted = libc::kevent {
            ident: 0,
            filter: libc::EVFILT_FS,
            flags: libc::EV_ADD | libc::EV_CLEAR,
            fflags: WANTED,
            data: 0,
            udata: std::ptr::null_mut(),
        };
        // SAFETY: one event is read from `wanted`, none is written.
        let answer =
            unsafe { libc::kevent(queue.as_raw_fd(), &wanted, 1, std::ptr::null_mut(), 0, std::ptr::null()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { queue }) }
    }

    /// Waits for an event, at most for this time (without a limit for `None`), and returns it; `None` if there was none.
    ///
    /// # Errors
    ///
    /// If the `kevent` call fails.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<Option<MountEvent>> {
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut seen = std::mem::MaybeUninit::<libc::kevent>::zeroed();
        let queue = self.queue.as_raw_fd();
        // SAFETY: no event is read, at most one is written to `seen`, for which zeroes are valid; `limit` is null or points to a
        // timespec.
        let (answer, seen) = unsafe {
            (libc::kevent(queue, std::ptr::null(), 0, seen.as_mut_ptr(), 1, limit), seen.assume_init())
        };
        match answer {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) }
            }
            0 => Ok(None),
            // Several events may have come together.
            _ if seen.fflags & DEAD != 0 => Ok(Some(MountEvent::Dead)),
            _ => Ok(Some(MountEvent::Changed)),
        }
    }
}
