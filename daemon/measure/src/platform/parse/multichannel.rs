//! `smbutil multichannel -a -i -x -f JSON` (SMBClient smbutil/multichannel.c): the bytes of each SMB session.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::Value;

/// What the SMB session below a mount has counted. Mounts of one server by one user mostly share a session, and then show
/// the same numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SmbSession {
    /// Bytes received, headers and metadata included.
    pub received: Option<u64>,
    /// Bytes sent.
    pub sent: Option<u64>,
    /// Times that the session was made again.
    pub reconnects: Option<u64>,
    /// When it was set up, in local time as it is written: tells it from its successor.
    pub set_up: Option<String>,
    /// The server.
    pub server: Option<IpAddr>,
}

/// The sessions by mount point. Every value is a text, even numbers. `None`: this is not that output.
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
        set_up: text("session_setup_time").map(str::to_owned),
        server: server(mount),
    }
}

/// The address of the first channel that has one.
fn server(mount: &Value) -> Option<IpAddr> {
    let channels = mount.get("multi_channel_status")?.as_object()?;
    channels.values().find_map(|channel| channel.get("server_inet")?.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    const MACOS_14: &[u8] = include_bytes!("../../../tests/fixtures/smbutil-multichannel.json");

    #[test]
    fn a_session_tells_its_bytes_and_its_server() {
        let sessions = multichannel(MACOS_14).unwrap();
        let media = &sessions[Path::new("/Volumes/media")];
        assert_eq!(
            (media.received, media.sent, media.reconnects),
            (Some(91_234_567), Some(1_234_567), Some(2))
        );
        assert_eq!(media.server, "192.168.1.5".parse().ok());
        assert_eq!(media.set_up.as_deref(), Some("2026-11-20 09:12:01"));
    }

    #[test]
    fn a_session_that_is_not_told_of_has_no_zeros() {
        let sessions = multichannel(MACOS_14).unwrap();
        assert_eq!(sessions[Path::new("/Volumes/bare")], SmbSession::default());
        assert_eq!(multichannel(b"{\n}\n"), Some(BTreeMap::new()));
        for output in ["", "[]", "smbutil: no", "{\"a\": "] {
            assert_eq!(multichannel(output.as_bytes()), None, "{output}");
        }
    }

    proptest! {
        #[test]
        fn any_text_ends_without_panic(text in "[\\[\\]{}\":,a-z_0-9/ ]{0,200}") {
            let _ = multichannel(text.as_bytes());
        }
    }
}
