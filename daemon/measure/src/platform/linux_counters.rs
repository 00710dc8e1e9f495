//! Counters, on Linux: files of `/proc` and one socket to the kernel. None of it asks a server.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::FromRawFd;

use super::parse::{self, Connection};
use super::readings::{Answer, Said, ports};
use crate::model::{Counters, Covers, Mount, Protocol, Reading, Source, TargetName, Unread};

/// More than any of these files holds: a mount table of thousands of NFS mounts.
const LARGEST_FILE: u64 = 8 << 20;

/// One look at all counters: what they say of each target, and of the machine. Each source is read once however many
/// targets there are; no target is touched, and nothing here waits for a server.
pub fn readings(targets: &[(TargetName, Mount)]) -> Vec<Reading> {
    let any = |wanted: fn(&Protocol) -> bool| targets.iter().any(|(_, mount)| wanted(&mount.protocol));
    let said = Said {
        mountstats: any(|protocol| matches!(protocol, Protocol::Nfs(_)))
            .then(|| Ok(parse::mountstats(&file("/proc/self/mountstats")?))),
        cifs: any(|protocol| matches!(protocol, Protocol::Smb(_))).then(cifs),
        connections: connections(targets),
        interfaces: Some(text("/proc/net/dev").map(|table| parse::net_dev(&table))),
        ..Said::default()
    };
    said.readings(targets)
}

/// The counters of one target around a phase: none asks the target, so they are those of any time.
pub fn phase_readings(target: &TargetName, mount: &Mount) -> Vec<Reading> {
    readings(&[(target.clone(), mount.clone())])
}

/// Nothing to ask: the mount table has the address where there is one.
pub fn server_address(mount: &Mount) -> Option<IpAddr> {
    mount.server
}

/// What a process read from and wrote to local disks, from `/proc/PID/io`: reads past the page cache, and writes as they
/// are handed to it.
///
/// # Errors
///
/// If the process is gone or another person's.
pub fn disk_counters(process: u32) -> Result<Counters, Unread> {
    let bytes = text(&format!("/proc/{process}/io"))
        .and_then(|io| parse::process_disk_bytes(&io).ok_or("the kernel does not count it".to_owned()));
    let (read, written) = bytes.map_err(|why| Unread { source: Source::Disk, why })?;
    Ok(Counters {
        read_bytes: Some(read),
        written_bytes: Some(written),
        ..Counters::of(Source::Disk, Covers::Process, process.to_string())
    })
}

type CifsAnswer = (parse::CifsStatistics, Vec<Option<&'static str>>);

fn cifs() -> Result<CifsAnswer, String> {
    const STATS: &str = "/proc/fs/cifs/Stats";
    let found = parse::cifs_stats(&text(STATS)?).ok_or(format!("{STATS} is not of a form that is known"))?;
    let dialects = match found.shares.len() {
        0 | 1 => vec![],
        _ => text("/proc/fs/cifs/DebugData").map_or(vec![], |debug| parse::cifs_dialects(&debug)),
    };
    Ok((found, dialects))
}

fn text(path: &str) -> Result<String, String> {
    file(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A whole file of `/proc`, which is never empty and never huge.
fn file(path: &str) -> Result<Vec<u8>, String> {
    let read = || {
        let mut bytes = vec![];
        File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: io::Error| format!("{path} cannot be read: {error}"))?;
    match bytes.len() as u64 {
        0 => Err(format!("{path} is empty")),
        length if length > LARGEST_FILE => Err(format!("{path} is larger than it can be")),
        _ => Ok(bytes),
    }
}

/// The connections to the ports of the targets' servers: one question to the kernel for each port and family.
fn connections(targets: &[(TargetName, Mount)]) -> Answer<Vec<Connection>> {
    let ports: BTreeSet<u16> =
        targets.iter().flat_map(|(_, mount)| ports(&mount.protocol)).copied().collect();
    (!ports.is_empty()).then(|| connections_to(&ports))
}

/// The connections to the ports of all kinds of file servers.
pub(super) fn file_server_connections() -> Result<Vec<Connection>, String> {
    let protocols = [Protocol::Nfs(None), Protocol::Smb(None), Protocol::Afp];
    connections_to(&protocols.iter().flat_map(ports).copied().collect())
}

fn connections_to(ports: &BTreeSet<u16>) -> Result<Vec<Connection>, String> {
    const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];
    let questions = ports.iter().flat_map(|port| FAMILIES.map(|family| (family, *port)));
    let answers: Result<Vec<Vec<Connection>>, io::Error> =
        questions.map(|(family, port)| ask(&parse::socket_request(family, port))).collect();
    let said = answers.map(|found| found.concat());
    said.map_err(|error| format!("the kernel does not list connections: {error}"))
}

/// The kernel answers a dump while it is asked and while the answer is read, so nothing is waited for.
fn ask(request: &[u8]) -> io::Result<Vec<Connection>> {
    let mut socket = diagnostics()?;
    socket.write_all(request)?;
    // NLMSG_GOODSIZE and more: include/linux/netlink.h has datagrams of 32 KiB at most
    let mut datagram = vec![0; 64 << 10];
    let mut connections = vec![];
    loop {
        let length = socket.read(&mut datagram)?;
        let dumped = parse::sockets(&datagram[..length]);
        connections.extend(dumped.connections);
        match dumped.error {
            // no IPv6 on this machine
            Some(libc::ENOENT) => return Ok(connections),
            Some(number) => return Err(io::Error::from_raw_os_error(number)),
            None if dumped.is_last => return Ok(connections),
            None => {}
        }
    }
}

/// A socket that never blocks (sock_diag(7)); reading and writing it is receiving and sending.
fn diagnostics() -> io::Result<File> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: three integers; the answer is checked.
    let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was opened a moment ago and that nobody else owns.
    Ok(unsafe { File::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_file_that_is_missing_unreadable_empty_or_huge_is_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        File::create(&empty).unwrap();
        let why = |path: &str| file(path).unwrap_err();
        assert!(why("/proc/self/no-such-file").contains("cannot be read"));
        assert!(why(folder.path().to_str().unwrap()).contains("cannot be read"));
        assert!(why(empty.to_str().unwrap()).contains("is empty"));
        assert!(why("/dev/zero").contains("larger"));
    }

    #[test]
    fn the_kernel_tells_what_a_connection_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 100_000]).unwrap();
        server.read_exact(&mut [0; 100_000]).unwrap();
        server.write_all(&[7; 5]).unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        let found = ask(&parse::socket_request(libc::AF_INET as u8, port)).unwrap();
        let ours = client.local_addr().unwrap().port();
        let found: Vec<&Connection> = found.iter().filter(|one| one.local_port == ours).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].received, Some(5));
        assert!(found[0].sent.is_some_and(|sent| (100_000..=100_001).contains(&sent)), "{found:?}");
    }

    #[test]
    fn this_process_knows_what_it_read_from_disks_and_a_process_that_is_gone_does_not() {
        assert!(disk_counters(std::process::id()).is_ok_and(|found| found.read_bytes.is_some()));
        assert!(disk_counters(u32::MAX).is_err_and(|unread| unread.why.contains("cannot be read")));
    }

    #[test]
    fn a_look_without_targets_tells_of_the_machine_alone() {
        let readings = readings(&[]);
        assert_eq!(readings.len(), 1);
        assert_eq!(readings[0].target, None);
    }
}
