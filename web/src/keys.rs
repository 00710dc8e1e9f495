//! Login of browsers. A program with the token requests a one-time key; the browser that presents the key within a
//! minute gets a session cookie. The token itself never appears in a URL, in the browser history or in a cookie.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;

use crate::cookies::cookies;

/// Time after which an unused key expires.
const KEY_LIFETIME: Duration = Duration::from_secs(60);
/// Maximum number of unused keys; issuing another one drops the oldest.
const MAX_PENDING_KEYS: usize = 16;

/// Creates a random token: 32 bytes from `/dev/urandom` as hexadecimal digits.
///
/// # Errors
///
/// If `/dev/urandom` cannot be read.
pub fn new_token() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The unused one-time keys, and the secret of the session cookie.
#[derive(Clone)]
pub struct LoginKeys {
    /// Name of the cookie. It contains the port, because browsers share cookies between all ports of a host.
    cookie_name: Arc<str>,
    session_secret: Arc<str>,
    pending: Arc<Mutex<Vec<(String, Instant)>>>,
}

impl LoginKeys {
    /// Creates the login state without any key. `session` is the secret of the cookie; it changes when the service
    /// restarts.
    pub fn new(port: u16, session: String) -> Self {
        Self {
            cookie_name: format!("longhaul-{port}").into(),
            session_secret: session.into(),
            pending: Arc::default(),
        }
    }

    /// Stores a new one-time key.
    pub fn issue(&self, key: &str, now: Instant) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.retain(|(_, since)| now.duration_since(*since) < KEY_LIFETIME);
        if pending.len() >= MAX_PENDING_KEYS {
            pending.remove(0);
        }
        pending.push((key.to_owned(), now));
    }

    /// Redeems a one-time key: returns the `Set-Cookie` value, or `None` if the key is unknown, expired or already
    /// used.
    pub fn redeem(&self, key: &str, now: Instant) -> Option<String> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(known, since): &(String, Instant)| {
            constant_time_eq(known.as_bytes(), key.as_bytes()) && now.duration_since(*since) < KEY_LIFETIME
        };
        let index = pending.iter().position(is_it)?;
        pending.remove(index);
        Some(format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name, self.session_secret))
    }

    /// Returns whether a request carries the session cookie of this service, so that its browser may give commands.
    pub fn has_session(&self, headers: &HeaderMap) -> bool {
        cookies(headers, &self.cookie_name)
            .any(|value| constant_time_eq(value.as_bytes(), self.session_secret.as_bytes()))
    }
}

/// Compares two byte strings in constant time, so that the duration does not reveal the position of the first
/// difference.
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    #[test]
    fn key_works_once_and_expires_after_a_minute() {
        let (keys, now) = (LoginKeys::new(4000, "secret".to_owned()), Instant::now());
        keys.issue("a", now);
        keys.issue("b", now);
        assert_eq!(keys.redeem("c", now), None);
        let cookie = keys.redeem("a", now).unwrap();
        assert!(cookie.starts_with("longhaul-4000=secret;") && cookie.contains("HttpOnly; SameSite=Strict"));
        assert_eq!(keys.redeem("a", now), None, "a key works once");
        assert_eq!(keys.redeem("b", now + KEY_LIFETIME), None, "a key expires after a minute");
    }

    #[test]
    fn only_the_cookie_of_this_service_is_accepted() {
        let keys = LoginKeys::new(4000, "secret".to_owned());
        let with = |cookie: &str| {
            keys.has_session(&[(header::COOKIE, cookie.parse().unwrap())].into_iter().collect())
        };
        assert!(with("longhaul-4000=secret") && with("a=b; longhaul-4000=secret"));
        for cookie in ["longhaul-4001=secret", "longhaul-4000=secre", "longhaul-4000=", "secret", ""] {
            assert!(!with(cookie), "{cookie}");
        }
        assert!(!keys.has_session(&HeaderMap::new()));
    }
}
