//! The page of the checks apart from speed: whether what a target shows is current, whole, and all there.

use axum::response::Response;
use longhaul_analysis::checks::{freshness, integrity_lines};
use longhaul_model::Timestamp;
use longhaul_view::charts::SeriesStyles;
use longhaul_view::render::html::render;
use longhaul_view::screens::checks;
use maud::html;

use super::{NavItem, render_page};
use crate::app_state::AppState;
use crate::cache::local_zone;

/// Serves the page of the checks.
pub async fn checks(app: AppState) -> Response {
    render_page(app, NavItem::Checks, |cache| {
        let newest = cache.newest_week()?;
        let targets = &cache.weekly(newest)?.targets;
        let (zone, styles) = (local_zone(), SeriesStyles::for_targets(targets));
        let cells = freshness(&cache.reader.freshness(Timestamp::MIN)?);
        let lines = integrity_lines(&cache.reader.verified_totals()?, &cache.reader.mismatches(None)?);
        let documents = [
            checks::freshness(&cells).into_section("freshness"),
            checks::integrity(&lines, &zone).into_section("integrity"),
            checks::fidelity(&cache.reader.fidelity()?, &zone).into_section("fidelity"),
        ];
        Ok(html! {
            h1 { "Checks" }
            p { "A share can be fast because it shows stale data, or because it drops what it cannot keep. Each check says what was \
                found on each target." }
            @for document in &documents { (render(document, &styles)) }
        })
    })
    .await
}
