//! Checks of a target's mount that need no files.

use crate::platform;
use longhaul_model::{CounterReading, NegotiatedOptions, Protocol, ProtocolFamily};

use super::check::{
    CheckAnswer, CheckOutcome, CheckedTarget, TargetCheck, TargetCheckMethod, milliseconds_since,
};

/// Checks of this module, in the order in which they run.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck::named("mount of the folder", TargetCheckMethod::Mount(mount))
        .linux("a mount with a known protocol, writable", "proc_pid_mountinfo(5)")
        .macos(
            "a mount with a known protocol, writable",
            "xnu bsd/vfs/vfs_syscalls.c:4153, getfsstat64_callback; bsd/sys/mount.h:110",
        ),
    TargetCheck::named("negotiated", TargetCheckMethod::Mount(negotiated))
        .linux("version of SMB or NFS; nothing on other file systems", "mount.cifs(8), nfs(5)")
        .macos(
            "version of SMB or NFS, without a special permission; nothing on other file systems",
            "SMBClient smbutil/statshares.c:591; NFS nfsstat/nfsstat.c:1626",
        ),
    TargetCheck::named("counters", TargetCheckMethod::Mount(counters))
        .linux(
            "a counter for the bytes of a share; /proc/PID/io for a local disk",
            "nfsiostat(8), kernel Documentation/admin-guide/cifs, proc_pid_io(5)",
        )
        .macos(
            "a counter for the bytes of a share; proc_pid_rusage for a local disk",
            "xnu bsd/netinet/in_pcblist.c:292, bsd/sys/resource.h:242; SMBClient smbutil/multichannel.c:492",
        ),
];

fn mount(on: &CheckedTarget<'_>) -> CheckAnswer {
    let Some((mount, protocol)) = on.mount else {
        return CheckAnswer::differs("no mount contains the folder");
    };
    let access = if mount.read_only { "read-only" } else { "writable" };
    let size = if mount.total_bytes.is_some() { "size" } else { "no size" };
    let size = format!("{size} in the mount table");
    let is_known = protocol.family() != ProtocolFamily::Other;
    CheckAnswer::new(
        CheckOutcome::from(is_known && !mount.read_only),
        format!("{protocol}, {access}, {size}"),
    )
}

fn negotiated(on: &CheckedTarget<'_>) -> CheckAnswer {
    let Some((mount, _)) = on.mount else { return CheckAnswer::unknown("no mount was found") };
    let start = platform::monotonic_ns();
    let found = platform::negotiated(mount);
    let time = milliseconds_since(start);
    let protocol = platform::with_negotiated_version(mount.protocol.clone(), &found);
    judge_negotiated(&protocol, &found, &time)
}

/// Judges the negotiated options of a mount. Shows only the keys, because a value may be the name of a server.
fn judge_negotiated(protocol: &Protocol, found: &NegotiatedOptions, time: &str) -> CheckAnswer {
    let keys: Vec<&str> = found.keys().map(String::as_str).collect();
    let reported = format!("{} keys in {time}: {}", keys.len(), keys.join(" "));
    match protocol {
        Protocol::Smb(Some(_)) | Protocol::Nfs(Some(_)) => CheckAnswer::ok(format!("{protocol}; {reported}")),
        Protocol::Smb(None) | Protocol::Nfs(None) => {
            CheckAnswer::differs(format!("no version was reported in {time}, {} keys", keys.len()))
        }
        _ => CheckAnswer::ok("this file system negotiates nothing"),
    }
}

fn counters(on: &CheckedTarget<'_>) -> CheckAnswer {
    let Some((mount, _)) = on.mount else { return CheckAnswer::unknown("no mount was found") };
    if mount.protocol.family() == ProtocolFamily::Local {
        return super::machine::disk_counters();
    }
    let readings = platform::read_counters(&[(on.target.name.clone(), mount.clone())]);
    judge_counters(mount.protocol.family(), readings.iter().find(|reading| reading.target.is_some()))
}

fn judge_counters(family: ProtocolFamily, reading: Option<&CounterReading>) -> CheckAnswer {
    let results = reading.map_or(&[][..], |reading| &reading.counters);
    let each = results.iter().map(|result| match result {
        Ok(counters) => {
            let bytes = if counters.read_bytes.is_some() { "bytes" } else { "no bytes" };
            let requests = if counters.requests.is_some() { ", requests" } else { "" };
            format!("{}: {bytes}{requests} of the {}", counters.source.name(), counters.scope.name())
        }
        Err(unavailable) => format!("{}: {}", unavailable.source.name(), unavailable.reason),
    });
    let text = each.collect::<Vec<_>>().join("; ");
    let has_bytes = results.iter().flatten().any(|counters| counters.read_bytes.is_some());
    match family {
        _ if has_bytes => CheckAnswer::ok(text),
        ProtocolFamily::Network if text.is_empty() => CheckAnswer::unknown("no counter for this protocol"),
        ProtocolFamily::Network => CheckAnswer::differs(text),
        _ => CheckAnswer::unknown("no counter for this file system"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{CounterScope, CounterSource, CounterUnavailable, Counters};

    fn negotiated_with(protocol: Protocol, pairs: &[(&str, &str)]) -> CheckAnswer {
        let found = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        judge_negotiated(&protocol, &found, "1 ms")
    }

    #[test]
    fn share_without_a_version_differs_and_values_are_hidden() {
        let smb = negotiated_with(Protocol::Smb(Some("3.1.1".into())), &[("SERVER_NAME", "nas.local")]);
        assert_eq!(smb.verdict, CheckOutcome::Ok);
        assert!(smb.text.contains("SERVER_NAME") && !smb.text.contains("nas.local"), "{}", smb.text);
        assert_eq!(negotiated_with(Protocol::Nfs(None), &[]).verdict, CheckOutcome::Differs);
        assert_eq!(negotiated_with(Protocol::Local("apfs".into()), &[]).verdict, CheckOutcome::Ok);
    }

    #[test]
    fn one_source_with_bytes_is_enough() {
        let unavailable =
            Err(CounterUnavailable { source: CounterSource::Smbutil, reason: "not installed".to_owned() });
        let counted = Counters {
            read_bytes: Some(1),
            ..Counters::new(CounterSource::Connections, CounterScope::Server, "192.168.1.5".to_owned())
        };
        let judged = |counters| {
            judge_counters(ProtocolFamily::Network, Some(&CounterReading { target: None, counters }))
        };
        let both = judged(vec![unavailable.clone(), Ok(counted)]);
        assert_eq!(both.verdict, CheckOutcome::Ok);
        assert!(both.text.contains("smbutil: not installed") && !both.text.contains("192."), "{}", both.text);
        assert_eq!(judged(vec![unavailable]).verdict, CheckOutcome::Differs);
        assert_eq!(judge_counters(ProtocolFamily::Fuse, None).verdict, CheckOutcome::Unknown);
    }
}
