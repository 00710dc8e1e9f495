//! Stylesheets, scripts and the icon, compiled into the program. The URL of an asset contains a hash of its
//! content, so browsers may cache it for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use longhaul_model::fnv;
use longhaul_view::{charts, page};

/// A static file that the server sends: stylesheet, script or icon.
pub struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: String,
    /// URL path of the asset, with the hash of its content.
    pub url: String,
}

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

static ASSETS: LazyLock<[Asset; 5]> = LazyLock::new(|| {
    let style = [charts::STYLE, page::STYLE, include_str!("../assets/page.css")].concat();
    [
        new_asset("page.css", STYLE, style),
        new_asset("live.js", SCRIPT, include_str!("../assets/live.js").to_owned()),
        new_asset("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned()),
        new_asset("marks.js", SCRIPT, include_str!("../assets/marks.js").to_owned()),
        new_asset("zoom.js", SCRIPT, include_str!("../assets/zoom.js").to_owned()),
    ]
});

fn new_asset(name: &'static str, kind: &'static str, content: String) -> Asset {
    let hash = fnv(content.bytes());
    Asset { name, media_type: kind, url: format!("/assets/{hash:016x}/{name}"), content }
}

/// Returns the URL of the stylesheet of all pages.
pub fn style_url() -> &'static str {
    &ASSETS[0].url
}

/// Returns the URLs of the scripts of all pages: one updates the live parts, one tells the marks of charts to the keyboard.
pub fn script_urls() -> [&'static str; 2] {
    [&ASSETS[1].url, &ASSETS[3].url]
}

/// Returns the URL of the script that zooms in charts.
pub fn zoom_url() -> &'static str {
    &ASSETS[4].url
}

/// Returns the URL of the favicon.
pub fn icon_url() -> &'static str {
    &ASSETS[2].url
}

/// Serves an asset by its name, from memory. The hash in the path is ignored.
pub async fn serve(Path((_, name)): Path<(String, String)>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => (
            [(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, "public, max-age=31536000, immutable")],
            asset.content.as_str(),
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
