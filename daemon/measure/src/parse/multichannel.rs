//! Parser for the output of `smbutil multichannel -m POINT -i -x -f JSON` (SMBClient smbutil/multichannel.c): the
//! bytes of each SMB session.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;

/// Counters of a mount's SMB session. Mounts of one server by one user mostly share a session, and then show
/// the same numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmbSession {
    /// Bytes received, headers and metadata included.
    pub received: Option<u64>,
    /// Bytes sent.
    pub sent: Option<u64>,
    /// Number of reconnects of the session.
    pub reconnects: Option<u64>,
    /// Setup time of the session, in local time as printed. It distinguishes the session from its successor.
    pub setup_time: Option<String>,
    /// Address of the server.
    pub server: Option<IpAddr>,
}

/// Parses the sessions, by mount point; `None` if the output is not that of the tool. Every value is a
/// string, even numbers.
pub fn multichannel(output: &[u8]) -> Option<BTreeMap<PathBuf, SmbSession>> {
    let mounts: BTreeMap<PathBuf, Value> = serde_json::from_slice(output).ok()?;
    Some(mounts.into_iter().map(|(point, mount)| (point, session(&mount))).collect())
}

fn session(mount: &Value) -> SmbSession {
    let text = |name: &str| mount.get("session_info")?.get(name)?.as_str();
    let number = |name: &str| text(name)?.parse().ok();
    SmbSession {
        received: number("total_rx_bytes"),
        sent: number("total_tx_bytes"),
        reconnects: number("session_reconnect_count"),
        setup_time: text("session_setup_time").map(str::to_owned),
        server: server(mount),
    }
}

/// Returns the address of the first channel that has one.
fn server(mount: &Value) -> Option<IpAddr> {
    let channels = mount.get("multi_channel_status")?.as_object()?;
    channels.values().find_map(|channel| channel.get("server_inet")?.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const MACOS_14: &[u8] = include_bytes!("../../tests/fixtures/smbutil-multichannel.json");

    #[test]
    fn a_session_has_bytes_and_a_server() {
        let sessions = multichannel(MACOS_14).unwrap();
        let media = &sessions[Path::new("/Volumes/media")];
        assert_eq!(
            (media.received, media.sent, media.reconnects),
            (Some(91_234_567), Some(1_234_567), Some(2))
        );
        assert_eq!(media.server, "192.168.1.5".parse().ok());
        assert_eq!(media.setup_time.as_deref(), Some("2026-11-20 09:12:01"));
    }

    #[test]
    fn missing_values_of_a_session_are_not_zero() {
        let sessions = multichannel(MACOS_14).unwrap();
        assert_eq!(sessions[Path::new("/Volumes/bare")], SmbSession::default());
        assert_eq!(multichannel(b"{\n}\n"), Some(BTreeMap::new()));
        for output in ["", "[]", "smbutil: no", "{\"a\": "] {
            assert_eq!(multichannel(output.as_bytes()), None, "{output}");
        }
    }
}
