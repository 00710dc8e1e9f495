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

/// Returns the address of the first of the best channels that have one. Channels that carry data are better than
/// others, because a dead or idle one is listed too, and of these the main channel is (SMBClient
/// smbutil/multichannel.c:57-90, 232-262).
fn server(mount: &Value) -> Option<IpAddr> {
    let channels = mount.get("multi_channel_status")?.as_object()?;
    let address = |channel: &Value| channel.get("server_inet")?.as_str()?.parse::<IpAddr>().ok();
    let is_active = |channel: &Value| channel.get("state").and_then(Value::as_str) == Some("session active");
    let is_main = |channel: &Value| {
        let flags = channel.get("flags").and_then(Value::as_array);
        flags.is_some_and(|flags| flags.iter().any(|flag| flag.as_str() == Some("main")))
    };
    let with_address = channels.values().filter(|channel| address(channel).is_some());
    address(with_address.min_by_key(|channel| (!is_active(channel), !is_main(channel)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
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

    fn channel(state: &str, flags: &[&str], server: &str) -> Value {
        json!({ "state": state, "flags": flags, "server_inet": server })
    }

    #[test]
    fn active_channels_and_then_the_main_one_name_the_server() {
        let server = |channels: [Value; 3]| {
            let [first, second, third] = channels;
            let mount = json!({ "multi_channel_status": { "0": first, "1": second, "2": third } });
            session(&mount).server.map(|server| server.to_string())
        };
        let dead = || channel("session is dead", &["main"], "192.168.1.5");
        let second = |state: &str| channel(state, &["rss_1"], "192.168.1.6");
        let active = "session active";
        let main = || channel(active, &["rss_1", "main"], "192.168.1.7");
        assert_eq!(server([dead(), second(active), main()]).as_deref(), Some("192.168.1.7"));
        assert_eq!(server([dead(), second("session inactive"), main()]).as_deref(), Some("192.168.1.7"));
        let unnamed = || channel(active, &[], "[Unknown ip type 0 ]");
        assert_eq!(server([dead(), second(active), unnamed()]).as_deref(), Some("192.168.1.6"));
        assert_eq!(server([second("not connected"), dead(), unnamed()]).as_deref(), Some("192.168.1.5"));
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
