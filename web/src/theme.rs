//! Light and dark colours: those of the system, or the ones that the reader chose. The choice is in a cookie, so that it works
//! without a script.

use crate::cookies::cookies;
use crate::params::Params;
use axum::http::HeaderMap;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

/// Name of the cookie.
const COOKIE_NAME: &str = "longhaul-theme";

/// Colours of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// As the system is set.
    #[default]
    System,
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

impl Theme {
    /// All themes, in the order of the switch.
    pub const ALL: [Theme; 3] = [Self::System, Self::Light, Self::Dark];

    /// Returns the name, as the cookie and the page contain it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Returns the label of its button.
    pub const fn label(self) -> &'static str {
        match self {
            Self::System => "Auto",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }

    /// Returns the theme with this name; the default for any other text.
    fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|theme| theme.name() == name).unwrap_or_default()
    }

    /// Returns the theme that the cookie of a request chooses.
    pub fn of_request(headers: &HeaderMap) -> Self {
        cookies(headers, COOKIE_NAME).next().map_or(Self::System, Self::from_name)
    }
}

/// Query of the switch.
#[derive(Debug, Deserialize)]
pub struct ThemeParams {
    /// Name of the theme.
    to: String,
    /// Path of the page that the reader came from.
    #[serde(default)]
    back: String,
}

/// Stores the choice in a cookie for a year, and returns to the page that the reader came from.
pub async fn choose(Params(params): Params<ThemeParams>) -> Response {
    let theme = Theme::from_name(&params.to).name();
    let cookie = format!("{COOKIE_NAME}={theme}; Path=/; Max-Age=31536000; SameSite=Strict; HttpOnly");
    ([(SET_COOKIE, cookie)], Redirect::to(own_path(&params.back))).into_response()
}

/// Returns a path of this server, or `/` for anything that a browser could take for another server.
fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;

    #[test]
    fn only_own_paths_are_returned_to() {
        assert_eq!(own_path("/latency?days=7&kind=read"), "/latency?days=7&kind=read");
        for foreign in ["", "//evil", "/\\evil", "https://evil", "/a\r\nb", "/ä"] {
            assert_eq!(own_path(foreign), "/", "{foreign:?}");
        }
    }

    #[test]
    fn cookie_among_others_chooses_the_theme() {
        let mut headers = HeaderMap::new();
        assert_eq!(Theme::of_request(&headers), Theme::System);
        headers.insert(COOKIE, "key=1; longhaul-theme=dark; x=y".parse().unwrap());
        assert_eq!(Theme::of_request(&headers), Theme::Dark);
        headers.insert(COOKIE, "longhaul-theme=<b>".parse().unwrap());
        assert_eq!(Theme::of_request(&headers), Theme::System);
    }
}
