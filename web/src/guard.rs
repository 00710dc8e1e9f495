//! Who may ask what.
//!
//! A page that a person has open somewhere may send requests to 127.0.0.1 too, and by rebinding a name it may even read
//! the answers. So the Host has to be ours, a request that comes from a page has to come from ours, and every order has to
//! carry the token, which only the owner of the file beside the database can read, or come from our own page in a browser
//! that bears the cookie (see [`Keys`]).

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

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
    pub token: std::sync::Arc<str>,
    /// What an order of a page has to bear.
    pub keys: Keys,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Host,
    Origin,
    Token,
    Stranger,
}

/// Where a key is brought to.
const ENTRANCE: &str = "/enter";

/// Lets a request through, or refuses it.
pub async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.judge(request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

impl Guard {
    fn judge(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = text(header::HOST).filter(|host| self.is_ours(host)).ok_or(Refusal::Host)?;
        if !text(header::ORIGIN).is_none_or(|origin| self.is_our_page(origin, host)) {
            return Err(Refusal::Origin);
        }
        let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let is_harmless = matches!(*method, Method::GET | Method::HEAD);
        let is_token = given.is_some_and(|given| is_same(given.as_bytes(), self.token.as_bytes()));
        // A browser says with every order from which page it comes.
        let is_page = text(header::ORIGIN).is_some() && self.keys.knows(headers);
        match self.reach {
            _ if is_token || is_page => Ok(()),
            Reach::Loopback if is_harmless => Ok(()),
            Reach::Network if is_harmless && (path == ENTRANCE || self.keys.knows(headers)) => Ok(()),
            Reach::Loopback => Err(Refusal::Token),
            Reach::Network => Err(Refusal::Stranger),
        }
    }

    /// Whether this browser may give orders.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        self.keys.knows(headers)
    }

    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
        let is_known = match self.reach {
            Reach::Loopback => matches!(name, "127.0.0.1" | "localhost"),
            Reach::Network => true,
        };
        is_known && port.parse() == Ok(self.port)
    }

    /// Whether a page is ours: on this machine by either of its names, from elsewhere by the name that was asked for.
    fn is_our_page(&self, origin: &str, asked: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|host| match self.reach {
            Reach::Loopback => self.is_ours(host),
            Reach::Network => host == asked,
        })
    }
}

/// Compares in a time that does not tell how much is right.
pub fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Self::Host => (StatusCode::MISDIRECTED_REQUEST, "this host name is not longhaul's"),
            Self::Origin => (StatusCode::FORBIDDEN, "a page of another site may not ask this"),
            Self::Token => {
                (StatusCode::UNAUTHORIZED, "an order needs the token of the file beside the database")
            }
            Self::Stranger => (
                StatusCode::UNAUTHORIZED,
                "from another machine the page needs a key: `longhaul page` on that machine prints an address that has one",
            ),
        };
        (status, axum::Json(json!({ "error": text }))).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(method: Method, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        judge_from((Reach::Loopback, "/"), method, headers)
    }

    fn judge_from(
        (reach, path): (Reach, &str),
        method: Method,
        headers: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        let keys = Keys::new(4000, "session".to_owned());
        let guard = Guard { reach, port: 4000, token: "secret".into(), keys };
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), value.parse().unwrap()));
        guard.judge(&method, path, &headers.collect())
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
}
