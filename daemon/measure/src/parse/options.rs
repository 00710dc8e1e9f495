//! Mount options: those that client and server agreed on, and the version among them.

use longhaul_model::{NegotiatedOptions, Protocol};

/// Mount options that change what a network file system does, by the names of nfs(5), mount.cifs(8),
/// mount.fuse3(8) and mount_nfs(8) on macOS. User names, passwords and addresses are not in the list and so
/// are never stored.
const SIGNIFICANT_OPTIONS: &[&str] = &[
    // Options that client and server agreed on.
    "vers",
    "minorversion",
    "proto",
    "tcp",
    "udp",
    "rdma",
    "sec",
    "xprtsec",
    "rsize",
    "wsize",
    "dsize",
    "bsize",
    "rasize",
    "readahead",
    "max_read",
    "blksize",
    "nconnect",
    "max_connect",
    "trunkdiscovery",
    "multichannel",
    "max_channels",
    "max_credits",
    "sign",
    "seal",
    "ignore_signature",
    "compress",
    "unix",
    "nounix",
    "posix",
    "posixpaths",
    // Behavior of the client when the server does not answer.
    "hard",
    "soft",
    "softerr",
    "softreval",
    "nosoftreval",
    "intr",
    "nointr",
    "timeo",
    "retrans",
    "retry",
    "deadtimeout",
    "echo_interval",
    "handletimeout",
    "persistenthandles",
    "nopersistenthandles",
    "resilienthandles",
    "mutejukebox",
    // Caches of the client.
    "cache",
    "actimeo",
    "ac",
    "noac",
    "acregmin",
    "acregmax",
    "acdirmin",
    "acdirmax",
    "acrootdirmin",
    "acrootdirmax",
    "closetimeo",
    "lookupcache",
    "cto",
    "nocto",
    "fsc",
    "nolease",
    "nohandlecache",
    "noautotune",
    "rdirplus",
    "nordirplus",
    "negnamecache",
    "nonegnamecache",
    "sharecache",
    "nosharecache",
    "nosharesock",
    "async",
    "sync",
    "dirsync",
    "noatime",
    "writeback_cache",
    "nodatacache",
    "nomdatacache",
    // Available features.
    "local_lock",
    "lock",
    "nolock",
    "locks",
    "nolocks",
    "locallocks",
    "nobrl",
    "mfsymlinks",
    "mapposix",
    "mapchars",
    "serverino",
    "noserverino",
    "noacl",
    "nfc",
    "nonfc",
    "namedattr",
    "nonamedattr",
];

/// Returns the significant options among those of the form `name` or `name=value`. A name alone has the value
/// `yes`.
pub(super) fn significant_options<'a>(options: impl Iterator<Item = &'a str>) -> NegotiatedOptions {
    options
        .map(|option| option.trim().split_once('=').unwrap_or((option.trim(), "yes")))
        .filter(|(name, _)| SIGNIFICANT_OPTIONS.contains(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the protocol with its negotiated version: `dialect` or `vers` for SMB, `vers` for NFS.
///
/// A protocol that already has a version keeps it if the options contain none. A range such as `3-4` is not a
/// version.
pub fn with_negotiated_version(protocol: Protocol, negotiated: &NegotiatedOptions) -> Protocol {
    match protocol {
        Protocol::Nfs(known) => Protocol::Nfs(nfs_version(negotiated).or(known)),
        Protocol::Smb(known) => Protocol::Smb(smb_dialect(negotiated).or(known)),
        same @ (Protocol::Afp
        | Protocol::Webdav
        | Protocol::Sftp
        | Protocol::Fuse(_)
        | Protocol::Local(_)
        | Protocol::Other(_)) => same,
    }
}

/// Returns the version of NFS: `3`, `4.0`, `4.1`, `4.2`. Before `vers=4.1` Linux wrote
/// `vers=4,minorversion=1` (fs/nfs/super.c).
fn nfs_version(negotiated: &NegotiatedOptions) -> Option<String> {
    let version = negotiated.get("vers")?.as_str();
    let minor = negotiated.get("minorversion").map_or("0", String::as_str);
    match version {
        "4" => Some(format!("4.{minor}")),
        "2" | "3" | "4.0" | "4.1" | "4.2" => Some(version.to_owned()),
        _ => None,
    }
}

fn smb_dialect(negotiated: &NegotiatedOptions) -> Option<String> {
    dialect(negotiated.get("dialect").or_else(|| negotiated.get("vers"))?).map(str::to_owned)
}

/// Returns the dialect in its usual notation, from Linux (`vers=` of fs/smb/client/smb2pdu.h and smb1ops.c)
/// or macOS (`SMB_VERSION` of SMBClient smbutil/statshares.c:591); `None` for the name of a family of dialects,
/// such as `default` or `3`.
pub(super) fn dialect(name: &str) -> Option<&'static str> {
    match name.strip_prefix("SMB_").unwrap_or(name) {
        "1" | "1.0" => Some("1.0"),
        "2.0" | "2.002" | "2.0.2" => Some("2.0.2"),
        "2.1" => Some("2.1"),
        "3.0" => Some("3.0"),
        "3.02" | "3.0.2" => Some("3.0.2"),
        "3.11" | "3.1.1" => Some("3.1.1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_among_the_options_are_never_stored() {
        let options =
            "rw,username=ada,password=x,pass=x,domain=W,credentials=/etc/c,addr=10.0.0.2,hard,rsize=65536";
        let significant = significant_options(options.split(','));
        assert_eq!(
            significant,
            NegotiatedOptions::from([("hard".into(), "yes".into()), ("rsize".into(), "65536".into())])
        );
    }

    #[test]
    fn the_version_comes_from_what_was_negotiated() {
        let with = |protocol, options: &str| {
            with_negotiated_version(protocol, &significant_options(options.split(','))).to_string()
        };
        assert_eq!(with(Protocol::Nfs(None), "vers=4.2"), "NFS 4.2");
        assert_eq!(with(Protocol::Nfs(None), "vers=4,minorversion=1"), "NFS 4.1");
        assert_eq!(with(Protocol::Nfs(None), "vers=4"), "NFS 4.0");
        assert_eq!(with(Protocol::Nfs(None), "vers=3-4"), "NFS");
        assert_eq!(with(Protocol::Smb(None), "vers=3.02"), "SMB 3.0.2");
        assert_eq!(with(Protocol::Smb(None), "vers=default"), "SMB");
        assert_eq!(with(Protocol::Smb(Some("2.1".into())), "seal"), "SMB 2.1");
        assert_eq!(with(Protocol::Afp, "vers=3"), "AFP");
    }

    #[test]
    fn each_dialect_of_either_system_has_one_name() {
        let apple = ["SMB_1", "SMB_2.002", "SMB_2.1", "SMB_3.0", "SMB_3.0.2", "SMB_3.1.1"];
        let linux = ["1.0", "2.0", "2.1", "3.0", "3.02", "3.1.1"];
        let shown = ["1.0", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"].map(Some);
        assert_eq!(apple.map(dialect), shown);
        assert_eq!(linux.map(dialect), shown);
        assert_eq!(shown.map(|name| name.and_then(dialect)), shown);
    }
}
