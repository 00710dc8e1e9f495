//! Parser for the NFS part of `/proc/self/mountstats`: `nfs_show_stats` of fs/nfs/super.c writes the mount,
//! `rpc_clnt_show_stats` of net/sunrpc/stats.c its operations.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::mountinfo::unescaped;
use longhaul_model::{RequestCounts, RequestKind};

/// Requests that the client sends on its own to maintain its lease, its session and its knowledge of the
/// server. No program caused them.
const CLIENT_INTERNAL_REQUESTS: &[&str] = &[
    "NULL",
    "BIND_CONN_TO_SESSION",
    "CREATE_SESSION",
    "DELEGRETURN",
    "DESTROY_CLIENTID",
    "DESTROY_SESSION",
    "EXCHANGE_ID",
    "FREE_STATEID",
    "FSID_PRESENT",
    "FSINFO",
    "GETDEVICEINFO",
    "GET_LEASE_TIME",
    "LAYOUTSTATS",
    "LOOKUP_ROOT",
    "PATHCONF",
    "RECLAIM_COMPLETE",
    "RELEASE_LOCKOWNER",
    "RENEW",
    "SECINFO",
    "SECINFO_NO_NAME",
    "SEQUENCE",
    "SERVER_CAPS",
    "SETCLIENTID",
    "SETCLIENTID_CONFIRM",
    "TEST_STATEID",
];

/// Counters of an NFS mount since it was mounted. `None` means that the file does not contain the value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NfsStatistics {
    /// Mount point.
    pub point: PathBuf,
    /// Version of the statistics, such as `1.1`.
    pub version: String,
    /// Age of the mount, in seconds.
    pub age_seconds: Option<u64>,
    /// Bytes of files that READ received: the fifth number of `bytes:` (include/linux/nfs_iostat.h,
    /// `NFSIOS_SERVERREADBYTES`).
    pub read_bytes: Option<u64>,
    /// Bytes of files that WRITE sent: the sixth number of `bytes:`.
    pub written_bytes: Option<u64>,
    /// Number of times that a connection of the mount was established.
    pub connects: Option<u64>,
    /// Totals of the mount's operations; `None` if the file does not list them.
    pub operations: Option<NfsOperations>,
}

/// Totals of all operations of an NFS mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NfsOperations {
    /// Number of requests, without those of the client's own housekeeping.
    pub requests: u64,
    /// Number of requests, including those of the client's own housekeeping.
    pub all_requests: u64,
    /// Number of requests by kind, without those of the client's own housekeeping. NFS 3 has none that opens a file.
    pub by_kind: RequestCounts,
    /// Number of transmissions beyond the first of each request.
    pub retransmits: u64,
    /// Total time from sending to answer of all requests, in milliseconds.
    pub round_trip_ms: u64,
    /// Total time that requests waited before they were sent, in milliseconds, without the client's own housekeeping.
    pub queue_ms: u64,
    /// Total time from sending to answer, in milliseconds, without the client's own housekeeping.
    pub answer_ms: u64,
    /// Total time from the start of a request to its end in the client, in milliseconds, without the client's own
    /// housekeeping; `None` if the file does not have the column.
    pub execute_ms: Option<u64>,
}

impl NfsStatistics {
    /// Returns whether the meaning of the columns is known. Versions 1.0 and 1.1 differ only in columns that
    /// are appended.
    pub fn is_known(&self) -> bool {
        self.version.starts_with("1.")
    }
}

/// Returns the NFS mounts in the order of the file. Of two mounts on one mount point the later one covers the
/// earlier.
pub fn mountstats(text: &[u8]) -> Vec<NfsStatistics> {
    let mut mounts: Vec<NfsStatistics> = vec![];
    let mut is_nfs = false;
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(rest) = line.strip_prefix(b"device ") {
            let mount = parse_device_line(rest);
            is_nfs = mount.is_some();
            mounts.extend(mount);
        } else if let Some(mount) = mounts.last_mut().filter(|_| is_nfs) {
            add_line(mount, &String::from_utf8_lossy(line));
        }
    }
    mounts
}

