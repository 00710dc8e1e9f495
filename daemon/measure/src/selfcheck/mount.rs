//! What is known of the mount that a target lies on, without files of one's own.

use crate::model::{Family, Negotiated, Protocol, Reading};
use crate::platform;

use super::{Answer, Ask, CheckedTarget, Expectation, Expectations, TargetCheck, milliseconds_since};

/// The calls of this group.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck {
        call: "mount of the folder",
        expected: Expectations {
            linux: Expectation {
                text: "a mount with a known protocol, writable",
                source: "proc_pid_mountinfo(5)",
            },
            macos: Expectation {
                text: "a mount with a known protocol, writable",
                source: "xnu bsd/vfs/vfs_syscalls.c, getfsstat_callback; bsd/sys/mount.h",
            },
        },
        ask: Ask::Mount(mount),
    },
    TargetCheck {
        call: "negotiated",
        expected: Expectations {
            linux: Expectation {
                text: "the version of SMB or NFS; nothing on other file systems",
                source: "mount.cifs(8), nfs(5)",
            },
            macos: Expectation {
                text: "the version of SMB or NFS, without a grant; nothing on other file systems",
                source: "SMBClient smbutil/statshares.c; NFS nfsstat/nfsstat.c",
            },
        },
        ask: Ask::Mount(negotiated),
    },
    TargetCheck {
        call: "counters",
        expected: Expectations {
            linux: Expectation {
                text: "one source counts the bytes of a share, /proc/PID/io those of a local disk",
                source: "nfsiostat(8), kernel Documentation/admin-guide/cifs, proc_pid_io(5)",
            },
            macos: Expectation {
                text: "one source counts the bytes of a share, proc_pid_rusage those of a local disk",
                source: "xnu bsd/netinet/in_pcblist.c, bsd/sys/resource.h; SMBClient smbutil/multichannel.c",
            },
        },
        ask: Ask::Mount(counters),
    },
];

fn mount(on: &CheckedTarget<'_>) -> Answer {
    let Some((mount, protocol)) = on.reached else {
        return Answer::differs("no mount holds the folder");
    };
    let access = if mount.read_only { "read-only" } else { "writable" };
    let size = if mount.total_bytes.is_some() { "size in the table" } else { "no size in the table" };
    let is_known = protocol.family() != Family::Other;
    Answer::expect(is_known && !mount.read_only, format!("{protocol}, {access}, {size}"))
}

fn negotiated(on: &CheckedTarget<'_>) -> Answer {
    let Some((mount, _)) = on.reached else { return Answer::unknown("no mount to ask about") };
    let began = platform::monotonic_ns();
    let found = platform::negotiated(mount);
    let took = milliseconds_since(began);
    let protocol = platform::protocol_with(mount.protocol.clone(), &found);
    judge_negotiated(&protocol, &found, &took)
}

/// Only the keys are shown: a value may name a server.
fn judge_negotiated(protocol: &Protocol, found: &Negotiated, took: &str) -> Answer {
    let keys: Vec<&str> = found.keys().map(String::as_str).collect();
    let told = format!("{} keys in {took}: {}", keys.len(), keys.join(" "));
    match protocol {
        Protocol::Smb(Some(_)) | Protocol::Nfs(Some(_)) => Answer::ok(format!("{protocol}; {told}")),
        Protocol::Smb(None) | Protocol::Nfs(None) => {
            Answer::differs(format!("no version was told in {took}, {} keys", keys.len()))
        }
        _ => Answer::ok("nothing is negotiated here"),
    }
}

fn counters(on: &CheckedTarget<'_>) -> Answer {
    let Some((mount, _)) = on.reached else { return Answer::unknown("no mount to ask about") };
    if mount.protocol.family() == Family::Local {
        return super::machine::disk_counters();
    }
    let readings = platform::readings(&[(on.target.name.clone(), mount.clone())]);
    judge_counters(mount.protocol.family(), readings.iter().find(|reading| reading.target.is_some()))
}

fn judge_counters(family: Family, reading: Option<&Reading>) -> Answer {
    let told = reading.map_or(&[][..], |reading| &reading.counters);
    let each = told.iter().map(|told| match told {
        Ok(counters) => {
            let bytes = if counters.read_bytes.is_some() { "bytes" } else { "no bytes" };
            let requests = if counters.requests.is_some() { ", requests" } else { "" };
            format!("{}: {bytes}{requests} of the {}", counters.source.name(), counters.covers.name())
        }
        Err(unread) => format!("{}: {}", unread.source.name(), unread.why),
    });
    let text = each.collect::<Vec<_>>().join("; ");
    let has_bytes = told.iter().flatten().any(|counters| counters.read_bytes.is_some());
    match family {
        _ if has_bytes => Answer::ok(text),
        Family::Network if text.is_empty() => Answer::unknown("nothing counts for this protocol"),
        Family::Network => Answer::differs(text),
        _ => Answer::unknown("nothing counts for this file system"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counters, Covers, Source, Unread};
    use crate::selfcheck::Verdict;

    fn negotiated_with(protocol: Protocol, pairs: &[(&str, &str)]) -> Answer {
        let found = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        judge_negotiated(&protocol, &found, "1 ms")
    }

    #[test]
    fn a_share_without_a_version_differs_and_values_stay_hidden() {
        let smb = negotiated_with(Protocol::Smb(Some("3.1.1".into())), &[("SERVER_NAME", "nas.local")]);
        assert_eq!(smb.verdict, Verdict::Ok);
        assert!(smb.text.contains("SERVER_NAME") && !smb.text.contains("nas.local"), "{}", smb.text);
        assert_eq!(negotiated_with(Protocol::Nfs(None), &[]).verdict, Verdict::Differs);
        assert_eq!(negotiated_with(Protocol::Local("apfs".into()), &[]).verdict, Verdict::Ok);
    }

    #[test]
    fn one_source_with_bytes_is_enough() {
        let unread = Err(Unread { source: Source::Nfsstat, why: "it is not there".to_owned() });
        let counted = Counters {
            read_bytes: Some(1),
            ..Counters::of(Source::Connections, Covers::Server, "192.168.1.5".to_owned())
        };
        let judged = |counters| judge_counters(Family::Network, Some(&Reading { target: None, counters }));
        let both = judged(vec![unread.clone(), Ok(counted)]);
        assert_eq!(both.verdict, Verdict::Ok);
        assert!(
            both.text.contains("nfsstat: it is not there") && !both.text.contains("192."),
            "{}",
            both.text
        );
        assert_eq!(judged(vec![unread]).verdict, Verdict::Differs);
        assert_eq!(judge_counters(Family::Fuse, None).verdict, Verdict::Unknown);
    }
}
