//! Access rules for requests.
//!
//! Any web page that is open in a browser can send requests to 127.0.0.1, and by DNS rebinding it could even read
//! the responses. Therefore the Host header must be one of ours, and a request with an Origin must come from our
//! own page. A command must carry the token, which only the user who can read the token file has, or come from our
//! own page in a browser with the session cookie (see [`LoginKeys`]).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::connections::GuardedBody;
use crate::keys::{LoginKeys, constant_time_eq};

/// The network from which a listener accepts requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Requests from this machine only.
    Loopback,
    /// Requests from any machine that can reach this one. The Host header cannot be checked then, since the name
    /// is unknown; instead a request needs the token, the session cookie or, to read, the read key, and a page on a
    /// rebound name has none of them. Only the login page is open to everyone, because it redeems a key.
    Network,
}

/// The access rules of one listener.
#[derive(Clone)]
pub struct Guard {
    /// The network from which the listener accepts requests.
    pub exposure: Exposure,
    /// Port that the server listens on.
    pub port: u16,
    /// Secret that commands from programs have to carry.
    pub token: Arc<str>,
    /// Key with which a program may read, also from another machine; it allows no command.
    pub read_key: Option<Arc<str>>,
    /// One-time keys and the session cookie, for commands from pages.
    pub keys: LoginKeys,
    /// Limits the requests in flight from callers without token and key, plus open event streams. The limit is
    /// below the number of connections, so a caller with the token always gets a connection.
    pub requests: Arc<Semaphore>,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Host,
    Ambiguous,
    Origin,
    Token,
    Unauthenticated,
    Busy,
}

/// Trust level of an allowed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// A program with the token, or a browser with the session cookie.
    Trusted,
    /// Any other caller.
    Anyone,
}

/// Path of the login page.
const LOGIN_PATH: &str = "/login";
/// Path of the event stream of a page. Its response lasts for as long as the page is open.
pub const STREAM_PATH: &str = "/stream";

/// Middleware that runs a request or refuses it, and limits the number of requests in flight.
pub async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.authorize(request.method(), request.uri(), request.headers()) {
        Ok(Caller::Trusted) if request.uri().path() != STREAM_PATH => next.run(request).await,
        Ok(_) => match Arc::clone(&guard.requests).try_acquire_owned() {
            Ok(permit) => next.run(request).await.map(|body| Body::new(GuardedBody::new(body, permit))),
            Err(_) => Refusal::Busy.into_response(),
        },
        Err(refusal) => refusal.into_response(),
    }
}

/// Returns the value of a header that must not be repeated; `None` if the header is absent.
fn single_header(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(|value| value.to_str().unwrap_or("?"))),
        (_, Some(_)) => Err(Refusal::Ambiguous),
    }
}

/// Parses a host with an optional port. A user name (`user@host`) is not allowed.
fn parse_authority(text: &str) -> Option<Authority> {
    text.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))
}

impl Guard {
    fn authorize(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let path = uri.path();
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let (host, origin) = (single_header(headers, header::HOST)?, single_header(headers, header::ORIGIN)?);
        let host =
            host.and_then(parse_authority).filter(|host| self.is_own_host(host)).ok_or(Refusal::Host)?;
        if !has_matching_host(uri, &host) {
            return Err(Refusal::Host);
        }
        if !origin.is_none_or(|origin| self.is_own_origin(origin, &host)) {
            return Err(Refusal::Origin);
        }
        let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let is_harmless = matches!(*method, Method::GET | Method::HEAD);
        let is = |key: &str| given.is_some_and(|given| constant_time_eq(given.as_bytes(), key.as_bytes()));
        let is_token = is(&self.token);
        let is_reader = self.read_key.as_ref().is_some_and(|key| is(key));
        // A browser sends an Origin header with every POST request; without one, the request was not made by a
        // page.
        let is_known = self.keys.has_session(headers);
        let is_page = origin.is_some() && is_known;
        match self.exposure {
            _ if is_token || is_page || (is_harmless && (is_known || is_reader)) => Ok(Caller::Trusted),
            Exposure::Loopback if is_harmless => Ok(Caller::Anyone),
            Exposure::Network if is_harmless && path == LOGIN_PATH => Ok(Caller::Anyone),
            Exposure::Loopback => Err(Refusal::Token),
            Exposure::Network => Err(Refusal::Unauthenticated),
        }
    }

