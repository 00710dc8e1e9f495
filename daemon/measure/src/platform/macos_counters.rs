//! Counters on macOS, from `sysctl` and from Apple's own tools, which run as child processes with a timeout.
//! The author never ran this code on a Mac.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::net::IpAddr;

use super::apple_tools::{self, Tools};
use super::counter_mapping::{SourceAnswers, ports, smb_session_counters};
use crate::parse::{self, Connection, InterfaceCounters};
use longhaul_model::{
    CounterReading, CounterScope, CounterSource, CounterUnavailable, Counters, Mount, Protocol, TargetName,
};

/// Maximum size of a sysctl value in bytes. The connections or interfaces of any machine take less.
const LARGEST_ANSWER: usize = 16 << 20;

/// Reads the counters that the kernel keeps and returns the readings of each target and of the machine. No
/// process is started and no share is accessed (`pcblist_n` and `ifmib` are memory of the kernel), so that a
/// reading every few seconds costs next to nothing and leaves a sleeping NAS asleep. If the address of a
/// server is not known, all connections to its port count.
pub fn read_counters(targets: &[(TargetName, Mount)]) -> Vec<CounterReading> {
    let any = |wanted: fn(&Protocol) -> bool| targets.iter().any(|(_, mount)| wanted(&mount.protocol));
    let answers = SourceAnswers {
        connections: any(|protocol| !ports(protocol).is_empty()).then(connections),
        interfaces: Some(interfaces()),
        ..SourceAnswers::default()
    };
    answers.readings(targets)
}

/// Reads the counters of a mount before or after a phase: those of its connections, and for SMB those of
/// its session. `smbutil` first calls `statfs` on the share (SMBClient smbutil/multichannel.c:410), so only the
/// process that may access the target may call this function.
pub fn read_phase_counters(mount: &Mount) -> Vec<Counters> {
    let answers = SourceAnswers {
        connections: (!ports(&mount.protocol).is_empty()).then(connections),
        ..SourceAnswers::default()
    };
    let is_smb = matches!(mount.protocol, Protocol::Smb(_));
    let session =
        is_smb.then(|| apple_tools::smb_session_with(&Tools::system(), &mount.point).ok()).flatten();
    let of_session = session.map(|session| smb_session_counters(&session, mount));
    of_session.into_iter().chain(answers.mount_counters(mount).into_iter().flatten()).collect()
}

/// Returns whether the requests on a mount are counted by kind, so that its use can be counted: never, because
/// `nfsstat -c` counts all mounts together and `smbutil` does not count requests.
pub fn counts_requests(_: &Protocol) -> bool {
    false
}

/// Returns the address of a mount's server from `smbutil multichannel` or `nfsstat -m`; `None` if they do not
/// report it. Only the process that may access the target may call this function, because `smbutil` accesses
/// the share. `nfsstat -m` accesses no mount (NFS nfsstat/nfsstat.c:2058, `do_mountinfo`).
pub fn server_address(mount: &Mount) -> Option<IpAddr> {
    let tools = Tools::system();
    match mount.protocol {
        Protocol::Smb(_) => apple_tools::smb_session_with(&tools, &mount.point).ok()?.server,
        Protocol::Nfs(_) => apple_tools::nfs_mount_with(&tools, &mount.point).ok()?.server,
        Protocol::Afp
        | Protocol::Webdav
        | Protocol::Sftp
        | Protocol::Fuse(_)
        | Protocol::Local(_)
        | Protocol::Other(_) => None,
    }
}