/// Parses a line `SOURCE mounted on POINT with fstype nfs statvers=1.1`. Spaces in names are escaped.
fn parse_device_line(line: &[u8]) -> Option<NfsStatistics> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [_, b"mounted", b"on", point, b"with", b"fstype", b"nfs" | b"nfs4", version] = fields[..] else {
        return None;
    };
    let version = version.strip_prefix(b"statvers=")?;
    Some(NfsStatistics {
        point: OsString::from_vec(unescaped(point)).into(),
        version: String::from_utf8_lossy(version).into_owned(),
        ..NfsStatistics::default()
    })
}

fn add_line(mount: &mut NfsStatistics, line: &str) {
    let line = line.trim();
    if line == "per-op statistics" {
        mount.operations.get_or_insert_default();
    }
    let Some((name, rest)) = line.split_once(':') else { return };
    match name {
        "age" => mount.age_seconds = rest.trim().parse().ok(),
        "bytes" => {
            let bytes = numbers(rest);
            (mount.read_bytes, mount.written_bytes) = (bytes.get(4).copied(), bytes.get(5).copied());
        }
        "xprt" => add_transport(mount, rest),
        _ => {
            if let Some(operations) = &mut mount.operations {
                add_operation(operations, name, &numbers(rest));
            }
        }
    }
}

/// Adds the line of one connection: `tcp PORT BINDS CONNECTS ...` (net/sunrpc/xprtsock.c,
/// `xs_tcp_print_stats`). A line for rdma starts in the same way, and udp has no connections.
fn add_transport(mount: &mut NfsStatistics, rest: &str) {
    let mut fields = rest.split_whitespace();
    let counts = fields.next().is_some_and(|kind| matches!(kind, "tcp" | "rdma"));
    let connects = fields.nth(2).and_then(|text| text.parse::<u64>().ok());
    if let Some(connects) = connects.filter(|_| counts) {
        mount.connects = Some(mount.connects.unwrap_or(0).wrapping_add(connects));
    }
}

/// Adds the line of one operation: `ops ntrans timeouts sent received queue rtt execute [errors]`. The last
/// column came with version 1.1 (Linux 5.3).
fn add_operation(operations: &mut NfsOperations, name: &str, columns: &[u64]) {
    let [requests, transmissions, _, _, _, queue_ms, round_trip_ms, ref rest @ ..] = *columns else { return };
    if !CLIENT_INTERNAL_REQUESTS.contains(&name) {
        operations.requests = operations.requests.wrapping_add(requests);
        operations.queue_ms = operations.queue_ms.wrapping_add(queue_ms);
        operations.answer_ms = operations.answer_ms.wrapping_add(round_trip_ms);
        let execute_ms = rest.first().map(|one| operations.execute_ms.unwrap_or(0).wrapping_add(*one));
        operations.execute_ms = execute_ms.or(operations.execute_ms);
    }
    if let Some(kind) = kind_of_request(name) {
        operations.by_kind.add(kind, requests);
    }
    operations.all_requests = operations.all_requests.wrapping_add(requests);
    operations.retransmits = operations.retransmits.wrapping_add(transmissions.saturating_sub(requests));
    operations.round_trip_ms = operations.round_trip_ms.wrapping_add(round_trip_ms);
}

/// Returns the kind of a request; `None` for one that says nothing about the use of a mount. Both versions of the
/// protocol have the names of `nfs3_procedures` and `nfs4_procedures` (fs/nfs/nfs3xdr.c, nfs4xdr.c).
fn kind_of_request(name: &str) -> Option<RequestKind> {
    match name {
        "READDIR" | "READDIRPLUS" => Some(RequestKind::List),
        "OPEN" | "OPEN_NOATTR" => Some(RequestKind::Open),
        "READ" | "READ_PLUS" => Some(RequestKind::Read),
        "WRITE" => Some(RequestKind::Write),
        "CREATE" | "MKDIR" | "SYMLINK" | "MKNOD" | "REMOVE" | "RMDIR" | "RENAME" | "LINK" | "SETATTR" => {
            Some(RequestKind::Change)
        }
        "GETATTR" | "LOOKUP" | "LOOKUPP" | "ACCESS" => Some(RequestKind::Attributes),
        _ => None,
    }
}

