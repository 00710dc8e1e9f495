//! Counters on Linux, from files of `/proc` and one netlink socket. Reading them sends no request to a
//! server.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::FromRawFd;

use super::counter_mapping::{SourceAnswer, SourceAnswers, ports};
use crate::parse::{self, Connection};
use longhaul_model::{
    CounterReading, CounterScope, CounterSource, CounterUnavailable, Counters, Mount, Protocol, TargetName,
};

/// Maximum size of a `/proc` file in bytes. A mount table with thousands of NFS mounts is smaller.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Reads all counters and returns the readings of each target and of the machine. Each source is read once
/// for all targets. No target is accessed, and nothing here waits for a server.
pub fn read_counters(targets: &[(TargetName, Mount)]) -> Vec<CounterReading> {
    let mounts: Vec<&Mount> = targets.iter().map(|(_, mount)| mount).collect();
    let answers = SourceAnswers {
        interfaces: Some(read_text("/proc/net/dev").map(|table| parse::net_dev(&table))),
        ..answers_for(&mounts)
    };
    answers.readings(targets)
}

/// Reads the counters of a mount before or after a phase. On Linux they are those of [`read_counters`], because none of them
/// accesses the target.
pub fn read_phase_counters(mount: &Mount) -> Vec<Counters> {
    answers_for(&[mount]).mount_counters(mount).into_iter().flatten().collect()
}

/// Returns the answers of the sources that these mounts need.
fn answers_for(mounts: &[&Mount]) -> SourceAnswers {
    let any = |wanted: fn(&Protocol) -> bool| mounts.iter().any(|mount| wanted(&mount.protocol));
    SourceAnswers {
        mountstats: any(|protocol| matches!(protocol, Protocol::Nfs(_)))
            .then(|| Ok(parse::mountstats(&read_file("/proc/self/mountstats")?))),
        cifs: any(|protocol| matches!(protocol, Protocol::Smb(_))).then(read_cifs_stats),
        connections: connections(mounts),
        ..SourceAnswers::default()
    }
}

/// Returns whether the kernel counts the requests on a mount by kind, so that its use can be counted.
pub fn counts_requests(protocol: &Protocol) -> bool {
    matches!(protocol, Protocol::Nfs(_) | Protocol::Smb(_))
}

/// Returns the address of the server if the mount table contains it. Nothing is queried.
pub fn server_address(mount: &Mount) -> Option<IpAddr> {
    mount.server
}

/// Returns the bytes that a process read from and wrote to local disks, from `/proc/PID/io`: reads that the
/// page cache did not serve, and writes when they enter the page cache.
///
/// # Errors
///
/// If the process does not exist or belongs to another user.
pub fn disk_counters(process: u32) -> Result<Counters, CounterUnavailable> {
    let bytes = read_text(&format!("/proc/{process}/io")).and_then(|io| {
        parse::process_disk_bytes(&io).ok_or("the kernel does not count the disk I/O of processes".to_owned())
    });
    let (read, written) =
        bytes.map_err(|why| CounterUnavailable { source: CounterSource::Disk, reason: why })?;
    Ok(Counters {
        read_bytes: Some(read),
        written_bytes: Some(written),
        ..Counters::new(CounterSource::Disk, CounterScope::Process, process.to_string())
    })
}

type CifsAnswer = (parse::CifsStatistics, Vec<parse::CifsConnection>);

fn read_cifs_stats() -> Result<CifsAnswer, String> {
    const STATS: &str = "/proc/fs/cifs/Stats";
    let found = parse::cifs_stats(&read_text(STATS)?).ok_or(format!("{STATS} has an unknown format"))?;
    let connections = if found.shares.len() > 1 { cifs_connections() } else { vec![] };
    Ok((found, connections))
}

/// Returns the connected SMB shares; empty if the kernel does not list them.
pub(super) fn cifs_connections() -> Vec<parse::CifsConnection> {
    read_text("/proc/fs/cifs/DebugData").map_or(vec![], |debug| parse::cifs_connections(&debug))
}

