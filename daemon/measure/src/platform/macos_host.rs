//! The machine around a measurement, on macOS: Apple's own tools as child processes with a limit. Nothing here was run
//! on a Mac by who wrote it.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::apple_tools::{self, Tools};
use super::child::output_within;
use super::parse;
use crate::model::{Link, Mount};

/// How long `sysctl` may take: it asks no share.
const TOOL_LIMIT: Duration = Duration::from_secs(4);

/// Charge of the battery in percent, from `pmset -g batt`.
pub fn battery_percent() -> Option<f64> {
    apple_tools::battery_percent_with(&Tools::system()).ok().flatten()
}

/// Whether Low Power Mode is on, from `pmset -g`.
pub fn low_power_mode() -> Option<bool> {
    apple_tools::low_power_with(&Tools::system()).ok().flatten()
}

/// Whether the machine slows itself down, from what the system publishes of thermal pressure, and from `pmset -g therm`,
/// which tells it on Intel only.
pub fn is_hot() -> Option<bool> {
    let pressure = thermal_pressure().and_then(parse::is_heavy_pressure);
    parse::is_too_hot(pressure, apple_tools::heat_with(&Tools::system()).ok())
}

unsafe extern "C" {
    /// Libnotify notify.h, part of libSystem; libc lacks these three. All return 0 (`NOTIFY_STATUS_OK`) on success.
    fn notify_register_check(name: *const c_char, token: *mut c_int) -> u32;
    fn notify_get_state(token: c_int, state: *mut u64) -> u32;
    fn notify_cancel(token: c_int) -> u32;
}

/// The level of thermal pressure, which `NSProcessInfo.thermalState` is made of too (libkern/OSThermalNotification.h,
/// `kOSThermalNotificationPressureLevelName`). No privilege is needed, and nothing is asked of the hardware.
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

/// Whether Time Machine makes a backup just now, from `tmutil status`.
pub fn backup_running() -> Option<bool> {
    apple_tools::backup_running_with(&Tools::system()).ok()
}

/// macOS tells levels of memory pressure, not a share.
pub fn memory_pressure() -> Option<f64> {
    None
}

/// The interface that leads to a server, or to the network by default. No packet is sent.
pub fn link_to(server: Option<IpAddr>) -> Option<Link> {
    apple_tools::link_with(&Tools::system(), server).ok().flatten()
}

/// What of the kernel's settings may change numbers (handbook section 2.8; the first four read in xnu bsd/netinet/tcp_*.c).
/// Not `net.smb.fs`: its names come and go with the first share that is mounted.
const SETTINGS: [&str; 8] = [
    "kern.ipc.maxsockbuf",
    "net.inet.tcp.autorcvbufmax",
    "net.inet.tcp.autosndbufmax",
    "net.inet.tcp.delayed_ack",
    "net.inet.tcp.mssdflt",
    "net.inet.tcp.recvspace",
    "net.inet.tcp.sendspace",
    "net.inet.tcp.win_scale_factor",
];
/// Files that say how shares are mounted (handbook sections 2.5 and 2.6: nfs.conf(5), nsmb.conf(5)).
const FILES: [&str; 2] = ["/etc/nfs.conf", "/etc/nsmb.conf"];
/// The user's own, below the home folder.
const OWN_FILE: &str = "Library/Preferences/nsmb.conf";

/// What the machine is like, for the journal: facts that change seldom and may change numbers. A name that this system
/// does not have is left out by `sysctl -i`.
pub fn machine_facts() -> BTreeMap<String, String> {
    let own = std::env::home_dir().map(|home| home.join(OWN_FILE));
    let files: Vec<_> = FILES.iter().map(PathBuf::from).chain(own).collect();
    let mut facts = super::common_facts(link_to(None), &files);
    let mut command = vec!["/usr/sbin/sysctl", "-i"];
    command.extend(SETTINGS);
    let settings = output_within(&command, TOOL_LIMIT);
    facts
        .extend(settings.map(|text| parse::named_lines(&String::from_utf8_lossy(&text))).unwrap_or_default());
    facts.extend(apple_tools::destination_facts_with(&Tools::system()));
    facts
}

/// Whether the disk below a local file system spins, from `diskutil info -plist`, asked once for each device: what it says does
/// not change, and it takes a moment.
pub fn spins(mount: &Mount) -> Option<bool> {
    static KNOWN: Mutex<BTreeMap<String, Option<bool>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || apple_tools::spins_with(&Tools::system(), &mount.point).ok().flatten();
    *known.entry(mount.source.clone()).or_insert_with(ask)
}

/// Not known: a Mac tells it through the CoreWLAN framework, and no framework is linked.
pub fn signal_dbm() -> Option<i32> {
    None
}

/// Wakes whenever the mount table changes, without a look at any mount: `EVFILT_FS` (xnu bsd/vfs/vfs_subr.c,
/// `fs_filtops`), which needs no privilege. It says that something changed, not what.
pub struct MountWatch {
    queue: OwnedFd,
}

/// VQ_MOUNT, VQ_UNMOUNT, VQ_DEAD and VQ_UPDATE of xnu bsd/sys/mount.h.
const WANTED: u32 = 0x8 | 0x10 | 0x20 | 0x100;

impl MountWatch {
    /// Watches from now on.
    ///
    /// # Errors
    ///
    /// If the system gives no queue.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no arguments; the answer is checked.
        let number = unsafe { libc::kqueue() };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was opened a moment ago and that nobody else owns.
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

    /// Waits for a change, this long at most (for ever for `None`), and says whether there was one.
    ///
    /// # Errors
    ///
    /// If the system does not let itself be asked.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<bool> {
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut seen = std::mem::MaybeUninit::<libc::kevent>::uninit();
        // SAFETY: no event is read, at most one is written to `seen`; `limit` is null or points to a timespec.
        let answer =
            unsafe { libc::kevent(self.queue.as_raw_fd(), std::ptr::null(), 0, seen.as_mut_ptr(), 1, limit) };
        match answer {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
            }
            count => Ok(count > 0),
        }
    }
}
