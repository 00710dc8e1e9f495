//! `nfsstat -m -f JSON` and `nfsstat -c -f JSON` (NFS nfsstat/nfsstat.c, printer.c).

use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

use super::options::telling;
use crate::model::Negotiated;

/// What was negotiated on the mount at `point`, with the key `vers` if it is known; empty if it is not in the output.
///
/// The output is keyed by source, so of two mounts of one export it names only one.
pub fn nfsstat(output: &[u8], point: &Path) -> Negotiated {
    let parameters = |mount: &Value| mount.get("Current mount parameters")?.get("NFS parameters").cloned();
    let found = mount_at(output, point).as_ref().and_then(parameters).unwrap_or_default();
    telling(words(&found))
}

/// How the mount at `point` is doing: any of `dead`, `not responding`, `recovery`, nothing if all is well; `None` if
/// the mount is not in the output.
pub fn nfsstat_status(output: &[u8], point: &Path) -> Option<Vec<String>> {
    let mount = mount_at(output, point)?;
    let flags = mount.get("Status flags")?.get("Flags")?;
    Some(words(flags).map(str::to_owned).collect())
}

/// The server's address of the mount at `point`, the first that is listed.
pub fn nfsstat_server(output: &[u8], point: &Path) -> Option<IpAddr> {
    let mount = mount_at(output, point)?;
    let location = mount.get("Current mount parameters")?.get("File system locations")?.get(0)?;
    words(location.get("Locations")?).find_map(|address| address.parse().ok())
}

/// What all NFS mounts of a Mac have counted together, since it was started or anybody set it to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NfsClient {
    /// Requests, without those that renew leases and ask whether a server is there.
    pub requests: Option<u64>,
    /// Requests sent again.
    pub retransmissions: Option<u64>,
}

/// The counters; they tell no bytes. `None`: this is not that output.
pub fn nfsstat_client(output: &[u8]) -> Option<NfsClient> {
    let said: Value = serde_json::from_slice(output).ok()?;
    let client = said.get("Client Info")?;
    let count = |group: &str, name: &str| client.get(group)?.get(name)?.as_u64();
    let housekeeping = [
        ("NFSv3 RPC Counts", "Null"),
        ("NFSv4 RPC Counts", "Null"),
        ("NFSv4 Operation Counts", "Renew"),
        ("NFSv4.1 Operation Counts", "Sequence"),
    ];
    let nobody_asked = housekeeping.iter().filter_map(|(group, name)| count(group, name));
    Some(NfsClient {
        requests: count("RPC Info", "Requests")
            .map(|requests| requests.saturating_sub(nobody_asked.fold(0, u64::saturating_add))),
        retransmissions: count("RPC Info", "Retries"),
    })
}

fn mount_at(output: &[u8], point: &Path) -> Option<Value> {
    let mounts: serde_json::Map<String, Value> = serde_json::from_slice(output).ok()?;
    let is_here =
        |mount: &Value| mount.get("Mount Point").and_then(Value::as_str).map(Path::new) == Some(point);
    mounts.into_iter().map(|(_, mount)| mount).find(is_here)
}

fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO_MOUNTS: &[u8] = include_bytes!("../../../tests/fixtures/nfsstat-mounts.json");

    fn at(point: &str) -> Negotiated {
        nfsstat(TWO_MOUNTS, Path::new(point))
    }

    #[test]
    fn parameters_are_those_in_use_and_not_those_asked_for() {
        let found = at("/Volumes/media-nfs");
        let value = |name: &str| found.get(name).map(String::as_str);
        assert_eq!((value("vers"), value("rsize")), (Some("3"), Some("32768")));
        assert_eq!((value("tcp"), value("hard"), value("port")), (Some("yes"), Some("yes"), None));
        assert_eq!(at("/Volumes/four").get("vers").map(String::as_str), Some("4.0"));
    }

    #[test]
    fn a_mount_that_is_not_listed_says_nothing() {
        assert_eq!(at("/Volumes/other"), Negotiated::new());
        assert_eq!(nfsstat_status(TWO_MOUNTS, Path::new("/Volumes/other")), None);
        for output in ["", "{\n}", "[]", "{\"a\": 1}", "nfsstat: no"] {
            assert_eq!(nfsstat(output.as_bytes(), Path::new("/a")), Negotiated::new());
        }
    }

    #[test]
    fn a_mount_that_does_not_respond_says_so() {
        let status = |point: &str| nfsstat_status(TWO_MOUNTS, Path::new(point));
        assert_eq!(status("/Volumes/four"), Some(vec!["not responding".to_owned()]));
        assert_eq!(status("/Volumes/media-nfs"), Some(vec![]));
    }

    #[test]
    fn a_mount_says_where_its_server_is() {
        let server = |point: &str| nfsstat_server(TWO_MOUNTS, Path::new(point));
        assert_eq!(server("/Volumes/media-nfs"), "192.168.1.5".parse().ok());
        assert_eq!(server("/Volumes/other"), None);
    }

    #[test]
    fn a_client_counts_what_somebody_asked_for() {
        let counters = nfsstat_client(include_bytes!("../../../tests/fixtures/nfsstat-client.json"));
        assert_eq!(counters, Some(NfsClient { requests: Some(1134 - 2 - 1 - 12), retransmissions: Some(3) }));
        assert_eq!(nfsstat_client(b"{\"Client Info\": {}}"), Some(NfsClient::default()));
        assert_eq!(nfsstat_client(b"nfsstat: no"), None);
    }

    proptest! {
        #[test]
        fn any_text_ends_without_panic(text in "[\\[\\]{}\":,A-Za-z0-9/= ]{0,200}") {
            prop_assert!(nfsstat(text.as_bytes(), Path::new("/a")).len() <= text.len());
            let _ = nfsstat_status(text.as_bytes(), Path::new("/a"));
            let _ = (nfsstat_server(text.as_bytes(), Path::new("/a")), nfsstat_client(text.as_bytes()));
        }
    }
}
