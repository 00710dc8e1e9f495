//! What this machine keeps of a file in memory, and how a file reaches the disk.

use std::ffi::CStr;

use crate::context::OpenFile;
use crate::error::RunError;
use crate::model::{COLD_SHARE, Counters, Covers, Family, Protocol, SyncKind, Wire};
use crate::platform::{self, Access, SYSTEM, System};

use super::{
    Answer, Ask, CheckedTarget, Expectation, Expectations, Scratch, TargetCheck, milliseconds_since,
};

/// The calls of this group.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck {
        call: "sync",
        expected: Expectations {
            linux: Expectation { text: "fsync, of a folder too", source: "fsync(2)" },
            macos: Expectation {
                text: "full-fsync on a local disk and NFS; on SMB fsync where the server has no full sync",
                source: "SMBClient kernel/smbfs/smbfs_vnops.c; NFS kext/nfs_vnops.c; man fcntl(2), F_FULLFSYNC",
            },
        },
        ask: Ask::Files(sync),
    },
    TargetCheck {
        call: "eviction",
        expected: Expectations {
            linux: Expectation {
                text: "nothing stays in memory, but for a file system that is memory",
                source: "posix_fadvise(2), mincore(2)",
            },
            macos: Expectation {
                text: "nothing stays in memory",
                source: "xnu bsd/kern/kern_mman.c, msync and mincore; fio os/mac/posix.c",
            },
        },
        ask: Ask::Files(eviction),
    },
    TargetCheck {
        call: "second read",
        expected: Expectations {
            linux: Expectation {
                text: "after eviction the whole file crosses again",
                source: "posix_fadvise(2), proc_pid_io(5), nfsiostat(8)",
            },
            macos: Expectation {
                text: "after eviction the whole file crosses again",
                source: "xnu bsd/kern/kern_mman.c, msync; bsd/netinet/in_pcblist.c",
            },
        },
        ask: Ask::Files(second_read),
    },
];

/// Bytes of the file that is read twice: far more than answers to other calls take on the wire.
const BYTES: usize = 1 << 20;

/// Bytes that no server and no file system can make smaller.
fn content() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..BYTES / 8).flat_map(|_| next()).collect()
}

fn sync(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    const FILE: &CStr = c"synced";
    const LENGTH: usize = 64 << 10;
    let context = on.context;
    let file = context.create(scratch.folder(), FILE)?;
    context.write_all(&file, &content()[..LENGTH], 0)?;
    let began = platform::monotonic_ns();
    let of_file = context.full_sync(&file)?;
    let file_took = milliseconds_since(began);
    context.close(file)?;
    let began = platform::monotonic_ns();
    let of_folder = context.sync_folder(scratch.folder())?;
    let folder_took = milliseconds_since(began);
    let text = format!(
        "{} of 64 KiB in {file_took}, {} of the folder in {folder_took}",
        of_file.name(),
        of_folder.name()
    );
    Ok(Answer::expect(is_expected(SYSTEM, on.protocol(), of_file), text))
}

fn is_expected(system: System, protocol: Option<&Protocol>, kind: SyncKind) -> bool {
    let always_full = matches!(protocol, Some(Protocol::Nfs(_) | Protocol::Local(_)));
    match (system, kind) {
        (System::Linux, SyncKind::Fsync) | (System::MacOs, SyncKind::FullFsync) => true,
        (System::Linux, SyncKind::FullFsync) => false,
        (System::MacOs, SyncKind::Fsync) => !always_full,
    }
}

/// A file of [`BYTES`] on stable storage, open for reading and writing: Linux says what it caches of a file only to a process
/// that may write it.
fn stored(on: &CheckedTarget<'_>, scratch: &Scratch, name: &CStr) -> Result<OpenFile, RunError> {
    let file = on.context.create_for(scratch.folder(), name, Access::Both)?;
    on.context.write_all(&file, &content(), 0)?;
    on.context.sync(&file)?;
    Ok(file)
}

fn eviction(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    let file = stored(on, scratch, c"evicted")?;
    on.context.read_full(&file, &mut vec![0; BYTES], 0)?;
    let before = on.context.cached_share(&file, BYTES as u64);
    let after = on.context.evict(&file, BYTES as u64);
    on.context.close(file)?;
    Ok(judge_eviction(on.protocol(), before, after))
}

/// Whether files of this file system are nowhere but in memory.
fn is_memory(protocol: Option<&Protocol>) -> bool {
    matches!(protocol, Some(Protocol::Local(name)) if name == "tmpfs" || name == "ramfs")
}