/// Returns the numbers of a line up to the first word that is not a number.
fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX_6: &[u8] = include_bytes!("../../tests/fixtures/mountstats-linux6.txt");
    const LINUX_3: &[u8] = include_bytes!("../../tests/fixtures/mountstats-linux3.txt");

    #[test]
    fn an_nfs_mount_has_bytes_requests_and_retransmits() {
        let mounts = mountstats(LINUX_6);
        assert_eq!(mounts.len(), 2, "other file systems have no statistics");
        let three = &mounts[0];
        assert_eq!((three.point.to_str(), three.is_known()), (Some("/m/nfs three"), true));
        assert_eq!((three.read_bytes, three.written_bytes), (Some(33_558_528), Some(33_554_999)));
        assert_eq!((three.age_seconds, three.connects), (Some(86_034), Some(3)));
        let operations = three.operations.unwrap();
        assert_eq!(operations.retransmits, 4);
        assert_eq!((operations.requests, operations.all_requests), (97, 101));
        assert_eq!(operations.round_trip_ms, 1231);
    }

    #[test]
    fn requests_of_captured_output_are_counted_by_kind() {
        let captured = mountstats(include_bytes!("../../tests/fixtures/mountstats-linux6.1.txt"));
        let counts = captured.iter().map(|mount| {
            let by_kind = mount.operations.unwrap().by_kind;
            RequestKind::ALL.map(|kind| by_kind.get(kind))
        });
        let counts: Vec<_> = counts.collect();
        let without_open = [Some(1), None, Some(655), Some(1273), Some(126), Some(410)];
        assert_eq!(counts[0][1..], [204, 654, 1273, 65, 100].map(Some), "NFS 4.2");
        assert_eq!(counts[1], without_open, "NFS 3 has no request that opens a file");
    }

    #[test]
    fn captured_kernel_output_is_parsed() {
        let captured = mountstats(include_bytes!("../../tests/fixtures/mountstats-linux6.1.txt"));
        let bytes: Vec<_> = captured.iter().map(|mount| (mount.read_bytes, mount.written_bytes)).collect();
        assert_eq!(bytes, [(Some(84_188_864), Some(162_074_582)), (Some(84_189_189), Some(162_074_582))]);
        let requests: Vec<_> =
            captured.iter().map(|mount| mount.operations.unwrap().requests > 2000).collect();
        assert_eq!(
            (requests, captured[0].age_seconds, captured[0].connects),
            (vec![true; 2], Some(124), Some(2))
        );
    }

    #[test]
    fn lease_renewals_do_not_count_and_connections_add_up() {
        let idle = &mountstats(LINUX_6)[1];
        let operations = idle.operations.unwrap();
        assert_eq!((operations.requests, operations.all_requests), (2, 23), "two GETATTR");
        assert_eq!(idle.connects, Some(2), "nconnect=2");
    }

    #[test]
    fn older_kernels_have_fewer_columns_and_udp_no_connections() {
        let mounts = mountstats(LINUX_3);
        assert_eq!(mounts[0].read_bytes, Some(1_210_214_218));
        let operations = mounts[0].operations.unwrap();
        assert_eq!(operations.requests, 1298 + 2_927_395_007);
        assert_eq!(operations.retransmits, 0, "fewer transmissions than requests are not a retransmit");
        assert_eq!((mounts[1].connects, mounts[1].read_bytes), (None, Some(10)));
        assert_eq!(mounts[1].operations.map(|found| found.retransmits), Some(1));
    }

    #[test]
    fn an_unknown_version_and_a_missing_line_are_no_zero() {
        assert!(!mountstats(LINUX_3)[2].is_known());
        let bare = mountstats(b"device a:/b mounted on /c with fstype nfs4 statvers=1.1\n\tbytes:\t1 2 x\n");
        assert_eq!((bare[0].read_bytes, bare[0].operations, bare[0].age_seconds), (None, None, None));
        assert_eq!(mountstats(b""), []);
        assert_eq!(mountstats(b"device a mounted on /b with fstype ext4\nbytes: 1 2 3 4 5 6\n"), []);
    }
}