fn read_text(path: &str) -> Result<String, String> {
    read_file(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a whole file of `/proc`. An empty file or one larger than [`MAX_FILE_BYTES`] is an error.
fn read_file(path: &str) -> Result<Vec<u8>, String> {
    let read = || {
        let mut bytes = vec![];
        File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: io::Error| format!("{path} cannot be read: {error}"))?;
    match bytes.len() as u64 {
        0 => Err(format!("{path} is empty")),
        length if length > MAX_FILE_BYTES => Err(format!("{path} is larger than expected")),
        _ => Ok(bytes),
    }
}

/// Returns the connections to the ports of the mounts' servers, with one query to the kernel for each port
/// and address family; `None` if no mount needs any.
fn connections(mounts: &[&Mount]) -> SourceAnswer<Vec<Connection>> {
    let ports: BTreeSet<u16> = mounts.iter().flat_map(|mount| ports(&mount.protocol)).copied().collect();
    (!ports.is_empty()).then(|| connections_to(&ports))
}

/// Returns the number of TCP connections to file servers, or the reason why the kernel does not list them.
pub fn connection_count() -> Result<usize, String> {
    let protocols = [Protocol::Nfs(None), Protocol::Smb(None), Protocol::Afp];
    connections_to(&protocols.iter().flat_map(ports).copied().collect()).map(|found| found.len())
}

fn connections_to(ports: &BTreeSet<u16>) -> Result<Vec<Connection>, String> {
    const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];
    let requests = ports.iter().flat_map(|port| FAMILIES.map(|family| (family, *port)));
    let answers: Result<Vec<Vec<Connection>>, io::Error> =
        requests.map(|(family, port)| query_connections(&parse::socket_request(family, port))).collect();
    let answers = answers.map(|found| found.concat());
    answers.map_err(|error| format!("the kernel does not list connections: {error}"))
}

/// Sends a request to the kernel and reads the answer. The kernel produces the answer during the write and
/// read calls, so nothing waits.
fn query_connections(request: &[u8]) -> io::Result<Vec<Connection>> {
    let mut socket = open_netlink_socket(libc::NETLINK_SOCK_DIAG)?;
    socket.write_all(request)?;
    // Larger than NLMSG_GOODSIZE: include/linux/netlink.h has datagrams of 32 KiB at most.
    let mut datagram = vec![0; 64 << 10];
    let mut connections = vec![];
    loop {
        let length = socket.read(&mut datagram)?;
        let dumped = parse::sockets(&datagram[..length]);
        connections.extend(dumped.connections);
        match dumped.error {
            // ENOENT means that this machine has no IPv6.
            Some(libc::ENOENT) => return Ok(connections),
            Some(number) => return Err(io::Error::from_raw_os_error(number)),
            None if dumped.is_last => return Ok(connections),
            None => {}
        }
    }
}

/// Opens a socket of a netlink protocol that never blocks (netlink(7)). Reading and writing the file receives and sends
/// datagrams.
pub(super) fn open_netlink_socket(protocol: libc::c_int) -> io::Result<File> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: three integers; the answer is checked.
    let number = unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened a moment ago, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_unreadable_empty_or_huge_file_gives_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        File::create(&empty).unwrap();
        let why = |path: &str| read_file(path).unwrap_err();
        assert!(why("/proc/self/no-such-file").contains("cannot be read"));
        assert!(why(folder.path().to_str().unwrap()).contains("cannot be read"));
        assert!(why(empty.to_str().unwrap()).contains("is empty"));
        assert!(why("/dev/zero").contains("larger"));
    }

    #[test]
    fn the_kernel_counts_the_bytes_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 100_000]).unwrap();
        server.read_exact(&mut [0; 100_000]).unwrap();
        server.write_all(&[7; 5]).unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
        let found = query_connections(&parse::socket_request(libc::AF_INET as u8, port)).unwrap();
        let ours = client.local_addr().unwrap().port();
        let found: Vec<&Connection> = found.iter().filter(|one| one.local_port == ours).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].received, Some(5));
        assert!(found[0].sent.is_some_and(|sent| (100_000..=100_001).contains(&sent)), "{found:?}");
    }

    #[test]
    fn disk_counters_exist_only_for_a_running_process() {
        assert!(disk_counters(std::process::id()).is_ok_and(|found| found.read_bytes.is_some()));
        assert!(
            disk_counters(u32::MAX).is_err_and(|unavailable| unavailable.reason.contains("cannot be read"))
        );
    }

    #[test]
    fn without_targets_only_the_machine_is_read() {
        let readings = read_counters(&[]);
        assert_eq!(readings.len(), 1);
        assert_eq!(readings[0].target, None);
    }
}
