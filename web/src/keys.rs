//! How a browser comes to give orders: whoever holds the token asks for a key, and the browser that brings the key, once and
//! within a minute, gets a cookie. So the token itself is in no address, no history and no cookie.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use crate::guard::is_same;

/// How long a key may wait for its browser.
const KEY_LASTS: Duration = Duration::from_secs(60);
/// More keys than this are not asked for by a person.
const MOST_KEYS: usize = 16;

/// The keys that are out, and what the cookie holds.
#[derive(Clone)]
pub struct Keys {
    /// Cookies are shared by all ports of a host, so that each port has a name of its own.
    name: Arc<str>,
    session: Arc<str>,
    out: Arc<Mutex<Vec<(String, Instant)>>>,
}

impl Keys {
    /// No key is out. The session is known to nobody and ends with the service.
    pub fn new(port: u16, session: String) -> Self {
        Self { name: format!("longhaul-{port}").into(), session: session.into(), out: Arc::default() }
    }

    /// Remembers a new key.
    pub fn hand_out(&self, key: &str, now: Instant) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.retain(|(_, since)| now.duration_since(*since) < KEY_LASTS);
        if out.len() >= MOST_KEYS {
            out.remove(0);
        }
        out.push((key.to_owned(), now));
    }

    /// The cookie for a key; `None` for one that is not out, or no longer. A key is good once.
    pub fn take_in(&self, key: &str, now: Instant) -> Option<String> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(known, since): &(String, Instant)| {
            is_same(known.as_bytes(), key.as_bytes()) && now.duration_since(*since) < KEY_LASTS
        };
        let place = out.iter().position(is_it)?;
        out.remove(place);
        Some(format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.name, self.session))
    }

    /// Whether a request bears the cookie.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| *name == *self.name && is_same(value.as_bytes(), self.session.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_once_and_for_a_minute() {
        let (keys, now) = (Keys::new(4000, "secret".to_owned()), Instant::now());
        keys.hand_out("a", now);
        keys.hand_out("b", now);
        assert_eq!(keys.take_in("c", now), None);
        let cookie = keys.take_in("a", now).unwrap();
        assert!(cookie.starts_with("longhaul-4000=secret;") && cookie.contains("HttpOnly; SameSite=Strict"));
        assert_eq!(keys.take_in("a", now), None, "once");
        assert_eq!(keys.take_in("b", now + KEY_LASTS), None, "for a minute");
    }

    #[test]
    fn only_the_cookie_of_this_service_is_known() {
        let keys = Keys::new(4000, "secret".to_owned());
        let with =
            |cookie: &str| keys.knows(&[(header::COOKIE, cookie.parse().unwrap())].into_iter().collect());
        assert!(with("longhaul-4000=secret") && with("a=b; longhaul-4000=secret"));
        for cookie in ["longhaul-4001=secret", "longhaul-4000=secre", "longhaul-4000=", "secret", ""] {
            assert!(!with(cookie), "{cookie}");
        }
        assert!(!keys.knows(&HeaderMap::new()));
    }
}
