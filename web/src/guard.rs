//! Who may ask what.
//!
//! A page that a person has open somewhere may send requests to 127.0.0.1 too, and by rebinding a name it may even read
//! the answers. So the Host has to be ours, a request that comes from a page has to come from ours, and every order has to
//! carry the token, which only the owner of the file beside the database can read, or come from our own page in a browser
//! that bears the cookie (see [`Keys`]).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::connections::HeldBody;
use crate::keys::Keys;

/// From where somebody comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// From this machine.
    Loopback,
    /// From any machine that reaches this one. The Host says nothing then; instead whoever has no token and no key gets
    /// nothing, and a rebound name has no cookie.
    Network,
}

/// What is allowed.
#[derive(Clone)]
pub struct Guard {
    /// From where.
    pub reach: Reach,
    /// The port that is listened on.
    pub port: u16,
    /// What an order of a program has to carry.
    pub token: Arc<str>,
    /// What an order of a page has to bear.
    pub keys: Keys,
    /// How many requests of callers without token and key, and streams, may be in flight at a time. Fewer than there are
    /// connections: who holds the token finds a place among the others.
    pub requests: Arc<Semaphore>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Host,
    Ambiguous,
    Origin,
    Token,
    Stranger,
    Busy,
}

/// Who makes a request that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// A program with the token, or a browser with a key.
    Trusted,
    /// Anybody on this machine.
    Anyone,
}

/// Where a key is brought to.
const ENTRANCE: &str = "/enter";
/// The stream of a page, which lasts.
pub const STREAM: &str = "/events";

/// Lets a request through, or refuses it.
pub async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.judge(request.method(), request.uri(), request.headers()) {
        Ok(Caller::Trusted) if request.uri().path() != STREAM => next.run(request).await,
        Ok(_) => match Arc::clone(&guard.requests).try_acquire_owned() {
            Ok(permit) => next.run(request).await.map(|body| Body::new(HeldBody::new(body, permit))),
            Err(_) => Refusal::Busy.into_response(),
        },
        Err(refusal) => refusal.into_response(),
    }
}

/// The only header of this name; `None`: there is none.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(|value| value.to_str().unwrap_or("?"))),
        (_, Some(_)) => Err(Refusal::Ambiguous),
    }
}

/// A host with or without a port, and nothing else.
fn authority(text: &str) -> Option<Authority> {
    text.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))
}

impl Guard {
    fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let path = uri.path();
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let (host, origin) = (only(headers, header::HOST)?, only(headers, header::ORIGIN)?);
        let host = host.and_then(authority).filter(|host| self.is_ours(host)).ok_or(Refusal::Host)?;
        if !names_this_host(uri, &host) {
            return Err(Refusal::Host);
        }
        if !origin.is_none_or(|origin| self.is_our_page(origin, &host)) {
            return Err(Refusal::Origin);
        }
        let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let is_harmless = matches!(*method, Method::GET | Method::HEAD);
        let is_token = given.is_some_and(|given| is_same(given.as_bytes(), self.token.as_bytes()));
        // A browser says with every order from which page it comes.
        let is_known = self.keys.knows(headers);
        let is_page = origin.is_some() && is_known;
        match self.reach {
            _ if is_token || is_page || (is_harmless && is_known) => Ok(Caller::Trusted),
            Reach::Loopback if is_harmless => Ok(Caller::Anyone),
            Reach::Network if is_harmless && path == ENTRANCE => Ok(Caller::Anyone),
            Reach::Loopback => Err(Refusal::Token),
            Reach::Network => Err(Refusal::Stranger),
        }
    }

    /// Whether this browser may give orders.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        self.keys.knows(headers)
    }

    fn is_ours(&self, host: &Authority) -> bool {
        let (name, text) = (host.host(), host.as_str());
        let is_known = match self.reach {
            Reach::Loopback => matches!(name, "127.0.0.1" | "localhost"),
            Reach::Network => true,
        };
        // As text, since a number may be written in many ways: `+80` and `080` are read as 80.
        let port = text.strip_prefix(name).unwrap_or(text);
        is_known && (port == format!(":{}", self.port) || (port.is_empty() && self.port == 80))
    }

    /// Whether a page is ours: on this machine by either of its names, from elsewhere by the name that was asked for.
    fn is_our_page(&self, origin: &str, asked: &Authority) -> bool {
        let page = origin.strip_prefix("http://").and_then(authority);
        page.is_some_and(|page| match self.reach {
            Reach::Loopback => self.is_ours(&page),
            Reach::Network => page == *asked,
        })
    }
}

