//! Parser for the output of `nfsstat -m`, with `-f JSON` and without (NFS nfsstat/nfsstat.c, printer.c).

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;

use super::options::significant_options;
use longhaul_model::NegotiatedOptions;

/// NFS mount in the output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NfsMount {
    /// Mount point.
    pub point: PathBuf,
    /// Parameters in force, such as `vers=3` and `tcp`, as opposed to those that were requested.
    pub parameters: Vec<String>,
    /// State of the mount: any of `dead`, `not responding`, `recovery`; empty if all is well. `None` if the
    /// output does not contain it.
    pub status: Option<Vec<String>>,
    /// Address of the server: the one in use if the output tells it, or else the first one that is listed.
    pub server: Option<IpAddr>,
}

impl NfsMount {
    /// Returns the negotiated options, with the key `vers` if it is known.
    pub fn negotiated(&self) -> NegotiatedOptions {
        significant_options(self.parameters.iter().map(String::as_str))
    }
}

/// Parses the mounts; `None` if the output is not that of the tool. JSON output is keyed by source, so that
/// of two mounts of one export it contains only one.
pub fn nfsstat(output: &[u8]) -> Option<Vec<NfsMount>> {
    match serde_json::from_slice::<Value>(output) {
        Ok(mounts) => mounts.as_object()?.values().map(from_json).collect(),
        Err(_) => from_text(&String::from_utf8_lossy(output)),
    }
}

fn from_json(mount: &Value) -> Option<NfsMount> {
    // In macOS 11 the key of the mount point was `Server` (NFS-150.40.3 nfsstat/printer.c:261).
    let point = mount.get("Mount Point").or_else(|| mount.get("Server"))?.as_str()?;
    let current = mount.get("Current mount parameters").unwrap_or(&Value::Null);
    let owned = |list: &Value| words(list).map(str::to_owned).collect::<Vec<_>>();
    let first_location = || current.get("File system locations")?.get(0);
    Some(NfsMount {
        point: point.into(),
        parameters: current.get("NFS parameters").map(owned).unwrap_or_default(),
        status: mount.get("Status flags").and_then(|flags| flags.get("Flags")).map(owned),
        // Printed only if there are several locations, servers or addresses (NFS nfsstat/nfsstat.c:1994-2026).
        server: first_address(current.get("Current location")).or_else(|| first_address(first_location())),
    })
}

/// Returns the first address of a location, if possible one that has a route without its interface.
fn first_address(location: Option<&Value>) -> Option<IpAddr> {
    let is_link_local =
        |address: &IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    let all: Vec<IpAddr> = words(location?.get("Locations")?).filter_map(address).collect();
    all.iter().find(|address| !is_link_local(address)).or(all.first()).copied()
}

/// Parses an address without its scope: `mount_nfs` adds the interface to a link-local address, as in `fe80::1%en0`
/// (NFS mount_nfs/mount_nfs.c:1038-1040).
fn address(text: &str) -> Option<IpAddr> {
    text.split('%').next()?.parse().ok()
}

/// Section of a mount in the text output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Options that the mount was requested with.
    Requested,
    /// Parameters in force.
    InForce,
    /// Address in use.
    CurrentLocation,
}

/// Parses the text output: `POINT from SOURCE`, followed by indented lines with the requested options, the
/// parameters in force and the status.
fn from_text(text: &str) -> Option<Vec<NfsMount>> {
    let mut mounts: Vec<NfsMount> = vec![];
    let mut section = Section::Requested;
    for line in text.lines() {
        if line.starts_with('/')
            && let Some((point, _)) = line.rsplit_once(" from ")
        {
            mounts.push(NfsMount { point: point.into(), ..NfsMount::default() });
            section = Section::Requested;
        } else if let Some(mount) = mounts.last_mut() {
            if line.contains("-- Current mount parameters:") {
                section = Section::InForce;
            } else if line.trim_start().starts_with("Current location: ") {
                section = Section::CurrentLocation;
            }
            mount.add(line.trim(), section);
        }
    }
    Some(mounts).filter(|mounts| !mounts.is_empty())
}

impl NfsMount {
    /// Adds one of the lines that follow the first line of a mount.
    fn add(&mut self, line: &str, section: Section) {
        let list = |text: &str| text.trim().split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>();
        if let Some(flags) = line.strip_prefix("Status flags: ") {
            self.status = Some(flags.split_once(' ').map(|(_, flags)| list(flags)).unwrap_or_default());
        } else if section == Section::Requested {
            // Requested options are ignored: only the parameters in force count.
        } else if let Some(parameters) = line.strip_prefix("NFS parameters: ") {
            self.parameters = list(parameters);
        } else if let Some((_, addresses)) =
            line.split_once(" @ ").and_then(|(_, server)| server.split_once('('))
        {
            let first = list(addresses.trim_end_matches(')')).iter().find_map(|one| address(one));
            self.server = match section {
                Section::CurrentLocation => first.or(self.server),
                Section::Requested | Section::InForce => self.server.or(first),
            };
        }
    }
}

fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn output_without_mounts_is_rejected() {
        for output in ["", "[]", "{\"a\": 1}", "nfsstat: no", "  -- Current mount parameters:\n"] {
            assert_eq!(nfsstat(output.as_bytes()), None, "{output}");
        }
    }

    fn server(output: &str) -> Option<String> {
        nfsstat(output.as_bytes()).unwrap()[0].server.map(|server| server.to_string())
    }

    #[test]
    fn of_several_addresses_the_current_one_counts() {
        let output = |current: Value| {
            let listed = json!([{ "Locations": ["fe80::1%en0", "192.168.1.5"] }]);
            let parameters = json!({ "File system locations": listed, "Current location": current });
            json!({ "nas:/a": { "Mount Point": "/a", "Current mount parameters": parameters } }).to_string()
        };
        let current = |address: &str| output(json!({ "Status": "valid", "Locations": [address] }));
        assert_eq!(server(&current("192.168.1.5")).as_deref(), Some("192.168.1.5"));
        assert_eq!(server(&current("fe80::2%en7")).as_deref(), Some("fe80::2"));
        assert_eq!(server(&output(json!({ "Status": "invalid" }))).as_deref(), Some("192.168.1.5"));
    }

    #[test]
    fn the_current_address_counts_also_in_the_text() {
        let listed = "/a from nas:/a\n  -- Current mount parameters:\n     File system locations:\n       \
            /a @ nas (192.168.1.5,fe80::2%en7)\n";
        let current =
            |text: &str| server(&format!("{listed}     Current location: {text}\n     Status flags: 0x0\n"));
        assert_eq!(server(listed).as_deref(), Some("192.168.1.5"));
        assert_eq!(current("0x0 0 0 1: \n       /a @ nas (fe80::2%en7)").as_deref(), Some("fe80::2"));
        assert_eq!(current("0x0 0 0 7: <invalid>").as_deref(), Some("192.168.1.5"));
    }
}