/// Returns the bytes that a process read from and wrote to local disks, without those that the cache served:
/// `ri_diskio_bytesread` and `ri_diskio_byteswritten` (xnu bsd/sys/resource.h:242, `rusage_info_v2`).
///
/// # Errors
///
/// If the process does not exist or belongs to another user.
pub fn disk_counters(process: u32) -> Result<Counters, CounterUnavailable> {
    let unavailable = |error: io::Error| CounterUnavailable {
        source: CounterSource::Disk,
        reason: format!("the system does not report disk I/O: {error}"),
    };
    let number = c_int::try_from(process).map_err(|_| unavailable(io::ErrorKind::InvalidInput.into()))?;
    let mut facts = std::mem::MaybeUninit::<libc::rusage_info_v2>::zeroed();
    // SAFETY: the kernel writes one `rusage_info_v2`, which is what this flavor asks for.
    let answer = unsafe { libc::proc_pid_rusage(number, libc::RUSAGE_INFO_V2, facts.as_mut_ptr().cast()) };
    if answer != 0 {
        return Err(unavailable(io::Error::last_os_error()));
    }
    // SAFETY: plain integers, zeroed before and filled in by the kernel.
    let facts = unsafe { facts.assume_init() };
    Ok(Counters {
        read_bytes: Some(facts.ri_diskio_bytesread),
        written_bytes: Some(facts.ri_diskio_byteswritten),
        ..Counters::new(CounterSource::Disk, CounterScope::Process, process.to_string())
    })
}

/// Returns the TCP connections in `net.inet.tcp.pcblist_n`, which needs no privilege (xnu
/// bsd/netinet/in_pcblist.c:292; docs/macos.md#tools).
fn connections() -> Result<Vec<Connection>, String> {
    let list = by_name(c"net.inet.tcp.pcblist_n");
    list.map(|list| parse::pcblist(&list))
        .map_err(|error| format!("the kernel does not list connections: {error}"))
}

/// Returns the number of TCP connections to file servers, or the reason why the kernel does not list them.
pub fn connection_count() -> Result<usize, String> {
    connections().map(|found| found.len())
}

/// Returns the counters of every network interface, read by its number: `{CTL_NET, PF_LINK, NETLINK_GENERIC,
/// IFMIB_IFDATA, number, IFDATA_GENERAL}` (xnu bsd/net/if_mib.h:65; exact and in 64 bits; docs/macos.md#tools).
fn interfaces() -> Result<Vec<InterfaceCounters>, String> {
    const SYSTEM_COUNT: [c_int; 5] = [4, 18, 0, 1, 1];
    let count =
        by_number(&SYSTEM_COUNT).map_err(|error| format!("the kernel does not count interfaces: {error}"))?;
    let count = count.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes)).clamp(0, 1024);
    // A number without an interface belonged to an interface that was removed.
    let interface = |number: i32| parse::ifmib(&by_number(&[4, 18, 0, 2, number, 1]).ok()?);
    Ok((1..=count).filter_map(interface).collect())
}

/// Returns the value of a sysctl, given its name.
fn by_name(name: &CStr) -> io::Result<Vec<u8>> {
    grown(|buffer, length| {
        // SAFETY: the name ends with NUL; the kernel writes at most `*length` bytes to `buffer`, or only the
        // length if it is null, and nothing is set.
        unsafe { libc::sysctlbyname(name.as_ptr(), buffer, length, std::ptr::null_mut(), 0) }
    })
}

/// Returns the value of a sysctl, given its numbers.
fn by_number(numbers: &[c_int]) -> io::Result<Vec<u8>> {
    let mut numbers = numbers.to_vec();
    grown(|buffer, length| {
        // SAFETY: the length is that of `numbers`; the kernel writes at most `*length` bytes to `buffer`, or
        // only the length if it is null, and nothing is set.
        unsafe {
            libc::sysctl(numbers.as_mut_ptr(), numbers.len() as u32, buffer, length, std::ptr::null_mut(), 0)
        }
    })
}

/// Queries the length and then the value, with a larger buffer as long as the value grew in between.
fn grown(mut query: impl FnMut(*mut c_void, *mut usize) -> c_int) -> io::Result<Vec<u8>> {
    let mut wanted = 0;
    if query(std::ptr::null_mut(), &mut wanted) != 0 {
        return Err(io::Error::last_os_error());
    }
    while wanted <= LARGEST_ANSWER {
        let mut buffer = vec![0u8; wanted];
        let mut length = buffer.len();
        if query(buffer.as_mut_ptr().cast(), &mut length) == 0 {
            buffer.truncate(length);
            return Ok(buffer);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOMEM) {
            return Err(error);
        }
        wanted = wanted.saturating_mul(2).max(4096);
    }
    Err(io::ErrorKind::FileTooLarge.into())
}
