//! Mount sources as users may see them: without user names, passwords and escapes.

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
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn any_text_ends_without_panic(text in ".{0,80}") {
            let cleaned = without_credentials(&text);
            prop_assert!(server_of_source(&cleaned).len() <= cleaned.len());
            prop_assert!(percent_decode(&text).len() <= text.len() * 3);
        }
    }
}
