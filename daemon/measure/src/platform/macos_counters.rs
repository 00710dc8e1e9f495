//! Counters, on macOS: `sysctl`, and Apple's own tools as child processes with a limit. Nothing here was run on a Mac by
//! who wrote it.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::net::IpAddr;

use super::apple_tools::{self, Tools};
use super::parse::{self, Connection, InterfaceCounters};
use super::readings::{Said, ports};
use crate::model::{Counters, Covers, Mount, Protocol, Reading, Source, TargetName, Unread};

/// More than the connections or interfaces of any machine take.
const LARGEST_ANSWER: usize = 16 << 20;

/// One look at the counters that the kernel keeps: what they say of each target, and of the machine. No process is started
/// and no share is asked (`pcblist_n` and `ifmib` are memory of the kernel), so that it costs next to nothing every few
/// seconds and leaves a sleeping NAS asleep. Where the address of a server is not known, all connections to the port count.
pub fn readings(targets: &[(TargetName, Mount)]) -> Vec<Reading> {
    let any = |wanted: fn(&Protocol) -> bool| targets.iter().any(|(_, mount)| wanted(&mount.protocol));
    let said = Said {
        connections: any(|protocol| !ports(protocol).is_empty()).then(connections),
        interfaces: Some(interfaces()),
        ..Said::default()
    };
    said.readings(targets)
}

/// The counters of one target around a phase: the same, and for SMB those of its session. `smbutil` asks the share itself
/// first with `statfs` (SMBClient smbutil/multichannel.c), so this is for the process alone that may touch the target.
pub fn phase_readings(target: &TargetName, mount: &Mount) -> Vec<Reading> {
    let is_smb = matches!(mount.protocol, Protocol::Smb(_));
    let said = Said {
        connections: (!ports(&mount.protocol).is_empty()).then(connections),
        sessions: is_smb.then(|| {
            let session = apple_tools::smb_session_with(&Tools::system(), &mount.point);
            session.map(|session| [(mount.point.clone(), session)].into()).map_err(|error| error.to_string())
        }),
        ..Said::default()
    };
    said.readings(&[(target.clone(), mount.clone())])
}

/// The address of a mount's server, from `smbutil multichannel` or `nfsstat -m`; `None` where they do not say. For the
/// process alone that may touch the target, as above; `nfsstat -m` asks no mount (NFS nfsstat/nfsstat.c, `do_mountinfo`).
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

/// What a process read from and wrote to local disks, past the cache: `ri_diskio_bytesread` and its like
/// (xnu bsd/sys/resource.h, `rusage_info_v2`).
///
/// # Errors
///
/// If the process is gone or another person's.
pub fn disk_counters(process: u32) -> Result<Counters, Unread> {
    let unread =
        |error: io::Error| Unread { source: Source::Disk, why: format!("the system does not say: {error}") };
    let number = c_int::try_from(process).map_err(|_| unread(io::ErrorKind::InvalidInput.into()))?;
    let mut facts = std::mem::MaybeUninit::<libc::rusage_info_v2>::zeroed();
    // SAFETY: the kernel writes one `rusage_info_v2`, which is what this flavor asks for.
    let answer = unsafe { libc::proc_pid_rusage(number, libc::RUSAGE_INFO_V2, facts.as_mut_ptr().cast()) };
    if answer != 0 {
        return Err(unread(io::Error::last_os_error()));
    }
    // SAFETY: plain integers, zeroed before and filled in by the kernel.
    let facts = unsafe { facts.assume_init() };
    Ok(Counters {
        read_bytes: Some(facts.ri_diskio_bytesread),
        written_bytes: Some(facts.ri_diskio_byteswritten),
        ..Counters::of(Source::Disk, Covers::Process, process.to_string())
    })
}

/// `net.inet.tcp.pcblist_n`, which needs no privilege (handbook 3.1).
pub(super) fn connections() -> Result<Vec<Connection>, String> {
    let list = by_name(c"net.inet.tcp.pcblist_n");
    list.map(|list| parse::pcblist(&list))
        .map_err(|error| format!("the kernel does not list connections: {error}"))
}

/// Every interface by its number: `{CTL_NET, PF_LINK, NETLINK_GENERIC, IFMIB_IFDATA, number, IFDATA_GENERAL}` (xnu
/// bsd/net/if_mib.h; handbook 3.3: exact, and in 64 bits).
fn interfaces() -> Result<Vec<InterfaceCounters>, String> {
    const SYSTEM_COUNT: [c_int; 5] = [4, 18, 0, 1, 1];
    let count =
        by_number(&SYSTEM_COUNT).map_err(|error| format!("the kernel does not count interfaces: {error}"))?;
    let count = count.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes)).clamp(0, 1024);
    // a number without an interface is one that was taken away
    let interface = |number: i32| parse::ifmib(&by_number(&[4, 18, 0, 2, number, 1]).ok()?);
    Ok((1..=count).filter_map(interface).collect())
}

/// What a sysctl says by name.
fn by_name(name: &CStr) -> io::Result<Vec<u8>> {
    grown(|buffer, length| {
        // SAFETY: the name ends with NUL; the kernel writes at most `*length` bytes to `buffer`, or only the length if it is
        // null, and nothing is set.
        unsafe { libc::sysctlbyname(name.as_ptr(), buffer, length, std::ptr::null_mut(), 0) }
    })
}

/// What a sysctl says by its numbers.
fn by_number(numbers: &[c_int]) -> io::Result<Vec<u8>> {
    let mut numbers = numbers.to_vec();
    grown(|buffer, length| {
        // SAFETY: as many numbers as are said; the kernel writes at most `*length` bytes to `buffer`, or only the length if
        // it is null, and nothing is set.
        unsafe {
            libc::sysctl(numbers.as_mut_ptr(), numbers.len() as u32, buffer, length, std::ptr::null_mut(), 0)
        }
    })
}

/// Asks for the length and then for the content, with more room for as long as it grew in between.
fn grown(mut ask: impl FnMut(*mut c_void, *mut usize) -> c_int) -> io::Result<Vec<u8>> {
    let mut wanted = 0;
    if ask(std::ptr::null_mut(), &mut wanted) != 0 {
        return Err(io::Error::last_os_error());
    }
    while wanted <= LARGEST_ANSWER {
        let mut buffer = vec![0u8; wanted];
        let mut length = buffer.len();
        if ask(buffer.as_mut_ptr().cast(), &mut length) == 0 {
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
