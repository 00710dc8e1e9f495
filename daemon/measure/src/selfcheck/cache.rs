//! Checks of file caching on the client, and of the calls that write cached data to the disk.

use std::ffi::CStr;

use crate::error::RunError;
use crate::platform::{self, Access, SYSTEM, System};
use crate::timed_fs::OpenFile;
use longhaul_corpus::Content;
use longhaul_model::{
    CounterScope, Counters, MAX_COLD_CACHE_SHARE, Protocol, ProtocolFamily, SyncKind, WireTraffic,
};

use super::check::{
    CheckAnswer, CheckOutcome, CheckedTarget, TargetCheck, TargetCheckMethod, milliseconds_since,
};
use super::scratch::ScratchFolder;

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck::named("sync", TargetCheckMethod::Files(sync))
        .linux("fsync works on files and folders", "fsync(2)")
        .macos(
            "full-fsync on local disks and NFS; on SMB, fsync if the server does not support full sync",
            "SMBClient kernel/smbfs/smbfs_vnops.c:10440; NFS kext/nfs_vnops.c:8102; man fcntl(2)",
        ),
    TargetCheck::named("eviction", TargetCheckMethod::Files(eviction))
        .linux("nothing stays in memory, except on a memory file system", "posix_fadvise(2), mincore(2)")
        .macos(
            "nothing stays in memory",
            "xnu bsd/kern/kern_mman.c:1044 (msync), 1507 (mincore); fio os/mac/posix.c",
        ),
    TargetCheck::named("second read", TargetCheckMethod::Files(second_read))
        .linux(
            "after eviction, the whole file is transferred again",
            "posix_fadvise(2), proc_pid_io(5), nfsiostat(8)",
        )
        .macos(
            "after eviction, the whole file is transferred again",
            "xnu bsd/kern/kern_mman.c:1044, msync; bsd/netinet/in_pcblist.c:292",
        ),
];

/// Size of the test file in bytes. It is far larger than the replies to other calls, so that the network traffic
/// of a read stands out.
const BYTES: usize = 1 << 20;

/// Returns [`BYTES`] pseudo-random bytes, which no server and no file system can compress.
fn content() -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    Content::new(0, 0).fill(0, &mut bytes);
    bytes
}

fn sync(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    const FILE: &CStr = c"synced";
    const LENGTH: usize = 64 << 10;
    let context = on.context;
    let file = context.create(scratch.folder(), FILE)?;
    context.write_all(&file, &content()[..LENGTH], 0)?;
    let start = platform::monotonic_ns();
    let file_sync = context.full_sync(&file)?;
    let file_time = milliseconds_since(start);
    context.close(file)?;
    let start = platform::monotonic_ns();
    let folder_sync = context.sync_folder(scratch.folder())?;
    let folder_time = milliseconds_since(start);
    let text = format!(
        "{} of 64 KiB in {file_time}, {} of the folder in {folder_time}",
        file_sync.name(),
        folder_sync.name()
    );
    Ok(CheckAnswer::new(CheckOutcome::from(is_expected(SYSTEM, on.protocol(), file_sync)), text))
}

/// Returns whether a full sync on this system and protocol is expected to use this sync call.
fn is_expected(system: System, protocol: Option<&Protocol>, kind: SyncKind) -> bool {
    let always_full = matches!(protocol, Some(Protocol::Nfs(_) | Protocol::Local(_)));
    match (system, kind) {
        (System::Linux, SyncKind::Fsync) | (System::MacOs, SyncKind::FullFsync) => true,
        (System::Linux, SyncKind::FullFsync) => false,
        (System::MacOs, SyncKind::Fsync) => !always_full,
    }
}

/// Creates a synced file of [`BYTES`] bytes and returns it open for reading and writing. Write access is needed
/// because Linux reports which pages of a file are cached only to a process that may write the file.
fn create_durable_file(
    on: &CheckedTarget<'_>,
    scratch: &ScratchFolder,
    name: &CStr,
) -> Result<OpenFile, RunError> {
    let file = on.context.create_with_access(scratch.folder(), name, Access::ReadWrite)?;
    on.context.write_all(&file, &content(), 0)?;
    on.context.sync(&file)?;
    Ok(file)
}

fn eviction(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    let file = create_durable_file(on, scratch, c"evicted")?;
    on.context.read_full(&file, &mut vec![0; BYTES], 0)?;
    let before = on.context.resident_share(&file, BYTES as u64);
    let after = on.context.evict(&file, BYTES as u64);
    on.context.close(file)?;
    Ok(judge_eviction(on.protocol(), before, after))
}

/// Returns whether this file system stores its files only in memory.
fn is_memory_file_system(protocol: Option<&Protocol>) -> bool {
    matches!(protocol, Some(Protocol::Local(name)) if name == "tmpfs" || name == "ramfs")
}

