//! `nfsstat -m` and `nfsstat -c`, with `-f JSON` and, of the first, without (NFS nfsstat/nfsstat.c, printer.c).

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::options::telling;
use crate::model::Negotiated;

/// One mount of the output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NfsMount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// The parameters in force, not those that were asked for: `vers=3`, `tcp`.
    pub parameters: Vec<String>,
    /// How it is doing: any of `dead`, `not responding`, `recovery`, nothing if all is well; `None` if that is not told.
    pub status: Option<Vec<String>>,
    /// The server's address, the first that is listed.
    pub server: Option<IpAddr>,
}

impl NfsMount {
    /// What was negotiated, with the key `vers` if it is known.
    pub fn negotiated(&self) -> Negotiated {
        telling(self.parameters.iter().map(String::as_str))
    }
}

/// The mounts. `None`: this is not that output. As JSON it is keyed by source, so that of two mounts of one export it
/// names only one.
pub fn nfsstat(output: &[u8]) -> Option<Vec<NfsMount>> {
    match serde_json::from_slice::<Value>(output) {
        Ok(mounts) => mounts.as_object()?.values().map(from_json).collect(),
        Err(_) => from_text(&String::from_utf8_lossy(output)),
    }
}

/// The mount at a point among those of the output.
pub fn nfsstat_at(output: &[u8], point: &Path) -> Option<NfsMount> {
    nfsstat(output)?.into_iter().find(|mount| mount.point == point)
}

fn from_json(mount: &Value) -> Option<NfsMount> {
    // in macOS 11 the key of the mount point was that of a server (NFS-150 nfsstat/printer.c, `json_mount_header`)
    let point = mount.get("Mount Point").or_else(|| mount.get("Server"))?.as_str()?;
    let current = mount.get("Current mount parameters").unwrap_or(&Value::Null);
    let owned = |list: &Value| words(list).map(str::to_owned).collect::<Vec<_>>();
    let addresses = current.get("File system locations").and_then(|found| found.get(0)?.get("Locations"));
    Some(NfsMount {
        point: point.into(),
        parameters: current.get("NFS parameters").map(owned).unwrap_or_default(),
        status: mount.get("Status flags").and_then(|flags| flags.get("Flags")).map(owned),
        server: addresses.and_then(|found| words(found).find_map(|address| address.parse().ok())),
    })
}

/// `POINT from SOURCE`, and below it, indented, the options asked for, the parameters in force and the status.
fn from_text(text: &str) -> Option<Vec<NfsMount>> {
    let mut mounts: Vec<NfsMount> = vec![];
    let mut is_current = false;
    for line in text.lines() {
        if line.starts_with('/')
            && let Some((point, _)) = line.rsplit_once(" from ")
        {
            mounts.push(NfsMount { point: point.into(), ..NfsMount::default() });
            is_current = false;
        } else if let Some(mount) = mounts.last_mut() {
            is_current |= line.contains("-- Current mount parameters:");
            mount.add(line.trim(), is_current);
        }
    }
    Some(mounts).filter(|mounts| !mounts.is_empty())
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

impl NfsMount {
    /// One line below that of the mount.
    fn add(&mut self, line: &str, is_current: bool) {
        let list = |text: &str| text.trim().split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>();
        if let Some(flags) = line.strip_prefix("Status flags: ") {
            self.status = Some(flags.split_once(' ').map(|(_, flags)| list(flags)).unwrap_or_default());
        } else if !is_current {
            // what was asked for
        } else if let Some(parameters) = line.strip_prefix("NFS parameters: ") {
            self.parameters = list(parameters);
        } else if self.server.is_none()
            && let Some((_, addresses)) =
                line.split_once(" @ ").and_then(|(_, server)| server.split_once('('))
        {
            self.server = list(addresses.trim_end_matches(')')).iter().find_map(|one| one.parse().ok());
        }
    }
}

fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO_MOUNTS: &[u8] = include_bytes!("../../../tests/fixtures/nfsstat-mounts.json");

    fn at(point: &str) -> Option<NfsMount> {
        nfsstat_at(TWO_MOUNTS, Path::new(point))
    }

    #[test]
    fn parameters_are_those_in_use_and_not_those_asked_for() {
        let found = at("/Volumes/media-nfs").unwrap().negotiated();
        let value = |name: &str| found.get(name).map(String::as_str);
        assert_eq!((value("vers"), value("rsize")), (Some("3"), Some("32768")));
        assert_eq!((value("tcp"), value("hard"), value("port")), (Some("yes"), Some("yes"), None));
        assert_eq!(at("/Volumes/four").unwrap().negotiated().get("vers").map(String::as_str), Some("4.0"));
    }

    #[test]
    fn a_mount_that_is_not_listed_is_not_found() {
        assert_eq!(at("/Volumes/other"), None);
        assert_eq!(nfsstat(b"{\n}\n"), Some(vec![]), "no mount at all is an answer");
        for output in ["", "[]", "{\"a\": 1}", "nfsstat: no", "  -- Current mount parameters:\n"] {
            assert_eq!(nfsstat(output.as_bytes()), None, "{output}");
        }
    }

    #[test]
    fn a_mount_that_does_not_respond_says_so() {
        let status = |point: &str| at(point).unwrap().status;
        assert_eq!(status("/Volumes/four"), Some(vec!["not responding".to_owned()]));
        assert_eq!(status("/Volumes/media-nfs"), Some(vec![]));
    }

    #[test]
    fn a_mount_says_where_its_server_is() {
        assert_eq!(at("/Volumes/media-nfs").unwrap().server, "192.168.1.5".parse().ok());
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
        fn any_text_ends_without_panic(text in "(/a from b\n)?[\\[\\]{}\":,A-Za-z0-9/= @()\n-]{0,200}") {
            let mounts = nfsstat(text.as_bytes()).unwrap_or_default();
            prop_assert!(mounts.iter().all(|mount| mount.negotiated().len() <= text.len()));
            let _ = nfsstat_client(text.as_bytes());
        }
    }
}
