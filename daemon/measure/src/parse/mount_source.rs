//! Mount sources as users may see them: without user names, passwords and escapes.

use std::net::Ipv4Addr;

use longhaul_model::SHARE_KEYS;
use longhaul_model::draw::draw;

/// Returns a mount source without the user name and password in it. A part that may be a secret is removed
/// rather than kept.
///
/// Handles `//user:password@host/share` (SMB, AFP), `scheme://user@host/path` (WebDAV, FTP),
/// `user@host:/path` (sshfs) and `:backend,key=value:path` (rclone, whose values may be passwords).
pub(super) fn without_credentials(source: &str) -> String {
    if source.starts_with(':') {
        return source.split(',').next().unwrap_or_default().to_owned();
    }
    let host = source.find("//").map_or(0, |at| at + 2);
    let (head, rest) = source.split_at(host);
    format!("{head}{}", strip_user(rest))
}

/// Returns the part of `user:password@host/path` after the user part.
///
/// The user part ends before the first `/`. If that leaves a `:` without a port number after it, the password
/// contains a `/`, and then the last `@` ends the user part.
fn strip_user(rest: &str) -> &str {
    let host = rest.split('/').next().unwrap_or_default();
    let user = match host.rsplit_once(':') {
        _ if host.contains('@') => host,
        Some((_, port)) if !port.is_empty() && !port.chars().all(|c| c.is_ascii_digit()) => rest,
        _ => host,
    };
    user.rfind('@').map_or(rest, |at| &rest[at + 1..])
}

/// Returns the server of a source that contains no user, as in the mount table: `nas` of `nas:/path`,
/// `//nas/share` and `http://nas/`.
pub fn server_of_source(source: &str) -> &str {
    let rest = source.find("//").map_or(source, |at| &source[at + 2..]);
    match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, _)) => address,
        None => rest.split(['/', ':']).next().unwrap_or_default(),
    }
}

/// Returns a server's name in lower case, without Bonjour's service and domain (`NAS._smb._tcp.local`), which only say how it was
/// found.
pub fn server_name(source: &str) -> String {
    let name = percent_decode(server_of_source(source)).to_lowercase();
    let name = name.split("._").next().unwrap_or_default();
    name.trim_end_matches('.').trim_end_matches(".local").to_owned()
}

/// Endings of host names in a home: with and without one of them a name is that of the same server.
const HOME_DOMAINS: [&str; 6] = [".local", ".lan", ".home", ".fritz.box", ".home.arpa", ".localdomain"];

/// Returns the option of [`SHARE_KEYS`] for a source, and a tag of its server and share: four hexadecimal digits, enough to notice
/// another one, too few to find a name by trying. `None` if the server is an address, which can change although the server is the
/// same.
pub fn share_option(source: &str, machine: &str) -> Option<(String, String)> {
    let written = server_of_source(source);
    let server = percent_decode(written).to_lowercase();
    if server.is_empty() || server.contains(':') || server.parse::<Ipv4Addr>().is_ok() {
        return None;
    }
    let (key, name) = match server.split_once("._") {
        Some((service, _)) => (SHARE_KEYS[1], service),
        None => {
            let host = server.trim_end_matches('.');
            (SHARE_KEYS[0], HOME_DOMAINS.iter().find_map(|domain| host.strip_suffix(domain)).unwrap_or(host))
        }
    };
    let after_server = source.split_once(written).map_or("", |(_, share)| share);
    let share = percent_decode(after_server).to_lowercase();
    let text = [machine, name, share.trim_matches(['/', ':'])].join("\n");
    let hash = text.bytes().fold(0, |hash, byte| draw(hash, 0, byte.into()));
    Some((key.to_owned(), format!("{:04x}", hash & 0xffff)))
}

/// Returns whether a host name means this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host == "::1" || host.starts_with("127.")
}

/// Decodes `%20` and similar escapes. An incomplete escape stays as it is.
pub fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%').then(|| hexadecimal(bytes.get(at + 1..at + 3)?)).flatten();
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_of_a_share_does_not_depend_on_the_way_to_its_server() {
        let option = |source: &str| share_option(source, "e519d25a2d8d8230");
        let nas = option("//nas/media").unwrap();
        assert_eq!(nas.0, "longhaul-share");
        for same in ["//NAS.local/Media", "//nas.local./media/", "//nas.fritz.box/m%65dia"] {
            assert_eq!(option(same).as_ref(), Some(&nas), "{same}");
        }
        for other in ["//nas2/media", "//nas/home", "nas:/volume1/media", "//nas.berlin.corp/media"] {
            assert_ne!(option(other).as_ref(), Some(&nas), "{other}");
        }
        assert_ne!(option("//nas.berlin.corp/home"), option("//nas.paris.corp/home"));
        assert_ne!(share_option("//nas/media", "another machine"), Some(nas));
        let bonjour = option("//Ada%27s%20NAS._smb._tcp.local/media").unwrap();
        assert_eq!(bonjour.0, "longhaul-bonjour-share");
        assert_ne!(option("//Bob%27s%20NAS._smb._tcp.local/media"), Some(bonjour));
        for unknown in ["//192.168.1.5/media", "[fe80::1%25en0]:/media", ""] {
            assert_eq!(option(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn no_user_and_no_password_is_left_in_a_source() {
        for (written, shown) in [
            ("//ada:secret@nas/media", "//nas/media"),
            ("//ada@nas._smb._tcp.local/my%20share", "//nas._smb._tcp.local/my%20share"),
            ("//WORK;ada:@nas/media", "//nas/media"),
            ("//guest:@[fe80::1%25en0]/media", "//[fe80::1%25en0]/media"),
            ("//ada:pa/ss@nas/media", "//nas/media"),
            ("ada@nas:/volume1", "nas:/volume1"),
            ("https://ada:secret@cloud.example:8443/dav", "https://cloud.example:8443/dav"),
            ("sshfs#ada@nas:", "nas:"),
            ("curlftpfs#ftp://ada:secret@nas/", "curlftpfs#ftp://nas/"),
            (":sftp,host=nas,pass=secret:/volume1", ":sftp"),
        ] {
            assert_eq!(without_credentials(written), shown);
        }
    }

    #[test]
    fn a_source_without_a_user_stays_as_it_is() {
        for source in
            ["nas:/volume1/@home", "//nas/a@b", "//nas:445/a@b", "[fe80::1]:/x", "systemd-1", "map -hosts"]
        {
            assert_eq!(without_credentials(source), source);
        }
    }

    #[test]
    fn the_host_is_found_in_each_kind_of_source() {
        for source in ["nas:/x", "//nas/x", "//nas:445/x", "https://nas/", "[nas]:/x"] {
            assert_eq!(server_of_source(source), "nas", "{source}");
        }
        assert!(
            is_loopback(server_of_source("[::1]:/x"))
                && is_loopback(server_of_source("127.0.0.1:/x"))
                && !is_loopback(server_of_source("nas:/x"))
        );
    }

    #[test]
    fn an_incomplete_escape_is_text() {
        assert_eq!(percent_decode("a%20b%2"), "a b%2");
        assert_eq!(percent_decode("%zz%C3%BC%"), "%zzü%");
    }
}
