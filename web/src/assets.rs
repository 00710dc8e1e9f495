//! Stylesheets, scripts and the icon, compiled into the program. The URL of an asset contains a hash of its
//! content, so browsers may cache it for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
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

static ASSETS: LazyLock<[Asset; 6]> = LazyLock::new(|| {
    let style = [charts::STYLE, page::STYLE, include_str!("../assets/page.css")].concat();
    // The MIT licence of uPlot requires that its text is shipped with every copy.
    let licence = concat!("/*\n", include_str!("../assets/uplot/LICENSE"), "*/\n");
    let plot = [licence, include_str!("../assets/uplot/uPlot.iife.min.js")].concat();
    let plot_style = [licence, include_str!("../assets/uplot/uPlot.min.css")].concat();
    [
        new_asset("page.css", STYLE, style),
        new_asset("live.js", SCRIPT, include_str!("../assets/live.js").to_owned()),
        new_asset("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned()),
        new_asset("uplot.css", STYLE, plot_style),
        new_asset("uplot.js", SCRIPT, plot),
        new_asset("zoom.js", SCRIPT, include_str!("../assets/zoom.js").to_owned()),
    ]
});

fn new_asset(name: &'static str, kind: &'static str, content: String) -> Asset {
    // FNV-1a, 64 bits, is enough: the hash only has to change with the content; it protects against no attack.
    let hash = content.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Asset { name, media_type: kind, url: format!("/assets/{hash:016x}/{name}"), content }
}

/// Returns the URL of the stylesheet of all pages.
pub fn style_url() -> &'static str {
    &ASSETS[0].url
}

/// Returns the URL of the script that updates the live parts of a page.
pub fn script_url() -> &'static str {
    &ASSETS[1].url
}

/// Returns the URLs for zooming in charts: the stylesheet, and the scripts in the order in which they must run.
pub fn zoom_urls() -> (&'static str, [&'static str; 2]) {
    (&ASSETS[3].url, [&ASSETS[4].url, &ASSETS[5].url])
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