    fn is_own_host(&self, host: &Authority) -> bool {
        let (name, text) = (host.host(), host.as_str());
        let is_known = match self.exposure {
            Exposure::Loopback => matches!(name, "127.0.0.1" | "localhost"),
            Exposure::Network => true,
        };
        // Compare the port as text: a parser would accept `+80` and `080` as 80.
        let port = text.strip_prefix(name).unwrap_or(text);
        is_known && (port == format!(":{}", self.port) || (port.is_empty() && self.port == 80))
    }

    /// Returns whether an Origin is our own page: on the loopback listener either of its names, on the network
    /// listener the host of the request.
    fn is_own_origin(&self, origin: &str, requested: &Authority) -> bool {
        let page = origin.strip_prefix("http://").and_then(parse_authority);
        page.is_some_and(|page| match self.exposure {
            Exposure::Loopback => self.is_own_host(&page),
            Exposure::Network => page == *requested,
        })
    }
}

/// Returns whether the request line names no host, or the same one as the Host header. A server must prefer the
/// request line (RFC 9112, section 3.2.2).
fn has_matching_host(uri: &Uri, host: &Authority) -> bool {
    let is_http = uri.scheme_str().is_none_or(|scheme| scheme == "http");
    is_http && uri.authority().is_none_or(|named| named.as_str() == host.as_str())
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Host => (StatusCode::MISDIRECTED_REQUEST, "this host name is not longhaul's"),
            Self::Ambiguous => {
                (StatusCode::BAD_REQUEST, "a request must have one Host header and at most one Origin")
            }
            Self::Origin => (StatusCode::FORBIDDEN, "requests from pages of other sites are not allowed"),
            Self::Token => (
                StatusCode::UNAUTHORIZED,
                "a command needs the token from the file next to the database; in a browser, open the page again with `longhaul dashboard`",
            ),
            Self::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "access from another machine needs a key: run `longhaul dashboard` on the machine with the service to print an address with a key",
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests: try again in a moment, or with the token or a key",
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
        judge_from(Exposure::Loopback, "/", method, headers).map(drop)
    }

    fn judge_from(
        exposure: Exposure,
        uri: &str,
        method: Method,
        headers: &[(&str, &str)],
    ) -> Result<Caller, Refusal> {
        let keys = LoginKeys::new(4000, "session".to_owned());
        let requests = Arc::new(Semaphore::new(1));
        let guard = Guard {
            exposure,
            port: 4000,
            token: "secret".into(),
            read_key: Some("reader".into()),
            keys,
            requests,
        };
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap()));
        guard.authorize(&method, &uri.parse().unwrap(), &headers.collect())
    }

    #[test]
    fn foreign_host_headers_are_refused() {
        for host in ["127.0.0.1:4000", "localhost:4000"] {
            assert_eq!(judge(Method::GET, &[("host", host)]), Ok(()));
        }
        for host in ["evil.example:4000", "127.0.0.1:4001", "127.0.0.1", "127.0.0.1.evil.example:4000", ""] {
            assert_eq!(judge(Method::GET, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(judge(Method::GET, &[]), Err(Refusal::Host));
    }

    #[test]
    fn foreign_origins_are_refused() {
        let from = |origin| judge(Method::GET, &[("host", "127.0.0.1:4000"), ("origin", origin)]);
        assert_eq!(from("http://127.0.0.1:4000"), Ok(()));
        for origin in
            ["https://evil.example", "null", "http://127.0.0.1:4001", "http://127.0.0.1:4000.evil.example"]
        {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn commands_need_the_token() {
        let with = |token| judge(Method::POST, &[("host", "127.0.0.1:4000"), ("authorization", token)]);
        assert_eq!(with("Bearer secret"), Ok(()));
        for token in ["Bearer secre", "Bearer secret2", "secret", "Bearer "] {
            assert_eq!(with(token), Err(Refusal::Token), "{token}");
        }
        assert_eq!(judge(Method::DELETE, &[("host", "127.0.0.1:4000")]), Err(Refusal::Token));
    }

    #[test]
    fn read_key_reads_from_the_network_and_commands_nothing() {
        let with = |method, key| {
            let headers = [("host", "nas.lan:4000"), ("authorization", key)];
            judge_from(Exposure::Network, "/api/v1/glance", method, &headers)
        };
        assert_eq!(with(Method::GET, "Bearer reader"), Ok(Caller::Trusted));
        assert_eq!(with(Method::GET, "Bearer reade"), Err(Refusal::Unauthenticated));
        assert_eq!(with(Method::POST, "Bearer reader"), Err(Refusal::Unauthenticated));
        let here = [("host", "127.0.0.1:4000"), ("authorization", "Bearer reader")];
        assert_eq!(judge(Method::POST, &here), Err(Refusal::Token));
    }

    #[test]
    fn page_commands_need_the_cookie_and_our_origin() {
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
    fn network_requests_need_the_token_or_the_cookie() {
        let network = |path: &str, method: Method, headers: &[(&str, &str)]| {
            judge_from(Exposure::Network, path, method, &[&[("host", "192.168.1.5:4000")], headers].concat())
                .map(drop)
        };
        let (cookie, bearer) = (("cookie", "longhaul-4000=session"), ("authorization", "Bearer secret"));
        for path in ["/", "/api/v1/status", "/stream", "/metrics", "/login/", "/assets/0/page.css"] {
            assert_eq!(network(path, Method::GET, &[]), Err(Refusal::Unauthenticated), "{path}");
            assert_eq!(network(path, Method::GET, &[cookie]), Ok(()), "{path}");
            assert_eq!(network(path, Method::GET, &[bearer]), Ok(()), "{path}");
        }
        assert_eq!(network("/login", Method::GET, &[]), Ok(()), "the login page is open, to redeem a key");
        assert_eq!(network("/login", Method::POST, &[]), Err(Refusal::Unauthenticated));
        let ours = ("origin", "http://192.168.1.5:4000");
        assert_eq!(network("/commands/pause", Method::POST, &[cookie, ours]), Ok(()));
        assert_eq!(network("/commands/pause", Method::POST, &[cookie]), Err(Refusal::Unauthenticated));
        for foreign in ["http://evil.example", "http://192.168.1.5:4001", "http://127.0.0.1:4000"] {
            let refused = network("/", Method::GET, &[cookie, ("origin", foreign)]);
            assert_eq!(refused, Err(Refusal::Origin), "{foreign}");
        }
    }

    #[test]
    fn malformed_hosts_and_ports_are_refused() {
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
    fn repeated_host_or_origin_headers_are_refused() {
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
    fn host_in_the_request_line_must_match_the_header() {
        let at = |uri: &str, host| judge_from(Exposure::Loopback, uri, Method::GET, &[("host", host)]);
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
            Exposure::Network,
            "http://evil.example:4000/",
            Method::GET,
            &[("host", "192.168.1.5:4000"), ("authorization", "Bearer secret")],
        );
        assert_eq!(network, Err(Refusal::Host));
    }

    #[test]
    fn only_the_token_and_the_cookie_are_trusted() {
        let with = |headers: &[(&str, &str)]| {
            judge_from(
                Exposure::Loopback,
                "/",
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