fn judge_eviction(protocol: Option<&Protocol>, before: Option<f64>, after: Option<f64>) -> Answer {
    let percent = |share: Option<f64>| {
        share.map_or("an unknown share".to_owned(), |share| format!("{:.0} %", share * 100.0))
    };
    let text = format!("{} in memory after reading, {} after eviction", percent(before), percent(after));
    match after {
        Some(_) if is_memory(protocol) => Answer::ok(format!("{text}; the file system is memory")),
        Some(share) => Answer::expect(share == 0.0, text),
        None => Answer::unknown(text),
    }
}

fn second_read(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    let Some((mount, protocol)) = on.reached else { return Ok(Answer::unknown("no mount to ask about")) };
    if is_memory(Some(protocol)) {
        return Ok(Answer::unknown("the file system is memory"));
    }
    let counters = || platform::counters(&on.target.name, mount);
    let file = stored(on, scratch, c"read-twice")?;
    let mut content = vec![0; BYTES];
    on.context.read_full(&file, &mut content, 0)?;
    on.context.evict(&file, BYTES as u64);
    let before = counters();
    on.context.read_full(&file, &mut content, 0)?;
    let after = counters();
    on.context.close(file)?;
    Ok(judge_second_read(mount.protocol.family(), before, after))
}

fn judge_second_read(family: Family, before: Option<Counters>, after: Option<Counters>) -> Answer {
    let (Some(before), Some(after)) = (before, after) else {
        return Answer::unknown("nothing counts what crosses");
    };
    if before.life != after.life {
        return Answer::unknown("the counter began anew meanwhile");
    }
    let read = before.read_bytes.zip(after.read_bytes).and_then(|(before, after)| after.checked_sub(before));
    let text = format!(
        "{} of {BYTES} bytes crossed, by {} of the {}",
        read.map_or("an unknown number".to_owned(), |read| read.to_string()),
        after.source.name(),
        after.covers.name()
    );
    let wire = Wire { read, written: None, requests: None, source: after.source, covers: after.covers };
    match wire.served_by_client(BYTES as u64, 1) {
        Some(share) => Answer::expect(share <= COLD_SHARE, text),
        // More crossed than this file explains: another program reads.
        None if family == Family::Network || after.covers == Covers::Process => Answer::unknown(text),
        None => Answer::unknown("nothing counts what crosses"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;
    use crate::selfcheck::Verdict;

    #[test]
    fn a_page_that_stays_after_eviction_differs() {
        let apfs = Protocol::Local("apfs".to_owned());
        let judged = |after| judge_eviction(Some(&apfs), Some(1.0), after);
        assert_eq!(judged(Some(0.0)), Answer::ok("100 % in memory after reading, 0 % after eviction"));
        assert_eq!(judged(Some(0.01)).verdict, Verdict::Differs);
        assert_eq!(judged(None).verdict, Verdict::Unknown);
        let tmpfs = Protocol::Local("tmpfs".to_owned());
        assert_eq!(judge_eviction(Some(&tmpfs), Some(1.0), Some(1.0)).verdict, Verdict::Ok);
    }

    fn counted(bytes: u64, life: &str) -> Option<Counters> {
        let counters = Counters::of(Source::Connections, Covers::Server, life.to_owned());
        Some(Counters { read_bytes: Some(bytes), ..counters })
    }

    #[test]
    fn a_second_read_from_memory_differs() {
        let judged = |after| judge_second_read(Family::Network, counted(1000, "a"), after).verdict;
        assert_eq!(judged(counted(1000 + (1 << 20), "a")), Verdict::Ok);
        assert_eq!(judged(counted(1200, "a")), Verdict::Differs);
        assert_eq!(judged(counted(1000 + (40 << 20), "a")), Verdict::Unknown, "another program reads too");
        assert_eq!(judged(counted(5, "b")), Verdict::Unknown, "a new counter");
        assert_eq!(judged(None), Verdict::Unknown);
    }

    #[test]
    fn a_local_disk_of_a_mac_is_synced_in_full() {
        let (apfs, smb) = (Protocol::Local("apfs".to_owned()), Protocol::Smb(None));
        assert!(is_expected(System::MacOs, Some(&apfs), SyncKind::FullFsync));
        assert!(!is_expected(System::MacOs, Some(&apfs), SyncKind::Fsync));
        assert!(is_expected(System::MacOs, Some(&smb), SyncKind::Fsync));
        assert!(is_expected(System::Linux, Some(&smb), SyncKind::Fsync));
    }

    #[test]
    fn the_content_has_no_repetition_to_compress() {
        let content = content();
        assert_eq!(content.len(), BYTES);
        let distinct: std::collections::BTreeSet<&[u8]> = content.chunks(8).collect();
        assert_eq!(distinct.len(), BYTES / 8);
    }
}