fn judge_eviction(protocol: Option<&Protocol>, before: Option<f64>, after: Option<f64>) -> CheckAnswer {
    let percent = |share: Option<f64>| {
        share.map_or("an unknown share".to_owned(), |share| format!("{:.0} %", share * 100.0))
    };
    let text = format!("{} in memory after reading, {} after eviction", percent(before), percent(after));
    match after {
        Some(_) if is_memory_file_system(protocol) => {
            CheckAnswer::ok(format!("{text}; this is a memory file system"))
        }
        Some(share) => CheckAnswer::new(CheckOutcome::from(share == 0.0), text),
        None => CheckAnswer::unknown(text),
    }
}

fn second_read(on: &CheckedTarget<'_>, scratch: &ScratchFolder) -> Result<CheckAnswer, RunError> {
    let Some((mount, protocol)) = on.mount else { return Ok(CheckAnswer::unknown("no mount was found")) };
    if is_memory_file_system(Some(protocol)) {
        return Ok(CheckAnswer::unknown("this is a memory file system"));
    }
    let counters = || platform::phase_counters(mount).narrowest;
    let file = create_durable_file(on, scratch, c"read-twice")?;
    let mut content = vec![0; BYTES];
    on.context.read_full(&file, &mut content, 0)?;
    on.context.evict(&file, BYTES as u64);
    let before = counters();
    on.context.read_full(&file, &mut content, 0)?;
    let after = counters();
    on.context.close(file)?;
    Ok(judge_second_read(mount.protocol.family(), before, after))
}

fn judge_second_read(
    family: ProtocolFamily,
    before: Option<Counters>,
    after: Option<Counters>,
) -> CheckAnswer {
    let (Some(before), Some(after)) = (before, after) else {
        return CheckAnswer::unknown("no counter of the bytes transferred");
    };
    if before.instance_id != after.instance_id {
        return CheckAnswer::unknown("the counter was reset during the read");
    }
    let read = before.read_bytes.zip(after.read_bytes).and_then(|(before, after)| after.checked_sub(before));
    let text = format!(
        "{} of {BYTES} bytes transferred, according to {} of the {}",
        read.map_or("an unknown number".to_owned(), |read| read.to_string()),
        after.source.name(),
        after.scope.name()
    );
    let wire = WireTraffic {
        read,
        written: None,
        requests: None,
        listings: None,
        source: after.source,
        scope: after.scope,
    };
    match wire.client_cache_share(BYTES as u64, 1) {
        Some(share) => CheckAnswer::new(CheckOutcome::from(share <= MAX_COLD_CACHE_SHARE), text),
        // The traffic is larger than the file: another program reads as well, so no cache share can be computed.
        None if family == ProtocolFamily::Network || after.scope == CounterScope::Process => {
            CheckAnswer::unknown(text)
        }
        None => CheckAnswer::unknown("no counter of the bytes transferred"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::CounterSource;

    #[test]
    fn cached_page_after_eviction_differs() {
        let apfs = Protocol::Local("apfs".to_owned());
        let judged = |after| judge_eviction(Some(&apfs), Some(1.0), after);
        assert_eq!(judged(Some(0.0)), CheckAnswer::ok("100 % in memory after reading, 0 % after eviction"));
        assert_eq!(judged(Some(0.01)).verdict, CheckOutcome::Differs);
        assert_eq!(judged(None).verdict, CheckOutcome::Unknown);
        let tmpfs = Protocol::Local("tmpfs".to_owned());
        assert_eq!(judge_eviction(Some(&tmpfs), Some(1.0), Some(1.0)).verdict, CheckOutcome::Ok);
    }

    fn counted(bytes: u64, instance_id: &str) -> Option<Counters> {
        let counters =
            Counters::new(CounterSource::Connections, CounterScope::Server, instance_id.to_owned());
        Some(Counters { read_bytes: Some(bytes), ..counters })
    }

    #[test]
    fn second_read_from_the_cache_differs() {
        let judged = |after| judge_second_read(ProtocolFamily::Network, counted(1000, "a"), after).verdict;
        assert_eq!(judged(counted(1000 + (1 << 20), "a")), CheckOutcome::Ok);
        assert_eq!(judged(counted(1200, "a")), CheckOutcome::Differs);
        assert_eq!(
            judged(counted(1000 + (40 << 20), "a")),
            CheckOutcome::Unknown,
            "another program also reads"
        );
        assert_eq!(judged(counted(5, "b")), CheckOutcome::Unknown, "the counter was reset");
        assert_eq!(judged(None), CheckOutcome::Unknown);
    }

    #[test]
    fn full_sync_is_expected_on_local_disks_of_a_mac() {
        let (apfs, smb) = (Protocol::Local("apfs".to_owned()), Protocol::Smb(None));
        assert!(is_expected(System::MacOs, Some(&apfs), SyncKind::FullFsync));
        assert!(!is_expected(System::MacOs, Some(&apfs), SyncKind::Fsync));
        assert!(is_expected(System::MacOs, Some(&smb), SyncKind::Fsync));
        assert!(is_expected(System::Linux, Some(&smb), SyncKind::Fsync));
    }
}
