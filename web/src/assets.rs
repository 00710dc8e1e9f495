//! The style, the script and the icon, inside the program. Their addresses change with their content, so a browser keeps
//! them for as long as it likes.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use longhaul_report::{charts, page};

/// An asset.
pub struct Asset {
    name: &'static str,
    kind: &'static str,
    content: String,
    /// Its address.
    pub address: String,
}

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

static ASSETS: LazyLock<[Asset; 6]> = LazyLock::new(|| {
    let style = [charts::STYLE, page::STYLE, include_str!("../assets/page.css")].concat();
    // Its licence goes wherever it goes.
    let licence = concat!("/*\n", include_str!("../assets/uplot/LICENSE"), "*/\n");
    let plot = [licence, include_str!("../assets/uplot/uPlot.iife.min.js")].concat();
    let plot_style = [licence, include_str!("../assets/uplot/uPlot.min.css")].concat();
    [
        asset("page.css", STYLE, style),
        asset("live.js", SCRIPT, include_str!("../assets/live.js").to_owned()),
        asset("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg").to_owned()),
        asset("uplot.css", STYLE, plot_style),
        asset("uplot.js", SCRIPT, plot),
        asset("pull.js", SCRIPT, include_str!("../assets/pull.js").to_owned()),
    ]
});

fn asset(name: &'static str, kind: &'static str, content: String) -> Asset {
    // FNV-1a, 64 bits: only a change has to be seen.
    let hash = content.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Asset { name, kind, address: format!("/assets/{hash:016x}/{name}"), content }
}

/// How all pages look.
pub fn style() -> &'static str {
    &ASSETS[0].address
}

/// What keeps a page live.
pub fn script() -> &'static str {
    &ASSETS[1].address
}

/// What lets a person pull through time in a picture: a style, and scripts in the order in which they run.
pub fn pulling() -> (&'static str, [&'static str; 2]) {
    (&ASSETS[3].address, [&ASSETS[4].address, &ASSETS[5].address])
}

/// The icon of the tab.
pub fn icon() -> &'static str {
    &ASSETS[2].address
}

/// An asset by its address. Nothing is read from disk.
pub async fn serve(Path((_, name)): Path<(String, String)>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => (
            [(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")],
            asset.content.as_str(),
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