/// Whether a request names no host in its first line, or the same one as in its Host: a server has to go by the former
/// (RFC 9112, section 3.2.2).
fn names_this_host(uri: &Uri, host: &Authority) -> bool {
    let is_http = uri.scheme_str().is_none_or(|scheme| scheme == "http");
    is_http && uri.authority().is_none_or(|named| named.as_str() == host.as_str())
}

/// Compares in a time that does not tell how much is right.
pub fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Host => (StatusCode::MISDIRECTED_REQUEST, "this host name is not longhaul's"),
            Self::Ambiguous => {
                (StatusCode::BAD_REQUEST, "a request has one Host header, and at most one Origin")
            }
            Self::Origin => (StatusCode::FORBIDDEN, "a page of another site may not ask this"),
            Self::Token => {
                (StatusCode::UNAUTHORIZED, "an order needs the token of the file beside the database")
            }
            Self::Stranger => (
                StatusCode::UNAUTHORIZED,
                "from another machine the page needs a key: `longhaul page` on that machine prints an address that has one",
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests at a time: try again in a moment, or with the token or a key",
            ),
        };
        let mut response = (status, axum::Json(json!({ "error": text }))).into_response();
        if self == Self::Busy {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(method: Method, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        judge_from((Reach::Loopback, "/"), method, headers).map(drop)
    }

    fn judge_from(
        (reach, uri): (Reach, &str),
        method: Method,
        headers: &[(&str, &str)],
    ) -> Result<Caller, Refusal> {
        let keys = Keys::new(4000, "session".to_owned());
        let requests = Arc::new(Semaphore::new(1));
        let guard = Guard { reach, port: 4000, token: "secret".into(), keys, requests };
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap()));
        guard.judge(&method, &uri.parse().unwrap(), &headers.collect())
    }

    #[test]
    fn only_our_own_host_is_answered() {
        for host in ["127.0.0.1:4000", "localhost:4000"] {
            assert_eq!(judge(Method::GET, &[("host", host)]), Ok(()));
        }
        for host in ["evil.example:4000", "127.0.0.1:4001", "127.0.0.1", "127.0.0.1.evil.example:4000", ""] {
            assert_eq!(judge(Method::GET, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(judge(Method::GET, &[]), Err(Refusal::Host));
    }

    #[test]
    fn a_page_of_another_site_gets_nothing() {
        let from = |origin| judge(Method::GET, &[("host", "127.0.0.1:4000"), ("origin", origin)]);
        assert_eq!(from("http://127.0.0.1:4000"), Ok(()));
        for origin in
            ["https://evil.example", "null", "http://127.0.0.1:4001", "http://127.0.0.1:4000.evil.example"]
        {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn every_order_needs_the_token() {
        let with = |token| judge(Method::POST, &[("host", "127.0.0.1:4000"), ("authorization", token)]);
        assert_eq!(with("Bearer secret"), Ok(()));
        for token in ["Bearer secre", "Bearer secret2", "secret", "Bearer "] {
            assert_eq!(with(token), Err(Refusal::Token), "{token}");
        }
        assert_eq!(judge(Method::DELETE, &[("host", "127.0.0.1:4000")]), Err(Refusal::Token));
    }

    #[test]
    fn an_order_of_a_page_needs_the_cookie_and_our_own_origin() {
        let host = ("host", "127.0.0.1:4000");
        let (ours, cookie) = (("origin", "http://127.0.0.1:4000"), ("cookie", "longhaul-4000=session"));
        assert_eq!(judge(Method::POST, &[host, ours, cookie]), Ok(()));
        assert_eq!(judge(Method::POST, &[host, cookie]), Err(Refusal::Token), "no origin");
        assert_eq!(judge(Method::POST, &[host, ours]), Err(Refusal::Token), "no cookie");
        assert_eq!(
            judge(Method::POST, &[host, ours, ("cookie", "longhaul-4000=other")]),
            Err(Refusal::Token)
        );
        let foreign = ("origin", "http://127.0.0.1:4001");
        assert_eq!(judge(Method::POST, &[host, foreign, cookie]), Err(Refusal::Origin));
    }

    #[test]
    fn from_another_machine_nothing_is_read_without_a_token_or_a_key() {
        let network = |path: &str, method: Method, headers: &[(&str, &str)]| {
            judge_from((Reach::Network, path), method, &[&[("host", "192.168.1.5:4000")], headers].concat())
                .map(drop)
        };
        let (cookie, bearer) = (("cookie", "longhaul-4000=session"), ("authorization", "Bearer secret"));
        for path in ["/", "/api/v1/status", "/events", "/metrics", "/enter/", "/assets/0/page.css"] {
            assert_eq!(network(path, Method::GET, &[]), Err(Refusal::Stranger), "{path}");
            assert_eq!(network(path, Method::GET, &[cookie]), Ok(()), "{path}");
            assert_eq!(network(path, Method::GET, &[bearer]), Ok(()), "{path}");
        }
        assert_eq!(network("/enter", Method::GET, &[]), Ok(()), "to bring a key");
        assert_eq!(network("/enter", Method::POST, &[]), Err(Refusal::Stranger));
        let ours = ("origin", "http://192.168.1.5:4000");
        assert_eq!(network("/orders/pause", Method::POST, &[cookie, ours]), Ok(()));
        assert_eq!(network("/orders/pause", Method::POST, &[cookie]), Err(Refusal::Stranger));
        for foreign in ["http://evil.example", "http://192.168.1.5:4001", "http://127.0.0.1:4000"] {
            let refused = network("/", Method::GET, &[cookie, ("origin", foreign)]);
            assert_eq!(refused, Err(Refusal::Origin), "{foreign}");
        }
    }

    #[test]
    fn a_port_is_read_as_digits_and_a_host_as_a_name() {
        for host in [
            "127.0.0.1:+4000",
            "127.0.0.1:04000",
            "127.0.0.1:4000:4000",
            "127.0.0.1:",
            "127.0.0.1: 4000",
            "localhost:4000/",
            "evil.example@127.0.0.1:4000",
            "127.0.0.1:4000@evil.example",
            "127.0.0.1:4000, evil.example",
            "[127.0.0.1]:4000",
        ] {
            assert_eq!(judge(Method::GET, &[("host", host)]), Err(Refusal::Host), "{host}");
            let origin = format!("http://{host}");
            let page = [("host", "127.0.0.1:4000"), ("origin", origin.as_str())];
            assert_eq!(judge(Method::GET, &page), Err(Refusal::Origin), "{host}");
        }
    }

    #[test]
    fn two_hosts_or_two_origins_are_refused() {
        let ours = ("host", "127.0.0.1:4000");
        for second in ["127.0.0.1:4000", "evil.example"] {
            let hosts = judge(Method::GET, &[ours, ("host", second)]);
            assert_eq!(hosts, Err(Refusal::Ambiguous), "{second}");
        }
        let page = ("origin", "http://127.0.0.1:4000");
        for second in ["http://127.0.0.1:4000", "https://evil.example", "null"] {
            let origins = judge(Method::GET, &[ours, page, ("origin", second)]);
            assert_eq!(origins, Err(Refusal::Ambiguous), "{second}");
        }
    }

    #[test]
    fn a_host_in_the_first_line_has_to_be_the_same() {
        let at = |uri: &str, host| judge_from((Reach::Loopback, uri), Method::GET, &[("host", host)]);
        assert_eq!(at("http://127.0.0.1:4000/", "127.0.0.1:4000"), Ok(Caller::Anyone));
        for uri in [
            "http://evil.example/",
            "http://evil.example:4000/",
            "http://localhost:4000/",
            "http://127.0.0.1:+4000/",
            "https://127.0.0.1:4000/",
            "evil.example:4000",
        ] {
            assert_eq!(at(uri, "127.0.0.1:4000"), Err(Refusal::Host), "{uri}");
        }
        let network = judge_from(
            (Reach::Network, "http://evil.example:4000/"),
            Method::GET,
            &[("host", "192.168.1.5:4000"), ("authorization", "Bearer secret")],
        );
        assert_eq!(network, Err(Refusal::Host));
    }

    #[test]
    fn the_token_and_a_key_are_trusted_and_nobody_else_is() {
        let with = |headers: &[(&str, &str)]| {
            judge_from(
                (Reach::Loopback, "/"),
                Method::GET,
                &[&[("host", "127.0.0.1:4000")], headers].concat(),
            )
        };
        assert_eq!(with(&[("authorization", "Bearer secret")]), Ok(Caller::Trusted));
        assert_eq!(with(&[("cookie", "longhaul-4000=session")]), Ok(Caller::Trusted));
        assert_eq!(with(&[]), Ok(Caller::Anyone));
        assert_eq!(with(&[("authorization", "Bearer wrong")]), Ok(Caller::Anyone));
    }
}
